//! Helpers: this same program again, under a hidden subcommand, in a session of its own.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Starts a helper with the given standard streams. It holds neither the user's terminal nor the working directory.
pub fn start<I, A>(subcommand: &str, arguments: I, stdin: Stdio, stdout: Stdio) -> io::Result<Child>
where
    I: IntoIterator<Item = A>,
    A: AsRef<OsStr>,
{
    // The environment goes too: a guardian that carried the mark of its run would be one of those that it ends.
    Command::new(this_program()?)
        .arg(subcommand)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
}

/// To be called first in a helper's own `main`: the terminal's signals no longer reach it.
pub fn leave_the_session() {
    // It fails only for the leader of a process group, which a helper is not.
    rustix::process::setsid().ok();
}

/// The running program itself, also when its file was replaced meanwhile by an update.
fn this_program() -> io::Result<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Ok(link) } else { std::env::current_exe() }
}
