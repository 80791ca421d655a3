//! No orphan when the runner is killed: a second process waits for the runner's end and then ends what the runner ran.
//!
//! The guardian holds the read end of a pipe whose only write end the runner holds, so even SIGKILL is noticed at once.
//! PR_SET_PDEATHSIG would reach the child only, neither grandchildren nor a program that changes its user (prctl(2)).
//! A run that ends in an orderly way says so first, and then daemons that the child left on purpose stay.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use cublame_core::run::ProcessId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::helper;
use crate::os::{processes, signals};

pub const SUBCOMMAND: &str = "__guardian";

/// The runner's side.
pub struct Guardian {
    pipe: io::PipeWriter,
}

impl Guardian {
    /// `run` is the run folder, whose path every process of the run carries in CUBLAME_RUN.
    ///
    /// It returns when the guardian has its pipe, and does not wait until it listens: what is said before waits there.
    pub fn start(run: Option<&Path>) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        let runner = processes::this_process();
        let mut arguments: Vec<OsString> = vec![runner.pid.to_string().into(), runner.start.to_string().into()];
        arguments.extend(run.map(|run| run.as_os_str().to_owned()));
        helper::start(SUBCOMMAND, arguments, Stdio::from(reader), Stdio::null())?;
        Ok(Self { pipe })
    }

    pub fn watch(&mut self, child: ProcessId) {
        self.tell(&format!("child {} {}\n", child.pid, child.start));
    }

    /// The runner is about to stop, because its child did. The guardian continues it when the child goes on.
    pub fn stopping(&mut self) {
        self.tell("stopping\n");
    }

    pub fn continued(&mut self) {
        self.tell("continued\n");
    }

    /// The run ended in an orderly way: nothing is to be ended.
    pub fn dismiss(mut self) {
        self.tell("done\n");
    }

    fn tell(&mut self, message: &str) {
        // A guardian that somebody has killed is missed by nobody but the next SIGKILL.
        self.pipe.write_all(message.as_bytes()).ok();
    }
}

/// The guardian's side: `cublame __guardian RUNNER-PID RUNNER-START [RUN-FOLDER]`, the pipe on standard input.
pub fn main(runner: ProcessId, run: Option<&Path>) -> io::Result<()> {
    helper::leave_the_session();
    let _signals = signals::shrug_off_termination()?;
    let mut messages = Messages { pipe: io::stdin().as_fd().try_clone_to_owned()?, unread: Vec::new() };
    let (mut child, mut runner_is_stopped) = (None, false);
    loop {
        match messages.next(runner_is_stopped.then_some(GLANCE))? {
            Heard::Child(process) => child = Some(process),
            Heard::Stopping => runner_is_stopped = true,
            Heard::Continued => runner_is_stopped = false,
            Heard::Done => return Ok(()),
            Heard::Nothing => {
                if child.is_none_or(|child| !processes::is_stopped(child)) {
                    // A runner that is gone is heard of through the pipe.
                    processes::signal_exactly(runner, signals::SIGCONT).ok();
                }
            }
            Heard::RunnerGone => break,
        }
    }
    end_the_family(run, child);
    Ok(())
}

/// How often a stopped run's child is looked at.
const GLANCE: Duration = Duration::from_millis(100);
/// Between asking a process to end and ending it.
const GRACE: Duration = Duration::from_secs(2);
/// A process in an uninterruptible wait may not even die: nobody can help that.
const PATIENCE: Duration = Duration::from_secs(10);

enum Heard {
    Child(ProcessId),
    Stopping,
    Continued,
    Done,
    Nothing,
    /// The pipe has ended without a word.
    RunnerGone,
}

struct Messages {
    pipe: OwnedFd,
    unread: Vec<u8>,
}

impl Messages {
    /// The next message, or nothing within `patience`.
    fn next(&mut self, patience: Option<Duration>) -> io::Result<Heard> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                if let Some(heard) = parse(&line) {
                    return Ok(heard);
                }
                continue;
            }
            if !self.wait(patience)? {
                return Ok(Heard::Nothing);
            }
            let mut piece = [0; 256];
            match rustix::io::read(&self.pipe, &mut piece) {
                Ok(0) => return Ok(Heard::RunnerGone),
                Ok(count) => self.unread.extend_from_slice(&piece[..count]),
                Err(rustix::io::Errno::INTR) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    fn wait(&self, patience: Option<Duration>) -> io::Result<bool> {
        let timeout = patience.map(|patience| Timespec {
            tv_sec: patience.as_secs().cast_signed(),
            tv_nsec: patience.subsec_nanos().into(),
        });
        loop {
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], timeout.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}

fn parse(line: &[u8]) -> Option<Heard> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    match words.next()? {
        "child" => {
            let (pid, start) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some(Heard::Child(ProcessId { pid, start }))
        }
        "stopping" => Some(Heard::Stopping),
        "continued" => Some(Heard::Continued),
        "done" => Some(Heard::Done),
        _ => None,
    }
}

/// Asks every process of the run to end, and ends those that do not.
fn end_the_family(run: Option<&Path>, child: Option<ProcessId>) {
    let mut marks: BTreeSet<Vec<u8>> = run.iter().map(|run| run.as_os_str().as_bytes().to_vec()).collect();
    let start = Instant::now();
    let mut asked: Vec<ProcessId> = Vec::new();
    while start.elapsed() < PATIENCE {
        // Looked up anew each time: a process that is asked to end may start others to clean up.
        let family = processes::family("CUBLAME_RUN", &mut marks, child);
        if family.is_empty() {
            return;
        }
        for process in family {
            // Every failure here means that the process is gone or not ours, and the next look decides.
            if start.elapsed() >= GRACE {
                processes::signal_exactly(process, signals::SIGKILL).ok();
            } else if !asked.contains(&process) {
                processes::signal_exactly(process, signals::SIGTERM).ok();
                processes::signal_exactly(process, signals::SIGCONT).ok();
                asked.push(process);
            }
        }
        thread::sleep(GLANCE / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_however_they_are_cut() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut messages = Messages { pipe: reader.into(), unread: Vec::new() };
        let none = Some(Duration::ZERO);
        writer.write_all(b"child 42").unwrap();
        assert!(matches!(messages.next(none).unwrap(), Heard::Nothing));
        writer.write_all(b" 77\nunknown\nstopping\ncont").unwrap();
        let child = ProcessId { pid: 42, start: 77 };
        assert!(matches!(messages.next(none).unwrap(), Heard::Child(process) if process == child));
        assert!(matches!(messages.next(none).unwrap(), Heard::Stopping));
        writer.write_all(b"inued\n").unwrap();
        assert!(matches!(messages.next(none).unwrap(), Heard::Continued));
        writer.write_all(b"done\n").unwrap();
        assert!(matches!(messages.next(none).unwrap(), Heard::Done));
        drop(writer);
        assert!(matches!(messages.next(None).unwrap(), Heard::RunnerGone));
    }
}
