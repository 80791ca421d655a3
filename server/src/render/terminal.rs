//! The verdict as a person reads it in a terminal: a code frame of the culprit line, the reasons, what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use cublame_core::{Certainty, Place, Sources, Verdict};

use super::tensors;

/// Lines shown around the culprit.
const CONTEXT: usize = 2;
/// A reported line this far from the culprit still goes into the same frame.
const NEAR: u32 = 12;

/// Pieces of advice that are shown; the report has them all.
const ADVICE: usize = 3;

/// Tensors that are shown; the report has them all.
const TENSORS: usize = 4;

/// How the text may look.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub colour: bool,
    /// Columns of the terminal.
    pub width: usize,
}

impl Style {
    pub const PLAIN: Style = Style { colour: false, width: 100 };

    pub fn of_stdout() -> Self {
        Self::of(std::io::stdout())
    }

    pub fn of_stderr() -> Self {
        Self::of(std::io::stderr())
    }

    /// Colours on a terminal, or where CLICOLOR_FORCE asks for them (https://bixense.com/clicolors); never where
    /// NO_COLOR is set (https://no-color.org).
    fn of(stream: impl std::io::IsTerminal + std::os::fd::AsFd) -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
        let colour = !refused && (forced || stream.is_terminal());
        let columns = rustix::termios::tcgetwinsize(&stream).map_or(0, |size| usize::from(size.ws_col));
        Style { colour, width: if columns > 0 { columns } else { Self::PLAIN.width } }
    }
}

/// All verdicts, the root cause first and in full, a line end after each.
pub fn render(verdicts: &[Verdict], sources: &Sources, style: Style) -> String {
    let renderer = if style.colour { Renderer::styled() } else { Renderer::plain() };
    let width = style.width.clamp(40, 160);
    let renderer = renderer.term_width(width);
    verdicts.iter().map(|verdict| renderer.render(&report(verdict, sources, width)) + "\n").collect()
}

fn report<'a>(verdict: &'a Verdict, sources: &'a Sources, width: usize) -> Vec<Group<'a>> {
    let level = if verdict.fatal { Level::ERROR } else { Level::WARNING };
    let mut group = Group::with_title(level.primary_title(plain(&verdict.summary)).id(verdict.kind.as_str()));
    if let Some(place) = verdict.place.as_ref().or(verdict.reported.as_ref()) {
        group = frame(group, place, verdict, sources);
    }
    let reasons = verdict.because.iter().map(|reason| ("note", reason));
    let missing = verdict.missing.iter().map(|missing| ("missing", missing));
    for (name, text) in reasons.chain(missing) {
        group = group.element(Level::NOTE.with_name(name).message(wrapped(text, name, width)));
    }
    if let Some(tensors) = tensors_of_the_line(verdict, sources) {
        group = group.element(Level::NOTE.with_name("tensors").message(wrapped(&tensors, "tensors", width)));
    }
    for advice in verdict.advice.iter().take(ADVICE) {
        let text = format!("{}: {}", advice.title, advice.detail);
        group = group.element(Level::HELP.message(wrapped(&text, "help", width)));
        if let Some(command) = &advice.command {
            group = group.element(Level::HELP.with_name("run").message(plain(command)));
        }
    }
    vec![group]
}

/// The tensors that the culprit line names; where it names none, those of its frame, or of the deepest that has any.
fn tensors_of_the_line(verdict: &Verdict, sources: &Sources) -> Option<String> {
    let deepest = verdict.tensors.iter().map(|tensor| tensor.frame).max()?;
    let at =
        |place: &Place| verdict.frames.iter().rposition(|frame| frame.file == place.file && frame.line == place.line);
    let frame =
        verdict.place.as_ref().and_then(at).filter(|at| verdict.tensors.iter().any(|tensor| tensor.frame == *at));
    let frame = frame.unwrap_or(deepest);
    let shown = verdict.frames.get(frame)?;
    let line = sources.get(&shown.file).and_then(|source| source.text.lines().nth(shown.line.checked_sub(1)? as usize));
    let mut found = tensors::named_on(line.unwrap_or(""), verdict, frame);
    if found.is_empty() {
        found = verdict.tensors.iter().filter(|tensor| tensor.frame == frame).collect();
    }
    let more = found.len().saturating_sub(TENSORS);
    let mut words: Vec<String> =
        found.iter().take(TENSORS).map(|tensor| format!("{}: {}", tensor.name, tensors::short(tensor))).collect();
    words.extend((more > 0).then(|| format!("{more} more in the report")));
    Some(words.join("; "))
}

/// A message in lines that fit beside its name; a command is never wrapped, so that it can be copied.
fn wrapped(text: &str, name: &str, width: usize) -> String {
    // The gutter of a frame, ` = `, the name and `: `.
    const GUTTER: usize = 9;
    textwrap::fill(&plain(text), width.saturating_sub(GUTTER + name.len()).max(40))
}

/// The source around a place, with the culprit underlined and, when near, the line where the error surfaced.
fn frame<'a>(group: Group<'a>, place: &'a Place, verdict: &'a Verdict, sources: &'a Sources) -> Group<'a> {
    let shown = place.path.as_deref().unwrap_or(&place.file);
    let Some(text) = sources.get(&place.file).map(|source| &*source.text) else {
        return group.element(origin(place, shown));
    };
    let lines: Vec<&str> = text.lines().collect();
    let culprit = place.line as usize;
    if culprit == 0 || culprit > lines.len() {
        return group.element(origin(place, shown));
    }
    let surfaced = verdict
        .reported
        .as_ref()
        .filter(|reported| reported.line > 0)
        .filter(|reported| reported.file == place.file && reported.line != place.line)
        .filter(|reported| reported.line.abs_diff(place.line) <= NEAR && reported.line as usize <= lines.len());
    let last = surfaced.map_or(culprit, |reported| culprit.max(reported.line as usize));
    let first = surfaced.map_or(culprit, |reported| culprit.min(reported.line as usize));
    let window = &lines[first.saturating_sub(CONTEXT + 1)..(last + CONTEXT).min(lines.len())];
    let start = first.saturating_sub(CONTEXT + 1) + 1;
    let source = window.join("\n");
    let label = match verdict.certainty {
        Certainty::Exact => "this failed",
        Certainty::Likely => "most likely this",
        Certainty::Suspect => "perhaps this",
        Certainty::Unknown => "the error surfaced here",
    };
    let mut snippet = Snippet::source(source)
        .line_start(start)
        .path(shown)
        .fold(false)
        .annotation(AnnotationKind::Primary.span(span(window, start, place)).label(label));
    if let Some(reported) = surfaced {
        snippet = snippet
            .annotation(AnnotationKind::Context.span(span(window, start, reported)).label("the error surfaced here"));
    }
    group.element(snippet)
}

fn origin<'a>(place: &Place, shown: &'a str) -> Origin<'a> {
    let origin = Origin::path(shown).line(place.line as usize);
    match place.column {
        Some(column) => origin.char_column(column as usize),
        None => origin,
    }
}

/// The bytes of a place within the joined lines of a window: its columns, else the line without its indentation.
fn span(window: &[&str], start: usize, place: &Place) -> std::ops::Range<usize> {
    let index = place.line as usize - start;
    let before: usize = window[..index].iter().map(|line| line.len() + 1).sum();
    let line = window[index];
    let byte = |column: u32| line.char_indices().nth(column as usize - 1).map_or(line.len(), |(byte, _)| byte);
    let (from, to) = match (place.column, place.end_column) {
        (Some(from), Some(to)) if from >= 1 && to > from => (byte(from), byte(to)),
        (Some(from), _) if from >= 1 => (byte(from), line.trim_end().len()),
        _ => (line.len() - line.trim_start().len(), line.trim_end().len()),
    };
    before + from.min(to)..before + to.max(from)
}

/// Text from a log as one line of plain characters: no escape sequence may reach the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use cublame_core::source::Source;

    use super::*;

    const VERDICT: &str = include_str!("../../../tests/fixtures/verdicts/device-assert.json");

    /// A report on disk may be damaged, and a file shorter than it was.
    #[test]
    fn any_lines_and_columns_are_shown() {
        let numbers = [0, 1, 2, 3, 4, 5, u32::MAX];
        for (line, column, reported) in numbers
            .iter()
            .flat_map(|line| numbers.iter().flat_map(move |column| numbers.map(|last| (*line, *column, last))))
        {
            let mut verdict = serde_json::from_str::<Verdict>(VERDICT).unwrap();
            let place = verdict.place.as_mut().unwrap();
            (place.line, place.column, place.end_column) = (line, Some(column), Some(reported));
            let file = place.file.clone();
            verdict.reported = Some(Place { line: reported, ..place.clone() });
            let mut sources = Sources::default();
            sources.insert(file, Some(Source { path: "/p/a.py".to_owned(), text: "a = 1\n\n\tb(x)\né(y)\n".into() }));
            assert!(render(&[verdict], &sources, Style::PLAIN).starts_with("error"), "{line} {column} {reported}");
        }
    }
}
