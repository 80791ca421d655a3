//! Completion markers: the GPU itself says how far it came.
//!
//! Before work is put into a stream after work of another line or thread, the GPU is asked to write the marker's number
//! once what came before it is done (`cuStreamWriteValue64`). After a fault the first marker that did not arrive is a
//! proof from both sides: what came before the one that did is done, and what follows the one that did not never began.
//!
//! A marker stands directly before other work of the same stream, so it waits for nothing that this work would not wait
//! for as well. Measured on an H200 with 2, 9 and 33 streams and CUDA_DEVICE_MAX_CONNECTIONS of 1, 2, 8 and 32: other
//! streams were held up behind a marker exactly where they were held up behind a kernel or a memset in its place. Not so
//! behind a copy when there is one connection only: a copy waits in a queue of its own, and a marker before it does not.
//! So with fewer connections than the default no marker stands before anything but kernels and memsets.
//!
//! It costs 1.0 to 1.4 us of the CPU and 2.0 us of the GPU, whichever is the limit, so there is a budget.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};

use cublame_journal::layout::Table;
use cublame_journal::{Kind, MarkState, Shape, Writer};

use crate::driver::Helpers;
use crate::system;

/// One marker in so many nanoseconds, over time: 0.4 % at 2 us each.
const SPACING: u64 = 500_000;
/// How far ahead of that they may run, in nanoseconds: 2,000 markers, so that a short program has them all.
const AHEAD: u64 = 2_000 * SPACING;

const UNSTARTED: u8 = 0;
const STARTING: u8 = 1;
const ON: u8 = 2;
const OFF: u8 = 3;

pub struct Marks {
    state: AtomicU8,
    /// Where the GPU writes, as it sees it, and as the CPU sees it where that is not the journal.
    device: AtomicU64,
    aside: AtomicU64,
    /// When the markers written so far are paid for.
    paid: AtomicU64,
    /// Fewer queues than usual lead to the GPU: what waits may hold up other streams.
    few_queues: bool,
    /// For each stream, by row: the thread and the stack of the last work, `thread << 32 | stack`.
    last: Box<[AtomicU64]>,
}

impl Marks {
    /// CUBLAME_MARKS=0 turns them off.
    pub fn new() -> Marks {
        let off = std::env::var_os("CUBLAME_MARKS").is_some_and(|value| value == "0");
        Marks {
            state: AtomicU8::new(if off { OFF } else { UNSTARTED }),
            device: AtomicU64::new(0),
            aside: AtomicU64::new(0),
            paid: AtomicU64::new(0),
            few_queues: few_queues(std::env::var("CUDA_DEVICE_MAX_CONNECTIONS").ok().as_deref()),
            last: (0..Shape::DEFAULT.rows(Table::Streams)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// May a marker stand before work of this kind?
    pub fn may_precede(&self, kind: Kind) -> bool {
        kind.is_work() && (!self.few_queues || matches!(kind, Kind::Kernel | Kind::Cooperative | Kind::Memset))
    }

    /// What the work before it in this stream was, `(thread, stack)`, if that was another thread or stack than this one.
    pub fn step(&self, stream: u16, thread: u16, stack: u32) -> Option<(u16, u32)> {
        let last = self.last.get(usize::from(stream)).filter(|_| stream != 0)?;
        // A row of its own for the thread that has no frames, so that "nothing yet" is told apart.
        let now = 1 << 63 | u64::from(thread) << 32 | u64::from(stack);
        let before = last.load(Relaxed);
        if before == now {
            return None;
        }
        last.store(now, Relaxed);
        (before != 0).then_some(((before >> 32) as u16, before as u32))
    }

    /// Where the GPU shall write a marker of this row, if one is affordable now.
    pub fn place(&self, row: u32, now: u64, writer: &Writer, driver: &Helpers) -> Option<u64> {
        if row == 0 || !(self.state.load(Acquire) == ON || self.start(writer, driver)) || !self.pay(now) {
            return None;
        }
        Some(self.device.load(Relaxed) + u64::from(row) * (Table::Marks.row_words() as u64 * 8))
    }

    fn pay(&self, now: u64) -> bool {
        let paid = self.paid.load(Relaxed);
        let after = paid.max(now) + SPACING;
        after - now <= AHEAD && self.paid.compare_exchange(paid, after, Relaxed, Relaxed).is_ok()
    }

    /// Gives the GPU the memory to write into. In the context that is current; other contexts reach it as well, for as
    /// long as that one lives.
    #[cold]
    fn start(&self, writer: &Writer, driver: &Helpers) -> bool {
        if self.state.compare_exchange(UNSTARTED, STARTING, AcqRel, Acquire).is_err() {
            return false;
        }
        let words = writer.mark_words();
        let bytes = size_of_val(words);
        let (state, found) = match driver.share(words.as_ptr() as usize, bytes) {
            Some(device) => (MarkState::Direct, Some((device, 0))),
            // Pages of a file on a disk cannot be given to a device for long.
            None => (
                MarkState::Aside,
                system::zeroed_memory(bytes)
                    .and_then(|base| driver.share(base, bytes).map(|device| (device, base as u64))),
            ),
        };
        let Some((device, aside)) = found else {
            self.state.store(OFF, Release);
            return false;
        };
        self.device.store(device, Relaxed);
        self.aside.store(aside, Relaxed);
        writer.mark_state(state);
        // Somebody may have stopped them meanwhile.
        self.state.compare_exchange(STARTING, ON, AcqRel, Acquire).is_ok()
    }

    /// Off for good: a context goes, and with it perhaps the memory; or the driver refused a marker.
    pub fn stop(&self) {
        self.state.store(OFF, Release);
    }

    /// A sticky error was seen. What the GPU wrote elsewhere is copied into the journal.
    pub fn keep(&self, writer: &Writer) {
        let aside = self.aside.load(Acquire) as usize as *const AtomicU64;
        self.stop();
        if aside.is_null() {
            return;
        }
        for (index, word) in writer.mark_words().iter().enumerate().step_by(Table::Marks.row_words()) {
            // SAFETY: the memory has as many words as the table and is never given back.
            word.store(unsafe { &*aside.add(index) }.load(Acquire), Relaxed);
        }
        writer.mark_state(MarkState::Copied);
    }
}

/// CUDA_DEVICE_MAX_CONNECTIONS is 8 by default (CUDA programming guide, "CUDA environment variables").
fn few_queues(connections: Option<&str>) -> bool {
    connections.is_some_and(|value| value.trim().parse::<u32>().is_ok_and(|count| count < 8))
}
