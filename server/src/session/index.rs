//! The index of all runs of this user: a server finds runs of folders that it does not watch.
//!
//! It is `$XDG_STATE_HOME/cublame/index`, one line of JSON a run. It is only a help: a lost line loses no run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One line of the index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The run folder, absolute.
    pub run: PathBuf,
    /// The working directory of the run.
    pub cwd: PathBuf,
    /// Unix seconds.
    pub started: f64,
}

pub fn path(state_folder: &Path) -> PathBuf {
    state_folder.join("index")
}

/// Adds a run. One short append, so that runs that start together do not mix their lines.
pub fn append(state_folder: &Path, entry: &Entry) -> io::Result<()> {
    fs::create_dir_all(state_folder)?;
    let path = path(state_folder);
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
    file.write_all(&line)?;
    if file.metadata()?.len() > LARGEST { trim(&mut file) } else { Ok(()) }
}

/// The runs of the index, oldest first. Lines that do not parse are skipped; an index that is not there is empty.
pub fn read(state_folder: &Path) -> Vec<Entry> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path(state_folder)) {
        // What could be read before a failure is still good.
        file.take(4 * LARGEST).read_to_end(&mut bytes).ok();
    }
    entries(&bytes)
}

/// About a thousand runs.
const LARGEST: u64 = 256 << 10;

fn entries(bytes: &[u8]) -> Vec<Entry> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Leaves out the runs that are gone, and the older half where all are still there.
///
/// A run that is added between the reading and the writing is lost from the index; the lock keeps two trims apart.
fn trim(file: &mut File) -> io::Result<()> {
    if file.try_lock().is_err() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    io::Seek::rewind(file)?;
    Read::by_ref(file).take(4 * LARGEST).read_to_end(&mut bytes)?;
    let mut kept = Vec::new();
    for entry in entries(&bytes).iter().rev().filter(|entry| entry.run.is_dir()) {
        if kept.len() as u64 * ENTRY_SIZE > LARGEST / 2 {
            break;
        }
        kept.push(serde_json::to_string(entry)? + "\n");
    }
    kept.reverse();
    file.set_len(0)?;
    file.write_all(kept.concat().as_bytes())
}

/// Roughly one line.
const ENTRY_SIZE: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(run: &Path) -> Entry {
        Entry { run: run.to_owned(), cwd: "/home/dev/proj".into(), started: 1.5 }
    }

    #[test]
    fn what_is_appended_is_read_in_order_past_damage() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(read(state.path()), []);
        append(state.path(), &entry(Path::new("/r/1"))).unwrap();
        let mut file = OpenOptions::new().append(true).open(path(state.path())).unwrap();
        file.write_all(b"\xff\xff not json\n[]\n").unwrap();
        append(state.path(), &entry(Path::new("/r/2"))).unwrap();
        assert_eq!(read(state.path()), [entry(Path::new("/r/1")), entry(Path::new("/r/2"))]);
    }

    #[test]
    fn a_large_index_keeps_the_newest_runs_that_are_still_there() {
        let state = tempfile::tempdir().unwrap();
        let gone = serde_json::to_string(&entry(Path::new("/gone"))).unwrap() + "\n";
        fs::write(path(state.path()), gone.repeat(LARGEST as usize / gone.len() + 1)).unwrap();
        append(state.path(), &entry(state.path())).unwrap();
        assert_eq!(read(state.path()), [entry(state.path())]);
    }
}
