//! A daemon that the child left behind keeps its output: another process passes it on when the runner leaves.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;

use super::helper;
use super::streams::{self, To};
use crate::os::{processes, terminal};

pub const SUBCOMMAND: &str = "__relay";

/// Starts the relay from our end of a channel to one of our own streams. Returns who holds the other end, in words.
pub fn start(from: BorrowedFd, to: To) -> io::Result<String> {
    let holder = terminal::other_end_name(from).and_then(|name| processes::holder_of(&name));
    let source = Stdio::from(from.try_clone_to_owned()?);
    helper::start(SUBCOMMAND, [""; 0], source, Stdio::from(to.fd().try_clone_to_owned()?))?;
    Ok(holder.map_or_else(|| "A process".to_owned(), |pid| format!("Process {pid}")))
}

/// `cublame __relay`: standard input to standard output until one of them ends.
pub fn main() {
    helper::leave_the_session();
    streams::copy(io::stdin().as_fd(), io::stdout().as_fd(), None, |_| {});
}
