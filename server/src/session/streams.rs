//! The child's stdout and stderr: where they come from, where they go, and the copying between.
//!
//! A stream that is a terminal stays one for the child (a pty), any other comes through a pipe;
//! stdout and stderr that are one open file share one channel, so that their order is kept.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::thread;

use cublame_core::log::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::recorder::Tap;
use crate::os::terminal::{self, Pty};

/// The streams of a child that is about to start.
pub struct Streams {
    pub for_child: ForChild,
    pub channels: Vec<Channel>,
    /// What could not be had, as whole sentences.
    pub notes: Vec<String>,
}

/// The child's ends, to be dropped when it has started, or its end would never be seen. None: it inherits ours.
#[derive(Default)]
pub struct ForChild {
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
}

/// One channel from the child to one of our own streams.
pub struct Channel {
    pub stream: Stream,
    pub to: To,
    from: Arc<OwnedFd>,
    pub is_terminal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    Stdout,
    Stderr,
}

/// How the copying of a channel ended.
#[derive(Debug)]
pub enum Ended {
    /// Every process has closed it.
    Finished,
    /// Whoever read our own stream has gone; the child's next write fails or kills it, as it would without us.
    ReaderGone,
    Failed(io::Error),
    /// It was asked to stop.
    Left,
}

impl Streams {
    pub fn prepare() -> io::Result<Self> {
        let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let mut streams = Self { for_child: ForChild::default(), channels: Vec::new(), notes: Vec::new() };
        if terminal::is_same_file(stdout, stderr) {
            if let Some((first, childs)) = streams.open(Stream::Mixed, To::Stdout)? {
                let for_child = ForChild { stdout: Some(childs.try_clone()?), stderr: Some(childs) };
                streams.for_child = for_child;
                streams.channels.push(first);
            }
            return Ok(streams);
        }
        if let Some((channel, childs)) = streams.open(Stream::Stdout, To::Stdout)? {
            streams.for_child.stdout = Some(childs);
            streams.channels.push(channel);
        }
        if let Some((channel, childs)) = streams.open(Stream::Stderr, To::Stderr)? {
            streams.for_child.stderr = Some(childs);
            streams.channels.push(channel);
        }
        Ok(streams)
    }

    /// None: the child gets our own stream, unrecorded.
    fn open(&mut self, stream: Stream, to: To) -> io::Result<Option<(Channel, OwnedFd)>> {
        if !terminal::is_terminal(to.fd()) {
            let (ours, childs) = terminal::wide_pipe()?;
            return Ok(Some((Channel { stream, to, from: Arc::new(ours), is_terminal: false }, childs)));
        }
        match Pty::like(to.fd()) {
            Ok(Pty { ours, childs }) => {
                Ok(Some((Channel { stream, to, from: Arc::new(ours), is_terminal: true }, childs)))
            }
            Err(failure) => {
                // A child that has no terminal behaves otherwise: better it has ours and we read nothing.
                let name = to.name();
                self.notes.push(format!("{name} was not recorded, since no pseudo-terminal can be had: {failure}."));
                Ok(None)
            }
        }
    }
}

impl ForChild {
    /// Gives them to a command that may yet fail to start.
    pub fn lend(&self, command: &mut Command) -> io::Result<()> {
        if let Some(end) = &self.stdout {
            command.stdout(end.try_clone()?);
        }
        if let Some(end) = &self.stderr {
            command.stderr(end.try_clone()?);
        }
        Ok(())
    }
}

impl To {
    pub fn fd(self) -> BorrowedFd<'static> {
        match self {
            To::Stdout => rustix::stdio::stdout(),
            To::Stderr => rustix::stdio::stderr(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            To::Stdout => "stdout",
            To::Stderr => "stderr",
        }
    }
}

/// A channel that is being copied on a thread of its own.
pub struct Copying {
    pub to: To,
    pub is_terminal: bool,
    /// Weak, so that the child's end breaks as soon as the copying thread lets go.
    from: Weak<OwnedFd>,
    bytes: Arc<AtomicU64>,
    /// The thread has written all that it has read.
    waits: Arc<AtomicBool>,
}

impl Copying {
    /// The end reports itself through `ended`; dropping the other end of `leave` asks it to end.
    pub fn start(
        channel: Channel,
        tap: Tap,
        leave: Arc<OwnedFd>,
        ended: mpsc::Sender<(To, Ended)>,
    ) -> io::Result<Self> {
        let Channel { stream, to, from, is_terminal } = channel;
        let (bytes, waits) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let copying =
            Self { to, is_terminal, from: Arc::downgrade(&from), bytes: Arc::clone(&bytes), waits: Arc::clone(&waits) };
        thread::Builder::new().name(to.name().to_owned()).spawn(move || {
            let outcome = copy(from.as_fd(), to.fd(), Some(leave.as_fd()), |step| match step {
                Step::Waits => waits.store(true, Ordering::SeqCst),
                Step::Wakes => waits.store(false, Ordering::SeqCst),
                Step::Copied(piece) => {
                    bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
                    tap.record(stream, piece);
                }
            });
            drop(from);
            // The receiver is gone only when the run is already being left.
            ended.send((to, outcome)).ok();
        })?;
        Ok(copying)
    }

    /// Counts on as long as the thread copies.
    pub fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes)
    }

    /// Bytes copied so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Has everything that was written into the channel so far arrived at our own stream?
    pub fn is_up_to_date(&self) -> bool {
        let Some(source) = self.source() else { return true };
        let mut ready = [PollFd::new(&source, PollFlags::IN)];
        let is_empty = poll(&mut ready, Some(&Timespec::default())).is_ok_and(|_| ready[0].revents().is_empty());
        // In this order: a thread that emptied the channel has said before that it does not wait.
        is_empty && self.waits.load(Ordering::SeqCst)
    }

    /// Our end of the channel, while the copying thread holds it.
    pub fn source(&self) -> Option<Arc<OwnedFd>> {
        self.from.upgrade()
    }

    pub fn set_window_size(&self) -> bool {
        let Some(pty) = self.source().filter(|_| self.is_terminal) else { return false };
        terminal::copy_window_size(self.to.fd(), &pty).unwrap_or(false)
    }
}

/// What the copying does next or has just done.
pub enum Step<'a> {
    Waits,
    Wakes,
    /// Written, or lost with the stream.
    Copied(&'a [u8]),
}

/// Copies until one side ends.
pub fn copy(from: BorrowedFd, to: BorrowedFd, leave: Option<BorrowedFd>, mut on: impl FnMut(Step)) -> Ended {
    let watches_reader = terminal::is_pipe(to);
    let mut buffer = vec![0; BUFFER];
    loop {
        on(Step::Waits);
        let ready = wait_for(from, watches_reader.then_some(to), leave);
        on(Step::Wakes);
        match ready {
            Ok(Ready::Input) => {}
            Ok(Ready::ReaderGone) => return Ended::ReaderGone,
            Ok(Ready::Leave) => return Ended::Left,
            Err(failure) => return Ended::Failed(failure),
        }
        let piece = match rustix::io::read(from, &mut buffer) {
            // The last process has closed its end of a pty (EIO on Linux).
            Ok(0) | Err(Errno::IO) => return Ended::Finished,
            Ok(count) => &buffer[..count],
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(failure) => return Ended::Failed(failure.into()),
        };
        let written = write_all(to, piece);
        on(Step::Copied(piece));
        match written {
            Ok(()) => {}
            Err(Errno::PIPE) => return Ended::ReaderGone,
            Err(failure) => return Ended::Failed(failure.into()),
        }
    }
}

/// Large reads: at full speed the child's pipe is taken in a few calls.
const BUFFER: usize = 256 << 10;

enum Ready {
    Input,
    ReaderGone,
    Leave,
}

/// Waits for input, or for the end of the pipe that we write to: a child that is silent for now must meet it as well.
fn wait_for(from: BorrowedFd, reader: Option<BorrowedFd>, leave: Option<BorrowedFd>) -> io::Result<Ready> {
    let mut watched = vec![PollFd::from_borrowed_fd(from, PollFlags::IN)];
    let reader_at = reader.map(|fd| {
        watched.push(PollFd::from_borrowed_fd(fd, PollFlags::empty()));
        watched.len() - 1
    });
    let leave_at = leave.map(|fd| {
        watched.push(PollFd::from_borrowed_fd(fd, PollFlags::empty()));
        watched.len() - 1
    });
    loop {
        match poll(&mut watched, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(failure) => return Err(failure.into()),
        }
        let fired = |at: Option<usize>| at.is_some_and(|at| !watched[at].revents().is_empty());
        if fired(reader_at) {
            return Ok(Ready::ReaderGone);
        }
        // Before input: a chatty daemon would else keep us here, and what is left unread is passed on by another.
        if fired(leave_at) {
            return Ok(Ready::Leave);
        }
        if fired(Some(0)) {
            return Ok(Ready::Input);
        }
    }
}

fn write_all(to: BorrowedFd, mut piece: &[u8]) -> Result<(), Errno> {
    while !piece.is_empty() {
        match rustix::io::write(to, piece) {
            Ok(count) => piece = &piece[count..],
            Err(Errno::INTR) => {}
            // Somebody who shares our stream has made it non-blocking.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None).ok();
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}
