//! How many runs are kept.

use std::fs;
use std::path::{Path, PathBuf};

use super::folder::{RunFolder, State};

/// What a folder of runs may hold. Pinned and live runs count and stay; the newest run stays whatever its size.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub runs: usize,
    pub bytes: u64,
}

pub const LIMITS: Limits = Limits { runs: 20, bytes: 2 << 30 };

/// Deletes the oldest runs in `runs` beyond `limits`. Returns those that could not be deleted, with the reason.
pub fn apply(runs: &Path, limits: Limits) -> Vec<String> {
    let mut failures = Vec::new();
    let mut bytes = 0;
    for (older, run) in RunFolder::list(runs).into_iter().enumerate() {
        bytes += size(run.path());
        let fits = older == 0 || (older < limits.runs && bytes <= limits.bytes);
        if fits || run.pinned() || run.state() == State::Live {
            continue;
        }
        let path = run.path().to_owned();
        if let Err(failure) = run.delete() {
            failures.push(format!("The old run {} cannot be deleted: {failure}.", path.display()));
        }
    }
    failures
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
