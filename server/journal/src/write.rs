//! The writer: many threads at once, no lock, no allocation after [`Writer::claim`].

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::layout::{FrameState, GraphKind, Kind, MarkState, Shape, Table, first_error, flags, header, heap_reference};
use crate::layout::{MAGIC, VERSION};

/// Fills one journal. Shared by all threads of the process.
pub struct Writer {
    words: &'static [AtomicU64],
    shape: Shape,
    /// Where each table starts, in words.
    starts: [usize; 9],
    stacks: Index,
    codes: Index,
    kernels: Index,
    streams: Index,
    marks: Index,
    strings: Index,
    /// Heap references of the strings that `strings` numbers.
    string_references: Box<[AtomicU64]>,
    string_count: AtomicU32,
}

/// A call as it is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub kind: Kind,
    pub flags: u8,
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    pub kernel: u32,
    pub stack: u32,
    pub stream: u16,
    pub thread: u16,
    /// Packed with [`pack_grid`], or a handle.
    pub grid: u64,
    /// Packed with [`pack_block`].
    pub block: u64,
}

/// What identifies a code object for as long as it lives. Any field that differs tells a reused address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeKey {
    pub address: u64,
    pub identity: u64,
}

/// What is copied of a code object when it is first seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct CodeText<'a> {
    pub file: &'a [u8],
    pub name: &'a [u8],
    pub line_table: &'a [u8],
    pub first_line: u32,
}

/// Longest name or line table that is kept, in bytes.
const LONGEST: usize = 1 << 16;
/// How far an index looks before it gives up. A table half full of well-mixed keys stays far below.
const PROBES: usize = 128;

impl Writer {
    /// Claims the memory for this process and lays the journal out in it. None if another process owns it or it is too
    /// small. `monotonic` and `realtime` are the clocks in nanoseconds.
    ///
    /// # Safety
    /// `base` must point to `shape.bytes()` bytes, aligned to 8 and zero unless another process claimed them, that stay
    /// mapped for writing as long as this process lives.
    #[expect(unsafe_code, reason = "the caller hands over a mapping, and a slice of atomics is made of it once")]
    pub unsafe fn claim(base: *mut u8, shape: Shape, pid: u32, monotonic: u64, realtime: u64) -> Option<Writer> {
        // SAFETY: the caller promises the size, the alignment and that the mapping stays; atomics may alias.
        let words: &'static [AtomicU64] = unsafe { std::slice::from_raw_parts(base.cast(), shape.words()) };
        Writer::on(words, shape, pid, monotonic, realtime)
    }

    /// As [`Writer::claim`], on words of this process's own.
    pub fn on(words: &'static [AtomicU64], shape: Shape, pid: u32, monotonic: u64, realtime: u64) -> Option<Writer> {
        if words.len() < shape.words() {
            return None;
        }
        words[header::OWNER].compare_exchange(0, u64::from(pid), AcqRel, Relaxed).ok()?;
        words[header::BYTES].store(shape.bytes() as u64, Relaxed);
        words[header::MONOTONIC].store(monotonic, Relaxed);
        words[header::REALTIME].store(realtime, Relaxed);
        words[header::RECORDING].store(1, Relaxed);
        for table in Table::ALL {
            let [offset, capacity, used] = table.directory();
            words[offset].store(shape.start(table) as u64 * 8, Relaxed);
            words[capacity].store(shape.rows(table) as u64, Relaxed);
            // Row 0 of these means "none", so that a zero in a call is never mistaken for an entry.
            let reserved = !matches!(table, Table::Calls | Table::Graphs);
            words[used].store(u64::from(reserved), Relaxed);
        }
        words[header::VERSION].store(VERSION, Relaxed);
        words[header::MAGIC].store(MAGIC, Release);
        let strings = shape.rows(Table::Codes) * 2;
        Some(Writer {
            words,
            starts: Table::ALL.map(|table| shape.start(table)),
            stacks: Index::for_rows(shape.rows(Table::Stacks)),
            codes: Index::for_rows(shape.rows(Table::Codes)),
            kernels: Index::for_rows(shape.rows(Table::Kernels)),
            streams: Index::for_rows(shape.rows(Table::Streams)),
            marks: Index::for_rows(shape.rows(Table::Marks)),
            strings: Index::for_rows(strings),
            string_references: (0..strings).map(|_| AtomicU64::new(0)).collect(),
            string_count: AtomicU32::new(1),
            shape,
        })
    }

    /// Enters a call: its number. Between this and [`Writer::leave`] the call counts as not yet in its stream's queue.
    pub fn enter(&self, thread: u16) -> u64 {
        let numbers = &self.words[header::NUMBERS];
        // A lower bound of the number about to be taken. It is stored before the number is taken, so a synchronising
        // call that takes a higher number sees it.
        self.row(Table::Threads, thread.into())[1].store(numbers.load(Relaxed) + 1, Relaxed);
        numbers.fetch_add(1, AcqRel) + 1
    }

    /// The call came back from the driver.
    pub fn leave(&self, thread: u16) {
        self.row(Table::Threads, thread.into())[1].store(0, Release);
    }

    /// Writes the row of a call. The oldest row of the ring makes room.
    pub fn record(&self, number: u64, call: &Call) {
        let row = self.row(Table::Calls, self.slot(number));
        let before = row[0].load(Relaxed);
        // A thread that slept for a whole turn of the ring may be writing here still: then this call is lost, not torn.
        if before & 1 == 1
            || before >> 1 > number
            || row[0].compare_exchange(before, number << 1 | 1, Acquire, Relaxed).is_err()
        {
            self.lose();
            return;
        }
        row[1].store(call.time, Relaxed);
        row[2].store(u64::from(call.kernel) << 32 | u64::from(call.stack), Relaxed);
        row[3].store(call.grid, Relaxed);
        row[4].store(call.block & 0xffff_ffff_ffff | u64::from(call.thread) << 48, Relaxed);
        row[5].store(call.kind as u64 | u64::from(call.flags) << 8 | u64::from(call.stream) << 32, Relaxed);
        row[0].store(number << 1, Release);
    }

    /// Adds the result to a call's row, if the row is still there. Needed for synchronising calls and for errors only.
    pub fn returned(&self, number: u64, result: u32) {
        let row = self.row(Table::Calls, self.slot(number));
        if row[0].compare_exchange(number << 1, number << 1 | 1, Acquire, Relaxed).is_ok() {
            let result = u64::from(result.min(0xffff));
            row[5].fetch_or(u64::from(flags::RETURNED) << 8 | result << 16, Relaxed);
            row[0].store(number << 1, Release);
        }
    }

    /// How far a call that took `number` reaches over *other* threads, as a distance: of their calls those numbered
    /// `number - reach` and above may not have been in the queue yet when it began. 0 when none was in the driver.
    pub fn reach(&self, number: u64, thread: u16) -> u32 {
        let threads = self.used(Table::Threads);
        let oldest = (1..threads)
            .filter(|row| *row != usize::from(thread))
            .map(|row| self.row(Table::Threads, row)[1].load(Acquire))
            .filter(|number| *number != 0)
            .min()
            .unwrap_or(number);
        u32::try_from(number.saturating_sub(oldest)).unwrap_or(u32::MAX)
    }

    /// The row of a stack whose innermost frame is at `offset` (bytes) of `code`, called from stack `parent`. 0 when the
    /// table is full.
    pub fn stack(&self, parent: u32, code: u32, offset: u32) -> u32 {
        let first = u64::from(parent) << 32 | u64::from(code);
        let second = u64::from(offset);
        self.stacks.find_or_add(
            mix(first ^ mix(second)),
            |id| {
                let row = self.row(Table::Stacks, id as usize);
                row[0].load(Relaxed) == first && row[1].load(Relaxed) == second
            },
            || {
                let id = self.take_row(Table::Stacks)?;
                let row = self.row(Table::Stacks, id as usize);
                row[0].store(first, Relaxed);
                row[1].store(second, Relaxed);
                Some(id)
            },
        )
    }

    /// The row of a code object, copied when first seen. 0 when a table is full.
    pub fn code<'a>(&self, key: CodeKey, describe: impl FnOnce() -> CodeText<'a>) -> u32 {
        self.codes.find_or_add(
            mix(key.address ^ mix(key.identity)),
            |id| {
                let row = self.row(Table::Codes, id as usize);
                row[0].load(Relaxed) == key.address && row[5].load(Relaxed) == key.identity
            },
            || {
                let id = self.take_row(Table::Codes)?;
                let text = describe();
                let row = self.row(Table::Codes, id as usize);
                row[1].store(self.string(text.file), Relaxed);
                row[2].store(self.string(text.name), Relaxed);
                row[3].store(self.heap(text.line_table), Relaxed);
                row[4].store(u64::from(text.first_line), Relaxed);
                row[5].store(key.identity, Relaxed);
                row[0].store(key.address, Release);
                Some(id)
            },
        )
    }

    /// The row of a kernel's handle. A new `generation` (a module was unloaded) gives the handle a new row.
    pub fn kernel(&self, handle: u64, generation: u64) -> u32 {
        self.kernels.find_or_add(
            mix(handle ^ mix(generation)),
            |id| {
                let row = self.row(Table::Kernels, id as usize);
                row[0].load(Relaxed) == handle && row[2].load(Relaxed) == generation
            },
            || {
                let id = self.take_row(Table::Kernels)?;
                let row = self.row(Table::Kernels, id as usize);
                row[2].store(generation, Relaxed);
                row[0].store(handle, Relaxed);
                Some(id)
            },
        )
    }

    /// Has a kernel no name yet?
    pub fn is_unnamed(&self, kernel: u32) -> bool {
        kernel != 0 && self.row(Table::Kernels, kernel as usize)[1].load(Relaxed) == 0
    }

    /// Gives a kernel its name, once.
    pub fn name_kernel(&self, kernel: u32, name: &[u8]) {
        if self.is_unnamed(kernel) {
            self.row(Table::Kernels, kernel as usize)[1].store(self.heap(name), Release);
        }
    }

    /// The row of a stream; 0 when the table is full, or the stream is new and `adds` is not set.
    ///
    /// A stream belongs to the context in which it was first given work; the default streams, whose handles are small
    /// numbers, exist once in every context. So a stream may be waited for while another context is current.
    pub fn stream(&self, context: u64, handle: u64, adds: bool) -> u16 {
        let default = handle & 0xffff_ffff < 16;
        let id = self.streams.find_or_add(
            mix(handle ^ if default { mix(context) } else { 0 }),
            |id| {
                let row = self.row(Table::Streams, id as usize);
                row[1].load(Relaxed) == handle
                    && row[2].load(Relaxed) == 0
                    && (!default || row[0].load(Relaxed) == context)
            },
            || {
                if !adds {
                    return None;
                }
                let id = self.take_row(Table::Streams)?;
                let row = self.row(Table::Streams, id as usize);
                row[0].store(context, Relaxed);
                row[1].store(handle, Relaxed);
                Some(id)
            },
        );
        u16::try_from(id).unwrap_or(0)
    }

    /// The stream is gone; its handle may be given to another.
    pub fn retire_stream(&self, handle: u64) {
        for id in 1..self.used(Table::Streams) {
            let row = self.row(Table::Streams, id);
            if row[1].load(Relaxed) == handle {
                row[2].store(1, Relaxed);
            }
        }
    }

    /// Was the stream of this row destroyed?
    pub fn is_retired(&self, stream: u16) -> bool {
        self.row(Table::Streams, stream.into())[2].load(Relaxed) != 0
    }

    /// The row where the markers of a thread in a stream arrive; 0 when the table is full.
    pub fn mark_row(&self, stream: u16, thread: u16) -> u32 {
        let key = u64::from(stream) | u64::from(thread) << 16;
        self.marks.find_or_add(
            mix(key),
            |id| self.row(Table::Marks, id as usize)[1].load(Relaxed) == key,
            || {
                let id = self.take_row(Table::Marks)?;
                self.row(Table::Marks, id as usize)[1].store(key, Relaxed);
                Some(id)
            },
        )
    }

    /// The words of the table of markers, for the GPU to write into.
    pub fn mark_words(&self) -> &'static [AtomicU64] {
        let start = self.starts[Table::Marks as usize];
        &self.words[start..start + self.shape.rows(Table::Marks) * Table::Marks.row_words()]
    }

    pub fn mark_state(&self, state: MarkState) {
        self.words[header::MARKS].store(state as u64, Release);
    }

    /// A row for a thread; None when the table is full, and then nothing of that thread can be recorded.
    pub fn thread(&self, system_number: u32) -> Option<u16> {
        let id = self.take_row(Table::Threads)?;
        self.row(Table::Threads, id as usize)[0].store(u64::from(system_number), Release);
        u16::try_from(id).ok()
    }

    /// Adds what became known of a graph.
    #[expect(clippy::too_many_arguments, reason = "the fields of one record, in the order of the record")]
    pub fn graph(&self, kind: GraphKind, first: u64, second: u64, kernel: u32, stack: u32, grid: u64, block: u64) {
        let Some(id) = self.take_row(Table::Graphs) else { return };
        let row = self.row(Table::Graphs, id as usize);
        let number = self.words[header::NUMBERS].load(Relaxed);
        row[1].store(first, Relaxed);
        row[2].store(second, Relaxed);
        row[3].store(u64::from(kernel) << 32 | u64::from(stack), Relaxed);
        row[4].store(grid, Relaxed);
        row[5].store(block, Relaxed);
        row[0].store(kind as u64 | number << 8, Release);
    }

    /// Was a sticky error recorded?
    pub fn failed(&self) -> bool {
        self.words[header::FIRST_ERROR + first_error::STATE].load(Relaxed) != 0
    }

    /// Records the first sticky error; later ones are its echo and change nothing.
    pub fn fail(&self, code: u32, number: u64, thread: u16, stack: u32, call: &[u8], time: u64) {
        let error = &self.words[header::FIRST_ERROR..header::FIRST_ERROR + 8];
        if error[first_error::STATE].compare_exchange(0, 1, AcqRel, Relaxed).is_err() {
            return;
        }
        error[first_error::CODE].store(code.into(), Relaxed);
        error[first_error::NUMBER].store(number, Relaxed);
        error[first_error::THREAD].store(thread.into(), Relaxed);
        error[first_error::STACK].store(stack.into(), Relaxed);
        error[first_error::CALL].store(self.heap(call), Relaxed);
        error[first_error::TIME].store(time, Relaxed);
        error[first_error::STATE].store(2, Release);
    }

    /// The newest number given.
    pub fn newest(&self) -> u64 {
        self.words[header::NUMBERS].load(Acquire)
    }

    /// The interpreter's version, `major << 8 | minor`, and what is known of its frames.
    pub fn interpreter(&self, version: u32, state: FrameState) {
        self.words[header::PYTHON].store(version.into(), Relaxed);
        self.words[header::FRAMES].store(state as u64, Relaxed);
    }

    /// A call went by unrecorded: what is blamed later cannot be exact.
    pub fn lose(&self) {
        self.words[header::LOST].fetch_add(1, Relaxed);
    }

    /// The tracer switched itself off.
    pub fn stop(&self) {
        self.words[header::RECORDING].store(2, Relaxed);
    }

    fn slot(&self, number: u64) -> usize {
        (number.wrapping_sub(1) % self.shape.rows(Table::Calls) as u64) as usize
    }

    fn row(&self, table: Table, row: usize) -> &'static [AtomicU64] {
        let words = table.row_words();
        let start = self.starts[table as usize] + row.min(self.shape.rows(table) - 1) * words;
        &self.words[start..start + words]
    }

    fn used(&self, table: Table) -> usize {
        let used = self.words[table.directory()[2]].load(Acquire);
        usize::try_from(used).unwrap_or(usize::MAX).min(self.shape.rows(table))
    }

    fn take_row(&self, table: Table) -> Option<u32> {
        let used = &self.words[table.directory()[2]];
        if used.load(Relaxed) >= self.shape.rows(table) as u64 {
            return None;
        }
        let row = used.fetch_add(1, AcqRel);
        (row < self.shape.rows(table) as u64).then_some(row as u32)
    }

    /// A heap reference to a string that may be there already.
    fn string(&self, text: &[u8]) -> u64 {
        let hash = text
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
        let id = self.strings.find_or_add(
            mix(hash),
            |id| self.heap_equals(self.string_references[id as usize].load(Relaxed), text),
            || {
                let id = self.string_count.fetch_add(1, Relaxed);
                let reference = self.string_references.get(id as usize)?;
                reference.store(self.heap(text), Relaxed);
                Some(id)
            },
        );
        self.string_references[id as usize].load(Relaxed)
    }

    fn heap_equals(&self, reference: u64, text: &[u8]) -> bool {
        let (offset, length) = ((reference >> 32) as usize, (reference & 0xffff_ffff) as usize);
        length == text.len()
            && text
                .chunks(8)
                .enumerate()
                .all(|(index, chunk)| self.row(Table::Heap, offset / 8 + index)[0].load(Relaxed) == word_of(chunk))
    }

    /// Copies bytes to the heap: a reference, or 0 when there are none or the heap is full.
    fn heap(&self, text: &[u8]) -> u64 {
        let text = &text[..text.len().min(LONGEST)];
        let needed = text.len().div_ceil(8) as u64;
        let used = &self.words[Table::Heap.directory()[2]];
        if needed == 0 || used.load(Relaxed) + needed > self.shape.rows(Table::Heap) as u64 {
            return 0;
        }
        let first = used.fetch_add(needed, AcqRel);
        if first + needed > self.shape.rows(Table::Heap) as u64 {
            return 0;
        }
        for (index, chunk) in text.chunks(8).enumerate() {
            self.row(Table::Heap, first as usize + index)[0].store(word_of(chunk), Relaxed);
        }
        heap_reference(first as usize * 8, text.len())
    }
}

/// Grid dimensions in a word. Larger ones than the hardware takes are kept as the largest that fits.
pub fn pack_grid(x: u32, y: u32, z: u32) -> u64 {
    u64::from(x) | u64::from(y.min(0xffff)) << 32 | u64::from(z.min(0xffff)) << 48
}

/// Block dimensions in 48 bits.
pub fn pack_block(x: u32, y: u32, z: u32) -> u64 {
    u64::from(x.min(0xffff)) | u64::from(y.min(0xffff)) << 16 | u64::from(z.min(0xffff)) << 32
}

fn word_of(chunk: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..chunk.len()].copy_from_slice(chunk);
    u64::from_ne_bytes(bytes)
}

/// The finalizer of SplitMix64: spreads the low bits of pointers over all bits.
fn mix(key: u64) -> u64 {
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

/// From a key to a row, for the writer alone: open addressing, filled and never emptied.
struct Index {
    slots: Box<[AtomicU32]>,
}

impl Index {
    fn for_rows(rows: usize) -> Index {
        Index { slots: (0..(rows * 2).next_power_of_two()).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The row for which `is_it` holds, else a new one from `add`; 0 when there is no room.
    /// Two threads that add the same key at once both fill a row; the first to publish wins and the other row is unused.
    fn find_or_add(&self, hash: u64, is_it: impl Fn(u32) -> bool, add: impl FnOnce() -> Option<u32>) -> u32 {
        let mask = self.slots.len() - 1;
        let mut add = Some(add);
        let mut mine = 0;
        for probe in 0..PROBES {
            let slot = &self.slots[(hash as usize).wrapping_add(probe) & mask];
            let mut found = slot.load(Acquire);
            if found == 0 {
                if let Some(add) = add.take() {
                    mine = add().unwrap_or(0);
                }
                if mine == 0 {
                    return 0;
                }
                match slot.compare_exchange(0, mine, AcqRel, Acquire) {
                    Ok(_) => return mine,
                    Err(other) => found = other,
                }
            }
            if is_it(found) {
                return found;
            }
        }
        0
    }
}
