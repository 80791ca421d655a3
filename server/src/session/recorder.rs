//! Takes copies of the child's output and condenses them on a thread of its own, so that the child never waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cublame_core::log::{Condenser, Log, Stream};

/// What waits to be condensed may take this much memory. Beyond it the oldest goes: a failure is told at the end.
const MOST_WAITING: usize = 64 << 20;
/// Neighbouring pieces of one stream are joined up to this size.
const PIECE: usize = 256 << 10;
/// Little output is left to gather for a while: one wake-up then serves many lines.
const GATHER: Duration = Duration::from_millis(20);

/// The thread that condenses.
pub struct Recorder {
    queue: Arc<Queue>,
    thread: JoinHandle<Log>,
}

/// What hands over output. Cheap to clone; one for each copying thread.
#[derive(Clone)]
pub struct Tap {
    queue: Arc<Queue>,
    also: Option<Shared>,
}

/// Output that is looked at before the run has ended.
pub type Shared = Arc<Mutex<Condenser>>;

/// What was recorded in the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub log: Log,
    /// Bytes that came faster than they could be read and are not in the log.
    pub lost: u64,
}

impl Recorder {
    pub fn start() -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn({
            let queue = Arc::clone(&queue);
            move || condense(&queue)
        })?;
        Ok(Self { queue, thread })
    }

    /// `also` takes the same, at once: a debugger that stands looks at it.
    pub fn tap(&self, also: Option<&Shared>) -> Tap {
        Tap { queue: Arc::clone(&self.queue), also: also.cloned() }
    }

    /// Waits until all that was handed over is condensed. None if the condenser itself failed.
    pub fn finish(self) -> Option<Recorded> {
        self.queue.lock().closed = true;
        self.queue.filled.notify_one();
        let log = self.thread.join().ok()?;
        let lost = self.queue.lock().lost;
        Some(Recorded { log, lost })
    }
}

impl Tap {
    /// Copies the bytes. Never waits for more than another copy.
    pub fn record(&self, stream: Stream, bytes: &[u8]) {
        if let Some(also) = &self.also {
            also.lock().unwrap_or_else(PoisonError::into_inner).feed(stream, bytes);
        }
        let mut waiting = self.queue.lock();
        let was_little = waiting.bytes < PIECE;
        waiting.push(stream, bytes);
        let wakes = waiting.idle || (was_little && waiting.bytes >= PIECE);
        waiting.idle = false;
        drop(waiting);
        if wakes {
            self.queue.filled.notify_one();
        }
    }
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<Piece>,
    /// Emptied pieces to be filled again: fresh memory costs page faults.
    spare: Vec<Vec<u8>>,
    bytes: usize,
    lost: u64,
    /// The condenser has nothing to do and waits to be woken.
    idle: bool,
    closed: bool,
}

struct Piece {
    stream: Stream,
    bytes: Vec<u8>,
}

impl Queue {
    /// A panic of another thread does not make the pieces wrong.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for pieces, and a little longer for more of them. None when there will be no more.
    fn take(&self, done: Vec<Piece>) -> Option<(VecDeque<Piece>, u64)> {
        let mut waiting = self.lock();
        waiting.keep_spare(done);
        while waiting.pieces.is_empty() {
            if waiting.closed {
                return None;
            }
            waiting.idle = true;
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.bytes < PIECE && !waiting.closed {
            let gathered = self.filled.wait_timeout_while(waiting, GATHER, |w| w.bytes < PIECE && !w.closed);
            waiting = gathered.unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting.bytes = 0;
        Some((std::mem::take(&mut waiting.pieces), waiting.lost))
    }
}

impl Waiting {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.bytes += bytes.len();
        match self.pieces.back_mut() {
            Some(last) if last.stream == stream && last.bytes.len() + bytes.len() <= PIECE => {
                last.bytes.extend_from_slice(bytes);
            }
            _ => {
                let mut piece = self.spare.pop().unwrap_or_default();
                piece.extend_from_slice(bytes);
                self.pieces.push_back(Piece { stream, bytes: piece });
            }
        }
        while self.bytes > MOST_WAITING && self.pieces.len() > 1 {
            let Some(oldest) = self.pieces.pop_front() else { break };
            self.bytes -= oldest.bytes.len();
            self.lost += oldest.bytes.len() as u64;
            self.keep_spare(vec![oldest]);
        }
    }

    fn keep_spare(&mut self, done: Vec<Piece>) {
        for mut piece in done {
            if self.spare.len() < MOST_WAITING / PIECE && piece.bytes.capacity() >= PIECE / 2 {
                piece.bytes.clear();
                self.spare.push(piece.bytes);
            }
        }
    }
}

fn condense(queue: &Queue) -> Log {
    let mut reading = Reading::default();
    let mut done = Vec::new();
    while let Some((pieces, lost)) = queue.take(std::mem::take(&mut done)) {
        reading.note_loss(lost);
        for piece in pieces {
            reading.feed(&piece);
            done.push(piece);
        }
    }
    reading.condenser.finish()
}

#[derive(Default)]
struct Reading {
    condenser: Condenser,
    streams: Vec<Stream>,
    lost: u64,
}

impl Reading {
    /// What stands before a gap and after it is not one line.
    fn note_loss(&mut self, lost: u64) {
        if lost > self.lost {
            self.streams.iter().for_each(|stream| self.condenser.feed(*stream, b"\n"));
            self.lost = lost;
        }
    }

    fn feed(&mut self, piece: &Piece) {
        if !self.streams.contains(&piece.stream) {
            self.streams.push(piece.stream);
        }
        self.condenser.feed(piece.stream, &piece.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_condensed_in_order() {
        let recorder = Recorder::start().unwrap();
        let tap = recorder.tap(None);
        tap.record(Stream::Stdout, b"one\ntw");
        tap.record(Stream::Stderr, b"error\n");
        tap.record(Stream::Stdout, b"o\n");
        let recorded = recorder.finish().unwrap();
        let texts: Vec<&str> = recorded.log.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!((texts, recorded.lost), (vec!["one", "error", "two"], 0));
        assert_eq!(recorded.log.total_bytes, 14);
    }

    #[test]
    fn when_too_much_waits_the_oldest_goes_and_is_counted() {
        let mut waiting = Waiting::default();
        waiting.push(Stream::Stdout, b"first");
        for _ in 0..MOST_WAITING / PIECE {
            waiting.push(Stream::Stderr, &vec![b'x'; PIECE]);
        }
        waiting.push(Stream::Stdout, b"the last line");
        assert_eq!(waiting.lost, 5 + PIECE as u64);
        assert!(waiting.bytes <= MOST_WAITING);
        assert_eq!(waiting.pieces.back().map(|piece| piece.bytes.as_slice()), Some(&b"the last line"[..]));
    }

    #[test]
    fn lines_around_a_gap_are_not_joined() {
        let piece = |text: &str| Piece { stream: Stream::Stderr, bytes: text.into() };
        let mut reading = Reading::default();
        reading.feed(&piece("before the g"));
        reading.note_loss(0);
        reading.feed(&piece("ap"));
        reading.note_loss(500);
        reading.feed(&piece("after it\n"));
        let lines = reading.condenser.finish().lines;
        assert_eq!(lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["before the gap", "after it"]);
    }
}
