//! Opening files in a folder that somebody else may have written: no symbolic link is followed out of it, nothing hangs.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens `parts` beneath `folder` for reading. Each part is one plain name.
///
/// A symbolic link anywhere (`folder` itself included) is refused, and so is what is not a regular file:
/// a FIFO in an untrusted folder would hang its reader.
pub fn open_beneath(folder: &Path, parts: &[&str]) -> io::Result<File> {
    let Some((name, folders)) = parts.split_last() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let directory = open_folder_beneath(folder, folders)?;
    require_plain(name)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&directory, *name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

/// Reads a whole file beneath `folder`, refusing one of more than `limit` bytes.
pub fn read_beneath(folder: &Path, parts: &[&str], limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_beneath(folder, parts)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MB", limit >> 20)));
    }
    Ok(bytes)
}

/// The names in a folder beneath `folder`, in no order. A link to a folder is refused, as above.
pub fn names_beneath(folder: &Path, parts: &[&str]) -> io::Result<Vec<OsString>> {
    use std::os::unix::ffi::OsStringExt;

    let directory = open_folder_beneath(folder, parts)?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::new(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

/// Is the folder on a file system from which nothing may be executed? False where that cannot be told.
#[cfg(target_os = "linux")]
pub fn forbids_execution(folder: &Path) -> bool {
    use rustix::fs::StatVfsMountFlags;

    rustix::fs::statvfs(folder).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

#[cfg(not(target_os = "linux"))]
pub fn forbids_execution(_folder: &Path) -> bool {
    false
}

fn open_folder_beneath(folder: &Path, parts: &[&str]) -> io::Result<rustix::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(folder, flags, Mode::empty())?;
    for part in parts {
        require_plain(part)?;
        directory = rustix::fs::openat(&directory, *part, flags, Mode::empty())?;
    }
    Ok(directory)
}

fn require_plain(name: &str) -> io::Result<()> {
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    if plain { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
}
