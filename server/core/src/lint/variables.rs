//! The environment variables that a file sets, whatever its language.

use std::ops::Range;

use crate::config::Edit;

use super::{FileKind, LintFile};

mod dockerfile;
mod launch_json;
mod python;
mod run_xml;
mod shell;
mod yaml;

pub use launch_json::configuration_at;
pub use python::{Change, What, changes, of_python};

/// One variable set at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub name: String,
    /// None: worked out when the program runs.
    pub value: Option<String>,
    /// What to underline: the assignment.
    pub range: Range<usize>,
    /// The value as it is written, without quotes.
    pub value_range: Option<Range<usize>>,
    /// The edits that take the assignment out, where that is safe.
    pub removal: Option<Vec<Edit>>,
    pub setting: Setting,
}

impl Variable {
    /// The same in a text that the one it was read from starts in at this byte. What was taken out there may be more than
    /// a line of it, so nothing is taken out here.
    fn moved(self, by: usize) -> Self {
        let range = |range: Range<usize>| range.start + by..range.end + by;
        Self { range: range(self.range), value_range: self.value_range.map(range), removal: None, ..self }
    }

    /// The same that many bytes earlier.
    fn back(self, by: usize) -> Self {
        let range = |range: Range<usize>| range.start.saturating_sub(by)..range.end.saturating_sub(by);
        Self { range: range(self.range), value_range: self.value_range.map(range), removal: None, ..self }
    }
}

/// How long, and for whom, a variable is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// In a program's own code, whenever it runs.
    Code,
    /// In a program's code, under a condition or for the time of a test.
    CodeSometimes,
    /// In an image, a container, an env file, a shell profile or a CI job: for everything that runs there.
    Everything,
    /// Before one command of a script.
    OneCommand,
    /// In a run configuration of an editor.
    RunConfiguration,
    /// In a run configuration that cublame wrote or switched.
    Ours,
}

/// The variables of a file that is not Python.
pub fn of_file(file: &LintFile<'_>) -> Vec<Variable> {
    let text = &file.text;
    match file.kind {
        FileKind::Dockerfile => dockerfile::variables(text),
        FileKind::Dotenv => shell::dotenv(text),
        FileKind::Shell => shell::variables(text),
        FileKind::Compose => yaml::variables(text),
        FileKind::Ci => yaml::variables(text).into_iter().chain(yaml::scripts(text)).collect(),
        FileKind::LaunchJson => launch_json::variables(text),
        FileKind::RunXml => run_xml::variables(text),
        FileKind::Python | FileKind::Cuda => Vec::new(),
    }
}

/// The lines of a text with the byte offset of each, without their ends.
fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line.trim_end_matches(['\n', '\r']))
    })
}

/// The whole line at a byte offset with its end, as a deletion.
fn whole_line(text: &str, start: usize) -> Vec<Edit> {
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at + 1);
    vec![Edit::delete(line_start, line_end)]
}

/// A value without the quotes around it, and how many bytes were cut from its start.
fn unquoted(value: &str) -> (&str, usize) {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return (inner, 1);
        }
    }
    (value, 0)
}

/// A value that a shell or a template would still work on.
fn is_computed(value: &str) -> bool {
    value.contains(['$', '`']) || value.contains("{{")
}

fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !word.starts_with(|first: char| first.is_ascii_digit())
}
