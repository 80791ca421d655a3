//! Terminals: a pty that stands in for one, and its size.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::FileType;
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, OptionalActions, OutputModes};

/// A terminal for the child, and the end from which its output is read.
pub struct Pty {
    pub ours: OwnedFd,
    pub childs: OwnedFd,
}

impl Pty {
    /// A pty in the likeness of the terminal `like`.
    ///
    /// It translates nothing on output: the real terminal behind it turns line feeds into new lines, once.
    /// It does not become anybody's controlling terminal, so signals keep coming from the real one.
    pub fn like(like: impl AsFd) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&ours)?;
        rustix::pty::unlockpt(&ours)?;
        let childs = open_other_end(&ours)?;
        let mut modes = rustix::termios::tcgetattr(&like)?;
        modes.output_modes.remove(OutputModes::OPOST);
        modes.local_modes.remove(LocalModes::ECHO);
        rustix::termios::tcsetattr(&childs, OptionalActions::Now, &modes)?;
        let pty = Self { ours, childs };
        copy_window_size(like, &pty.ours)?;
        Ok(pty)
    }
}

/// Gives the pty the window size of the real terminal. True when that changed something.
pub fn copy_window_size(from: impl AsFd, pty: impl AsFd) -> io::Result<bool> {
    let size = rustix::termios::tcgetwinsize(from)?;
    let changed = rustix::termios::tcgetwinsize(&pty)? != size;
    if changed {
        rustix::termios::tcsetwinsize(pty, size)?;
    }
    Ok(changed)
}

pub fn is_terminal(file: impl AsFd) -> bool {
    rustix::termios::isatty(file)
}

/// Are both the same open file, as after `2>&1`? Writes to it then keep their order only through one pipe.
pub fn is_same_file(one: impl AsFd, other: impl AsFd) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => one.st_dev == other.st_dev && one.st_ino == other.st_ino,
        _ => false,
    }
}

pub fn is_pipe(file: impl AsFd) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// A pipe that holds as much as the system lets it, so that the child seldom waits for us.
pub fn wide_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(target_os = "linux")]
    {
        // Over the user's limit (/proc/sys/fs/pipe-user-pages-soft) the pipe stays at its usual size.
        rustix::pipe::fcntl_setpipe_size(&write, 1 << 20).ok();
    }
    Ok((read, write))
}

/// How /proc/PID/fd names the other end of a pipe or pty that we read.
pub fn other_end_name(ours: impl AsFd) -> Option<PathBuf> {
    if is_pipe(&ours) {
        return Some(format!("pipe:[{}]", rustix::fs::fstat(&ours).ok()?.st_ino).into());
    }
    let name = rustix::pty::ptsname(&ours, Vec::new()).ok()?;
    Some(OsString::from_vec(name.into_bytes()).into())
}

#[cfg(target_os = "linux")]
fn open_other_end(ours: &OwnedFd) -> io::Result<OwnedFd> {
    // Not by its name: the name may be another pty's in another mount namespace (ioctl_tty(2), TIOCGPTPEER).
    Ok(rustix::pty::ioctl_tiocgptpeer(ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?)
}

#[cfg(not(target_os = "linux"))]
fn open_other_end(ours: &OwnedFd) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};

    let name = rustix::pty::ptsname(ours, Vec::new())?;
    Ok(rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}
