//! A run is a folder: `run.json`, `events/`, `log.jsonl`, `report.json`. Writers append, or write aside and rename.
//!
//! Everything in it is untrusted input, also when this product wrote it: reading is total, a damaged file is a value with
//! a sentence, and nothing follows a symbolic link out of the folder.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cublame_core::Evidence;
use cublame_core::evidence::ProcessEvents;
use cublame_core::hang::Hang;
use cublame_core::log::Log;
use cublame_core::run::{self, Report, Run, Watch};
use cublame_core::telemetry::{Record, Sample};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::place::{FOLDER, Surroundings};
use super::{events, stored_log, telemetry, traced};
use crate::error::{Error, Result};
use crate::os::{files, processes};

/// An existing run folder. Holding one keeps nothing open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

/// What a file of a run folder holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored<T> {
    Absent,
    Whole(T),
    /// A whole sentence that says what is wrong.
    Damaged(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its supervisor, or its process where it was adopted, is there.
    Live,
    Ended,
    /// Its supervisor went away without a report: killed, or the machine went down.
    Interrupted,
}

/// A new run folder, and what had to be done otherwise than asked to get it, as whole sentences.
#[derive(Debug)]
pub struct Created {
    pub folder: RunFolder,
    pub notes: Vec<String>,
}

impl RunFolder {
    /// Makes the folder of a new run in the project's folder, or in the user's state folder where that cannot be written.
    ///
    /// The folder is private to the user and has an empty `events/`; the caller writes `run.json` next.
    pub fn create(surroundings: &Surroundings, now: SystemTime) -> Result<Created> {
        let project = surroundings.project_folder(|path| path.symlink_metadata().is_ok());
        let failure = match make_run(&project, now) {
            Ok(folder) => return Ok(Created { folder, notes: Vec::new() }),
            Err(failure) => failure,
        };
        let refused = format!("{} cannot be used for run folders ({failure})", project.display());
        let hint = "set CUBLAME_DIR to a folder that you can write";
        let Some(state) = surroundings.state_folder() else {
            return Err(Error::environment(refused).hint(hint));
        };
        match make_run(&state, now) {
            Ok(folder) => {
                let notes = vec![format!("{refused}; this run is kept under {} instead.", state.display())];
                Ok(Created { folder, notes })
            }
            Err(second) => {
                Err(Error::environment(format!("{refused}, and neither can {} ({second})", state.display())).hint(hint))
            }
        }
    }

    /// An existing run folder. A symbolic link is refused.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Ok(Self { path }),
            Ok(_) => Err(Error::user(format!("{} is not a run folder", path.display()))
                .hint("give the folder runs/<id> itself, not a file or a link")),
            Err(failure) => {
                Err(Error::user(format!("the run folder {} cannot be opened", path.display())).because(failure))
            }
        }
    }

    /// The runs in `runs`, which is `<project folder>/runs`, newest first. What is not named like a run is left out.
    pub fn list(runs: &Path) -> Vec<Self> {
        let mut names: Vec<String> = files::names_beneath(runs, &[])
            .unwrap_or_default()
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .filter(|name| is_run_id(name))
            .collect();
        names.sort_unstable_by(|a, b| b.cmp(a));
        names.into_iter().filter_map(|name| Self::open(runs.join(name)).ok()).collect()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last part of its path. Sorting ids sorts the runs by their start.
    pub fn id(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The folder that holds this run and its siblings.
    pub fn siblings(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    pub fn run(&self) -> Stored<Run> {
        self.read_json(RUN, run::SCHEMA)
    }

    /// `run.json` is written at the start, and again when the child's number is known.
    pub fn write_run(&self, run: &Run) -> io::Result<()> {
        self.write_json(RUN, run)
    }

    pub fn report(&self) -> Stored<Report> {
        self.read_json(REPORT, run::SCHEMA)
    }

    /// Written last of all: who sees it finds the rest complete.
    pub fn write_report(&self, report: &Report) -> io::Result<()> {
        self.write_json(REPORT, report)
    }

    /// The run is silent; None: it goes on.
    pub fn write_hang(&self, hang: Option<&Hang>) -> io::Result<()> {
        match hang {
            Some(hang) => self.write_json(
                HANG,
                &serde_json::json!({ "schema": run::SCHEMA, "silent": hang.silent, "processes": hang.processes }),
            ),
            None => fs::remove_file(self.path.join(HANG)),
        }
    }

    pub fn report_path(&self) -> PathBuf {
        self.path.join(REPORT)
    }

    /// The hook's events, one entry a process in the order of their first event, and what could not be read.
    pub fn events(&self) -> (Vec<ProcessEvents>, Vec<String>) {
        events::read(&self.path)
    }

    /// The condensed log that the runner kept.
    pub fn log(&self) -> Stored<Log> {
        match files::read_beneath(&self.path, &[LOG], LARGEST_FILE) {
            Ok(bytes) => stored_log::parse(&bytes),
            Err(failure) if failure.kind() == io::ErrorKind::NotFound => Stored::Absent,
            Err(failure) => Stored::Damaged(format!("{LOG} cannot be read: {failure}.")),
        }
    }

    pub fn write_log(&self, log: &Log) -> io::Result<()> {
        self.write_aside(LOG, &stored_log::render(log)?)
    }

    /// The folder of one task of the job that the run is of.
    pub fn of_task(&self, rank: u32) -> io::Result<Self> {
        let path = self.path.join(TASKS).join(rank.to_string());
        for folder in [path.parent().unwrap_or(&path), &path, &path.join(EVENTS)] {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(failure) if failure.kind() != io::ErrorKind::AlreadyExists => return Err(failure),
                _ => {}
            }
        }
        Ok(Self { path })
    }

    /// The run that this is a task's folder of.
    pub fn job(&self) -> Option<Self> {
        let tasks = self.path.parent().filter(|folder| folder.file_name().is_some_and(|name| name == TASKS))?;
        Some(Self { path: tasks.parent()?.to_owned() })
    }

    /// Its tasks, by their ranks.
    fn tasks(&self) -> Vec<(u32, Self)> {
        let names = files::names_beneath(&self.path, &[TASKS]).unwrap_or_default();
        let ranks = names.into_iter().filter_map(|name| name.to_str()?.parse::<u32>().ok());
        let mut tasks: Vec<(u32, Self)> =
            ranks.map(|rank| (rank, Self { path: self.path.join(TASKS).join(rank.to_string()) })).collect();
        tasks.sort_unstable_by_key(|(rank, _)| *rank);
        tasks
    }

    /// Held while a task of the job reads what all have left, and writes the report anew.
    pub fn lock(&self) -> io::Result<fs::File> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.path.join(LOCK))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// The samples of the GPUs, by their times.
    pub fn telemetry(&self) -> Vec<Sample> {
        let samples = telemetry::read(&self.path).into_iter().filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        });
        let mut samples: Vec<Sample> = samples.collect();
        samples.sort_by(|a, b| a.time.total_cmp(&b.time));
        samples
    }

    /// All that the folder says of the failure, its tasks included. What is absent is empty, what is damaged is a sentence
    /// in `unread`.
    pub fn evidence(&self) -> Evidence {
        let mut all = self.own_evidence();
        for (rank, task) in self.tasks() {
            let Evidence { traced, log, processes, crashes, elastic, hang, unread, .. } = task.own_evidence();
            if let Some(hang) = hang {
                let all = all.hang.get_or_insert_default();
                all.silent = all.silent.max(hang.silent);
                all.processes.extend(hang.processes);
            }
            all.traced.extend(traced);
            all.processes.extend(processes);
            all.crashes.extend(crashes);
            all.elastic = all.elastic.or(elastic);
            all.unread.extend(unread.into_iter().map(|sentence| format!("Rank {rank}: {sentence}")));
            if let Some(log) = log {
                all.log.get_or_insert_default().append_of_rank(rank, log);
            }
        }
        let first = |process: &ProcessEvents| process.events.first().map_or(f64::INFINITY, |event| event.time);
        all.processes.sort_by(|a, b| first(a).total_cmp(&first(b)));
        all
    }

    fn own_evidence(&self) -> Evidence {
        let (processes, mut unread) = self.events();
        let run = self.run().or_complain(&mut unread);
        let log = self.log().or_complain(&mut unread);
        let report = self.report().or_complain(&mut unread);
        let blocking = run.as_ref().is_some_and(|run| run.blocking);
        let (traced, unread_traces) = traced::read(&self.path);
        unread.extend(unread_traces);
        let (crashes, unread_crashes) = events::read_crashes(&self.path);
        unread.extend(unread_crashes);
        let elastic = files::read_beneath(&self.path, &[ELASTIC], LARGEST_FILE).ok();
        let elastic = elastic.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let hang = self.read_json(HANG, run::SCHEMA).or_complain(&mut unread);
        let exit = report.map(|report| report.exit);
        let telemetry = telemetry::read(&self.path);
        Evidence { hang, traced, log, processes, crashes, elastic, run, exit, blocking, telemetry, unread }
    }

    /// Does its supervisor still watch it? Checked by number and start time, so that a later process is not taken for it.
    pub fn state(&self) -> State {
        if self.has(REPORT) {
            return State::Ended;
        }
        let Stored::Whole(run) = self.run() else { return State::Interrupted };
        let (watcher, gone) = match run.watch {
            Watch::Supervised => (run.runner, State::Interrupted),
            Watch::Adopted => (run.child, State::Ended),
        };
        let live = if run.host == processes::host_name() {
            watcher.is_some_and(processes::is_alive)
        } else {
            // A process of another machine on a shared disk cannot be asked.
            self.last_written().and_then(|time| time.elapsed().ok()).is_none_or(|age| age < LONGEST_SILENCE)
        };
        if live { State::Live } else { gone }
    }

    /// The user has seen this failure and wants it shown no more.
    pub fn dismiss(&self) -> io::Result<()> {
        self.mark(DISMISSED)
    }

    pub fn dismissed(&self) -> bool {
        self.has(DISMISSED)
    }

    /// Retention leaves a pinned run alone.
    pub fn pin(&self) -> io::Result<()> {
        self.mark(PINNED)
    }

    pub fn pinned(&self) -> bool {
        self.has(PINNED)
    }

    /// Removes the folder and what is in it; a symbolic link in it is removed, never what it points to.
    ///
    /// It takes another name first: nobody sees half a run, and [`retention`](super::retention) ends what was cut short.
    pub fn delete(self) -> io::Result<()> {
        let leaving = self.siblings().join(format!("{LEAVING}{}", self.id()));
        fs::rename(&self.path, &leaving)?;
        fs::remove_dir_all(leaving)
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str, newest: u32) -> Stored<T> {
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let bytes = match files::read_beneath(&self.path, &[name], LARGEST_FILE) {
            Ok(bytes) => bytes,
            Err(failure) if failure.kind() == io::ErrorKind::NotFound => return Stored::Absent,
            Err(failure) => return Stored::Damaged(format!("{name} cannot be read: {failure}.")),
        };
        match serde_json::from_slice::<Version>(&bytes) {
            Ok(Version { schema }) if schema > newest => {
                Stored::Damaged(format!("{name} was written by a later version of cublame (schema {schema})."))
            }
            Ok(_) => match serde_json::from_slice(&bytes) {
                Ok(value) => Stored::Whole(value),
                Err(failure) => Stored::Damaged(format!("{name} is damaged: {failure}.")),
            },
            Err(failure) => Stored::Damaged(format!("{name} is damaged: {failure}.")),
        }
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(value)?;
        bytes.push(b'\n');
        self.write_aside(name, &bytes)
    }

    /// A reader sees the old file or the whole new one.
    pub(super) fn write_aside(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let aside = self.path.join(format!(".{name}.{}", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&aside)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&aside, self.path.join(name)));
        if written.is_err() {
            // What failed is already being reported; a leftover of it would only take room on a full disk.
            fs::remove_file(&aside).ok();
        }
        written
    }

    fn has(&self, name: &str) -> bool {
        self.path.join(name).symlink_metadata().is_ok()
    }

    fn mark(&self, name: &str) -> io::Result<()> {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path.join(name)) {
            Err(failure) if failure.kind() != io::ErrorKind::AlreadyExists => Err(failure),
            _ => Ok(()),
        }
    }

    /// When a file of it was last written to.
    pub fn last_written(&self) -> Option<SystemTime> {
        let events = self.path.join(EVENTS);
        let inside = files::names_beneath(&self.path, &[EVENTS]).unwrap_or_default();
        let paths = inside.iter().map(|name| events.join(name)).chain([self.path.clone()]);
        paths.filter_map(|path| path.symlink_metadata().ok()?.modified().ok()).max()
    }
}

impl<T> Stored<T> {
    pub fn whole(self) -> Option<T> {
        self.or_complain(&mut Vec::new())
    }

    /// The value; or what is wrong with it goes to `unread`.
    pub fn or_complain(self, unread: &mut Vec<String>) -> Option<T> {
        match self {
            Stored::Absent => None,
            Stored::Whole(value) => Some(value),
            Stored::Damaged(sentence) => {
                unread.push(sentence);
                None
            }
        }
    }
}

/// The folder of runs in a project's folder or in the state folder.
pub fn runs_in(folder: &Path) -> PathBuf {
    folder.join("runs")
}

/// What the name of a run that is being deleted starts with.
pub(super) const LEAVING: &str = ".leaving-";

pub const EVENTS: &str = "events";
const RUN: &str = "run.json";
const REPORT: &str = "report.json";
/// Where torchrun writes what it knows of the worker that failed first.
pub const ELASTIC: &str = "elastic.json";
const HANG: &str = "hang.json";
const TASKS: &str = "tasks";
const LOCK: &str = ".lock";
const LOG: &str = "log.jsonl";
const DISMISSED: &str = "dismissed";
const PINNED: &str = "pinned";

/// Far above what this product writes. It keeps a foreign file from filling the memory.
pub(super) const LARGEST_FILE: u64 = 64 << 20;

/// A training may well say nothing for days, so a run of another machine is only given up late.
const LONGEST_SILENCE: Duration = Duration::from_secs(7 * 24 * 3600);

/// `20251201T025000.123Z-9f3a01c7`: sorts by time, unique by chance, and made sure of by an exclusive mkdir.
fn new_id(now: SystemTime) -> io::Result<String> {
    let utc = time::OffsetDateTime::from(now).to_offset(time::UtcOffset::UTC);
    let random = getrandom::u32().map_err(io::Error::other)?;
    Ok(format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}Z-{random:08x}",
        utc.year(),
        u8::from(utc.month()),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second(),
        utc.millisecond(),
    ))
}

fn is_run_id(name: &str) -> bool {
    let shape = name.bytes().map(|byte| match byte {
        b'0'..=b'9' => b'0',
        b'a'..=b'f' => b'a',
        other => other,
    });
    let digits = |expected: u8, found: u8| expected == found || (expected == b'x' && matches!(found, b'0' | b'a'));
    let expected = b"00000000T000000.000Z-xxxxxxxx";
    name.len() == expected.len() && expected.iter().copied().zip(shape).all(|(expected, found)| digits(expected, found))
}

/// Makes a project's folder and its `runs`, and keeps both out of version control. Returns `runs`.
pub fn prepare(folder: &Path) -> io::Result<PathBuf> {
    let runs = runs_in(folder);
    for folder in [folder, &runs] {
        fs::create_dir_all(folder)?;
        // A checked-out project may bring a link here: run folders, and their deletion, stay where they seem to be.
        if folder.symlink_metadata()?.is_symlink() {
            return Err(io::Error::other(format!("{} is a symbolic link", folder.display())));
        }
    }
    ignore_in_git(folder, &runs)?;
    Ok(runs)
}

/// Makes `<folder>/runs/<id>/events` with what is missing above it.
fn make_run(folder: &Path, now: SystemTime) -> io::Result<RunFolder> {
    let runs = prepare(folder)?;
    loop {
        let path = runs.join(new_id(now)?);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                DirBuilder::new().mode(0o700).create(path.join(EVENTS))?;
                return Ok(RunFolder { path: path.canonicalize()? });
            }
            Err(failure) if failure.kind() == io::ErrorKind::AlreadyExists => {}
            Err(failure) => return Err(failure),
        }
    }
}

/// The `.gitignore` of a project's folder.
pub const IGNORE_ALL: &str = "# Written by cublame: what it records stays out of the repository.\n*\n";

/// A folder that CUBLAME_DIR names may hold other things of the user's: then only its `runs` is ignored.
fn ignore_in_git(folder: &Path, runs: &Path) -> io::Result<()> {
    let ours = folder.file_name().is_some_and(|name| name == FOLDER);
    let ignore = if ours { folder } else { runs }.join(".gitignore");
    match OpenOptions::new().write(true).create_new(true).open(&ignore) {
        // An empty file left by a full disk would be taken for a finished one for ever.
        Ok(mut file) => file.write_all(IGNORE_ALL.as_bytes()).inspect_err(|_| drop(fs::remove_file(&ignore))),
        Err(failure) if failure.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(failure) => Err(failure),
    }
}
