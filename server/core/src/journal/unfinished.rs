//! Which calls can have failed: those that nothing has proved to be done, and nothing to be waiting still.
//!
//! A synchronisation that succeeded and a completion marker that arrived prove that what was in their queue is done. A
//! marker that did not arrive proves the other side: a stream works in order, so what follows it there had not begun.

use std::collections::{BTreeMap, BTreeSet};

use cublame_journal::read::Call;
use cublame_journal::{GraphKind, Journal, Kind};

/// The work that can have failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Window {
    /// Indices into the journal's calls, ascending.
    pub calls: Vec<usize>,
    /// Nothing else can have: no call was lost, none that counts was overwritten, and no graph has nodes unknown to us.
    pub whole: bool,
    /// What had not begun, by a marker that did not arrive: indices into the journal's calls, ascending.
    pub waiting: Vec<usize>,
}

/// What was enqueued on one stream and is not known to be done.
#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Some synchronisation of this stream succeeded, so nothing older than the ring is unfinished in it.
    proved: bool,
    /// Calls that the stream has not come to: what follows them has not begun.
    barriers: Vec<Call>,
    /// The threads whose calls on this stream all follow a barrier from now on.
    behind: BTreeSet<u16>,
}

impl Queue {
    /// Does `call` follow a barrier? Asked of a call that says what was in the queue before it.
    fn holds_back(&mut self, call: &Call) -> bool {
        if self.barriers.iter().any(|barrier| covers(call, barrier)) {
            self.behind.insert(call.thread);
        }
        self.behind.contains(&call.thread)
    }

    fn bar(&mut self, call: &Call) {
        self.barriers.push(*call);
        self.behind.insert(call.thread);
    }
}

/// The newest recording of an event.
struct Record {
    /// An index into the calls.
    at: usize,
    /// The stream had not come to it.
    waits: bool,
}

enum Waiting {
    /// An index into the calls.
    Work(usize),
    /// The stream waits for an event: an index of the call that recorded it.
    Event { at: usize, record: usize },
}

/// Goes through the calls in order; a successful synchronisation takes what it covers out of the queues.
pub fn unfinished(journal: &Journal) -> Window {
    let mut queues: BTreeMap<u16, Queue> = BTreeMap::new();
    let mut records: BTreeMap<u64, Record> = BTreeMap::new();
    let mut held_back = Vec::new();
    // What the completion of an event proves is not known when a graph records it too.
    let in_graphs: BTreeSet<u64> =
        journal.graphs.iter().filter(|row| row.kind == GraphKind::Event).map(|row| row.first).collect();
    let last = journal.first_error.as_ref().map_or(u64::MAX, |error| error.number);
    for (index, call) in journal.calls.iter().enumerate().take_while(|(_, call)| call.number <= last) {
        let done = call.result == Some(0);
        match call.kind {
            Kind::StreamSync if done => cover(journal, &mut queues, call.stream, call),
            Kind::ContextSync if done => {
                let streams: Vec<u16> = queues.keys().copied().collect();
                for stream in streams {
                    let of_context = journal.stream(stream).is_some_and(|stream| stream.context == call.handle);
                    if of_context && call.handle != 0 {
                        cover(journal, &mut queues, stream, call);
                    }
                }
            }
            Kind::EventSync if done => {
                let record = records.get(&call.handle).map(|record| &journal.calls[record.at]);
                if let Some(record) = record.filter(|record| covers(call, record)) {
                    cover(journal, &mut queues, record.stream, record);
                }
            }
            Kind::EventRecord if !failed(call) && !in_graphs.contains(&call.handle) => {
                let waits = queues.entry(call.stream).or_default().holds_back(call);
                records.insert(call.handle, Record { at: index, waits });
            }
            Kind::StreamWait if !failed(call) => {
                let queue = queues.entry(call.stream).or_default();
                queue.holds_back(call);
                if let Some(record) = records.get(&call.handle).filter(|record| covers(call, &journal.calls[record.at]))
                {
                    queue.waiting.push(Waiting::Event { at: index, record: record.at });
                    if record.waits {
                        queue.bar(call);
                    }
                }
            }
            Kind::Mark => match journal.arrived(call) {
                Some(true) => cover(journal, &mut queues, call.stream, call),
                Some(false) => {
                    let queue = queues.entry(call.stream).or_default();
                    queue.bar(call);
                }
                None => {
                    queues.entry(call.stream).or_default().holds_back(call);
                }
            },
            kind if kind.is_work() && !failed(call) => {
                let queue = queues.entry(call.stream).or_default();
                if queue.behind.contains(&call.thread) {
                    held_back.push(index);
                } else {
                    queue.waiting.push(Waiting::Work(index));
                }
                if kind == Kind::BlockingCopy && done {
                    cover(journal, &mut queues, call.stream, call);
                }
            }
            _ => {}
        }
    }
    let cut = journal.calls.first().is_some_and(|call| call.number > 1);
    let whole = journal.lost == 0 && journal.recording && (!cut || queues.values().all(|queue| queue.proved));
    let mut calls: Vec<usize> = queues
        .values()
        .flat_map(|queue| &queue.waiting)
        .filter_map(|waiting| match waiting {
            Waiting::Work(index) => Some(*index),
            Waiting::Event { .. } => None,
        })
        .collect();
    calls.sort_unstable();
    Window { calls, whole, waiting: held_back }
}

/// The call returned an error, so nothing of it reached the GPU.
fn failed(call: &Call) -> bool {
    call.result.is_some_and(|result| result != 0)
}

/// Was `earlier` in its queue when `later` was entered? Of the same thread always; of another one only when no call of
/// another thread that may be it was in the driver still.
fn covers(later: &Call, earlier: &Call) -> bool {
    if earlier.thread == later.thread {
        earlier.number <= later.number
    } else {
        earlier.number < later.number.saturating_sub(later.reach.into())
    }
}

/// Takes everything out of a stream's queue that `call` covers, and what that had waited for.
fn cover(journal: &Journal, queues: &mut BTreeMap<u16, Queue>, stream: u16, call: &Call) {
    let mut proofs = vec![(stream, *call)];
    while let Some((stream, proof)) = proofs.pop() {
        let Some(queue) = queues.get_mut(&stream) else { continue };
        queue.proved = true;
        queue.barriers.retain(|barrier| !covers(&proof, barrier));
        if queue.barriers.is_empty() {
            queue.behind.clear();
        }
        queue.waiting.retain(|waiting| match waiting {
            Waiting::Work(index) => !covers(&proof, &journal.calls[*index]),
            Waiting::Event { at, record } => {
                let done = covers(&proof, &journal.calls[*at]);
                if done {
                    let record = journal.calls[*record];
                    proofs.push((record.stream, record));
                }
                !done
            }
        });
    }
}
