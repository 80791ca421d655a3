//! How many runs are kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::folder::{LEAVING, RunFolder, State};
use crate::os::files;

/// What a folder of runs may hold. Pinned and live runs count and stay; the newest run stays whatever its size.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub runs: usize,
    pub bytes: u64,
}

pub const LIMITS: Limits = Limits { runs: 20, bytes: 2 << 30 };

/// Deletes the oldest runs in `runs` beyond `limits`. Returns those that could not be deleted, with the reason.
pub fn apply(runs: &Path, limits: Limits) -> Vec<String> {
    let mut failures = end_deletions(runs);
    let mut bytes = 0;
    for (older, run) in RunFolder::list(runs).into_iter().enumerate() {
        bytes += size(run.path());
        let fits = older == 0 || (older < limits.runs && bytes <= limits.bytes);
        if fits || run.pinned() || run.state() == State::Live {
            continue;
        }
        let path = run.path().to_owned();
        if let Err(failure) = run.delete()
            && failure.kind() != io::ErrorKind::NotFound
        {
            failures.push(format!("The old run {} cannot be deleted: {failure}.", path.display()));
        }
    }
    failures
}

/// Deletions that were cut short by the end of their process.
fn end_deletions(runs: &Path) -> Vec<String> {
    let names = files::names_beneath(runs, &[]).unwrap_or_default();
    let leaving = names.into_iter().filter(|name| name.to_str().is_some_and(|name| name.starts_with(LEAVING)));
    leaving
        .filter_map(|name| {
            let path = runs.join(name);
            match fs::remove_dir_all(&path) {
                // Another run may be at the same.
                Err(failure) if failure.kind() != io::ErrorKind::NotFound => {
                    Some(format!("The old run {} cannot be deleted: {failure}.", path.display()))
                }
                _ => None,
            }
        })
        .collect()
}

/// Bytes in a folder, not counting what links in it point to. What cannot be looked at counts nothing.
fn size(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}
