//! Where a journal lives: a memfd that the supervisor holds, or a file that was given its blocks beforehand. Never a file
//! whose missing block would fault the program.
//!
//! CUBLAME_JOURNAL says which: `memfd:PID:FD,FD,...` or `dir:PATH`. Without it, or where neither can be had, nothing is
//! recorded.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use cublame_journal::{Shape, Writer};

use crate::system;

pub const VARIABLE: &str = "CUBLAME_JOURNAL";

/// Claims a journal for this process.
pub fn claim() -> Option<Writer> {
    let value = std::env::var_os(VARIABLE)?;
    let value = value.as_bytes();
    if let Some(held) = value.strip_prefix(b"memfd:") {
        claim_memfd(std::str::from_utf8(held).ok()?)
    } else {
        create_file(Path::new(OsStr::from_bytes(value.strip_prefix(b"dir:")?)))
    }
}

/// The first memfd of the supervisor that no other process has claimed. It is reached through the supervisor's entry in
/// /proc, because descriptors do not pass every `exec`: Python's subprocess closes them.
fn claim_memfd(held: &str) -> Option<Writer> {
    let (supervisor, descriptors) = held.split_once(':')?;
    let supervisor: u32 = supervisor.parse().ok()?;
    descriptors.split(',').filter_map(|descriptor| descriptor.parse::<u32>().ok()).find_map(|descriptor| {
        let path = format!("/proc/{supervisor}/fd/{descriptor}");
        let file = OpenOptions::new().read(true).write(true).custom_flags(system::O_CLOEXEC).open(path).ok()?;
        map(&file)
    })
}

/// A new file in a folder on this machine.
fn create_file(folder: &Path) -> Option<Writer> {
    let pid = std::process::id();
    let path = folder.join(format!("{pid}-{:x}.journal", system::nanoseconds(system::REALTIME)));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(system::O_NOFOLLOW | system::O_CLOEXEC)
        .open(&path)
        .ok()?;
    let writer = map(&file);
    if writer.is_none() {
        // What cannot be used must not stay behind.
        let _ = std::fs::remove_file(&path);
    }
    writer
}

fn map(file: &File) -> Option<Writer> {
    let shape = Shape::DEFAULT;
    let bytes = shape.bytes();
    // SAFETY: an open file and a size; the call gives the file its blocks or says why not.
    if unsafe { system::posix_fallocate(file.as_raw_fd(), 0, bytes as i64) } != 0 {
        return None;
    }
    // SAFETY: a new shared mapping at an address of the kernel's choice.
    let base = unsafe {
        system::mmap(
            std::ptr::null_mut(),
            bytes,
            system::PROT_READ_WRITE,
            system::MAP_SHARED | system::MAP_POPULATE,
            file.as_raw_fd(),
            0,
        )
    };
    if base.addr() == usize::MAX {
        return None;
    }
    let (pid, monotonic, realtime) =
        (std::process::id(), system::nanoseconds(system::MONOTONIC), system::nanoseconds(system::REALTIME));
    // SAFETY: the mapping has `bytes` bytes, begins on a page, has its blocks, and is never unmapped.
    unsafe { Writer::claim(base.cast(), shape, pid, monotonic, realtime) }
}
