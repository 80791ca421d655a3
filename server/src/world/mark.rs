//! What a run tells of lines beside the culprit's: the tensors of the calls that led to it, what holds the memory.

use std::path::PathBuf;
use std::sync::Arc;

use cublame_core::Verdict;
use cublame_core::text::LineIndex;

use super::finding::Anchor;

/// One line of one file, of which a verdict tells something.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    pub run: String,
    pub verdict: Arc<Verdict>,
    /// The canonical path of the file.
    pub path: PathBuf,
    /// From 1, as it was.
    pub line: u32,
    pub anchor: Anchor,
    pub told: Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The tensors of this one of the verdict's frames.
    Frame(usize),
    /// What this one of the memory's sites holds.
    Site(usize),
}

impl Mark {
    /// The line where it is now. None once it was edited: it is another line then.
    pub fn line_in(&self, text: &LineIndex) -> Option<u32> {
        let now = self.anchor.whereabouts(self.line, text);
        (!now.edited).then_some(now.line)
    }
}
