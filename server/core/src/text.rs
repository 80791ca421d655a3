//! Positions in a text: byte offsets, lines and code-point columns as verdicts have them, positions as editors have them.
//!
//! A line ends with `\n`, `\r\n` or a lone `\r`, as in Python and in the Language Server Protocol.
//! Nothing here fails: a position past the end of its line is the line's end, a line past the last is the text's end,
//! and a position in the middle of a character is that character's start.

use std::ops::Range;
use std::sync::Arc;

/// A text and where its lines start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    text: Arc<str>,
    /// Byte offset of each line's start; the first is 0, so there is always one.
    starts: Vec<usize>,
}

/// What an editor counts columns in (`PositionEncodingKind` of the Language Server Protocol).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    Utf8,
    /// What every client has when nothing else was agreed.
    #[default]
    Utf16,
    Utf32,
}

/// A position as an editor has it: both numbers from 0, `character` in code units of an [`Encoding`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u32,
    pub character: u32,
}

/// A position as a verdict has it: both numbers from 1, the column in Unicode code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    pub line: u32,
    pub column: u32,
}

impl LineIndex {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text: Arc<str> = text.into();
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            let first_half_of_crlf = bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
            if !first_half_of_crlf {
                starts.push(at + 1);
            }
        }
        Self { text, starts }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// At least 1; a text that ends with a line end has an empty last line, as editors show it.
    pub fn line_count(&self) -> u32 {
        number(self.starts.len())
    }

    /// The text of a line (from 1) without its end; empty past the last line.
    pub fn line(&self, line: u32) -> &str {
        &self.text[self.line_range(line)]
    }

    /// The bytes of a line (from 1) without its end; empty and at the text's end past the last line.
    pub fn line_range(&self, line: u32) -> Range<usize> {
        let index = line.saturating_sub(1) as usize;
        let Some(&start) = self.starts.get(index) else { return self.text.len()..self.text.len() };
        let mut end = self.starts.get(index + 1).copied().unwrap_or(self.text.len());
        if end > start && self.text.as_bytes()[end - 1] == b'\n' {
            end -= 1;
        }
        if end > start && self.text.as_bytes()[end - 1] == b'\r' {
            end -= 1;
        }
        start..end
    }

    /// The line (from 1) that holds a byte; the last line for an offset past the end.
    pub fn line_of(&self, offset: usize) -> u32 {
        number(self.starts.partition_point(|&start| start <= offset))
    }

    pub fn line_column(&self, offset: usize) -> LineColumn {
        let (line, before) = self.before(offset);
        LineColumn { line, column: number(before.chars().count()) + 1 }
    }

    pub fn offset(&self, at: LineColumn) -> usize {
        self.offset_after(at.line, at.column.saturating_sub(1), |_| 1)
    }

    pub fn position(&self, offset: usize, encoding: Encoding) -> Position {
        let (line, before) = self.before(offset);
        let character = match encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
            Encoding::Utf32 => before.chars().count(),
        };
        Position { line: line - 1, character: number(character) }
    }

    pub fn offset_at(&self, position: Position, encoding: Encoding) -> usize {
        let units: fn(char) -> usize = match encoding {
            Encoding::Utf8 => char::len_utf8,
            Encoding::Utf16 => char::len_utf16,
            Encoding::Utf32 => |_| 1,
        };
        self.offset_after(position.line.saturating_add(1), position.character, units)
    }

    /// The line (from 1) of an offset, and what stands on it before the offset. An offset between `\r` and `\n`, or
    /// inside a character, counts as the one before it.
    fn before(&self, offset: usize) -> (u32, &str) {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line_of(offset);
        let range = self.line_range(line);
        (line, &self.text[range.start..offset.min(range.end).max(range.start)])
    }

    fn offset_after(&self, line: u32, units: u32, width: impl Fn(char) -> usize) -> usize {
        let range = self.line_range(line);
        let mut left = units as usize;
        for (at, character) in self.text[range.clone()].char_indices() {
            let width = width(character);
            if left < width {
                return range.start + at;
            }
            left -= width;
        }
        range.end
    }
}

/// Texts of more than four billion bytes, lines or columns are not edited by anyone.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    #[test]
    fn columns_count_what_each_encoding_counts() {
        let index = LineIndex::new("α = 1\r\n名😀x\ry\n");
        let x = index.text().find('x').unwrap();
        assert_eq!(index.line_column(x), LineColumn { line: 2, column: 3 });
        assert_eq!(index.position(x, Encoding::Utf8), Position { line: 1, character: 7 });
        assert_eq!(index.position(x, Encoding::Utf16), Position { line: 1, character: 3 });
        assert_eq!(index.position(x, Encoding::Utf32), Position { line: 1, character: 2 });
        assert_eq!((1..=4).map(|line| index.line(line)).collect::<Vec<_>>(), ["α = 1", "名😀x", "y", ""]);
        assert_eq!(index.line_count(), 4);
    }

    #[test]
    fn a_position_that_is_nowhere_is_the_nearest_before_it() {
        let index = LineIndex::new("a😀b\nc");
        assert_eq!(
            index.offset_at(Position { line: 0, character: 2 }, Encoding::Utf16),
            1,
            "inside the surrogate pair"
        );
        assert_eq!(index.offset_at(Position { line: 0, character: 3 }, Encoding::Utf8), 1, "inside the four bytes");
        assert_eq!(index.offset_at(Position { line: 0, character: 99 }, Encoding::Utf16), 6, "past the line's end");
        assert_eq!(index.offset_at(Position { line: 9, character: 0 }, Encoding::Utf16), 8, "past the last line");
        assert_eq!(index.offset_at(Position { line: u32::MAX, character: 0 }, Encoding::Utf16), 8);
        assert_eq!(index.offset(LineColumn { line: 0, column: 0 }), 0, "numbers that should start from 1");
        assert_eq!(index.line_column(3), LineColumn { line: 1, column: 2 }, "inside a character");
        assert_eq!(index.line_column(99), LineColumn { line: 2, column: 2 }, "past the end");
    }

    /// Text with every line end, characters of one to four bytes, and combining marks.
    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            prop_oneof![
                Just("\n".to_owned()),
                Just("\r\n".to_owned()),
                Just("\r".to_owned()),
                Just("\u{c}".to_owned()),
                Just("😀".to_owned()),
                Just("e\u{301}".to_owned()),
                any::<char>().prop_map(String::from),
                "[a-z ]{0,6}",
            ],
            0..40,
        )
        .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn offsets_come_back_from_every_kind_of_position(text in text()) {
            let index = LineIndex::new(text.as_str());
            for (offset, _) in text.char_indices().chain([(text.len(), ' ')]) {
                if text[..offset].ends_with('\r') && text[offset..].starts_with('\n') {
                    continue; // Between the halves of one line end there is no position.
                }
                prop_assert_eq!(index.offset(index.line_column(offset)), offset);
                for encoding in ENCODINGS {
                    prop_assert_eq!(index.offset_at(index.position(offset, encoding), encoding), offset);
                }
            }
        }

        #[test]
        fn lines_and_their_ends_make_up_the_text(text in text()) {
            let index = LineIndex::new(text.as_str());
            let mut rebuilt = String::new();
            for line in 1..=index.line_count() {
                let range = index.line_range(line);
                let next = if line == index.line_count() { text.len() } else { index.line_range(line + 1).start };
                let end = &text[range.end..next];
                prop_assert!(matches!(end, "" | "\n" | "\r\n" | "\r"));
                prop_assert_eq!(end.is_empty(), line == index.line_count());
                prop_assert!(!index.line(line).contains(['\n', '\r']));
                rebuilt.push_str(index.line(line));
                rebuilt.push_str(end);
            }
            prop_assert_eq!(rebuilt, text);
        }

        #[test]
        fn any_numbers_give_an_offset_in_the_text(text in text(), line: u32, column in 0u32..200, offset in 0usize..400) {
            let index = LineIndex::new(text.as_str());
            for line in [line, line % 50] {
                let offset = index.offset(LineColumn { line, column });
                prop_assert!(text.is_char_boundary(offset));
                for encoding in ENCODINGS {
                    let asked = Position { line, character: column };
                    let at = index.offset_at(asked, encoding);
                    prop_assert!(text.is_char_boundary(at));
                    let never_later = index.position(at, encoding) <= asked;
                    prop_assert!(never_later);
                }
            }
            index.line_column(offset);
            index.position(offset, Encoding::Utf16);
        }
    }
}
