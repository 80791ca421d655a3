//! What Triton's compiler says inside a message: a line of the kernel, counted from its `def`, and the lines before it.

use std::sync::LazyLock;

use regex::Regex;

/// The end of a kernel's text up to the line that does not compile (CompilationError in triton/compiler/errors.py: it
/// quotes twelve lines at most and marks the column below the last one).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt<'m> {
    /// 1-based, counted from the kernel's `def`.
    pub line: u32,
    /// The quoted lines without their indentation.
    pub quoted: Vec<&'m str>,
    /// The last quoted line is that line; else a blank line cut the message short.
    pub whole: bool,
}

impl<'m> Excerpt<'m> {
    pub fn of(message: &'m str) -> Option<Self> {
        let found = AT.captures(message)?;
        let line = found.get(1)?.as_str().parse().ok()?;
        let after = message.get(found.get(0)?.end()..)?.lines().map(str::trim);
        let mut quoted: Vec<&str> = after.take(MOST_QUOTED).collect();
        let caret = quoted.iter().position(|line| *line == "^");
        quoted.truncate(caret.unwrap_or(quoted.len()));
        (!quoted.is_empty()).then_some(Self { line, quoted, whole: caret.is_some() })
    }

    /// How far the line is below the first quoted one. None where the quote does not say.
    pub fn offset(&self) -> Option<u32> {
        let from_def = self.quoted.first().is_some_and(|first| first.starts_with("def "));
        match self.whole {
            true => u32::try_from(self.quoted.len()).ok()?.checked_sub(1),
            false if from_def => self.line.checked_sub(1),
            false => None,
        }
    }
}

const MOST_QUOTED: usize = 40;

static AT: LazyLock<Regex> = LazyLock::new(|| super::regex(r"(?:^|CompilationError: |\n)at (\d{1,6}):\d{1,6}: ?\n"));
