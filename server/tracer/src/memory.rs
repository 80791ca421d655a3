//! Where a journal lives: a memfd that the supervisor holds, or a file that was given its blocks beforehand. Never a file
//! whose missing block would fault the program.
//!
//! CUBLAME_JOURNAL says which: `memfd:PID:FD,FD,...`, `dir:PATH`, or `run` for the folder `journal` of the run folder that
//! CUBLAME_RUN names by the time the driver is used. Without it, or where none can be had, nothing is recorded.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
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
    } else if value == b"run" {
        let folder = Path::new(&std::env::var_os("CUBLAME_RUN")?).join("journal");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
        create_file(&folder)
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
    let writer = if is_on_this_machine(&file) { map(&file) } else { None };
    if writer.is_none() {
        // What cannot be used must not stay behind.
        let _ = std::fs::remove_file(&path);
    }
    writer
}

/// Is the file on a file system of this machine that keeps the blocks it gave, with room to spare? Over a network a page
/// can fail to be written, and one that copies on every write can run out of room later.
fn is_on_this_machine(file: &File) -> bool {
    /// `f_type` of statfs(2): ext2 to ext4, xfs, tmpfs, overlayfs.
    const KEEPS_BLOCKS: [u64; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630];
    system::file_system(file.as_raw_fd())
        .is_some_and(|system| KEEPS_BLOCKS.contains(&system.kind) && system.free >= 4 * Shape::DEFAULT.bytes() as u64)
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
