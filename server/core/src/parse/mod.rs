//! What a log says, in order of appearance: one file per grammar.
//!
//! The lines are freed of their prefixes ([`prefix`]) and told apart by speaker, so that the ranks of one log do not cut
//! each other's tracebacks. Then each speaker's lines are read once, front to back: the first grammar that knows the line
//! takes as many as belong to it. Every grammar looks ahead by a bounded number of lines, so the time is linear.

mod pasted;
pub mod prefix;

mod ipython;
mod message;
mod pytest;
mod rich;
pub mod traceback;

mod assert_line;
mod elastic;
mod faulthandler;
mod sanitizer;

pub mod cuda_error;
pub mod jax;
pub mod oom;
pub mod tensorflow;
pub mod triton;

use std::collections::BTreeMap;

use crate::log::{Log, Stream};
use crate::pattern::pattern as regex;
pub use assert_line::AssertLine;
pub use elastic::Summary;
pub use faulthandler::stacks;
pub use prefix::{Clean, Level};
pub use sanitizer::Fault;
pub use traceback::{Chain, Frame, Link, Relation};

/// What a text says, in order of appearance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    pub found: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Index into `Log::lines` of its first line.
    pub line: usize,
    pub stream: Stream,
    pub rank: Option<u32>,
    pub level: Option<Level>,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A traceback with its causes, or the last line of one.
    Exception(Chain),
    Assert(AssertLine),
    /// A line that tells of a failure outside of any traceback, with the lines that continue it.
    Message(String),
    /// A warning, with the lines that continue it: the program went on.
    Warning(String),
    /// The forward call that anomaly mode recorded for a backward function.
    ForwardTrace {
        function: String,
        frames: Vec<Frame>,
    },
    /// The stack of a process that died by a signal.
    Stack {
        reason: String,
        frames: Vec<Frame>,
    },
    /// torchrun's account of its workers.
    Summary(Summary),
    Sanitizer(Fault),
}

/// Reads a log. Any text gives findings, perhaps none.
pub fn parse(log: &Log) -> Findings {
    let lines = prefix::clean(log);
    let mut speakers: BTreeMap<(u8, &str), Vec<&Clean>> = BTreeMap::new();
    for line in &lines {
        speakers.entry((stream_number(line.stream), line.speaker.as_str())).or_default().push(line);
    }
    let mut found: Vec<Finding> = speakers.values().flat_map(|lines| parse_speaker(lines)).collect();
    found.sort_by_key(|finding| finding.line);
    Findings { found }
}

fn stream_number(stream: Stream) -> u8 {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
        Stream::Mixed => 2,
    }
}

fn parse_speaker(lines: &[&Clean]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let taken = GRAMMARS.iter().find_map(|grammar| grammar(&lines[at..]));
        let Some(taken) = taken else {
            at += 1;
            continue;
        };
        let used = taken.lines.max(1);
        let first = lines[at];
        let block = &lines[at..(at + used).min(lines.len())];
        let rank = block.iter().find_map(|line| line.rank);
        let level = block.iter().filter_map(|line| line.level).max();
        found.extend(taken.what.into_iter().map(|(rank_told, what)| Finding {
            line: first.line,
            stream: first.stream,
            rank: rank_told.or(rank),
            level,
            what,
        }));
        at += used;
    }
    found
}

/// What a grammar made of the lines before it: how many it used, and what they say, with a rank where they tell one.
struct Taken {
    lines: usize,
    what: Vec<(Option<u32>, What)>,
}

impl Taken {
    fn one(lines: usize, what: What) -> Option<Self> {
        Some(Self { lines, what: vec![(None, what)] })
    }
}

/// Looks at the lines from the first on and takes those that it knows, or none.
type Grammar = fn(&[&Clean]) -> Option<Taken>;

/// Tried in this order at each line.
const GRAMMARS: [Grammar; 11] = [
    assert_line::take,
    assert_line::take_report,
    sanitizer::take,
    elastic::take,
    faulthandler::take,
    rich::take,
    ipython::take,
    pytest::take,
    traceback::take_forward,
    traceback::take,
    message::take,
];
