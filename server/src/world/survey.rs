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
    /// Of a live run: a notebook's kernel lives on after a failure.
    written: Option<SystemTime>,
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
        let notes = survey.notes.len();
        let mut read = reading::read(&folder, &stamp, plan, &mut paths, &mut survey.notes);
        // A report that came between the stamp and the reading would be read once more at the next look, with the
        // sources as they are by then: what was edited meanwhile would pass for what the run has seen.
        let after = self::stamp(&folder);
        if after != stamp {
            survey.notes.truncate(notes);
            read = reading::read(&folder, &after, plan, &mut paths, &mut survey.notes);
        }
        survey.changed.push((path, after, read));
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
    let state = folder.state();
    let written = if state == State::Live { folder.last_written() } else { None };
    Stamp { state, dismissed: folder.dismissed(), report: of("report.json"), run: of("run.json"), written }
}
