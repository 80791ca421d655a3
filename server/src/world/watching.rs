//! Noticing that run folders change, at once where the system tells, else within the world's own two seconds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use notify::event::ModifyKind;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::session::place::FOLDER;

/// The watches that are set. inotify is silent on network file systems, so the world looks every two seconds as well.
pub struct Watching {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
}

impl Watching {
    /// `stirred` is called on the watcher's own thread whenever something that may concern a run has changed.
    pub fn new(stirred: impl Fn() + Send + 'static) -> Self {
        let heard = move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| concerns_runs(&event)) {
                stirred();
            }
        };
        let watcher = notify::recommended_watcher(heard)
            .inspect_err(|error| eprintln!("cublame lsp: run folders are looked at every two seconds only: {error}"))
            .ok();
        Self { watcher, watched: BTreeSet::new() }
    }

    /// Watches the folders of runs or the `.cublame` above them, the roots, where one may appear, and these run
    /// folders. Is anything watched that was not before?
    pub fn watch(&mut self, runs_folders: &BTreeSet<PathBuf>, roots: &[PathBuf], runs: Vec<PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let existing = runs_folders.iter().filter_map(|runs| runs.ancestors().take(2).find(|folder| folder.is_dir()));
        let wanted: BTreeSet<PathBuf> = existing.map(Path::to_owned).chain(roots.iter().cloned()).chain(runs).collect();
        for gone in self.watched.difference(&wanted) {
            // A folder that was removed took its watch with it.
            watcher.unwatch(gone).ok();
        }
        self.watched.retain(|folder| wanted.contains(folder));
        // What cannot be watched, for want of watches or of rights, is seen at the next look.
        let new: Vec<PathBuf> = wanted
            .into_iter()
            .filter(|folder| !self.watched.contains(folder))
            .filter(|folder| watcher.watch(folder, RecursiveMode::NonRecursive).is_ok())
            .collect();
        let any = !new.is_empty();
        self.watched.extend(new);
        any
    }
}

/// Leaves out reading, the growth of a run's logs, and what happens beside the runs.
fn concerns_runs(event: &notify::Event) -> bool {
    // Whole files are renamed into place, so a file's growth is no news.
    if matches!(event.kind, EventKind::Access(_) | EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_))) {
        return false;
    }
    let ours = |path: &PathBuf| path.components().any(|part| part.as_os_str() == FOLDER || part.as_os_str() == "runs");
    event.paths.is_empty() || event.paths.iter().any(ours)
}
