//! One verdict at one line of one file, and where that line is now.

use std::path::PathBuf;
use std::sync::Arc;

use cublame_core::Verdict;
use cublame_core::mode::Mode;
use cublame_core::text::LineIndex;
use cublame_core::verdict::Place;

use super::notebooks::InCell;

/// What an editor shows: one verdict of one run at one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub run: String,
    /// When the run started, in milliseconds since the epoch: a finding never gives way to one of a smaller number.
    pub generation: u64,
    /// Which of the run's verdicts.
    pub index: usize,
    pub verdict: Arc<Verdict>,
    pub mode: Mode,
    /// The program of the run.
    pub entry: Option<PathBuf>,
    /// The canonical path of the file it is shown in.
    pub path: PathBuf,
    /// The culprit, or where it surfaced, or the first line of the program.
    pub place: Place,
    /// The line as it was when it failed; None where the file had changed before anybody looked.
    pub anchor: Option<Anchor>,
    /// Where it is in a notebook that is open as one.
    pub cell: Option<InCell>,
    /// A later run of the same program in this other mode did well.
    pub not_reproduced: Option<Mode>,
}

/// A line by what it says and what stands around it, so that it is found again when lines come and go above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    text: Arc<str>,
    before: Arc<str>,
    after: Arc<str>,
}

/// Where a finding's line is in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whereabouts {
    /// From 1.
    pub line: u32,
    pub edited: bool,
    /// By how many code points the line's indentation has grown since.
    pub indented: i64,
}

impl Anchor {
    pub fn at(text: &LineIndex, line: u32) -> Self {
        let neighbour = |line: u32| text.line(line).trim().into();
        Self {
            text: text.line(line).into(),
            before: line.checked_sub(1).filter(|&line| line > 0).map_or_else(|| "".into(), neighbour),
            after: neighbour(line + 1),
        }
    }

    /// Does it say what the evidence says that the line said?
    pub fn says(&self, source: &str) -> bool {
        self.text.trim() == source.trim()
    }

    /// Where the line that was at `was` is now: there, moved by what came and went above it, or edited.
    ///
    /// Of several equal lines it is the one whose neighbours are still the same, then the nearest.
    pub fn whereabouts(&self, was: u32, text: &LineIndex) -> Whereabouts {
        let wanted = self.text.trim();
        let at = |line: u32| {
            let indented = indentation(text.line(line)) - indentation(&self.text);
            Whereabouts { line, edited: false, indented }
        };
        if was <= text.line_count() && text.line(was).trim() == wanted && self.kept_neighbours(text, was) == 2 {
            return at(was);
        }
        let lines = 1..=text.line_count();
        let rank = |&line: &u32| (self.kept_neighbours(text, line), std::cmp::Reverse(line.abs_diff(was)));
        let same = lines.clone().filter(|&line| text.line(line).trim() == wanted).max_by_key(rank);
        if let Some(line) = same {
            return at(line);
        }
        let between = lines.filter(|&line| self.kept_neighbours(text, line) == 2).max_by_key(rank);
        edited_at(between.unwrap_or(was), text)
    }

    /// How many of the two lines around `line` are those that stood around this one.
    fn kept_neighbours(&self, text: &LineIndex, line: u32) -> u32 {
        let before = if line > 1 { text.line(line - 1).trim() } else { "" };
        u32::from(before == &*self.before) + u32::from(text.line(line + 1).trim() == &*self.after)
    }
}

impl Finding {
    /// Where its line is now: at its place, moved by what came and went above it, or edited.
    pub fn whereabouts(&self, text: &LineIndex) -> Whereabouts {
        let was = self.place.line.max(1);
        match &self.anchor {
            Some(anchor) => anchor.whereabouts(was, text),
            None => edited_at(was, text),
        }
    }
}

fn edited_at(line: u32, text: &LineIndex) -> Whereabouts {
    Whereabouts { line: line.clamp(1, text.line_count()), edited: true, indented: 0 }
}

fn indentation(line: &str) -> i64 {
    i64::try_from(line.chars().take_while(|character| character.is_whitespace()).count()).unwrap_or(0)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A finding at the line of `before` that ends in `# @fault`.
    pub fn finding(before: &str) -> Finding {
        let text = LineIndex::new(before);
        let line = (1..=text.line_count()).find(|&line| text.line(line).ends_with("# @fault")).expect("a marked line");
        let verdict: Verdict = serde_json::from_str(VERDICT).expect("a verdict");
        let place = Place { line, ..verdict.place.clone().expect("a place") };
        Finding {
            run: "20260101T000000.000Z-00000001".to_owned(),
            generation: 1,
            index: 0,
            verdict: Arc::new(verdict),
            mode: Mode::Off,
            entry: None,
            path: "/home/dev/proj/train.py".into(),
            place,
            anchor: Some(Anchor::at(&text, line)),
            cell: None,
            not_reproduced: None,
        }
    }

    pub const VERDICT: &str = include_str!("../../../tests/fixtures/verdicts/device-assert.json");

    #[track_caller]
    fn check(after: &str, expected: &str) {
        let finding = finding("a()\nb()  # @fault\nc()\nd()\n");
        let text = LineIndex::new(after);
        let found = finding.whereabouts(&text);
        let said = if found.edited { "edited" } else { "there" };
        assert_eq!(format!("{said} {}", text.line(found.line).trim()), expected);
    }

    #[test]
    fn a_line_is_found_where_it_went() {
        check("a()\nb()  # @fault\nc()\nd()\n", "there b()  # @fault");
        check("new()\n\na()\nb()  # @fault\nc()\nd()\n", "there b()  # @fault");
        check("b()  # @fault", "there b()  # @fault");
        check("a()\n    b()  # @fault\nc()\nd()\n", "there b()  # @fault");
    }

    #[test]
    fn of_equal_lines_the_one_with_its_neighbours_is_meant() {
        let finding = finding("x()\nstep()  # @fault\ny()\n");
        let text = LineIndex::new("q()\nstep()  # @fault\nr()\nx()\nstep()  # @fault\ny()\n");
        assert_eq!(finding.whereabouts(&text).line, 5);
    }

    #[test]
    fn an_edited_line_is_where_its_neighbours_are() {
        check("new()\na()\nb(1)\nc()\nd()\n", "edited b(1)");
        check("z()\n", "edited ");
    }

    #[test]
    fn columns_follow_the_indentation() {
        let finding = finding("a()\nb()  # @fault\nc()\n");
        assert_eq!(finding.whereabouts(&LineIndex::new("a()\n  b()  # @fault\nc()\n")).indented, 2);
    }
}
