//! What each stream of a process is doing, read from its launch journal at any moment.

use std::collections::{BTreeMap, BTreeSet};

use cublame_journal::read::Call;
use cublame_journal::{Journal, Kind};

use super::unfinished::{Window, unfinished};
use super::{demangle, short};
use crate::blame::user_frame;
use crate::source::Sources;
use crate::verdict::Place;

/// A stream that was given work.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// `default stream`, `default stream of thread 4711`, or the handle.
    pub stream: String,
    pub context: u64,
    /// Calls in it that are not proved to be done.
    pub open: usize,
    /// The last that are done, what is open, oldest first; calls of one line and kind that follow each other are one row.
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Of the first call.
    pub number: u64,
    pub count: usize,
    /// CLOCK_MONOTONIC of the first call, nanoseconds.
    pub time: u64,
    pub state: State,
    /// The kernel without its template arguments, or what it is.
    pub what: String,
    /// The innermost frame of the user's, else the innermost there is.
    pub place: Option<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Done,
    /// On the GPU, or next to be: nothing before it is open.
    Running,
    /// Not proved to be done, and nothing says that it has not begun.
    Launched,
    /// A completion marker before it has not arrived.
    Queued,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Running => "running",
            State::Launched => "launched",
            State::Queued => "queued",
        }
    }
}

/// The streams of a process, the longest queue first, with at most `most` rows each.
pub fn queues(journal: &Journal, sources: &Sources, most: usize) -> Vec<Queue> {
    let Window { calls, waiting, .. } = unfinished(journal);
    let (open, waiting): (BTreeSet<usize>, BTreeSet<usize>) =
        (calls.into_iter().collect(), waiting.into_iter().collect());
    let mut by_stream: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (index, call) in journal.calls.iter().enumerate().filter(|(_, call)| call.kind.is_work()) {
        by_stream.entry(call.stream).or_default().push(index);
    }
    let mut queues: Vec<Queue> = by_stream
        .into_iter()
        .map(|(stream, indices)| {
            let is_open = |index: &usize| open.contains(index) || waiting.contains(index);
            let first_open = indices.iter().position(is_open).unwrap_or(indices.len());
            let marked = indices.iter().any(|index| waiting.contains(index));
            let oldest = indices.get(first_open).copied();
            let state = |index: usize| match index {
                _ if waiting.contains(&index) => State::Queued,
                _ if !open.contains(&index) => State::Done,
                // Of several before the first marker that has not arrived any may be the one that runs.
                _ if oldest == Some(index) || marked => State::Running,
                _ => State::Launched,
            };
            let shown = &indices[first_open.saturating_sub(1)..];
            // Nothing is open: the last calls are as good as any.
            let shown =
                if first_open == indices.len() { &indices[indices.len().saturating_sub(most)..] } else { shown };
            let mut rows = rows(journal, sources, shown, state);
            rows.truncate(most);
            let known = journal.stream(stream).unwrap_or_default();
            Queue {
                stream: name(journal, known.handle),
                context: known.context,
                open: indices.iter().filter(|index| is_open(index)).count(),
                rows,
            }
        })
        .collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.open));
    queues
}

fn rows(journal: &Journal, sources: &Sources, indices: &[usize], state: impl Fn(usize) -> State) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut last = None;
    for index in indices {
        let call = &journal.calls[*index];
        let key = (state(*index), call.kind, call.kernel, call.stack);
        match rows.last_mut().filter(|_| last == Some(key)) {
            Some(row) => row.count += 1,
            None => rows.push(Row {
                number: call.number,
                count: 1,
                time: call.time,
                state: key.0,
                what: what(journal, call),
                place: user_frame(&journal.frames(call.stack), sources),
            }),
        }
        last = Some(key);
    }
    rows
}

fn what(journal: &Journal, call: &Call) -> String {
    match call.kind {
        Kind::Graph => "CUDA graph".to_owned(),
        Kind::Memcpy | Kind::BlockingCopy => "copy".to_owned(),
        Kind::Memset => "memset".to_owned(),
        _ => journal
            .kernel(call.kernel)
            .and_then(|kernel| kernel.name.as_deref())
            .map_or_else(|| "kernel".to_owned(), |name| short(&demangle(name))),
    }
}

fn name(journal: &Journal, handle: u64) -> String {
    // The tracer puts the thread's row above the handle of a thread's own default stream.
    const PER_THREAD: u64 = 2;
    match (handle & 0xffff_ffff, handle >> 32) {
        (0, 0) => "default stream".to_owned(),
        (PER_THREAD, thread) => {
            let number = u16::try_from(thread).ok().and_then(|row| journal.thread(row));
            format!("default stream of thread {}", number.map_or(0, |thread| thread.system_number))
        }
        _ => format!("stream {handle:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{A, Story};
    use super::*;

    /// State, count and line of a row.
    type Shown = (State, usize, u32);

    fn told(story: &Story) -> Vec<(usize, Vec<Shown>)> {
        queues(&story.journal(), &Sources::default(), 5)
            .into_iter()
            .map(|queue| {
                let row = |row: &Row| (row.state, row.count, row.place.as_ref().map_or(0, |place| place.line));
                (queue.open, queue.rows.iter().map(row).collect())
            })
            .collect()
    }

    #[test]
    fn the_running_launch_stands_between_what_is_done_and_what_waits() {
        let story = Story::new();
        for _ in 0..3 {
            story.launch(A, 1, "_Z4goodv");
        }
        story.marked(A, true);
        story.launch(A, 2, "_Z4spinv");
        story.marked(A, false);
        for _ in 0..4 {
            story.launch(A, 3, "_Z5laterv");
        }
        assert_eq!(told(&story), [(5, vec![(State::Done, 1, 1), (State::Running, 1, 2), (State::Queued, 4, 3)])]);
        let queue = &queues(&story.journal(), &Sources::default(), 5)[0];
        assert_eq!((queue.stream.as_str(), queue.rows[1].what.as_str()), ("stream 0x50", "spin"));
    }

    #[test]
    fn without_markers_only_the_oldest_is_said_to_run() {
        let story = Story::new();
        story.launch(A, 1, "_Z4goodv");
        story.launch(A, 2, "_Z5laterv");
        assert_eq!(told(&story), [(2, vec![(State::Running, 1, 1), (State::Launched, 1, 2)])]);
    }

    #[test]
    fn a_stream_that_is_done_shows_its_last_calls() {
        let story = Story::new();
        for line in 1..10 {
            story.launch(A, line, "_Z4goodv");
        }
        story.synchronized(A);
        let lines: Vec<u32> = told(&story)[0].1.iter().map(|(_, _, line)| *line).collect();
        assert_eq!((told(&story)[0].0, lines), (0, vec![5, 6, 7, 8, 9]));
    }
}
