//! Damages that logs come with, and worse ones.

use fastrand::Rng;

/// A log made from the seeds. Most are small, since small ones reach more grammars a second; a few are large, to show
/// work that grows faster than its text.
pub fn log(seeds: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let mut log = any(seeds, random).to_vec();
    for _ in 0..random.usize(1..=5) {
        damage(&mut log, seeds, random);
    }
    log.truncate(LARGEST);
    log
}

const LARGEST: usize = 256 << 10;

/// One damage.
pub fn damage(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Rng) {
    match random.u8(..12) {
        0 => splice(bytes, any(seeds, random), random),
        1 => drop(bytes.drain(range(bytes.len(), random))),
        2 => repeat(bytes, random),
        3 => flip(bytes, random),
        4 => shuffle_lines(bytes, random),
        5 => insert(bytes, &noise(random), random),
        6 => nest(bytes, random),
        7 => huge_numbers(bytes, random),
        8 => prefix_lines(bytes, random),
        9 => interleave(bytes, any(seeds, random)),
        10 => lose_line_ends(bytes, random),
        _ => insert(bytes, WORDS[random.usize(..WORDS.len())].as_bytes(), random),
    }
    bytes.truncate(LARGEST);
}

fn any<'s>(seeds: &'s [Vec<u8>], random: &mut Rng) -> &'s [u8] {
    seeds.get(random.usize(..seeds.len().max(1))).map_or(&[], Vec::as_slice)
}

fn range(length: usize, random: &mut Rng) -> std::ops::Range<usize> {
    let start = random.usize(..=length);
    start..random.usize(start..=length)
}

fn insert(bytes: &mut Vec<u8>, more: &[u8], random: &mut Rng) {
    let at = random.usize(..=bytes.len());
    bytes.splice(at..at, more.iter().copied());
}

fn splice(bytes: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    let piece = &other[range(other.len(), random)];
    let place = range(bytes.len(), random);
    bytes.splice(place, piece.iter().copied());
}

/// A part over and over: floods, endless tracebacks, endless lines.
fn repeat(bytes: &mut Vec<u8>, random: &mut Rng) {
    let part = range(bytes.len(), random);
    if part.is_empty() {
        return;
    }
    let most = LARGEST.saturating_sub(bytes.len()) / part.len();
    let often = [2, 10, 100, most][random.usize(..4)].min(most);
    let more = bytes[part.clone()].repeat(often);
    bytes.splice(part.end..part.end, more);
}

fn flip(bytes: &mut [u8], random: &mut Rng) {
    for _ in 0..random.usize(1..=16) {
        if let Some(byte) = bytes.get_mut(random.usize(..=bytes.len())) {
            *byte = random.u8(..);
        }
    }
}

fn shuffle_lines(bytes: &mut Vec<u8>, random: &mut Rng) {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    random.shuffle(&mut lines);
    *bytes = lines.concat();
}

/// Bytes of any kind: none, valid UTF-8 of any width, halves of it.
fn noise(random: &mut Rng) -> Vec<u8> {
    let length = [8, 64, 4096, 40_000][random.usize(..4)];
    match random.u8(..3) {
        0 => (0..length).map(|_| random.u8(..)).collect(),
        1 => (0..length / 4).map(|_| random.char(..)).collect::<String>().into_bytes(),
        _ => vec![*random.choice(b"\r\n \t([{\"'\\^~|\x1b\x00\xff\xf0=.").unwrap_or(&0); length],
    }
}

/// Brackets, carried tracebacks and groups, as deep as nobody writes them.
fn nest(bytes: &mut Vec<u8>, random: &mut Rng) {
    let opening = *random.choice(OPENINGS).unwrap_or(&"(");
    let deep = opening.repeat([20, 200, 3000][random.usize(..3)]);
    insert(bytes, deep.as_bytes(), random);
}

const OPENINGS: &[&str] = &[
    "(",
    "[",
    "{\"log\":",
    "f(lambda: ",
    "    if x:\n",
    "-",
    "not ",
    "Traceback (most recent call last):\n  File \"/home/dev/proj/a.py\", line 3, in f\n    g()\nRuntimeError: x\nOriginal Traceback (most recent call last):\n",
    "  + Exception Group Traceback (most recent call last):\n",
    "  | ",
    "  +-+---------------- 1 ----------------\n",
    "KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n",
    "[rank0]: ",
    "╭── Traceback (most recent call last) ──╮\n",
    "RuntimeError: RuntimeError: ",
    "\u{1b}[",
    "[[node a (defined at a.py:1) ",
    "CompilationError: at 1:0:\ndef ",
];

fn huge_numbers(bytes: &mut Vec<u8>, random: &mut Rng) {
    let mut out = Vec::with_capacity(bytes.len());
    let mut digits = bytes.split(u8::is_ascii_digit).peekable();
    while let Some(piece) = digits.next() {
        out.extend_from_slice(piece);
        if digits.peek().is_some() {
            let number = NUMBERS[random.usize(..NUMBERS.len())];
            out.extend_from_slice(if random.u8(..8) == 0 { number } else { b"1" }.as_ref());
        }
    }
    *bytes = out;
}

const NUMBERS: [&[u8]; 7] =
    [b"0", b"-1", b"4294967295", b"4294967296", b"18446744073709551616", b"999999999", b"9999999999999999999999999.9"];

fn prefix_lines(bytes: &mut Vec<u8>, random: &mut Rng) {
    let prefix = random.choice(PREFIXES).map_or(&b""[..], |prefix| prefix.as_bytes());
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    *bytes = lines.into_iter().flat_map(|line| [prefix, line]).collect::<Vec<_>>().concat();
}

const PREFIXES: &[&str] = &[
    "[rank3]: ",
    "[1,3]<stderr>:",
    "  | ",
    "E   ",
    "> ",
    "│ ",
    "========= ",
    "2024-07-22T10:38:57.218681532+08:00 ",
    "  0%|  | 0/7 [00:00<?, ?it/s]\r",
    "{\"log\":\"",
    "\u{1b}[31m",
    "    ",
];

/// Two processes that write into one file.
fn interleave(bytes: &mut Vec<u8>, other: &[u8]) {
    let mut others = other.split_inclusive(|byte| *byte == b'\n');
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    *bytes = lines.into_iter().flat_map(|line| [line, others.next().unwrap_or_default()]).collect::<Vec<_>>().concat();
}

fn lose_line_ends(bytes: &mut Vec<u8>, random: &mut Rng) {
    match random.u8(..4) {
        0 => bytes.retain(|byte| *byte != b'\n'),
        1 => bytes.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b'\r'),
        2 => *bytes = bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\\n"[..]),
        _ => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            *bytes = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        }
    }
}

/// What the grammars look for.
const WORDS: &[&str] = &[
    "\nTraceback (most recent call last):\n",
    "\nOriginal Traceback (most recent call last):\n",
    "\nFatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n  File \"a.py\", line 3 in f\n",
    "\nFailures:\n",
    "\nRoot Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 7)\n",
    "\nfrom user code:\n",
    "\n-- Process 1 terminated with the following error:\n",
    "\n========= Invalid __global__ write of size 8 bytes\n",
    "\n/a/b.cu:16: k: block: [0,0,0], thread: [0,0,0] Assertion `i < n` failed.\n",
    "\nerrors_impl.InvalidArgumentError: x\n\t [[node m/e (defined at /home/dev/proj/a.py:3) ]]\n",
    "\ntriton.compiler.errors.CompilationError: at 2:4:\ndef k(x):\n    y = x @ x\n    ^\n",
    "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of ",
    "\nRuntimeError: CUDA error: ",
    "During handling of the above exception, another exception occurred:",
    "source_file=\"a.py\" source_line=3",
];
