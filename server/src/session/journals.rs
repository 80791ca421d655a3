//! The memory into which the traced processes of a run write their launches.
//!
//! It is the supervisor's: a handful of sealed memfds, none of which can be cut short under the writer, and which outlive
//! every way a traced process can end. A process reaches them through the supervisor's entry in /proc and claims the first
//! that is free; one that is never claimed takes no memory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

use cublame_journal::layout::header;
use cublame_journal::{Journal, Shape};

use super::traced::JOURNALS;
use crate::os::memory;

/// The variable that tells the tracer where to write.
pub const VARIABLE: &str = "CUBLAME_JOURNAL";

/// What the memory is called in /proc.
const NAME: &str = "cublame-journal";

/// How many processes of one run can be traced: the ranks of one machine with some to spare.
const MOST_PROCESSES: usize = 32;

pub struct Journals {
    held: Vec<File>,
}

impl Journals {
    pub fn prepare() -> io::Result<Journals> {
        let held = (0..MOST_PROCESSES).map(|_| create()).collect::<io::Result<Vec<File>>>()?;
        Ok(Journals { held })
    }

    /// What [`VARIABLE`] says to the traced processes.
    pub fn value(&self) -> String {
        let descriptors: Vec<String> = self.held.iter().map(|file| file.as_raw_fd().to_string()).collect();
        format!("memfd:{}:{}", std::process::id(), descriptors.join(","))
    }

    /// Writes what was claimed into the run folder: sentences about what could not be kept.
    pub fn keep(&self, run: &Path) -> Vec<String> {
        let mut lost = Vec::new();
        for file in &self.held {
            match owner(file) {
                Ok(0) => {}
                Ok(pid) => {
                    let to = run.join(JOURNALS).join(format!("{pid}.journal"));
                    if let Err(failure) = make_folder(run, JOURNALS).and_then(|()| copy(file, &to)) {
                        lost.push(format!("The launch journal of process {pid} could not be kept: {failure}."));
                    }
                }
                Err(failure) => lost.push(format!("A launch journal could not be read: {failure}.")),
            }
        }
        lost
    }
}

/// The journals that a supervisor holds, as they are now. None where its descriptors cannot be seen.
pub fn held_by(supervisor: u32) -> Vec<Journal> {
    let descriptors = Path::new("/proc").join(supervisor.to_string()).join("fd");
    let entries = std::fs::read_dir(descriptors).into_iter().flatten().flatten();
    let held = entries
        .filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().contains(NAME)));
    let mut journals: Vec<Journal> = held
        .filter_map(|entry| {
            let file = File::open(entry.path()).ok()?;
            // Most were never claimed: reading the owner's word is enough to tell.
            if owner(&file).ok()? == 0 {
                return None;
            }
            let mut bytes = Vec::with_capacity(Shape::DEFAULT.bytes());
            file.take(Shape::DEFAULT.bytes() as u64).read_to_end(&mut bytes).ok()?;
            cublame_journal::read(&bytes).ok()
        })
        .collect();
    journals.sort_by_key(|journal| journal.pid);
    journals
}

/// Makes a folder of the run, unless it is there.
pub fn make_folder(run: &Path, name: &str) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(run.join(name)) {
        Err(failure) if failure.kind() != io::ErrorKind::AlreadyExists => Err(failure),
        _ => Ok(()),
    }
}

fn create() -> io::Result<File> {
    memory::sealed(NAME, Shape::DEFAULT.bytes() as u64)
}

/// The process that claimed it; 0 for none.
fn owner(file: &File) -> io::Result<u64> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, header::OWNER as u64 * 8)?;
    Ok(u64::from_ne_bytes(word))
}

/// Copies a journal, leaving holes where it is empty: most of it is, unless the run was long.
fn copy(journal: &File, to: &Path) -> io::Result<()> {
    const PIECE: usize = 1 << 16;
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    let mut piece = vec![0; PIECE];
    let bytes = Shape::DEFAULT.bytes() as u64;
    for at in (0..bytes).step_by(PIECE) {
        let length = PIECE.min((bytes - at) as usize);
        journal.read_exact_at(&mut piece[..length], at)?;
        if piece[..length].iter().any(|byte| *byte != 0) {
            out.seek(SeekFrom::Start(at))?;
            out.write_all(&piece[..length])?;
        }
    }
    out.set_len(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_cut_it_short() {
        let file = create().unwrap();
        assert!(file.set_len(8).is_err());
        assert!(file.set_len(1 << 30).is_err());
        assert_eq!(owner(&file).unwrap(), 0);
    }

    #[test]
    fn what_was_claimed_is_kept_as_it_was() {
        let run = tempfile::tempdir().unwrap();
        let journals = Journals::prepare().unwrap();
        assert_eq!(held_by(std::process::id()), []);
        assert!(journals.value().starts_with(&format!("memfd:{}:", std::process::id())));
        journals.held[3].write_all_at(&4711u64.to_ne_bytes(), header::OWNER as u64 * 8).unwrap();
        journals.held[3].write_all_at(b"the last bytes", Shape::DEFAULT.bytes() as u64 - 14).unwrap();
        assert_eq!(journals.keep(run.path()), Vec::<String>::new());
        let kept = std::fs::read(run.path().join("journal/4711.journal")).unwrap();
        assert_eq!(kept.len(), Shape::DEFAULT.bytes());
        assert_eq!(kept[24..32], 4711u64.to_ne_bytes());
        assert!(kept.ends_with(b"the last bytes"));
        assert_eq!(std::fs::read_dir(run.path().join(JOURNALS)).unwrap().count(), 1);
    }
}
