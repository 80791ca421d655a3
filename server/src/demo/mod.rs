//! `cublame demo`: a failure that was recorded on a real GPU, replayed through the whole pipeline on a machine without one.
//!
//! Only the recording is old. The run folders are laid into a temporary workspace with its paths, and everything after
//! that is what a run of today goes through: events and log are read, blamed, reported, rendered and published.

mod transcript;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cublame_core::catalog::Texts;
use cublame_core::run::{self, Exit, Report, Run};

use crate::error::{Error, Result};
use crate::session::RunFolder;
use crate::sources::{Judged, judge};

pub use transcript::transcript;

/// The folder in which the recording was made; its paths become those of the workspace.
const RECORDED_IN: &str = "/home/dev/proj";

pub const PROGRAM: &str = "embedding_oob.py";
const SOURCE: &str = include_str!("recorded/embedding_oob.py");

/// One recorded run of the program.
pub struct Recording {
    pub title: &'static str,
    id: &'static str,
    seconds_ago: f64,
    run: &'static str,
    events: &'static str,
    log: &'static str,
}

/// As a user meets it: the run at full speed, then the rerun with blocking launches.
///
/// NVIDIA H200, driver 580.159.04, CUDA 13.0, Python 3.12.3, torch 2.11.0, 2026-12-01.
pub const RECORDINGS: [Recording; 2] = [
    Recording {
        title: "cublame run --mode off -- python3 embedding_oob.py",
        id: "20261201T035021.371Z-819d822b",
        seconds_ago: 60.0,
        run: include_str!("recorded/off/run.json"),
        events: include_str!("recorded/off/events.jsonl"),
        log: include_str!("recorded/off/log.jsonl"),
    },
    Recording {
        title: "cublame run --mode blocking -- python3 embedding_oob.py",
        id: "20261201T035021.756Z-d9041d3e",
        seconds_ago: 3.0,
        run: include_str!("recorded/blocking/run.json"),
        events: include_str!("recorded/blocking/events.jsonl"),
        log: include_str!("recorded/blocking/log.jsonl"),
    },
];

/// A workspace in which the recorded runs have just ended.
pub struct Replayed {
    pub workspace: PathBuf,
    pub program: PathBuf,
    pub runs: Vec<ReplayedRun>,
}

pub struct ReplayedRun {
    pub title: &'static str,
    /// What the program printed, as lines.
    pub printed: Vec<String>,
    pub judged: Judged,
}

/// Lays the recording into an empty folder and judges each run, its report written where a run writes it.
pub fn replay(workspace: &Path, texts: &Texts) -> Result<Replayed> {
    let program = workspace.join(PROGRAM);
    fs::write(&program, SOURCE).map_err(|error| cannot_write(&program, error))?;
    let runs = RECORDINGS.iter().map(|recording| replay_one(recording, workspace, texts)).collect::<Result<_>>()?;
    Ok(Replayed { workspace: workspace.to_owned(), program, runs })
}

fn replay_one(recording: &Recording, workspace: &Path, texts: &Texts) -> Result<ReplayedRun> {
    let path = workspace.join(".cublame/runs").join(recording.id);
    let events = path.join("events");
    fs::create_dir_all(&events).map_err(|error| cannot_write(&events, error))?;
    for (file, text) in
        [("run.json", recording.run), ("log.jsonl", recording.log), ("events/1.jsonl", recording.events)]
    {
        let file = path.join(file);
        fs::write(&file, moved(text, workspace)).map_err(|error| cannot_write(&file, error))?;
    }
    let folder = RunFolder::open(&path)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let run = folder.run().whole().ok_or_else(|| Error::internal("the recorded run cannot be read"))?;
    let run = Run { id: recording.id.to_owned(), started: now - recording.seconds_ago, ..run };
    folder.write_run(&run).map_err(|error| cannot_write(&path, error))?;

    let mut evidence = folder.evidence();
    let exit = Exit { code: Some(1), signal: None };
    evidence.exit = Some(exit);
    evidence.blocking = run.blocking;
    let judged = judge(&evidence, &[workspace.to_owned()], Some(workspace), texts);
    let verdicts = judged.verdicts.clone();
    let report = Report {
        schema: run::SCHEMA,
        run: run.id,
        finished: now,
        exit,
        partial: Vec::new(),
        verdicts,
        telemetry: Vec::new(),
    };
    folder.write_report(&report).map_err(|error| cannot_write(&path, error))?;
    let printed = evidence.log.unwrap_or_default().lines.into_iter().map(|line| line.text).collect();
    Ok(ReplayedRun { title: recording.title, printed, judged })
}

/// The recorded text with the workspace's paths in it. Both are written as JSON strings.
fn moved(text: &str, workspace: &Path) -> String {
    let here = serde_json::Value::from(workspace.to_string_lossy()).to_string();
    text.replace(RECORDED_IN, here.trim_matches('"'))
}

fn cannot_write(path: &Path, error: std::io::Error) -> Error {
    Error::environment(format!("{} cannot be written", path.display()))
        .because(error)
        .hint("give a folder that can be written with --workspace")
}
