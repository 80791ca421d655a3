//! Which calls no synchronisation has proved to be done.

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
}

/// What was enqueued on one stream and is not known to be done.
#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Some synchronisation of this stream succeeded, so nothing older than the ring is unfinished in it.
    proved: bool,
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
    let mut records: BTreeMap<u64, usize> = BTreeMap::new();
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
                let record = records.get(&call.handle).map(|record| &journal.calls[*record]);
                if let Some(record) = record.filter(|record| covers(call, record)) {
                    cover(journal, &mut queues, record.stream, record);
                }
            }
            Kind::EventRecord if !failed(call) && !in_graphs.contains(&call.handle) => {
                records.insert(call.handle, index);
            }
            Kind::StreamWait if !failed(call) => {
                if let Some(record) = records.get(&call.handle).filter(|record| covers(call, &journal.calls[**record]))
                {
                    let event = Waiting::Event { at: index, record: *record };
                    queues.entry(call.stream).or_default().waiting.push(event);
                }
            }
            kind if kind.is_work() && !failed(call) => {
                queues.entry(call.stream).or_default().waiting.push(Waiting::Work(index));
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
    Window { calls, whole }
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
