//! Looking for the runs that concern a workspace. It blocks, so the world calls it on a thread of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use cublame_core::catalog::Language;

use super::paths::{Mapping, Paths};
use super::reading::{self, Surveyed};
use crate::session::folder::{RunFolder, State, runs_in};
use crate::session::index;
use crate::session::place::{FOLDER, Surroundings};

/// What to look at.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The workspace's folders, canonical.
    pub roots: Vec<PathBuf>,
    /// The variables of the server's own environment that say where runs may be.
    pub surroundings: Surroundings,
    /// The stamps of what is known already, by run folder.
    pub seen: BTreeMap<PathBuf, Stamp>,
    pub mappings: Vec<Mapping>,
    pub language: Language,
    /// Failures that ended before this are not shown (Unix seconds).
    pub oldest: f64,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Survey {
    /// The folders that hold run folders, whether they exist or not.
    pub runs_folders: BTreeSet<PathBuf>,
    /// All run folders that are there now.
    pub present: BTreeSet<PathBuf>,
    /// Those that may still get a report.
    pub unreported: Vec<PathBuf>,
    /// Those that are new or have changed. None: it is of no concern to this workspace.
    pub changed: Vec<(PathBuf, Stamp, Option<Surveyed>)>,
    /// The roots for which the user has said that a run may be repeated without asking.
    pub consents: BTreeSet<PathBuf>,
    /// Whole sentences about what could not be read.
    pub notes: Vec<String>,
}

/// Tells whether a run folder has changed since it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    pub state: State,
    pub dismissed: bool,
    report: Option<(u64, SystemTime)>,
    run: Option<(u64, SystemTime)>,
}

/// Every folder that may hold runs of these roots: in each root, in each ancestor, and what CUBLAME_DIR names.
pub fn runs_folders(roots: &[PathBuf], surroundings: &Surroundings) -> BTreeSet<PathBuf> {
    let mut folders: BTreeSet<PathBuf> =
        roots.iter().flat_map(|root| root.ancestors()).map(|folder| runs_in(&folder.join(FOLDER))).collect();
    if let Some(folder) = &surroundings.cublame_dir {
        folders.insert(runs_in(&surroundings.cwd.join(folder)));
        folders.extend(roots.iter().map(|root| runs_in(&root.join(folder))));
    }
    folders.extend(surroundings.state_folder().map(|folder| runs_in(&folder)));
    folders
}

pub fn survey(plan: &Plan) -> Survey {
    let runs_folders = runs_folders(&plan.roots, &plan.surroundings);
    let mut survey = Survey { runs_folders, consents: consents(&plan.surroundings), ..Survey::default() };
    let mut folders: Vec<RunFolder> = survey.runs_folders.iter().flat_map(|runs| RunFolder::list(runs)).collect();
    folders.extend(indexed(plan, &survey.runs_folders));
    let mut paths = Paths::new(&plan.roots, &plan.mappings);
    for folder in folders {
        let path = folder.path().to_owned();
        if !survey.present.insert(path.clone()) {
            continue;
        }
        let stamp = stamp(&folder);
        if stamp.report.is_none() {
            survey.unreported.push(path.clone());
        }
        if plan.seen.get(&path) == Some(&stamp) {
            continue;
        }
        let read = reading::read(&folder, &stamp, plan, &mut paths, &mut survey.notes);
        survey.changed.push((path, stamp, read));
    }
    survey
}

/// Where the user's consents are kept: in the user's own folder, outside of any workspace.
pub fn consent_file(surroundings: &Surroundings) -> Option<PathBuf> {
    Some(surroundings.state_folder()?.join("rerun-without-asking.json"))
}

fn consents(surroundings: &Surroundings) -> BTreeSet<PathBuf> {
    let text = consent_file(surroundings).and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// The newest runs of the index that are not in the folders looked at anyway.
fn indexed(plan: &Plan, looked_at: &BTreeSet<PathBuf>) -> Vec<RunFolder> {
    const NEWEST: usize = 100;
    let Some(state_folder) = plan.surroundings.state_folder() else { return Vec::new() };
    let elsewhere = |entry: &index::Entry| entry.run.parent().is_none_or(|runs| !looked_at.contains(runs));
    let entries = index::read(&state_folder);
    entries
        .into_iter()
        .rev()
        .filter(elsewhere)
        .take(NEWEST)
        .filter_map(|entry| RunFolder::open(entry.run).ok())
        .collect()
}

fn stamp(folder: &RunFolder) -> Stamp {
    let of = |name: &str| {
        let metadata = folder.path().join(name).symlink_metadata().ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    };
    Stamp { state: folder.state(), dismissed: folder.dismissed(), report: of("report.json"), run: of("run.json") }
}

fn read(folder: &RunFolder, stamp: &Stamp, plan: &Plan, notes: &mut Vec<String>) -> Option<Surveyed> {
    let mut unread = Vec::new();
    let run = folder.run().or_complain(&mut unread);
    let report = match folder.report() {
        Stored::Absent => None,
        Stored::Whole(report) => Some(report),
        Stored::Damaged(sentence) => {
            unread.push(sentence);
            None
        }
    };
    notes.extend(unread.into_iter().map(|sentence| format!("{}: {sentence}", folder.path().display())));
    let run = run?;
    let finished = report.as_ref().map_or(run.started, |report| report.finished);
    let (outcome, verdicts) = match (&report, run.watch, stamp.state) {
        (Some(report), _, _) => {
            let verdicts: Vec<Arc<Verdict>> = report.verdicts.iter().cloned().map(resolved).map(Arc::new).collect();
            (outcome(report.exit, &verdicts), verdicts)
        }
        (None, _, State::Live) => (Outcome::Running, Vec::new()),
        (None, Watch::Supervised, _) => (Outcome::Interrupted, Vec::new()),
        // Nobody wrote a report for it: the verdicts are made here, from what its processes left.
        (None, Watch::Adopted, _) => adopted(folder, &run, plan),
    };
    if !concerns(&run, &verdicts, &plan.roots) {
        return None;
    }
    let run = KnownRun {
        run,
        folder: folder.path().to_owned(),
        outcome,
        verdicts,
        dismissed: stamp.dismissed,
        stale: outcome == Outcome::Failed && finished < plan.oldest,
    };
    let (findings, texts) = if outcome == Outcome::Failed && !run.stale && !run.dismissed {
        findings(&run, &folder.events().0, finished, &plan.roots)
    } else {
        Default::default()
    };
    Some(Surveyed { run, findings, texts })
}

/// How an adopted run ended. Its exit code is not known: it did well when every process ended in an orderly way and
/// there is nothing to blame.
fn adopted(folder: &RunFolder, run: &Run, plan: &Plan) -> (Outcome, Vec<Arc<Verdict>>) {
    let evidence = folder.evidence();
    let orderly = |process: &ProcessEvents| process.events.iter().any(|event| matches!(event.what, What::Exit(_)));
    let all_orderly = !evidence.processes.is_empty() && evidence.processes.iter().all(orderly);
    let judged = judge(&evidence, &plan.roots, Some(Path::new(&run.cwd)), Texts::get(plan.language));
    let verdicts: Vec<Arc<Verdict>> = judged.verdicts.into_iter().map(Arc::new).collect();
    let exit = Exit { code: all_orderly.then_some(0), signal: None };
    (outcome(exit, &verdicts), verdicts)
}

/// A pasted log as a run of its own, without a folder: each has its own name, so that none clears another.
pub fn explained(text: &str, blocking: bool, number: u64, roots: &[PathBuf], language: Language, now: f64) -> Surveyed {
    let id = name_of_explanation(number);
    let evidence = Evidence { log: Some(Log::from_text(text)), blocking, ..Evidence::default() };
    let judged = judge(&evidence, roots, None, Texts::get(language));
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
    let verdicts: Vec<Arc<Verdict>> = judged.verdicts.into_iter().map(Arc::new).collect();
    let run =
        KnownRun { run, folder: PathBuf::from(id), outcome: Outcome::Failed, verdicts, dismissed: false, stale: false };
    let (findings, texts) = findings(&run, &[], now, roots);
    Surveyed { run, findings, texts }
}

pub fn name_of_explanation(number: u64) -> String {
    format!("pasted log {number}")
}

/// Does a run belong to the workspace: by its program, its working directory, or any line that it names?
fn concerns(run: &Run, verdicts: &[Arc<Verdict>], roots: &[PathBuf]) -> bool {
    let within = |path: &str| {
        let path = Path::new(path);
        let canonical = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        roots.iter().any(|root| canonical.starts_with(root))
    };
    let named = |verdict: &Arc<Verdict>| {
        let places =
            [&verdict.place, &verdict.reported].into_iter().flatten().filter_map(|place| place.path.as_deref());
        places.chain(verdict.frames.iter().filter_map(|frame| frame.path.as_deref())).any(within)
    };
    within(&run.cwd) || run.entry.as_deref().is_some_and(within) || verdicts.iter().any(named)
}

/// A verdict as it may be shown: a report on disk may place a line, and nothing more. Commands and edits are dropped.
fn resolved(mut verdict: Verdict) -> Verdict {
    for advice in &mut verdict.advice {
        advice.command = None;
        advice.edit = None;
    }
    verdict
}

/// The findings of a failed run: a verdict is shown at its culprit, else where it surfaced, else at the program's start.
pub fn findings(
    run: &KnownRun,
    events: &[ProcessEvents],
    finished: f64,
    roots: &[PathBuf],
) -> (Vec<Finding>, FileTexts) {
    let mut texts = FileTexts::new();
    let mut findings = Vec::new();
    for (index, verdict) in run.verdicts.iter().enumerate() {
        let start = run.run.entry.as_ref().map(|entry| Place {
            file: entry.clone(),
            path: Some(entry.clone()),
            line: 1,
            column: None,
            end_column: None,
            function: None,
        });
        let places = [verdict.place.clone(), verdict.reported.clone(), start];
        let Some((path, place)) = places.into_iter().flatten().find_map(|place| shown_in(place, roots)) else {
            continue;
        };
        let text = texts.entry(path.clone()).or_insert_with(|| text_on_disk(&path));
        let anchor = text.as_ref().and_then(|(text, modified)| anchor(text, *modified, &place, events, finished));
        findings.push(Finding {
            run: run.run.id.clone(),
            generation: run.generation(),
            index,
            verdict: Arc::clone(verdict),
            mode: run.run.mode,
            path,
            place,
            anchor,
            not_reproduced: None,
        });
    }
    (findings, texts)
}

/// The file of a place, where it exists in the workspace.
fn shown_in(place: Place, roots: &[PathBuf]) -> Option<(PathBuf, Place)> {
    let path = Path::new(place.path.as_deref()?).canonicalize().ok()?;
    (roots.iter().any(|root| path.starts_with(root)) && path.is_file()).then_some((path, place))
}

/// A file's text and when it was last written, in Unix seconds; None for what is not text or too large to be source.
pub fn text_on_disk(path: &Path) -> Option<(LineIndex, f64)> {
    const LARGEST: u64 = 16 << 20;
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let modified = modified(path)?;
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    Some((LineIndex::new(text), modified))
}

/// When a file was last written, in Unix seconds.
pub fn modified(path: &Path) -> Option<f64> {
    let modified = path.metadata().ok()?.modified().ok()?;
    Some(modified.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64())
}

/// The line as it was, if the file on disk still has it: by the line that an event recorded, else by the file's age.
fn anchor(text: &LineIndex, modified: f64, place: &Place, events: &[ProcessEvents], finished: f64) -> Option<Anchor> {
    if place.line > text.line_count() {
        return None;
    }
    let anchor = Anchor::at(text, place.line);
    let unchanged = match recorded_line(place, events) {
        Some(source) => anchor.says(source),
        None => modified <= finished,
    };
    unchanged.then_some(anchor)
}

/// What the hook saw on a line when the program failed there.
fn recorded_line<'a>(place: &Place, events: &'a [ProcessEvents]) -> Option<&'a str> {
    let exceptions = events.iter().flat_map(|process| &process.events).filter_map(|event| match &event.what {
        What::Exception(exception) => Some(exception),
        What::Start(_) | What::Exit(_) => None,
    });
    let frames = exceptions.flat_map(|exception| &exception.chain).flat_map(|link| &link.frames);
    let mut there = frames.filter(|frame| frame.path == place.path && frame.line == place.line);
    there.find_map(|frame| frame.source.as_deref())
}
