//! A log reduced to the lines that can matter: small logs whole, large ones around what a failure looks like.
//!
//! [`Condenser`] takes a log of any size in pieces and keeps a bounded [`Log`]; the parsers then read that as a whole.
//! So the grammars may look back and ahead as they please, and memory stays flat on a log of any size.

mod condenser;
mod triggers;

use serde::{Deserialize, Serialize};

pub use condenser::Condenser;

/// The lines kept of one or several streams, in the order they came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Log {
    pub lines: Vec<Line>,
    /// Lines read in all, kept or not.
    pub total_lines: u64,
    pub total_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line {
    pub stream: Stream,
    /// 1-based number within its stream. The pieces between carriage returns share the number of their line.
    pub number: u64,
    /// Without its end; invalid UTF-8 replaced; a very long line is cut in the middle.
    pub text: String,
    /// How many lines said the same but for the block and thread of a device assertion: 1 for a line of its own.
    pub repeats: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
    Stderr,
    /// Both on one pipe or terminal, or a log of unknown origin.
    Mixed,
}

/// The first line of `log.jsonl`; each further line is a [`Line`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Head {
    pub schema: u32,
    pub total_lines: u64,
    pub total_bytes: u64,
}

impl Log {
    /// Puts the log of one rank behind, each line marked as torch marks it.
    pub fn append_of_rank(&mut self, rank: u32, log: Log) {
        self.total_lines += log.total_lines;
        self.total_bytes += log.total_bytes;
        self.lines
            .extend(log.lines.into_iter().map(|line| Line { text: format!("[rank{rank}]: {}", line.text), ..line }));
    }

    /// A log whose origin is unknown, condensed.
    pub fn from_text(text: &str) -> Self {
        let mut condenser = Condenser::new();
        condenser.feed(Stream::Mixed, text.as_bytes());
        condenser.finish()
    }
}
