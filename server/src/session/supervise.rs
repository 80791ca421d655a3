//! A child from its start to its end: its streams copied, its signals passed on, its stops shared, its end waited for.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use cublame_core::hang::Hang;
use cublame_core::mode::EnvBlock;
use cublame_core::run::{Exit, ProcessId};

use rustix::io::Errno;

use super::guardian::Guardian;
use super::hang::HangWatch;
use super::recorder::{Recorded, Recorder, Shared};
use super::relay;
use super::streams::{Copying, Ended, ForChild, Streams, To};
use crate::error::Error;
use crate::os::processes::{self, Change};
use crate::os::signals::{self, Received, Sender, Signals};

/// What is to be run.
pub struct Job<'a> {
    pub argv: &'a [OsString],
    pub env: &'a EnvBlock,
    /// The run folder; without one the run goes on and records nothing on disk.
    pub run: Option<&'a Path>,
    /// None: a silent run is left in peace.
    pub hang: Option<OnHang>,
    /// Takes the child's output as well, as it comes.
    pub also: Option<&'a Shared>,
}

/// After how long a silence the processes are asked, and who is told of the run folder's hang; None: it goes on.
#[derive(Debug, Clone, Copy)]
pub struct OnHang {
    pub after: Duration,
    pub tell: fn(&Path, Option<Hang>),
}

/// A child that has ended.
#[derive(Debug)]
pub struct Ran {
    pub exit: Exit,
    /// None if the condenser failed.
    pub recorded: Option<Recorded>,
    /// What could not be kept or done, as whole sentences.
    pub partial: Vec<String>,
}

/// A child that never started, and the exit code that says so: 127 not found, 126 not executable, 125 anything else.
#[derive(Debug)]
pub struct NotStarted {
    pub code: u8,
    pub error: Error,
}

/// Runs the job. `started` is told the child's number as soon as there is one.
pub fn supervise(job: &Job, started: impl FnOnce(ProcessId)) -> Result<Ran, NotStarted> {
    let mut partial = Vec::new();
    // Before the child starts, so that no signal is missed.
    let mut signals = Signals::listen().map_err(cannot("listen to signals"))?;
    let mut guardian = Guardian::start(job.run).map_err(cannot("start a guardian"))?;
    let recorder = Recorder::start().map_err(cannot("start a thread"))?;
    let streams = Streams::prepare().map_err(cannot("open the child's streams"))?;
    partial.extend(streams.notes);
    let (ends, leave) = (mpsc::channel(), io::pipe().map_err(cannot("open a pipe"))?);
    let leave_asked = Arc::new(OwnedFd::from(leave.0));
    let copying = streams
        .channels
        .into_iter()
        .map(|channel| Copying::start(channel, recorder.tap(job.also), Arc::clone(&leave_asked), ends.0.clone()))
        .collect::<io::Result<Vec<Copying>>>()
        .map_err(cannot("start a thread"))?;

    let child = match spawn(job, &streams.for_child) {
        Ok(child) => child,
        Err(failure) => {
            guardian.dismiss();
            return Err(not_started(&job.argv[0], failure));
        }
    };
    drop(streams.for_child);
    guardian.watch(child);
    started(child);

    let bytes: Vec<_> = copying.iter().map(Copying::counter).collect();
    let watching = job.hang.zip(job.run).map(|(OnHang { after, tell }, run)| {
        let progress = move || bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
        let told = run.to_owned();
        HangWatch::start(after, run.to_owned(), child, progress, move |hang| tell(&told, hang))
    });
    let watching = watching.transpose();
    let hang = watching.as_ref().ok().and_then(Option::as_ref);
    let exit = Watch { hang, child, signals: &mut signals, guardian: &mut guardian, copying: &copying }.until_its_end();
    match watching {
        Ok(watching) => drop(watching),
        Err(failure) => partial.push(format!("Nobody watched whether the run hangs: {failure}.")),
    }
    // From here on what still runs was left behind on purpose.
    guardian.dismiss();
    Rest { signals: &mut signals, copying: &copying, ends: ends.1, leave: leave.1 }.finish(&mut partial);
    Ok(Ran { exit, recorded: recorder.finish(), partial })
}

fn spawn(job: &Job, streams: &ForChild) -> io::Result<ProcessId> {
    let mut command = Command::new(&job.argv[0]);
    command.args(&job.argv[1..]);
    let outcome = spawn_with(&mut command, job, streams);
    let is_plain_text =
        outcome.as_ref().is_err_and(|failure| failure.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()));
    if is_plain_text && job.argv[0].as_bytes().contains(&b'/') {
        // A script without its first line `#!`: every shell, and execvp(3), has `sh` run it.
        return spawn_with(Command::new("/bin/sh").args(job.argv), job, streams);
    }
    outcome
}

fn spawn_with(command: &mut Command, job: &Job, streams: &ForChild) -> io::Result<ProcessId> {
    streams.lend(command)?;
    if job.run.is_none() {
        // The events of a run without a folder must not go into the folder of the run around it.
        command.env_remove("CUBLAME_RUN");
    }
    command.envs(job.env.variables.iter().map(|variable| (variable.name, &variable.value)));
    Ok(processes::identify(command.spawn()?.id()))
}

fn not_started(program: &OsStr, failure: io::Error) -> NotStarted {
    let shown = Path::new(program).display();
    let is_path = program.as_bytes().contains(&b'/');
    let (code, error) = match failure.kind() {
        io::ErrorKind::NotFound if is_path && Path::new(program).exists() => (
            127,
            Error::user(format!("the interpreter of {shown} does not exist"))
                .hint("look at its first line, after `#!`"),
        ),
        io::ErrorKind::NotFound => (
            127,
            Error::user(format!("there is no command `{shown}`")).hint(if program == "compute-sanitizer" {
                "it comes with the CUDA toolkit: install that, or put its folder `bin` on PATH"
            } else if is_path {
                "check the path after `--`"
            } else {
                "check its spelling, or activate the environment that has it"
            }),
        ),
        io::ErrorKind::PermissionDenied if Path::new(program).is_dir() => {
            (126, Error::user(format!("{shown} is a folder")).hint("name a program in it"))
        }
        io::ErrorKind::PermissionDenied => (
            126,
            Error::user(format!("{shown} may not be executed"))
                .hint(format!("make it executable with `chmod +x {shown}`, or name its interpreter before it")),
        ),
        io::ErrorKind::ArgumentListTooLong => (126, Error::user(format!("the arguments of {shown} are too long"))),
        _ if failure.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => (
            126,
            Error::user(format!("{shown} is not a program for this machine")).hint("name its interpreter before it"),
        ),
        _ => (125, Error::environment(format!("{shown} cannot be started")).because(failure)),
    };
    NotStarted { code, error }
}

fn cannot(what: &'static str) -> impl Fn(io::Error) -> NotStarted {
    move |failure| NotStarted { code: 125, error: Error::environment(format!("cannot {what}")).because(failure) }
}

/// A stream that takes nothing for this long is halted.
const HALTED: Duration = Duration::from_millis(500);

/// The time from the child's start to its end.
struct Watch<'a> {
    hang: Option<&'a HangWatch>,
    child: ProcessId,
    signals: &'a mut Signals,
    guardian: &'a mut Guardian,
    copying: &'a [Copying],
}

impl Watch<'_> {
    fn until_its_end(&mut self) -> Exit {
        loop {
            for received in self.signals.wait() {
                if let Some(exit) = self.react(received) {
                    return exit;
                }
            }
        }
    }

    fn react(&mut self, received: Received) -> Option<Exit> {
        if let Some(hang) = self.hang.filter(|_| signals::is_termination(received.signal)) {
            hang.retire();
        }
        match received.signal {
            signals::CHILD_CHANGED => return self.look_at_child(),
            signals::WINDOW_CHANGED => self.pass_on_window_size(received.sender),
            signal if signals::is_forwarded(signal) => self.forward(signal, received.sender),
            _ => {}
        }
        None
    }

    fn look_at_child(&mut self) -> Option<Exit> {
        loop {
            match processes::look_at_child(self.child) {
                Ok(None) => return None,
                Ok(Some(Change::Ended(exit))) => return Some(exit),
                Ok(Some(Change::Stopped)) => self.stop_with_child(),
                // Somebody else has reaped it: its end is known, how it ended is not.
                Err(_) => return Some(Exit::default()),
            }
        }
    }

    /// The shell that waits for us must see a stopped job, and whoever continues one of us continues both.
    fn stop_with_child(&mut self) {
        if !processes::is_stopped(self.child) {
            return;
        }
        self.show_what_came();
        self.guardian.stopping();
        signals::stop_this_process();
        self.guardian.continued();
        if processes::is_stopped(self.child) {
            // It fails only if the child has just ended, and that is looked at next.
            processes::signal_child(self.child, signals::SIGCONT).ok();
        }
    }

    /// What the child wrote before it stopped is seen before it stops. A terminal that was halted by Ctrl-S is not waited for.
    fn show_what_came(&self) {
        let start = Instant::now();
        while start.elapsed() < HALTED && !self.copying.iter().all(Copying::is_up_to_date) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// What the kernel sends has reached the child as well: it is in the same process group.
    fn forward(&self, signal: i32, sender: Sender) {
        match sender {
            Sender::Process(pid) if pid != self.child.pid.cast_signed() => {
                // It fails only if the child has just ended, and that is looked at next.
                processes::signal_child(self.child, signal).ok();
            }
            // A child that signals its whole group means the group, and has had its own share.
            Sender::Process(_) | Sender::Kernel => {}
        }
    }

    /// The child may have heard of the change before its pty had the new size, so it hears of it again.
    fn pass_on_window_size(&self, sender: Sender) {
        if sender == Sender::Process(std::process::id().cast_signed()) {
            return;
        }
        let changed: Vec<bool> = self.copying.iter().map(Copying::set_window_size).collect();
        if changed.contains(&true) {
            // By default the signal is ignored, so it hurts nobody in the group.
            // It cannot fail: we are in the group ourselves.
            processes::signal_own_group(signals::WINDOW_CHANGED).ok();
        }
    }
}

/// The time after the child's end, in which other processes may still hold its streams open.
struct Rest<'a> {
    signals: &'a mut Signals,
    copying: &'a [Copying],
    ends: mpsc::Receiver<(To, Ended)>,
    /// Dropped to ask the copying threads to leave.
    leave: io::PipeWriter,
}

/// After this long without a byte, what is left is a daemon and not a straggler.
const SILENCE: Duration = Duration::from_secs(2);
/// A daemon that chatters may not hold us either.
const LONGEST_REST: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(20);

impl Rest<'_> {
    /// Waits until the streams are closed, or only a daemon is left; its output is then passed on by another process.
    fn finish(self, partial: &mut Vec<String>) {
        let mut open: Vec<&Copying> = self.copying.iter().collect();
        let begin = Instant::now();
        let mut last = (begin, u64::MAX);
        while !open.is_empty() {
            match self.ends.recv_timeout(GLANCE) {
                Ok((to, ended)) => {
                    open.retain(|copying| copying.to != to);
                    partial.extend(complaint(to, ended));
                    continue;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            let bytes = open.iter().map(|copying| copying.bytes()).sum();
            if bytes != last.1 {
                last = (Instant::now(), bytes);
            }
            if asked_to_end(self.signals) || last.0.elapsed() >= SILENCE || begin.elapsed() >= LONGEST_REST {
                return self.hand_over(&open, partial);
            }
        }
    }

    fn hand_over(self, open: &[&Copying], partial: &mut Vec<String>) {
        let sources: Vec<(To, Arc<OwnedFd>)> =
            open.iter().filter_map(|copying| Some((copying.to, copying.source()?))).collect();
        drop(self.leave);
        // A thread that still writes is waited for: what it holds was read and would be lost.
        let mut writing: Vec<To> = open.iter().map(|copying| copying.to).collect();
        while !writing.is_empty() {
            if let Ok((to, ended)) = self.ends.recv_timeout(GLANCE) {
                writing.retain(|writing| *writing != to);
                partial.extend(complaint(to, ended));
            } else if asked_to_end(self.signals) {
                break;
            }
        }
        for (to, source) in sources.into_iter().filter(|(to, _)| !writing.contains(to)) {
            let name = to.name();
            partial.push(match relay::start(source.as_fd(), to) {
                Ok(holder) => format!("{holder} still has {name} open; its output from then on was not recorded."),
                Err(failure) => {
                    format!("What still had {name} open lost it, since no relay could be started: {failure}.")
                }
            });
        }
    }
}

fn asked_to_end(signals: &mut Signals) -> bool {
    signals.pending().iter().any(|received| signals::is_termination(received.signal))
}

fn complaint(to: To, ended: Ended) -> Option<String> {
    match ended {
        Ended::Finished | Ended::ReaderGone | Ended::Left => None,
        Ended::Failed(failure) => Some(format!("{} could not be passed on to its end: {failure}.", to.name())),
    }
}
