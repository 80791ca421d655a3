//! Memory that other processes can map, as a file that nobody can make larger or smaller.

use std::fs::File;
use std::io;

/// `bytes` of zeros without a name in any file system. What is never written takes no memory.
#[cfg(target_os = "linux")]
pub fn sealed(name: &str, bytes: u64) -> io::Result<File> {
    use rustix::fs::{MemfdFlags, SealFlags};

    let file = File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(bytes)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
pub fn sealed(_name: &str, _bytes: u64) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// CLOCK_MONOTONIC, which the launch journal uses, in nanoseconds.
pub fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
