//! A finding as a diagnostic of the protocol. Pure: a finding, a text and what the client can do, to a value.

use cublame_core::advice::size;
use cublame_core::catalog::{Language, Texts, documentation_url};
use cublame_core::lint;
use cublame_core::text::{Encoding, LineColumn, LineIndex};
use cublame_core::verdict::Frame;
use cublame_core::{Certainty, Place, Verdict};
use serde::{Deserialize, Serialize};
use tower_lsp::ls_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Position,
    Range, TextEdit, Uri,
};

use super::features::Features;
use super::workspace_edit::{byte_range, text_edits};
use crate::render::tensors;
use crate::world::finding::{Finding, Whereabouts};
use crate::world::linting::Linted;
use crate::world::mark::{Mark, Told};

/// Who a diagnostic is from.
pub const SOURCE: &str = "cublame";

/// What rides in `Diagnostic.data`, so that a code action needs nothing else. It comes back from the client, so it names
/// things and carries none: no command, no path, no text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    pub run: String,
    pub generation: u64,
    pub index: usize,
    pub kind: String,
    pub mode: String,
    pub advice: Vec<String>,
}

/// Who a finding of the lint is from.
pub const LINT_SOURCE: &str = "cublame lint";

/// What rides in the `data` of a finding of the lint: its fix, for the version of the document that it was found in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LintData {
    pub version: i32,
    pub fix: Option<LintFix>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LintFix {
    pub title: String,
    pub edits: Vec<TextEdit>,
}

pub fn of_lint(linted: &Linted, features: &Features) -> Vec<Diagnostic> {
    let diagnostic = |finding: &lint::Finding| Diagnostic {
        range: byte_range(&linted.text, &finding.range, features.encoding()),
        // An error is what a run has shown; the lint foresees.
        severity: Some(match finding.severity {
            lint::Severity::Error | lint::Severity::Warning => DiagnosticSeverity::WARNING,
            lint::Severity::Information | lint::Severity::Hint => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(NumberOrString::String(finding.rule.to_owned())),
        source: Some(LINT_SOURCE.to_owned()),
        message: format!("{}.", finding.message),
        data: features
            .diagnostic_data
            .then(|| serde_json::to_value(lint_data(finding, linted, features)).ok())
            .flatten(),
        ..Diagnostic::default()
    };
    linted.findings.iter().map(diagnostic).collect()
}

pub fn lint_data(finding: &lint::Finding, linted: &Linted, features: &Features) -> LintData {
    let fix = finding.fix.as_ref().map(|fix| LintFix {
        title: fix.title.clone(),
        edits: text_edits(&linted.text, &fix.edits, features.encoding()),
    });
    LintData { version: linted.version, fix }
}

pub fn diagnostic(finding: &Finding, text: Option<&LineIndex>, features: &Features, texts: &Texts) -> Diagnostic {
    let verdict = &*finding.verdict;
    let whereabouts = text.map(|text| finding.whereabouts(text));
    let edited = whereabouts.is_some_and(|it| it.edited);
    let range = match (text, whereabouts) {
        (Some(text), Some(whereabouts)) => range(finding, text, whereabouts, features.encoding()),
        // The file cannot be read: its line is still known.
        _ => whole_line(finding.place.line.saturating_sub(1)),
    };
    let related = related(finding, texts);
    let mut message = message(finding, edited, texts);
    if !features.related_information {
        for place in &related {
            message.push_str(&format!("\n{}: {}:{}", place.what, place.file, place.line));
        }
    }
    Diagnostic {
        range,
        severity: Some(severity(finding, edited)),
        code: Some(NumberOrString::String(verdict.kind.clone())),
        code_description: features.code_description.then(|| documentation(&verdict.kind)).flatten(),
        source: Some(SOURCE.to_owned()),
        message,
        related_information: features.related_information.then(|| located(&related)).filter(|it| !it.is_empty()),
        tags: None,
        data: features.diagnostic_data.then(|| serde_json::to_value(data(finding)).ok()).flatten(),
    }
}

/// What a line's allocations hold, where memory ran out. None for another mark, and for a line that was edited since.
pub fn of_site(mark: &Mark, text: Option<&LineIndex>, features: &Features) -> Option<Diagnostic> {
    let Told::Site(at) = mark.told else { return None };
    let memory = mark.verdict.memory.as_ref()?;
    let site = memory.sites.get(at)?;
    let text = text?;
    let line = mark.line_in(text)?;
    let content = text.line(line);
    let start = text.line_range(line).start + (content.len() - content.trim_start().len());
    let blocks = if site.blocks == 1 { "block" } else { "blocks" };
    let share = memory.allocated.filter(|all| *all > 0).map(|all| format!(", {}% of all", site.bytes * 100 / all));
    let message = format!(
        "What this line allocated holds {} in {} {blocks}{}, when memory ran out.",
        size(site.bytes),
        site.blocks,
        share.unwrap_or_default()
    );
    Some(Diagnostic {
        range: byte_range(text, &(start..start + content.trim().len()), features.encoding()),
        severity: Some(DiagnosticSeverity::INFORMATION),
        code: Some(NumberOrString::String(mark.verdict.kind.clone())),
        source: Some(SOURCE.to_owned()),
        message,
        ..Diagnostic::default()
    })
}

pub fn data(finding: &Finding) -> Data {
    Data {
        run: finding.run.clone(),
        generation: finding.generation,
        index: finding.index,
        kind: finding.verdict.kind.clone(),
        mode: finding.mode.to_string(),
        advice: finding.verdict.advice.iter().map(|advice| advice.id.clone()).collect(),
    }
}

/// The range of the verdict's columns, else of the line without its indentation.
pub fn range(finding: &Finding, text: &LineIndex, whereabouts: Whereabouts, encoding: Encoding) -> Range {
    let line = whereabouts.line;
    let (place, content) = (&finding.place, text.line(line));
    let columns = place.column.zip(place.end_column).filter(|(from, to)| from < to && !whereabouts.edited);
    let moved = |column: u32| u32::try_from(i64::from(column) + whereabouts.indented).unwrap_or(1).max(1);
    let bytes = match columns {
        Some((from, to)) => {
            let offset = |column| text.offset(LineColumn { line, column: moved(column) });
            offset(from)..offset(to)
        }
        None => {
            let start = text.line_range(line).start + (content.len() - content.trim_start().len());
            start..start + content.trim().len()
        }
    };
    let position = |offset| {
        let position = text.position(offset, encoding);
        Position::new(position.line, position.character)
    };
    Range::new(position(bytes.start), position(bytes.end))
}

/// A line whose length is not known.
fn whole_line(line: u32) -> Range {
    Range::new(Position::new(line, 0), Position::new(line + 1, 0))
}

fn severity(finding: &Finding, edited: bool) -> DiagnosticSeverity {
    let sure = matches!(finding.verdict.certainty, Certainty::Exact | Certainty::Likely);
    match () {
        () if edited || finding.not_reproduced.is_some() => DiagnosticSeverity::INFORMATION,
        () if finding.verdict.fatal && sure => DiagnosticSeverity::ERROR,
        () => DiagnosticSeverity::WARNING,
    }
}

/// A verdict over its line, for a client that shows plain text only.
pub fn plain_hover(verdict: &Verdict, texts: &Texts) -> String {
    let mut lines = vec![sentence(&verdict.summary, texts), certainty(verdict, texts)];
    lines.extend(
        (0..verdict.frames.len()).rev().map(|frame| tensors::plain(verdict, frame)).filter(|it| !it.is_empty()),
    );
    lines.extend(verdict.advice.iter().map(|advice| format!("{}: {}", advice.title, advice.detail)));
    lines.join("\n")
}

/// One sentence, then how sure it is, then why.
fn message(finding: &Finding, edited: bool, texts: &Texts) -> String {
    let verdict = &*finding.verdict;
    let mut lines = vec![sentence(&verdict.summary, texts), certainty(verdict, texts)];
    if edited {
        lines.push(texts.line("editor.edited", &[]));
    }
    if let Some(mode) = finding.not_reproduced {
        lines.push(texts.line("editor.not-reproduced", &[("mode", mode.name())]));
    }
    if !verdict.fatal {
        lines.push(texts.line("editor.caught", &[]));
    }
    lines.join("\n")
}

/// How sure it is, and in brackets why.
fn certainty(verdict: &Verdict, texts: &Texts) -> String {
    let words = texts.line(&format!("editor.certainty.{}", verdict.certainty.name()), &[]);
    let reasons = &verdict.because;
    match texts.language() {
        Language::SimplifiedChinese if reasons.is_empty() => format!("{words}。"),
        Language::SimplifiedChinese => format!("{words}（{}）。", reasons.join("；")),
        Language::English if reasons.is_empty() => format!("{words}."),
        Language::English => format!("{words} ({}).", reasons.join("; ")),
    }
}

/// A summary with the capital letter and the full stop of its language.
fn sentence(summary: &str, texts: &Texts) -> String {
    let stop = match texts.language() {
        Language::English => '.',
        Language::SimplifiedChinese => '。',
    };
    format!("{}{stop}", capitalised(summary.trim_end_matches(['.', '。'])))
}

fn capitalised(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Another place that belongs to a failure.
struct Related<'a> {
    what: String,
    file: &'a str,
    path: Option<&'a str>,
    line: u32,
}

/// Where it surfaced, the other candidates, the calls that led there (outermost first), the kernel's own line.
fn related<'a>(finding: &'a Finding, texts: &Texts) -> Vec<Related<'a>> {
    /// A recursion of a thousand calls is not a list that anybody reads.
    const MOST_CALLS: usize = 20;
    let verdict = &*finding.verdict;
    let elsewhere = |place: &&Place| !same_line(place, &finding.place);
    let mut all = Vec::new();
    if let Some(reported) = verdict.reported.as_ref().filter(elsewhere) {
        all.push(place(texts.line("editor.surfaced", &[]), reported));
    }
    let candidates = verdict.candidates.iter().filter(elsewhere);
    all.extend(candidates.map(|candidate| place(texts.line("editor.candidate", &[]), candidate)));
    let calls = verdict.frames.iter().filter(|frame| frame.user);
    let calls: Vec<&Frame> =
        calls.filter(|frame| (&frame.path, frame.line) != (&finding.place.path, finding.place.line)).collect();
    all.extend(calls.iter().skip(calls.len().saturating_sub(MOST_CALLS)).map(|frame| Related {
        what: frame.function.as_deref().map_or_else(
            || texts.line("editor.called", &[]),
            |function| texts.line("editor.called-in", &[("function", function)]),
        ),
        file: &frame.file,
        path: frame.path.as_deref(),
        line: frame.line,
    }));
    all.extend(verdict.asserts.iter().map(|assert| Related {
        what:
            texts.line("editor.assertion", &[("condition", &*assert.condition), ("count", &*assert.count.to_string())]),
        file: &assert.file,
        path: assert.file.starts_with('/').then_some(assert.file.as_str()),
        line: assert.line,
    }));
    all
}

fn place(what: String, place: &Place) -> Related<'_> {
    Related { what, file: &place.file, path: place.path.as_deref(), line: place.line }
}

fn same_line(one: &Place, other: &Place) -> bool {
    (&one.path, &one.file, one.line) == (&other.path, &other.file, other.line)
}

/// Only a place with a path can be gone to.
fn located(related: &[Related<'_>]) -> Vec<DiagnosticRelatedInformation> {
    related
        .iter()
        .filter_map(|place| {
            let uri = Uri::from_file_path(place.path?)?;
            let line = place.line.saturating_sub(1);
            let range = Range::new(Position::new(line, 0), Position::new(line, 0));
            Some(DiagnosticRelatedInformation { location: Location::new(uri, range), message: place.what.clone() })
        })
        .collect()
}

/// The page about a kind of failure.
fn documentation(kind: &str) -> Option<CodeDescription> {
    Some(CodeDescription { href: documentation_url(kind)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::finding::tests::finding;
    use cublame_core::mode::Mode;

    const PROGRAM: &str = "import torch\nz = emb(tok)  # @fault\nprint(z)\nrun()\n";

    fn vscode() -> Features {
        Features {
            offered_encoding: Some(Encoding::Utf16),
            related_information: true,
            code_description: true,
            diagnostic_data: true,
            ..Features::default()
        }
    }

    fn shown(finding: &Finding, text: &str, features: &Features) -> Diagnostic {
        diagnostic(finding, Some(&LineIndex::new(text)), features, Texts::get(Language::English))
    }

    #[test]
    fn a_verdict_for_a_client_that_can_do_everything() {
        insta::assert_json_snapshot!(shown(&finding(PROGRAM), PROGRAM, &vscode()));
    }

    #[test]
    fn a_verdict_for_a_client_that_can_do_nothing() {
        insta::assert_json_snapshot!(shown(&finding(PROGRAM), PROGRAM, &Features::default()));
    }

    #[track_caller]
    fn check_columns(encoding: Encoding, line: &str, columns: Option<(u32, u32)>, expected: (u32, u32)) {
        let text = format!("{line}  # @fault\n");
        let mut finding = finding(&text);
        (finding.place.column, finding.place.end_column) = columns.unzip();
        let features = Features { offered_encoding: Some(encoding), ..Features::default() };
        let range = shown(&finding, &text, &features).range;
        assert_eq!((range.start.character, range.end.character), expected);
    }

    #[test]
    fn columns_are_in_the_clients_units() {
        check_columns(Encoding::Utf8, "é = 😀(x)", Some((5, 9)), (5, 12));
        check_columns(Encoding::Utf16, "é = 😀(x)", Some((5, 9)), (4, 9));
        check_columns(Encoding::Utf32, "é = 😀(x)", Some((5, 9)), (4, 8));
    }

    #[test]
    fn without_columns_it_is_the_line_without_its_indentation() {
        check_columns(Encoding::Utf16, "    step()", None, (4, 20));
        check_columns(Encoding::Utf16, "step()", Some((9, 2)), (0, 16));
        check_columns(Encoding::Utf16, "step()", Some((900, 901)), (16, 16));
    }

    #[test]
    fn columns_move_with_the_indentation() {
        let moved = shown(&finding(PROGRAM), &PROGRAM.replace("z = emb", "    z = emb"), &vscode());
        assert_eq!((moved.range.start.character, moved.range.end.character), (8, 15));
    }

    #[track_caller]
    fn check_severity(change: impl FnOnce(&mut Finding), text: &str, severity: DiagnosticSeverity, words: &str) {
        let mut finding = finding(PROGRAM);
        change(&mut finding);
        let diagnostic = shown(&finding, text, &vscode());
        assert_eq!(diagnostic.severity, Some(severity), "{}", diagnostic.message);
        assert!(diagnostic.message.contains(words), "{}", diagnostic.message);
    }

    #[test]
    fn severity_and_words_follow_what_is_known() {
        let with = |certainty: Certainty, fatal: bool| {
            move |finding: &mut Finding| {
                let verdict = Verdict { certainty, fatal, ..(*finding.verdict).clone() };
                finding.verdict = verdict.into();
            }
        };
        use DiagnosticSeverity as Severity;
        check_severity(with(Certainty::Exact, true), PROGRAM, Severity::ERROR, "Exact: ");
        check_severity(with(Certainty::Likely, true), PROGRAM, Severity::ERROR, "Likely: ");
        check_severity(with(Certainty::Suspect, true), PROGRAM, Severity::WARNING, "Suspect: ");
        check_severity(with(Certainty::Exact, false), PROGRAM, Severity::WARNING, "went on");
        let edited = PROGRAM.replace("emb(tok)", "emb(tok % 3)");
        check_severity(|_| {}, &edited, Severity::INFORMATION, "edited since the run");
        check_severity(|it| it.not_reproduced = Some(Mode::Blocking), PROGRAM, Severity::INFORMATION, "Not reproduced");
    }

    #[test]
    fn a_file_that_cannot_be_read_has_its_line() {
        let range = diagnostic(&finding(PROGRAM), None, &vscode(), Texts::get(Language::English)).range;
        assert_eq!((range.start.line, range.start.character), (1, 0));
    }
}
