//! The findings of the doctor, for a terminal and as Markdown.

use std::fmt::Write as _;

use cublame_core::doctor::{Examination, Finding, Level};

use super::markdown::{code, prose};
use super::terminal::{Style, plain};

/// One line a finding, and its remedy below.
pub fn text(examination: &Examination, style: Style) -> String {
    let width = style.width.clamp(40, 160);
    examination.findings.iter().map(|finding| lines(finding, style.colour, width)).collect()
}

/// The findings as a page.
pub fn page(examination: &Examination) -> String {
    let mut page = String::from("# cublame doctor\n\n");
    for finding in &examination.findings {
        let _ = writeln!(page, "- **{}** {}", word(finding.level), prose(&finding.says));
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(page, "  {}", prose(remedy));
        }
        for command in finding.command.iter().flat_map(|command| command.lines()) {
            let _ = writeln!(page, "  {}", code(command));
        }
    }
    page
}

const MARGIN: usize = 9;

fn lines(finding: &Finding, colour: bool, width: usize) -> String {
    let margin = " ".repeat(MARGIN);
    let options = textwrap::Options::new(width).initial_indent(&margin).subsequent_indent(&margin);
    let word = word(finding.level);
    let (on, off) = if colour { (ansi(finding.level), "\x1b[0m") } else { ("", "") };
    let says = textwrap::fill(&plain(&finding.says), &options);
    let mut lines = format!("{on}{word:<MARGIN$}{off}{}\n", says.trim_start());
    if let Some(remedy) = &finding.remedy {
        let _ = writeln!(lines, "{}", textwrap::fill(&plain(remedy), &options));
    }
    for command in finding.command.iter().flat_map(|command| command.lines()) {
        let _ = writeln!(lines, "{margin}$ {}", plain(command));
    }
    lines
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Good => "ok",
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Fault => "fault",
    }
}

/// Green, blue, yellow and red, bold.
fn ansi(level: Level) -> &'static str {
    match level {
        Level::Good => "\x1b[1;32m",
        Level::Note => "\x1b[1;34m",
        Level::Warning => "\x1b[1;33m",
        Level::Fault => "\x1b[1;31m",
    }
}
