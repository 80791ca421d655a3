//! Where everything lies in a journal. All of it is 64-bit words in the byte order of the machine that wrote it.
//!
//! A file begins with a header of [`HEADER_WORDS`] words; the tables follow in the order of [`Table`].
//!
//! | header word | holds |
//! |---|---|
//! | 0 | [`MAGIC`], which also tells the byte order |
//! | 1 | [`VERSION`] |
//! | 2 | the size of the whole journal in bytes |
//! | 3 | the process that owns it, 0 while none has claimed it |
//! | 4 | CLOCK_MONOTONIC at the claim, nanoseconds |
//! | 5 | CLOCK_REALTIME at the claim, nanoseconds |
//! | 6 | the interpreter, `major << 8 \| minor`; 0 until one was seen |
//! | 7 | [`FrameState`] |
//! | 8 | numbers given so far: the number of the newest call |
//! | 9 | calls that could not be recorded |
//! | 10 | 1 while the tracer records, 2 after it switched itself off |
//! | 11 | [`MarkState`] |
//! | 16..23 | the first sticky error, see [`first_error`] |
//! | 32.. | for each [`Table`]: offset in bytes, capacity in rows, rows used |

pub const MAGIC: u64 = u64::from_le_bytes(*b"CUBLJRNL");
/// Raised whenever the meaning of a word changes. A reader refuses a later one; version 1 had no completion markers.
pub const VERSION: u64 = 2;
pub const HEADER_WORDS: usize = 512;

/// Words of the header, by name.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const BYTES: usize = 2;
    pub const OWNER: usize = 3;
    pub const MONOTONIC: usize = 4;
    pub const REALTIME: usize = 5;
    pub const PYTHON: usize = 6;
    pub const FRAMES: usize = 7;
    pub const NUMBERS: usize = 8;
    pub const LOST: usize = 9;
    pub const RECORDING: usize = 10;
    pub const MARKS: usize = 11;
    pub const FIRST_ERROR: usize = 16;
    pub const TABLES: usize = 32;
}

/// Words of the first sticky error, from `header::FIRST_ERROR`.
pub mod first_error {
    /// 0 none, 1 being written, 2 whole.
    pub const STATE: usize = 0;
    /// CUresult.
    pub const CODE: usize = 1;
    /// The newest number given when the call was entered: what failed has this number or a lower one.
    pub const NUMBER: usize = 2;
    /// Row of the thread table.
    pub const THREAD: usize = 3;
    pub const STACK: usize = 4;
    /// Heap reference to the name of the call that returned the error.
    pub const CALL: usize = 5;
    pub const TIME: usize = 6;
}

/// The tables, in the order in which they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The ring of calls. Call `n` lies in row `(n - 1) % capacity`. Words of a row:
    ///
    /// | word | holds |
    /// |---|---|
    /// | 0 | `number << 1 \| being_written` |
    /// | 1 | CLOCK_MONOTONIC at entry, nanoseconds |
    /// | 2 | `kernel << 32 \| stack`; of a call that [`Kind::reaches`] `reach << 32 \| stack` |
    /// | 3 | grid `x \| y << 32 \| z << 48`, or the handle of the event or graph |
    /// | 4 | block `x \| y << 16 \| z << 32`, then `thread << 48` |
    /// | 5 | `kind \| flags << 8 \| result << 16 \| stream << 32` |
    Calls,
    /// Interned stacks, a tree that grows from the outermost frame: `parent << 32 | code`, then the byte offset of the
    /// instruction. Row 0 is no frame. A parent's row is always lower than its child's.
    Stacks,
    /// Code objects as they were when first seen: address, then heap references to file, name and line table, then the
    /// first line, then an identity that tells a reused address.
    Codes,
    /// Bytes: names and line tables. Counted in bytes, padded to words.
    Heap,
    /// Kernels: handle, heap reference to the mangled name (0 until known), generation of the module table.
    Kernels,
    /// Streams: context, handle, 1 when destroyed.
    Streams,
    /// Threads, a cache line each: the number of the system, then a lower bound of the number of the call in the driver.
    Threads,
    /// What is known of graphs, in order. Words of a row:
    ///
    /// | word | holds |
    /// |---|---|
    /// | 0 | `kind \| number << 8`, written last |
    /// | 1 | id of the capture, or handle of the graph |
    /// | 2 | handle of the executable graph, the clone or the child; a count of nodes for [`GraphKind::Nodes`] |
    /// | 3 | `kernel << 32 \| stack` |
    /// | 4 | grid, as in a call |
    /// | 5 | block, as in a call |
    Graphs,
    /// Where completion markers arrive, a cache line for each stream and thread: the number of the newest
    /// [`Kind::Mark`] that the GPU has reached, written by the GPU, then `stream | thread << 16`.
    Marks,
}

impl Table {
    pub const ALL: [Table; 9] = [
        Table::Calls,
        Table::Stacks,
        Table::Codes,
        Table::Heap,
        Table::Kernels,
        Table::Streams,
        Table::Threads,
        Table::Graphs,
        Table::Marks,
    ];

    /// Words of a row; for the heap, one.
    pub const fn row_words(self) -> usize {
        match self {
            Table::Calls | Table::Codes | Table::Graphs => 6,
            Table::Stacks => 2,
            Table::Heap => 1,
            Table::Kernels | Table::Streams => 3,
            Table::Threads | Table::Marks => 8,
        }
    }

    /// Header words of this table: offset in bytes, capacity, rows used.
    pub const fn directory(self) -> [usize; 3] {
        let first = header::TABLES + 3 * self as usize;
        [first, first + 1, first + 2]
    }
}

/// How many rows each table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub rows: [usize; 9],
}

impl Shape {
    /// A million calls in less than 64 MiB.
    pub const DEFAULT: Shape =
        Shape { rows: [1 << 20, 1 << 18, 1 << 14, 1 << 20, 1 << 14, 1 << 12, 1 << 12, 1 << 15, 1 << 10] };

    pub const fn rows(&self, table: Table) -> usize {
        self.rows[table as usize]
    }

    /// First word of a table.
    pub fn start(&self, table: Table) -> usize {
        HEADER_WORDS
            + Table::ALL[..table as usize].iter().map(|before| self.rows(*before) * before.row_words()).sum::<usize>()
    }

    pub fn words(&self) -> usize {
        self.start(Table::Marks) + self.rows(Table::Marks) * Table::Marks.row_words()
    }

    pub fn bytes(&self) -> usize {
        self.words() * 8
    }
}

/// What a call asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    Kernel = 1,
    Cooperative = 2,
    Graph = 3,
    Memcpy = 4,
    Memset = 5,
    /// A copy that returns when it is done: work and synchronisation of its stream in one.
    BlockingCopy = 6,
    StreamSync = 7,
    ContextSync = 8,
    EventSync = 9,
    EventRecord = 10,
    /// A stream waits for an event: what the event covers is done before what follows on the stream.
    StreamWait = 11,
    Free = 12,
    /// A host function or a write of a value: on the stream, and never the cause of a fault of a kernel.
    Other = 13,
    /// A completion marker of ours, put into the stream before the next work: the GPU writes its number once what came
    /// before it is done. Word 3 is its row in [`Table::Marks`]; 0 where none was written and the row only says what was
    /// in the queue.
    Mark = 14,
}

impl Kind {
    pub const ALL: [Kind; 14] = [
        Kind::Kernel,
        Kind::Cooperative,
        Kind::Graph,
        Kind::Memcpy,
        Kind::Memset,
        Kind::BlockingCopy,
        Kind::StreamSync,
        Kind::ContextSync,
        Kind::EventSync,
        Kind::EventRecord,
        Kind::StreamWait,
        Kind::Free,
        Kind::Other,
        Kind::Mark,
    ];

    pub fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Does it put work on the GPU that can fault there?
    pub fn is_work(self) -> bool {
        matches!(
            self,
            Kind::Kernel | Kind::Cooperative | Kind::Graph | Kind::Memcpy | Kind::Memset | Kind::BlockingCopy
        )
    }

    /// Does it matter which calls of other threads were in the queue before it?
    pub fn reaches(self) -> bool {
        self.is_sync() || matches!(self, Kind::EventRecord | Kind::StreamWait | Kind::Mark)
    }

    /// Does its success prove that earlier work is done?
    pub fn is_sync(self) -> bool {
        matches!(self, Kind::BlockingCopy | Kind::StreamSync | Kind::ContextSync | Kind::EventSync)
    }
}

/// Flags of a call.
pub mod flags {
    /// The call came back; its result is in the row.
    pub const RETURNED: u8 = 1;
    /// The launch carries an attribute that lets it overlap with the one before (programmatic dependence).
    pub const OVERLAPS: u8 = 2;
}

/// Can the rows of [`Table::Marks`] be believed?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum MarkState {
    /// No marker was written.
    #[default]
    None = 0,
    /// The GPU writes into the journal itself.
    Direct = 1,
    /// The GPU writes elsewhere, because the journal's memory cannot be given to it; nothing was copied yet.
    Aside = 2,
    /// As before, and copied into the journal when the first sticky error was seen.
    Copied = 3,
}

impl MarkState {
    pub const ALL: [MarkState; 4] = [MarkState::None, MarkState::Direct, MarkState::Aside, MarkState::Copied];

    pub fn from_number(number: u64) -> MarkState {
        usize::try_from(number).ok().and_then(|index| MarkState::ALL.get(index)).copied().unwrap_or_default()
    }

    /// Is a marker that is not in its row really one that the GPU has not reached?
    pub fn is_told(self) -> bool {
        matches!(self, MarkState::Direct | MarkState::Copied)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GraphKind {
    /// A node captured from a stream: word 1 is the id of the capture.
    CapturedKernel = 1,
    CapturedOther = 2,
    /// A kernel node added by call: word 1 is the graph.
    AddedKernel = 3,
    AddedOther = 4,
    /// A capture ended and made a graph: word 1 the id, word 2 the graph.
    Captured = 5,
    /// Word 1 the graph, word 2 the executable graph.
    Instantiated = 6,
    Updated = 7,
    /// Word 1 the original, word 2 the clone.
    Cloned = 8,
    /// Word 1 the graph, word 2 the child.
    Child = 9,
    /// Word 1 the graph, word 2 how many nodes the driver counts in it.
    Nodes = 10,
    /// Word 1 is an event that some graph records: what its completion proves is not known.
    Event = 11,
    /// A node was given other parameters: word 1 is the executable graph, or 0 where only the node is known.
    Changed = 12,
}

impl GraphKind {
    pub const ALL: [GraphKind; 12] = [
        GraphKind::CapturedKernel,
        GraphKind::CapturedOther,
        GraphKind::AddedKernel,
        GraphKind::AddedOther,
        GraphKind::Captured,
        GraphKind::Instantiated,
        GraphKind::Updated,
        GraphKind::Cloned,
        GraphKind::Child,
        GraphKind::Nodes,
        GraphKind::Event,
        GraphKind::Changed,
    ];

    pub fn from_number(number: u8) -> Option<GraphKind> {
        GraphKind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// What is known of the interpreter's frames, and how well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum FrameState {
    /// No interpreter was seen.
    #[default]
    None = 0,
    /// The layout of this version was read and everything in it had the right type, but the interpreter itself could not
    /// yet be asked.
    Plausible = 1,
    /// The interpreter's own functions gave the same code objects and lines.
    Verified = 2,
    /// The interpreter's own functions gave something else: no frames are recorded.
    Refused = 3,
    /// A version, or a build without a global lock, whose layout is not known.
    Unsupported = 4,
}

impl FrameState {
    pub const ALL: [FrameState; 5] =
        [FrameState::None, FrameState::Plausible, FrameState::Verified, FrameState::Refused, FrameState::Unsupported];

    pub fn from_number(number: u64) -> FrameState {
        usize::try_from(number).ok().and_then(|index| FrameState::ALL.get(index)).copied().unwrap_or_default()
    }
}

/// A heap reference: `offset << 32 | length`, both in bytes; 0 is absent.
pub fn heap_reference(offset: usize, length: usize) -> u64 {
    ((offset as u64) << 32) | length as u64
}
