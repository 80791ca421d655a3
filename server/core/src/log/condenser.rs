//! The streaming reduction of a log, at a good part of the speed of a plain search, in flat memory.

use std::collections::VecDeque;

use super::{Line, Log, Stream, triggers};

/// Kept whole from the start of a stream, whatever it says.
const WHOLE: u64 = 256 << 10;
/// Pieces kept before and after a trigger.
const BEFORE: usize = 40;
const AFTER: usize = 120;
/// Pieces kept from the end of a stream.
const AT_END: usize = 100;
/// Bytes of a piece that are kept from its start and from its end.
const LONG: usize = 8 << 10;
/// Bytes of kept lines: the first failures and the last.
const FIRST: usize = 6 << 20;
const LAST: usize = 4 << 20;
/// Bytes held back until their line ends.
const UNFINISHED: usize = 1 << 20;
/// Bytes that the context of a trigger may take: two kilobytes a piece are plenty.
const PASSED: usize = AT_END * (2 << 10);
/// Device assertions told apart at a time: several ranks or kernels may interleave.
const TEMPLATES: usize = 8;

/// Takes the bytes of one or several streams as they come and keeps what can matter.
///
/// A piece is what stands between line feeds, or between the carriage returns with which progress bars overwrite
/// themselves.
#[derive(Debug, Default)]
pub struct Condenser {
    streams: Vec<StreamState>,
    kept: Kept,
    bytes: u64,
}

impl Condenser {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of a stream, cut anywhere.
    pub fn feed(&mut self, stream: Stream, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let state = match self.streams.iter().position(|state| state.stream == stream) {
            Some(index) => &mut self.streams[index],
            None => {
                self.streams.push(StreamState::new(stream));
                let last = self.streams.len() - 1;
                &mut self.streams[last]
            }
        };
        state.feed(bytes, &mut self.kept);
    }

    /// Ends every stream.
    pub fn finish(mut self) -> Log {
        let mut total_lines = 0;
        for state in &mut self.streams {
            state.finish(&mut self.kept);
            total_lines += state.lines;
        }
        Log { lines: self.kept.into_lines(), total_lines, total_bytes: self.bytes }
    }

    /// The log so far, for a look at a program that a debugger holds; a line without its end is not in it.
    pub fn snapshot(&self) -> Log {
        Log {
            lines: self.kept.clone().into_lines(),
            total_lines: self.streams.iter().map(|state| state.lines).sum(),
            total_bytes: self.bytes,
        }
    }
}

#[derive(Debug)]
struct StreamState {
    stream: Stream,
    encoding: Encoding,
    /// Bytes of the pieces taken so far, to know the part that is kept whole.
    taken: u64,
    /// Line feeds seen.
    lines: u64,
    /// The start of a piece that has not ended yet.
    unfinished: Vec<u8>,
    /// Bytes let go from the middle of `unfinished`.
    left_out: usize,
    /// The last kept piece ended in a carriage return: a line feed after it is a Windows line end.
    returned: bool,
    /// The last pieces that were not kept, for the context of the next trigger. Whole pieces, each with its end.
    before: Vec<u8>,
    /// Pieces still to keep after the last trigger.
    engaged: usize,
}

impl StreamState {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            encoding: Encoding::Unknown(Vec::new()),
            taken: 0,
            lines: 0,
            unfinished: Vec::new(),
            left_out: 0,
            returned: false,
            before: Vec::new(),
            engaged: 0,
        }
    }

    fn feed(&mut self, bytes: &[u8], kept: &mut Kept) {
        let mut encoding = std::mem::replace(&mut self.encoding, Encoding::Bytes);
        encoding.decode(bytes, |bytes| self.take(bytes, kept));
        self.encoding = encoding;
    }

    fn take(&mut self, bytes: &[u8], kept: &mut Kept) {
        let Some(end) = memchr::memrchr2(b'\n', b'\r', bytes).map(|index| index + 1) else {
            self.hold(bytes);
            return;
        };
        if self.unfinished.is_empty() {
            self.pieces(&bytes[..end], kept);
        } else {
            // Only the piece that spans the border is copied; the rest is searched where it lies.
            let first = memchr::memchr2(b'\n', b'\r', bytes).map_or(end, |index| index + 1);
            self.unfinished.extend_from_slice(&bytes[..first]);
            let mut piece = self.end_piece();
            self.pieces(&piece, kept);
            self.pieces(&bytes[first..end], kept);
            piece.clear();
            self.unfinished = piece;
        }
        self.hold(&bytes[end..]);
    }

    /// Keeps the start and the end of a piece that has not ended.
    fn hold(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        if self.unfinished.len() > UNFINISHED {
            let tail = self.unfinished.len() - LONG;
            self.left_out += tail - LONG;
            self.unfinished.drain(LONG..tail);
        }
    }

    /// The piece that was held back, with a word where its middle was let go.
    fn end_piece(&mut self) -> Vec<u8> {
        let mut piece = std::mem::take(&mut self.unfinished);
        if self.left_out > 0 {
            piece.splice(LONG..LONG, left_out(self.left_out).into_bytes());
            self.left_out = 0;
        }
        piece
    }

    /// Takes whole pieces.
    fn pieces(&mut self, block: &[u8], kept: &mut Kept) {
        let start_of_block = self.taken;
        self.taken += block.len() as u64;
        let mut from = 0;
        while from < block.len() {
            if start_of_block + (from as u64) < WHOLE || self.engaged > 0 {
                let end = piece_end(block, from);
                let piece = &block[from..end];
                if kept.repeats_an_assertion(self.stream, trim_end(piece)) {
                    from = end;
                    self.lines += u64::from(piece.ends_with(b"\n"));
                    self.engaged = AFTER;
                    continue;
                }
                if triggers::find(piece, 0).is_some() {
                    self.engaged = AFTER;
                } else {
                    self.engaged = self.engaged.saturating_sub(1);
                }
                self.keep(piece, kept);
                from = end;
                continue;
            }
            match triggers::find(block, from) {
                None => {
                    self.pass_over(&block[from..]);
                    from = block.len();
                }
                Some(trigger) => {
                    let start = memchr::memrchr2(b'\n', b'\r', &block[from..trigger]).map_or(from, |at| from + at + 1);
                    self.pass_over(&block[from..start]);
                    self.keep_passed_over(BEFORE, kept);
                    self.engaged = AFTER;
                    from = start;
                }
            }
        }
    }

    fn keep(&mut self, piece: &[u8], kept: &mut Kept) {
        let text = trim_end(piece);
        // The number of the line that the piece stands in.
        let number = self.lines + 1;
        self.lines += u64::from(piece.ends_with(b"\n"));
        let ends_a_windows_line = piece == b"\n" && self.returned;
        self.returned = piece.ends_with(b"\r");
        if ends_a_windows_line {
            return;
        }
        kept.push(Line { stream: self.stream, number, text: cut(text), repeats: 1 });
    }

    /// Lets pieces go, but for the few that the next trigger would want before it.
    fn pass_over(&mut self, block: &[u8]) {
        self.lines += memchr::memchr_iter(b'\n', block).count() as u64;
        let tail = last_pieces(block, AT_END);
        if tail.len() < block.len() {
            self.before.clear();
        }
        self.before.extend_from_slice(tail);
        // Seldom, so that a stream that comes line by line does not move these bytes for every line.
        if self.before.len() > 4 * PASSED {
            let wanted = last_pieces(&self.before, AT_END).len();
            self.before.drain(..self.before.len() - wanted);
        }
    }

    fn keep_passed_over(&mut self, count: usize, kept: &mut Kept) {
        let before = std::mem::take(&mut self.before);
        let wanted = last_pieces(&before, count);
        self.lines -= memchr::memchr_iter(b'\n', wanted).count() as u64;
        let mut from = 0;
        while from < wanted.len() {
            let end = piece_end(wanted, from);
            self.keep(&wanted[from..end], kept);
            from = end;
        }
    }

    fn finish(&mut self, kept: &mut Kept) {
        let mut encoding = std::mem::replace(&mut self.encoding, Encoding::Bytes);
        encoding.finish(|bytes| self.take(bytes, kept));
        if !self.unfinished.is_empty() {
            let piece = self.end_piece();
            self.pieces(&piece, kept);
            self.lines += 1;
        }
        self.keep_passed_over(AT_END, kept);
    }
}

/// The kept lines: the first ones for good, then a window that moves with the end of the log.
#[derive(Debug, Clone, Default)]
struct Kept {
    first: Vec<Line>,
    first_bytes: usize,
    last: VecDeque<Line>,
    last_bytes: usize,
    templates: VecDeque<Template>,
    /// Lines pushed so far, to find the line of a template again.
    pushed: usize,
    /// Lines that fell out of `last`.
    dropped: usize,
}

/// A device assertion without its block and thread.
#[derive(Debug, Clone)]
struct Template {
    stream: Stream,
    before: Vec<u8>,
    after: Vec<u8>,
    /// Its number among the pushed lines.
    line: usize,
}

impl Kept {
    fn push(&mut self, line: Line) {
        if let Some((before, after)) = split_assertion(line.text.as_bytes()) {
            if self.templates.len() == TEMPLATES {
                self.templates.pop_front();
            }
            let (before, after) = (before.to_vec(), after.to_vec());
            self.templates.push_back(Template { stream: line.stream, before, after, line: self.pushed });
        }
        self.pushed += 1;
        let bytes = line.text.len() + std::mem::size_of::<Line>();
        if self.first_bytes + bytes <= FIRST && self.last.is_empty() {
            self.first_bytes += bytes;
            self.first.push(line);
            return;
        }
        self.last_bytes += bytes;
        self.last.push_back(line);
        while self.last_bytes > LAST {
            let Some(gone) = self.last.pop_front() else { break };
            self.last_bytes -= gone.text.len() + std::mem::size_of::<Line>();
            self.dropped += 1;
        }
    }

    /// Counts a line that repeats a device assertion for another block or thread.
    fn repeats_an_assertion(&mut self, stream: Stream, piece: &[u8]) -> bool {
        let Some(template) = self.templates.iter().rev().find(|template| {
            template.stream == stream
                && piece.len() > template.before.len() + template.after.len()
                && piece.starts_with(&template.before)
                && piece.ends_with(&template.after)
                && is_block_and_thread(&piece[template.before.len()..piece.len() - template.after.len()])
        }) else {
            return false;
        };
        let line = template.line;
        let found = match self.first.get_mut(line) {
            Some(found) => Some(found),
            None => line.checked_sub(self.first.len() + self.dropped).and_then(|index| self.last.get_mut(index)),
        };
        match found {
            Some(found) => {
                found.repeats += 1;
                true
            }
            None => false,
        }
    }

    fn into_lines(self) -> Vec<Line> {
        let mut lines = self.first;
        lines.extend(self.last);
        lines
    }
}

/// `FILE:LINE: FUNC: ` and ` Assertion ...` around `block: [x,y,z], thread: [x,y,z]`.
fn split_assertion(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let block = memchr::memmem::find(text, b"block: [")?;
    let after = block + memchr::memmem::find(&text[block..], b" Assertion")?;
    is_block_and_thread(&text[block..after]).then_some((&text[..block], &text[after..]))
}

/// Only the coordinates may differ between two lines that say the same.
fn is_block_and_thread(text: &[u8]) -> bool {
    text.len() < 120
        && text.starts_with(b"block: [")
        && text.iter().all(|byte| byte.is_ascii_digit() || b"block: [],thread".contains(byte))
}

fn piece_end(block: &[u8], from: usize) -> usize {
    memchr::memchr2(b'\n', b'\r', &block[from..]).map_or(block.len(), |at| from + at + 1)
}

fn trim_end(piece: &[u8]) -> &[u8] {
    match piece {
        [rest @ .., b'\n' | b'\r'] => rest,
        _ => piece,
    }
}

/// The last `count` pieces of a block of whole pieces, but no more than a context needs.
fn last_pieces(block: &[u8], count: usize) -> &[u8] {
    let floor = block.len().saturating_sub(PASSED);
    let mut start = block.len();
    for _ in 0..count {
        if start == 0 {
            break;
        }
        match memchr::memrchr2(b'\n', b'\r', &block[..start - 1]) {
            Some(at) if at + 1 > floor => start = at + 1,
            Some(_) => break,
            None => {
                start = if floor == 0 { 0 } else { start };
                break;
            }
        }
    }
    &block[start..]
}

fn cut(text: &[u8]) -> String {
    if text.len() <= 2 * LONG {
        return String::from_utf8_lossy(text).into_owned();
    }
    let (head, tail) = (&text[..LONG], &text[text.len() - LONG..]);
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    format!("{head}{}{tail}", left_out(text.len() - 2 * LONG))
}

fn left_out(bytes: usize) -> String {
    format!("[... {bytes} bytes left out ...]")
}

/// PowerShell's `>` writes UTF-16 with a byte order mark; everything else is bytes.
#[derive(Debug)]
enum Encoding {
    /// The first bytes, until there are enough to tell.
    Unknown(Vec<u8>),
    Bytes,
    Utf16 {
        little: bool,
        /// A byte without its second, and a first surrogate without its second.
        odd: Option<u8>,
        units: Vec<u16>,
    },
}

impl Encoding {
    fn decode(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) {
        match self {
            Encoding::Bytes => take(bytes),
            Encoding::Unknown(start) => {
                start.extend_from_slice(bytes);
                if start.len() < 3 && !matches!(start.as_slice(), [first, _] if *first != 0xff && *first != 0xfe) {
                    return;
                }
                let start = std::mem::take(start);
                let (next, rest) = match start.as_slice() {
                    [0xff, 0xfe, rest @ ..] => (Encoding::utf16(true), rest),
                    [0xfe, 0xff, rest @ ..] => (Encoding::utf16(false), rest),
                    [0xef, 0xbb, 0xbf, rest @ ..] => (Encoding::Bytes, rest),
                    rest => (Encoding::Bytes, rest),
                };
                *self = next;
                self.decode(rest, take);
            }
            Encoding::Utf16 { little, odd, units } => {
                for &byte in bytes {
                    let Some(first) = odd.take() else {
                        *odd = Some(byte);
                        continue;
                    };
                    let pair = [first, byte];
                    units.push(if *little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) });
                }
                let waiting = units.pop_if(|unit| (0xd800..0xdc00).contains(unit));
                let text: String = char::decode_utf16(units.drain(..)).map(|c| c.unwrap_or('\u{fffd}')).collect();
                units.extend(waiting);
                take(text.as_bytes());
            }
        }
    }

    fn finish(&mut self, take: impl FnOnce(&[u8])) {
        if let Encoding::Unknown(start) = self {
            take(&std::mem::take(start));
        }
    }

    fn utf16(little: bool) -> Self {
        Encoding::Utf16 { little, odd: None, units: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn condense(pieces: &[&[u8]]) -> Log {
        let mut condenser = Condenser::new();
        for piece in pieces {
            condenser.feed(Stream::Stderr, piece);
        }
        condenser.finish()
    }

    fn texts(log: &Log) -> Vec<&str> {
        log.lines.iter().map(|line| line.text.as_str()).collect()
    }

    fn assertion(thread: u32) -> String {
        format!(
            "/pytorch/x.cu:16: gather: block: [391,0,0], thread: [{thread},0,0] Assertion `ind < size && \"x\"` failed.\n"
        )
    }

    #[test]
    fn a_small_log_is_kept_whole_with_its_numbers() {
        let log = condense(&[b"one\ntw", b"o\r\nthree"]);
        assert_eq!(texts(&log), ["one", "two", "three"]);
        assert_eq!(log.lines.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!((log.total_lines, log.total_bytes), (3, 14));
    }

    #[test]
    fn carriage_returns_part_a_progress_bar_from_what_follows_it() {
        let log = condense(&[b" 1/70 [00:00]\r 2/70 [00:01]\rRuntimeError: x\nnext\n"]);
        assert_eq!(texts(&log), [" 1/70 [00:00]", " 2/70 [00:01]", "RuntimeError: x", "next"]);
        assert_eq!(log.lines.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 1, 1, 2]);
    }

    #[test]
    fn a_flood_of_one_assertion_is_one_line_with_a_count() {
        let mut text = String::from("start\n");
        (0..50_000).for_each(|thread| text.push_str(&assertion(thread)));
        text.push_str("RuntimeError: CUDA error: device-side assert triggered\n");
        let log = condense(&[text.as_bytes()]);
        assert_eq!(log.lines.len(), 3);
        assert_eq!(log.lines[1].repeats, 50_000);
        assert_eq!(log.lines[2].number, 50_002);
    }

    #[test]
    fn floods_of_two_ranks_that_interleave_are_two_lines() {
        let text: String = (0..100).map(|n| format!("[rank{}]: {}", n % 2, assertion(n))).collect();
        let log = condense(&[text.as_bytes()]);
        assert_eq!(log.lines.iter().map(|line| line.repeats).collect::<Vec<_>>(), [50, 50]);
    }

    #[test]
    fn a_failure_deep_in_a_large_log_keeps_its_surroundings() {
        let mut text: String = (0..200_000).map(|n| format!("step {n} loss 0.5\n")).collect();
        text.push_str(
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    x()\nRuntimeError: CUDA error\n",
        );
        (0..200_000).for_each(|n| text.push_str(&format!("later {n}\n")));
        let log = condense(&text.as_bytes().chunks(7919).collect::<Vec<_>>());
        let header = log.lines.iter().position(|line| line.text.starts_with("Traceback")).unwrap();
        assert_eq!(log.lines[header].number, 200_001);
        assert_eq!(log.lines[header - 1].text, "step 199999 loss 0.5");
        assert_eq!(log.lines[header + 3].text, "RuntimeError: CUDA error");
        assert_eq!(log.lines.last().unwrap().text, "later 199999");
        assert_eq!(log.total_lines, 400_004);
        assert!(log.lines.len() < 20_000, "{} lines", log.lines.len());
    }

    #[test]
    fn a_line_without_end_keeps_its_two_ends() {
        let mut condenser = Condenser::new();
        condenser.feed(Stream::Stdout, b"head ");
        for _ in 0..64 {
            condenser.feed(Stream::Stdout, &vec![b'x'; 1 << 20]);
        }
        condenser.feed(Stream::Stdout, b" CUDA error: tail");
        let log = condenser.finish();
        assert!(log.lines[0].text.starts_with("head x") && log.lines[0].text.ends_with("CUDA error: tail"));
        assert!(log.lines[0].text.contains("bytes left out"));
        assert!(log.lines[0].text.len() < 40 << 10);
    }

    #[test]
    fn the_first_and_the_last_failures_survive_a_log_full_of_them() {
        let mut condenser = Condenser::new();
        (0..400_000).for_each(|n| condenser.feed(Stream::Mixed, format!("ValueError: number {n}\n").as_bytes()));
        let log = condenser.finish();
        assert_eq!(log.lines[0].text, "ValueError: number 0");
        assert_eq!(log.lines.last().unwrap().text, "ValueError: number 399999");
        assert!(log.lines.iter().map(|line| line.text.len() + 64).sum::<usize>() < 16 << 20);
    }

    #[test]
    fn utf_16_of_powershell_is_read() {
        let mut bytes = vec![0xff, 0xfe];
        "RuntimeError: 错误 𝛼\r\nnext\r\n".encode_utf16().for_each(|unit| bytes.extend(unit.to_le_bytes()));
        let log = condense(&bytes.chunks(3).collect::<Vec<_>>());
        assert_eq!(texts(&log), ["RuntimeError: 错误 𝛼", "next"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn where_the_bytes_are_cut_changes_nothing(
            text in "[ab\r\n]{0,80}(Error|\r\n|\n)[ab\n]{0,40}", healthy in 0usize..40_000, cut in 1usize..9000,
        ) {
            let text = "step 7 of 9\n".repeat(healthy) + &text;
            let whole = condense(&[text.as_bytes()]);
            let pieces = condense(&text.as_bytes().chunks(cut).collect::<Vec<_>>());
            prop_assert_eq!(whole, pieces);
        }

        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let log = condense(&[&bytes]);
            prop_assert_eq!(log.total_bytes, bytes.len() as u64);
        }
    }
}
