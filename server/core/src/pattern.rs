//! The regular expressions that are part of the program.

use regex::{Regex, RegexSet};

/// Compiles a pattern of our own.
pub fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "the pattern is part of the program, and a test reads a log through it")]
    Regex::new(&in_ascii(text)).expect("a pattern of our own")
}

/// Compiles patterns of our own that are tried together.
pub fn patterns<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> RegexSet {
    #[expect(clippy::expect_used, reason = "the patterns are part of the program, and a test reads a log through them")]
    RegexSet::new(texts.into_iter().map(|text| in_ascii(text.as_ref()))).expect("patterns of our own")
}

/// Digits, names and word borders in ASCII. In Unicode each of them is a table of hundreds of ranges, and an automaton
/// of many patterns becomes too large to be fast; the words of logs that we look for are ASCII.
pub fn in_ascii(text: &str) -> String {
    text.replace(r"\d", "[0-9]")
        .replace(r"\w", "[0-9A-Za-z_]")
        .replace(r"\b", r"(?-u:\b)")
        .replace(r"\s", r"[ \t\r\n]")
        .replace(r"\S", r"[^ \t\r\n]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_nest_in_classes() {
        let number = pattern(r"^[\w.-]+:[\d_]+\s[^\s:]$");
        assert!(number.is_match("a_1.b-c:12_3 x"));
        assert!(!number.is_match("a:1 :"));
        assert!(pattern(r"\bindex\b").is_match("ind index"));
    }
}
