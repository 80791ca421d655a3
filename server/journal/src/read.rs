//! The reader: bytes to values. It never fails on a journal that somebody is writing, or that is damaged: what cannot be
//! read is absent.

use crate::layout::{
    FrameState, GraphKind, HEADER_WORDS, Kind, MAGIC, MarkState, Table, VERSION, first_error, flags, header,
};
use crate::lines::{Location, locate};

/// A journal as values. Rows refer to each other by number, as in the file; the methods resolve them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journal {
    pub pid: u32,
    /// The interpreter, `major << 8 | minor`; 0 when there was none.
    pub python: u32,
    pub frame_state: FrameState,
    /// The tracer recorded until the end, as against having switched itself off.
    pub recording: bool,
    /// CLOCK_MONOTONIC and CLOCK_REALTIME at the start, nanoseconds.
    pub monotonic: u64,
    pub realtime: u64,
    /// The number of the newest call.
    pub newest: u64,
    /// Calls that were not recorded.
    pub lost: u64,
    pub first_error: Option<FirstError>,
    /// Ascending by number. Numbers before the first were overwritten.
    pub calls: Vec<Call>,
    pub graphs: Vec<GraphRow>,
    mark_state: MarkState,
    /// The newest marker that arrived, by row.
    marks: Vec<u64>,
    stacks: Vec<Node>,
    codes: Vec<Code>,
    kernels: Vec<Kernel>,
    streams: Vec<Stream>,
    threads: Vec<Thread>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub number: u64,
    /// Nanoseconds of CLOCK_MONOTONIC at entry.
    pub time: u64,
    pub kind: Kind,
    /// The launch may overlap with the one before it.
    pub overlaps: bool,
    /// CUresult, where the tracer wrote it: of every synchronising call and of every failed one.
    pub result: Option<u16>,
    pub kernel: u32,
    pub stack: u32,
    pub stream: u16,
    pub thread: u16,
    /// Of a launch; of other calls [`Call::handle`] is meant.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// The event or the executable graph.
    pub handle: u64,
    /// See [`crate::Writer::reach`].
    pub reach: u32,
}

/// The first sticky error that any call returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstError {
    /// CUresult.
    pub code: u32,
    /// What failed has this number or a lower one.
    pub number: u64,
    pub thread: u16,
    pub stack: u32,
    /// The driver's entry point, such as `cuStreamSynchronize`.
    pub call: String,
    pub time: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphRow {
    pub kind: GraphKind,
    /// The newest call when the row was written.
    pub number: u64,
    pub first: u64,
    pub second: u64,
    pub kernel: u32,
    pub stack: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
}

/// One frame of a Python stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// `co_filename`.
    pub file: String,
    /// `co_qualname` where the interpreter has it, else `co_name`.
    pub function: String,
    /// `co_firstlineno`: where the function or its first decorator begins.
    pub first_line: u32,
    pub location: Option<Location>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Node {
    parent: u32,
    code: u32,
    offset: u32,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Code {
    file: String,
    name: String,
    line_table: Vec<u8>,
    first_line: u32,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kernel {
    /// CUfunction or CUkernel.
    pub handle: u64,
    /// Mangled; None when the driver could not say.
    pub name: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stream {
    pub context: u64,
    pub handle: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thread {
    /// The number that the operating system gives it.
    pub system_number: u32,
    /// A call of this number or a higher one is in the driver.
    pub in_driver: Option<u64>,
}

/// Reads a journal. The error is one sentence.
pub fn read(bytes: &[u8]) -> Result<Journal, String> {
    let words = Words(bytes);
    if words.get(header::MAGIC) != Some(MAGIC) {
        return Err("the file is not a launch journal".into());
    }
    let version = words.at(header::VERSION);
    if !(1..=VERSION).contains(&version) {
        return Err(format!(
            "the launch journal is of version {version}, and this program reads versions up to {VERSION}"
        ));
    }
    // Half of the numbers are enough for a damaged file, and no sum of them overflows.
    let newest = words.at(header::NUMBERS).min(u64::MAX >> 2);
    Ok(Journal {
        pid: low(words.at(header::OWNER)),
        python: low(words.at(header::PYTHON)),
        frame_state: FrameState::from_number(words.at(header::FRAMES)),
        recording: words.at(header::RECORDING) == 1,
        monotonic: words.at(header::MONOTONIC),
        realtime: words.at(header::REALTIME),
        newest,
        lost: words.at(header::LOST),
        first_error: read_first_error(words),
        calls: read_calls(words, newest),
        graphs: words.rows(Table::Graphs).filter_map(read_graph_row).collect(),
        mark_state: MarkState::from_number(words.at(header::MARKS)),
        marks: words.rows(Table::Marks).map(|row| row[0]).collect(),
        stacks: words
            .rows(Table::Stacks)
            .map(|row| Node { parent: high(row[0]), code: low(row[0]), offset: low(row[1]) })
            .collect(),
        codes: words.rows(Table::Codes).map(|row| read_code(words, row)).collect(),
        kernels: words
            .rows(Table::Kernels)
            .map(|row| Kernel {
                handle: row[0],
                name: Some(words.text(row[1])).filter(|name| !name.is_empty() && name != "?"),
            })
            .collect(),
        streams: words.rows(Table::Streams).map(|row| Stream { context: row[0], handle: row[1] }).collect(),
        threads: words
            .rows(Table::Threads)
            .map(|row| Thread { system_number: low(row[0]), in_driver: (row[1] != 0).then_some(row[1]) })
            .collect(),
    })
}

impl Journal {
    /// The frames of a stack, outermost first. Empty for stack 0.
    pub fn frames(&self, stack: u32) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut next = stack;
        while let Some(node) = self.stacks.get(next as usize).filter(|_| next != 0) {
            if let Some(code) = self.codes.get(node.code as usize).filter(|_| node.code != 0) {
                frames.push(Frame {
                    file: code.file.clone(),
                    function: code.name.clone(),
                    first_line: code.first_line,
                    location: locate(self.python, &code.line_table, code.first_line, node.offset),
                });
            }
            // A parent is older than its child; anything else is damage, and would be a loop.
            if node.parent >= next {
                break;
            }
            next = node.parent;
        }
        frames.reverse();
        frames
    }

    pub fn kernel(&self, kernel: u32) -> Option<&Kernel> {
        self.kernels.get(kernel as usize).filter(|_| kernel != 0)
    }

    pub fn stream(&self, stream: u16) -> Option<Stream> {
        self.streams.get(usize::from(stream)).copied().filter(|_| stream != 0)
    }

    pub fn thread(&self, thread: u16) -> Option<Thread> {
        self.threads.get(usize::from(thread)).copied().filter(|_| thread != 0)
    }

    /// Every thread that made a call.
    pub fn threads(&self) -> impl Iterator<Item = Thread> {
        self.threads.iter().skip(1).copied()
    }

    /// Did the GPU reach a completion marker? None when that is not known: it was not written, or its row is not told.
    pub fn arrived(&self, mark: &Call) -> Option<bool> {
        let written = mark.kind == Kind::Mark && mark.handle != 0 && mark.result.is_none_or(|result| result == 0);
        let newest = self.marks.get(usize::try_from(mark.handle).ok()?).filter(|_| written)?;
        self.mark_state.is_told().then_some(*newest >= mark.number)
    }

    pub fn call(&self, number: u64) -> Option<&Call> {
        self.calls.binary_search_by_key(&number, |call| call.number).ok().map(|index| &self.calls[index])
    }
}

/// The words of a journal that may be shorter than its header says. A word that is not there is 0.
#[derive(Clone, Copy)]
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn get(self, index: usize) -> Option<u64> {
        let start = index.checked_mul(8)?;
        Some(u64::from_ne_bytes(self.0.get(start..start.checked_add(8)?)?.try_into().ok()?))
    }

    fn at(self, index: usize) -> u64 {
        self.get(index).unwrap_or(0)
    }

    /// The used rows of a table, as far as the bytes go.
    fn rows(self, table: Table) -> impl Iterator<Item = [u64; 8]> + 'a {
        let (first, capacity) = self.place(table);
        let used = usize::try_from(self.at(table.directory()[2])).unwrap_or(usize::MAX).min(capacity);
        (0..used).map(move |row| self.row(table, first, row))
    }

    fn row(self, table: Table, first: usize, row: usize) -> [u64; 8] {
        let mut words = [0; 8];
        let start = first + row * table.row_words();
        for (index, word) in words[..table.row_words()].iter_mut().enumerate() {
            *word = self.at(start + index);
        }
        words
    }

    /// First word and rows of a table, cut to what the bytes hold.
    fn place(self, table: Table) -> (usize, usize) {
        let [offset, capacity, _] = table.directory();
        let first = usize::try_from(self.at(offset) / 8).unwrap_or(usize::MAX);
        let held = (self.0.len() / 8).saturating_sub(first.max(HEADER_WORDS)) / table.row_words();
        let first = if held == 0 { HEADER_WORDS } else { first };
        (first, usize::try_from(self.at(capacity)).unwrap_or(usize::MAX).min(held))
    }

    fn heap(self, reference: u64) -> &'a [u8] {
        let (first, capacity) = self.place(Table::Heap);
        let (offset, length) = (high(reference) as usize, low(reference) as usize);
        if offset.saturating_add(length) > capacity * 8 {
            return &[];
        }
        self.0.get(first * 8 + offset..).and_then(|bytes| bytes.get(..length)).unwrap_or(&[])
    }

    fn text(self, reference: u64) -> String {
        String::from_utf8_lossy(self.heap(reference)).into_owned()
    }
}

fn read_calls(words: Words<'_>, newest: u64) -> Vec<Call> {
    let (first, capacity) = words.place(Table::Calls);
    let kept = newest.min(capacity as u64);
    let mut calls = Vec::with_capacity(kept as usize);
    for number in newest - kept + 1..=newest {
        let slot = ((number - 1) % capacity as u64) as usize;
        let row = words.row(Table::Calls, first, slot);
        // Another number: not yet written, or lost. An odd word: being written.
        if row[0] == number << 1
            && let Some(call) = read_call(number, &row)
        {
            calls.push(call);
        }
    }
    calls
}

fn read_call(number: u64, row: &[u64; 8]) -> Option<Call> {
    let kind = Kind::from_number(row[5] as u8)?;
    let flag = (row[5] >> 8) as u8;
    let launch = matches!(kind, Kind::Kernel | Kind::Cooperative);
    Some(Call {
        number,
        time: row[1],
        kind,
        overlaps: flag & flags::OVERLAPS != 0,
        result: (flag & flags::RETURNED != 0).then_some((row[5] >> 16) as u16),
        kernel: if kind.reaches() { 0 } else { high(row[2]) },
        stack: low(row[2]),
        stream: (row[5] >> 32) as u16,
        thread: (row[4] >> 48) as u16,
        grid: if launch { grid(row[3]) } else { [0; 3] },
        block: if launch { block(row[4]) } else { [0; 3] },
        handle: if launch { 0 } else { row[3] },
        reach: if kind.reaches() { high(row[2]) } else { 0 },
    })
}

fn read_graph_row(row: [u64; 8]) -> Option<GraphRow> {
    Some(GraphRow {
        kind: GraphKind::from_number(row[0] as u8)?,
        number: row[0] >> 8,
        first: row[1],
        second: row[2],
        kernel: high(row[3]),
        stack: low(row[3]),
        grid: grid(row[4]),
        block: block(row[5]),
    })
}

fn read_code(words: Words<'_>, row: [u64; 8]) -> Code {
    Code {
        file: words.text(row[1]),
        name: words.text(row[2]),
        line_table: words.heap(row[3]).to_vec(),
        first_line: low(row[4]),
    }
}

fn read_first_error(words: Words<'_>) -> Option<FirstError> {
    let word = |index: usize| words.at(header::FIRST_ERROR + index);
    (word(first_error::STATE) == 2).then(|| FirstError {
        code: low(word(first_error::CODE)),
        number: word(first_error::NUMBER),
        thread: word(first_error::THREAD) as u16,
        stack: low(word(first_error::STACK)),
        call: words.text(word(first_error::CALL)),
        time: word(first_error::TIME),
    })
}

fn grid(word: u64) -> [u32; 3] {
    [low(word), (word >> 32) as u32 & 0xffff, (word >> 48) as u32]
}

fn block(word: u64) -> [u32; 3] {
    [0, 16, 32].map(|shift| (word >> shift) as u32 & 0xffff)
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

fn low(word: u64) -> u32 {
    word as u32
}
