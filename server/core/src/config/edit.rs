//! Text edits, and the refusal to make them.

use std::fmt;

/// Replace the bytes `start..end` by `text`. Offsets are bytes of the text as it was, on character borders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub start: usize,
    pub end: usize,
    pub text: String,
}

impl Edit {
    pub fn insert(at: usize, text: impl Into<String>) -> Self {
        Self { start: at, end: at, text: text.into() }
    }

    pub fn delete(start: usize, end: usize) -> Self {
        Self { start, end, text: String::new() }
    }

    pub fn replace(start: usize, end: usize, text: impl Into<String>) -> Self {
        Self { start, end, text: text.into() }
    }
}

/// The text after `edits`, which must not overlap. Insertions at one place are made in the order given.
pub fn apply(text: &str, edits: &[Edit]) -> String {
    let mut in_order: Vec<&Edit> = edits.iter().collect();
    in_order.sort_by_key(|edit| (edit.start, edit.end));
    let mut result = String::with_capacity(text.len() + edits.iter().map(|edit| edit.text.len()).sum::<usize>());
    let mut copied = 0;
    for edit in in_order {
        debug_assert!(copied <= edit.start, "overlapping edits: {edits:?}");
        result.push_str(&text[copied..edit.start]);
        result.push_str(&edit.text);
        copied = edit.end;
    }
    result.push_str(&text[copied..]);
    result
}

/// The one edit that turns `before` into `after`, as small as it can be; None where they are the same.
pub fn between(before: &str, after: &str) -> Option<Edit> {
    if before == after {
        return None;
    }
    let same_start = |(left, right): &(char, char)| left == right;
    let start: usize =
        before.chars().zip(after.chars()).take_while(same_start).map(|(character, _)| character.len_utf8()).sum();
    let rest = before[start..].chars().rev().zip(after[start..].chars().rev());
    let end: usize = rest.take_while(same_start).map(|(character, _)| character.len_utf8()).sum();
    Some(Edit::replace(start, before.len() - end, &after[start..after.len() - end]))
}

/// Why a file is left as it is: one sentence without its final dot, and the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub what: String,
    /// 1-based.
    pub line: usize,
    /// 1-based, in Unicode code points.
    pub column: usize,
}

impl Refused {
    pub fn at(text: &str, offset: usize, what: impl Into<String>) -> Self {
        let (line, column) = position(text, offset);
        Self { what: what.into(), line, column }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for Refused {}

/// Line and column of a byte offset, both 1-based; a line ends with LF, CRLF or CR, and a byte order mark has no column.
pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let mut line = 1;
    let mut line_start = 0;
    let bytes = before.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let ends_line = byte == b'\n' || byte == b'\r' && text.as_bytes().get(at + 1) != Some(&b'\n');
        if ends_line {
            line += 1;
            line_start = at + 1;
        }
    }
    let column = before[line_start..].chars().filter(|&character| character != '\u{feff}').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_made_from_left_to_right_and_in_order_at_one_place() {
        let edits = [Edit::insert(3, "!"), Edit::replace(0, 1, "A"), Edit::insert(3, "?"), Edit::delete(1, 2)];
        assert_eq!(apply("abc", &edits), "Ac!?");
    }

    #[test]
    fn a_position_counts_lines_of_every_kind_and_code_points() {
        assert_eq!(position("\u{feff}ab", 3), (1, 1));
        assert_eq!(position("a\r\nb\rc\né!", 9), (4, 2));
        assert_eq!(position("", 0), (1, 1));
    }
}
