//! From a run folder to what an editor may show of it. Everything in the folder is untrusted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cublame_core::catalog::Texts;
use cublame_core::config::notebook;
use cublame_core::event::{Cell, Exception, What};
use cublame_core::evidence::ProcessEvents;
use cublame_core::log::Log;
use cublame_core::mode::Mode;
use cublame_core::run::{Exit, Run, Watch};
use cublame_core::text::LineIndex;
use cublame_core::verdict::Place;
use cublame_core::{Evidence, Verdict};
use sha2::{Digest, Sha256};

use super::finding::{Anchor, Finding};
use super::mark::{Mark, Told};
use super::notebooks::{CellsDone, InCell, cells_done};
use super::paths::Paths;
use super::standing::{KnownRun, Outcome, outcome};
use super::survey::{Plan, Stamp};
use crate::session::folder::{RunFolder, State};
use crate::sources::{judge, retold};

/// A run, and the findings that it would be shown with.
#[derive(Debug)]
pub struct Surveyed {
    pub run: KnownRun,
    pub findings: Vec<Finding>,
    pub marks: Vec<Mark>,
    /// The files of the findings and marks as they are on disk.
    pub texts: FileTexts,
    /// Of a notebook: its cells that ran to their end.
    pub cells_done: CellsDone,
}

/// The files of findings, by path; None for what is not text.
pub type FileTexts = BTreeMap<PathBuf, Option<FileText>>;

/// A file as it was read from disk.
#[derive(Debug, Clone, PartialEq)]
pub struct FileText {
    pub text: LineIndex,
    /// When it was last written, in Unix seconds.
    pub modified: f64,
}

/// Reads a run. None: it is of no concern to this workspace, or cannot be read at all.
pub fn read(
    folder: &RunFolder,
    stamp: &Stamp,
    plan: &Plan,
    paths: &mut Paths<'_>,
    notes: &mut Vec<String>,
) -> Option<Surveyed> {
    let mut unread = Vec::new();
    let run = folder.run().or_complain(&mut unread);
    let report = folder.report().or_complain(&mut unread);
    let unread = unread.into_iter().map(|sentence| format!("{}: {sentence}", folder.path().display()));
    let Some(mut run) = run else {
        // Whose run it is cannot be told, so it is said only where the folder itself is of this workspace.
        notes.extend(unread.filter(|_| paths.is_within(folder.path())));
        return None;
    };
    let finished = report.as_ref().map_or(run.started, |report| report.finished);
    let evidence = folder.evidence();
    let is_notebook = evidence.processes.iter().any(ProcessEvents::is_notebook);
    if run.entry.is_none() {
        run.entry = evidence.cells().find_map(|cell| cell.notebook.clone());
    }
    let texts = Texts::get(plan.language);
    let (outcome, verdicts) = match (report, run.watch, stamp.state) {
        (Some(report), _, _) => {
            let verdicts = retold(report.verdicts, &evidence, Path::new(&run.cwd), texts);
            let verdicts: Vec<Arc<Verdict>> = verdicts.into_iter().map(Arc::new).collect();
            (outcome(report.exit, &verdicts), verdicts)
        }
        // A silent run was asked where it stands, and goes on.
        (None, _, State::Live) if evidence.hang.is_some() => held(&evidence, &run, plan),
        // A kernel lives on after a cell has failed.
        (None, _, State::Live) if is_notebook => match adopted(&evidence, &run, plan) {
            (Outcome::Failed, verdicts) => (Outcome::Failed, verdicts),
            _ => (Outcome::Running, Vec::new()),
        },
        (None, _, State::Live) if evidence.processes.iter().any(ProcessEvents::is_held) => held(&evidence, &run, plan),
        (None, _, State::Live) => (Outcome::Running, Vec::new()),
        (None, Watch::Supervised, _) => (Outcome::Interrupted, Vec::new()),
        // Nobody wrote a report for it: the verdicts are made here, from what its processes left.
        (None, Watch::Adopted, _) => adopted(&evidence, &run, plan),
    };
    if !concerns(&run, &verdicts, paths) {
        return None;
    }
    notes.extend(unread);
    let run = KnownRun {
        run,
        folder: folder.path().to_owned(),
        outcome,
        verdicts,
        dismissed: stamp.dismissed,
        stale: outcome == Outcome::Failed && finished < plan.oldest,
    };
    let cells_done = cells_done(&evidence.processes);
    let shown = matches!(outcome, Outcome::Failed | Outcome::Held);
    let surveyed = if shown && !run.stale && !run.dismissed {
        with_findings(run, &evidence.processes, finished, paths)
    } else {
        Surveyed { run, findings: Vec::new(), marks: Vec::new(), texts: FileTexts::new(), cells_done: CellsDone::new() }
    };
    Some(Surveyed { cells_done, ..surveyed })
}

pub fn name_of_explanation(number: u64) -> String {
    format!("pasted log {number}")
}

/// A pasted log as a run of its own, without a folder: each has its own name, so that none clears another.
pub fn explained(text: &str, blocking: bool, number: u64, plan: &Plan, now: f64) -> Surveyed {
    let id = name_of_explanation(number);
    let evidence = Evidence { log: Some(Log::from_text(text)), blocking, ..Evidence::default() };
    let judged = judge(&evidence, &plan.roots, None, Texts::get(plan.language));
    let run = Run {
        schema: cublame_core::run::SCHEMA,
        id: id.clone(),
        watch: Watch::Adopted,
        mode: if blocking { Mode::Blocking } else { Mode::Off },
        argv: vec![id.clone()],
        cwd: String::new(),
        entry: None,
        started: now,
        host: String::new(),
        runner: None,
        child: None,
        blocking,
        env: BTreeMap::new(),
    };
    let verdicts = judged.verdicts.into_iter().map(Arc::new).collect();
    let (folder, outcome) = (PathBuf::from(id), Outcome::Failed);
    let run = KnownRun { run, folder, outcome, verdicts, dismissed: false, stale: false };
    with_findings(run, &[], now, &mut Paths::new(&plan.roots, &plan.mappings))
}

/// A run that stands still: a debugger holds it at an exception, or it hangs.
fn held(evidence: &Evidence, run: &Run, plan: &Plan) -> (Outcome, Vec<Arc<Verdict>>) {
    match judged(evidence, run, plan) {
        verdicts if verdicts.is_empty() => (Outcome::Running, verdicts),
        verdicts => (Outcome::Held, verdicts),
    }
}

/// How an adopted run ended. Its exit code is not known: it did well when every process ended in an orderly way and
/// there is nothing to blame.
fn adopted(evidence: &Evidence, run: &Run, plan: &Plan) -> (Outcome, Vec<Arc<Verdict>>) {
    let orderly = |process: &ProcessEvents| process.events.iter().any(|event| matches!(event.what, What::Exit(_)));
    let all_orderly = !evidence.processes.is_empty() && evidence.processes.iter().all(orderly);
    let verdicts = judged(evidence, run, plan);
    let exit = Exit { code: all_orderly.then_some(0), signal: None };
    (outcome(exit, &verdicts), verdicts)
}

fn judged(evidence: &Evidence, run: &Run, plan: &Plan) -> Vec<Arc<Verdict>> {
    let judged = judge(evidence, &plan.roots, Some(Path::new(&run.cwd)), Texts::get(plan.language));
    judged.verdicts.into_iter().map(Arc::new).collect()
}

/// Does a run belong to the workspace: by its working directory, its program, or any line that it names?
fn concerns(run: &Run, verdicts: &[Arc<Verdict>], paths: &mut Paths<'_>) -> bool {
    let cwd = Path::new(&run.cwd).canonicalize();
    if cwd.is_ok_and(|cwd| paths.is_within(&cwd))
        || run.entry.as_deref().is_some_and(|entry| paths.here(entry).is_some())
    {
        return true;
    }
    let named = |verdict: &Arc<Verdict>| {
        let places = verdict.place.iter().chain(&verdict.reported).filter_map(|place| place.path.clone());
        places.chain(verdict.frames.iter().filter_map(|frame| frame.path.clone())).collect::<Vec<_>>()
    };
    verdicts.iter().flat_map(named).any(|path| paths.here(&path).is_some())
}

/// The findings of a failed run: a verdict is shown at its culprit, else where it surfaced, else at the program's start.
fn with_findings(run: KnownRun, events: &[ProcessEvents], finished: f64, paths: &mut Paths<'_>) -> Surveyed {
    let mut texts = FileTexts::new();
    let (mut findings, mut marks) = (Vec::new(), Vec::new());
    for (index, verdict) in run.verdicts.iter().enumerate() {
        let localized = Arc::new(paths.localized(verdict));
        let start = run.run.entry.as_ref().map(|entry| place_of(entry, Some(entry.clone()), 1));
        let places = [verdict.place.clone(), verdict.reported.clone(), start].into_iter().flatten();
        let mut here = places.filter_map(|place| match InCell::of(&place, events) {
            Some((in_cell, cell)) => {
                let notebook = paths.here(cell.notebook.as_deref()?)?;
                Some((notebook.clone(), place, Some((InCell { notebook, ..in_cell }, cell))))
            }
            None => Some((paths.here(place.path.as_deref()?)?, place, None)),
        });
        let Some((path, place, cell)) = here.next() else { continue };
        drop(here);
        let file = texts.entry(path.clone()).or_insert_with(|| text_on_disk(&path));
        let (place, anchor) = match &cell {
            Some((_, cell)) => in_file(file.as_ref(), &place, cell),
            None => {
                let anchor = file.as_ref().and_then(|file| anchor(file, &place, events, finished));
                (place, anchor)
            }
        };
        findings.push(Finding {
            run: run.run.id.clone(),
            generation: run.generation(),
            index,
            verdict: Arc::clone(&localized),
            mode: run.run.mode,
            entry: run.run.entry.as_ref().and_then(|entry| paths.here(entry)),
            place: Place { path: Some(path.display().to_string()), ..place },
            path,
            anchor,
            cell: cell.map(|(in_cell, _)| in_cell),
            not_reproduced: None,
        });
        marks.extend(marks_of(&run, verdict, &localized, events, finished, paths, &mut texts));
    }
    Surveyed { run, findings, marks, texts, cells_done: CellsDone::new() }
}

/// The line of the `.ipynb` file that holds a line of a cell; its first line where the cell is no longer in it.
fn in_file(file: Option<&FileText>, place: &Place, cell: &Cell) -> (Place, Option<Anchor>) {
    let line = file.and_then(|file| notebook::line_of_cell(file.text.text(), cell, place.line));
    let anchor = file.zip(line).map(|(file, line)| Anchor::at(&file.text, line));
    // A column of the cell is no column of its JSON.
    (Place { line: line.unwrap_or(1), column: None, end_column: None, ..place.clone() }, anchor)
}

/// The lines whose frames have tensors or that hold the memory, where the file still has them as they were.
fn marks_of(
    run: &KnownRun,
    verdict: &Verdict,
    localized: &Arc<Verdict>,
    events: &[ProcessEvents],
    finished: f64,
    paths: &mut Paths<'_>,
    texts: &mut FileTexts,
) -> Vec<Mark> {
    let has_tensors = |frame: usize| verdict.tensors.iter().any(|tensor| tensor.frame == frame);
    let frames = verdict.frames.iter().enumerate().filter(|(at, _)| has_tensors(*at));
    let frames = frames.map(|(at, frame)| (Told::Frame(at), place_of(&frame.file, frame.path.clone(), frame.line)));
    let sites = verdict.memory.iter().flat_map(|memory| &memory.sites).enumerate();
    let told = frames.chain(sites.map(|(at, site)| (Told::Site(at), site.place.clone())));
    let mark = |(told, place): (Told, Place)| {
        let path = paths.here(place.path.as_deref()?)?;
        let file = texts.entry(path.clone()).or_insert_with(|| text_on_disk(&path));
        let anchor = file.as_ref().and_then(|file| anchor(file, &place, events, finished))?;
        let (run, verdict) = (run.run.id.clone(), Arc::clone(localized));
        Some(Mark { run, verdict, path, line: place.line, anchor, told })
    };
    told.filter_map(mark).collect()
}

fn place_of(file: &str, path: Option<String>, line: u32) -> Place {
    Place { file: file.to_owned(), path, line, column: None, end_column: None, function: None }
}

/// Reads a file; None for what is not text or too large to be source.
pub fn text_on_disk(path: &Path) -> Option<FileText> {
    const LARGEST: u64 = 16 << 20;
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let modified = modified(path)?;
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    Some(FileText { text: LineIndex::new(text), modified })
}

/// When a file was last written, in Unix seconds.
pub fn modified(path: &Path) -> Option<f64> {
    let modified = path.metadata().ok()?.modified().ok()?;
    Some(modified.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64())
}

/// The line as it was, if the file on disk still has it: by the content hash that the hook recorded, else by the line
/// that it recorded, else by the file's age.
fn anchor(file: &FileText, place: &Place, events: &[ProcessEvents], finished: f64) -> Option<Anchor> {
    if place.line > file.text.line_count() {
        return None;
    }
    let anchor = Anchor::at(&file.text, place.line);
    let same_content = recorded_hash(place, events).map(|hash| *hash == hash_of(file.text.text()));
    let unchanged = same_content == Some(true)
        || match recorded_line(place, events) {
            Some(source) => anchor.says(source),
            None => same_content.is_none() && file.modified <= finished,
        };
    unchanged.then_some(anchor)
}

/// What the hook saw on a line when the program failed there.
fn recorded_line<'a>(place: &Place, events: &'a [ProcessEvents]) -> Option<&'a str> {
    let exceptions = events.iter().flat_map(|process| &process.events).filter_map(|event| match &event.what {
        What::Exception(exception) => Some(exception),
        What::Start(_) | What::Cell(_) | What::Exit(_) => None,
    });
    let links = exceptions.flat_map(|Exception { chain, .. }| chain);
    let mut there =
        links.flat_map(|link| &link.frames).filter(|frame| frame.path == place.path && frame.line == place.line);
    there.find_map(|frame| frame.source.as_deref())
}

fn recorded_hash<'a>(place: &Place, events: &'a [ProcessEvents]) -> Option<&'a String> {
    let mut exits = events.iter().flat_map(|process| &process.events).filter_map(|event| match &event.what {
        What::Exit(exit) => Some(exit),
        What::Start(_) | What::Exception(_) | What::Cell(_) => None,
    });
    exits.find_map(|exit| exit.hashes.get(place.path.as_ref()?))
}

fn hash_of(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
