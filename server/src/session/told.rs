//! All that a run folder tells, put together for one who reads it later.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use cublame_core::catalog::Texts;
use cublame_core::event::What;
use cublame_core::run::{Exit, Run, Watch};
use cublame_core::source::Source;
use cublame_core::telemetry::Sample;
use cublame_core::{Evidence, Place, Sources, Verdict};
use sha2::{Digest, Sha256};

use super::folder::{RunFolder, State};
use crate::error::{Error, Result};
use crate::sources::{Finder, insert_cells, judge, read_source, retold, write_edits};

/// A run and what it came to.
#[derive(Debug, Default)]
pub struct Told {
    pub run: Option<Run>,
    pub state: Option<State>,
    pub exit: Option<Exit>,
    /// Unix seconds.
    pub finished: Option<f64>,
    /// What could not be kept or read, as whole sentences.
    pub partial: Vec<String>,
    pub verdicts: Vec<Verdict>,
    pub evidence: Evidence,
    /// In the order of their times.
    pub telemetry: Vec<Sample>,
    /// The user's files that the verdicts name, where they still are what ran.
    pub sources: Sources,
}

impl Told {
    /// When the failure was seen first, in Unix seconds: by the hook, else the end of the run. A clock that jumped may
    /// have put an event outside the run; that one tells nothing.
    pub fn failed_at(&self) -> Option<f64> {
        let during = self.run.as_ref()?.started..=self.finished.unwrap_or(f64::INFINITY);
        let events = self.evidence.processes.iter().flat_map(|process| &process.events);
        let seen = events.filter(|event| matches!(event.what, What::Exception(_))).map(|event| event.time);
        seen.filter(|time| during.contains(time)).min_by(f64::total_cmp).or(self.finished)
    }

    /// A line of a file as it ran: from the source, else as the hook saw it.
    pub fn line(&self, file: &str, number: u32) -> Option<&str> {
        let from_source = || self.sources.get(file)?.text.lines().nth(number.checked_sub(1)? as usize);
        from_source().or_else(|| self.recorded_line(file, number))
    }

    fn recorded_line(&self, file: &str, line: u32) -> Option<&str> {
        let events = self.evidence.processes.iter().flat_map(|process| &process.events);
        let links = events.flat_map(|event| match &event.what {
            What::Exception(exception) => exception.chain.as_slice(),
            What::Start(_) | What::Exit(_) | What::Cell(_) => &[],
        });
        let mut frames = links.flat_map(|link| &link.frames).filter(|frame| frame.file == file && frame.line == line);
        frames.find_map(|frame| frame.source.as_deref())
    }
}

/// Reads a run folder. Everything in it is untrusted: what is to be done is worked out anew from the catalogue, and of
/// the files that it names only program text is read.
pub fn tell(folder: &RunFolder, texts: &Texts) -> Result<Told> {
    let evidence = folder.evidence();
    let Some(run) = evidence.run.clone() else {
        let why = evidence.unread.first().cloned().unwrap_or_else(|| "it has no run.json".to_owned());
        return Err(Error::user(format!("{} is not the folder of a run: {why}", folder.path().display())));
    };
    let report = folder.report().whole();
    let state = folder.state();
    let cwd = PathBuf::from(&run.cwd);
    let (mut verdicts, exit, finished, mut partial) = match report {
        Some(report) => {
            let verdicts = retold(report.verdicts, &evidence, &cwd, texts);
            (verdicts, Some(report.exit), Some(report.finished), report.partial)
        }
        // Nobody writes a report for a run that was only adopted.
        None if run.watch == Watch::Adopted => {
            (judge(&evidence, &[], Some(&cwd), texts).verdicts, None, None, Vec::new())
        }
        None => (Vec::new(), None, None, Vec::new()),
    };
    partial.extend(evidence.unread.iter().cloned());
    let sources = sources(&verdicts, &evidence, &cwd, finished);
    verdicts.iter_mut().for_each(|verdict| write_edits(verdict, &sources, texts));
    let telemetry = folder.telemetry();
    let (run, state) = (Some(run), Some(state));
    Ok(Told { run, state, exit, finished, partial, verdicts, evidence, telemetry, sources })
}

/// The files that places and the user's frames name. One that was changed since says nothing about the failure.
fn sources(verdicts: &[Verdict], evidence: &Evidence, cwd: &Path, finished: Option<f64>) -> Sources {
    let hashes = hashes(evidence);
    let mut sources = Sources::new(Vec::new());
    insert_cells(&mut sources, evidence);
    let mut finder = Finder::new(&[], Some(cwd));
    for name in verdicts.iter().flat_map(names) {
        if sources.asked(name) || !is_program(name) {
            continue;
        }
        let found = finder.find(name).and_then(|path| path.canonicalize().ok()).and_then(|path| {
            // What a link leads to counts.
            if !is_program(&path.to_string_lossy()) {
                return None;
            }
            let source = read_source(&path)?;
            as_it_ran(&source, &path, hashes.get(&*source.path).copied(), finished).then_some(source)
        });
        sources.insert(name, found);
    }
    sources
}

fn names(verdict: &Verdict) -> impl Iterator<Item = &str> {
    let places = [&verdict.place, &verdict.reported].into_iter().flatten().chain(&verdict.candidates);
    let frames = verdict.frames.iter().filter(|frame| frame.user);
    places.map(|Place { file, .. }| file.as_str()).chain(frames.map(|frame| frame.file.as_str()))
}

/// What a run folder of unknown origin may have shown: a report is handed on.
fn is_program(name: &str) -> bool {
    const ENDS: [&str; 11] = ["py", "pyx", "pyi", "cu", "cuh", "c", "cc", "cpp", "h", "hpp", "ipynb"];
    Path::new(name).extension().and_then(|end| end.to_str()).is_some_and(|end| ENDS.contains(&end))
}

/// By the hash that the hook took, else by the file's age.
fn as_it_ran(source: &Source, path: &Path, hash: Option<&str>, finished: Option<f64>) -> bool {
    if let Some(hash) = hash {
        let found: String = Sha256::digest(source.text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        return found == hash;
    }
    let modified = path.metadata().ok().and_then(|metadata| metadata.modified().ok());
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_secs_f64());
    match (modified, finished) {
        (Some(modified), Some(finished)) => modified <= finished,
        _ => true,
    }
}

/// The hook's hashes of source files, by absolute path.
fn hashes(evidence: &Evidence) -> BTreeMap<&str, &str> {
    let events = evidence.processes.iter().flat_map(|process| &process.events);
    let taken = events.flat_map(|event| match &event.what {
        What::Exception(exception) => Some(&exception.hashes),
        What::Exit(exit) => Some(&exit.hashes),
        What::Start(_) | What::Cell(_) => None,
    });
    taken.flatten().map(|(path, hash)| (path.as_str(), hash.as_str())).collect()
}
