//! A verdict in Markdown: for the hover of an editor, and for the report of a run as a page.
//!
//! Whatever a log or a report says goes through [`escaped`] or [`code`]: it may hold anything.

use std::fmt::Write as _;

use cublame_core::advice::size;
use cublame_core::catalog::{Texts, describe};
use cublame_core::verdict::{Object, Tensor};
use cublame_core::{Place, Verdict};

use super::tensors;
use crate::session::Told;

/// What an editor shows over the line of a verdict.
pub fn hover(verdict: &Verdict, texts: &Texts) -> String {
    let mut page = String::new();
    section(&mut page, verdict, texts);
    // The meaning of a kind is that of a kernel that failed.
    if !verdict.is_of_guard() {
        let _ = writeln!(page, "{}", describe(&verdict.kind, texts).meaning);
    }
    page.trim_end().to_owned()
}

/// The report of a run, to be handed on: [`scrub`](cublame_core::scrub::scrub) it first.
pub fn report(told: &Told, texts: &Texts) -> String {
    let mut page = String::from("# cublame: ");
    let say = |key: &str| texts.line(&format!("report.{key}"), &[]);
    let summary = told.verdicts.first().map_or_else(|| say("no-failure"), |verdict| verdict.summary.clone());
    let _ = writeln!(page, "{}\n", escaped(&summary));
    if let Some(run) = &told.run {
        let _ = writeln!(page, "- {}: {}", say("command"), code(&run.argv.join(" ")));
        let _ = writeln!(page, "- {}: {}", say("folder"), code(&run.cwd));
        let _ = writeln!(page, "- {}: {}", say("mode"), run.mode);
        let _ = writeln!(page, "- {}: {}", say("machine"), code(&run.host));
        let _ = writeln!(page, "- {}: {}\n", say("run"), code(&run.id));
    }
    for (number, verdict) in told.verdicts.iter().enumerate() {
        let _ = writeln!(page, "## {}\n", say(if number == 0 { "the-failure" } else { "also-heading" }));
        section(&mut page, verdict, texts);
        page.push_str(&excerpt(verdict, told));
    }
    page
}

/// The culprit's line with those around it, as a fenced block.
fn excerpt(verdict: &Verdict, told: &Told) -> String {
    const CONTEXT: u32 = 3;
    let Some(place) = verdict.place.as_ref().or(verdict.reported.as_ref()) else { return String::new() };
    if told.line(&place.file, place.line).is_none() {
        return String::new();
    }
    let around = place.line.saturating_sub(CONTEXT).max(1)..=place.line.saturating_add(CONTEXT);
    let lines = around.filter_map(|number| {
        let mark = if number == place.line { ">" } else { " " };
        let text: String =
            told.line(&place.file, number)?.chars().filter(|it| !it.is_control() || *it == '\t').collect();
        Some(format!("{mark} {number:>4} | {text}\n"))
    });
    let lines: String = lines.collect();
    let longest = lines.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{lines}{fence}\n\n")
}

/// Text of unknown origin as plain words: what Markdown or HTML would take for its own is escaped, line ends are spaces.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => safe.push(' '),
            _ if character.is_control() => {}
            // A backslash takes the meaning from any ASCII punctuation (CommonMark 0.31, "Backslash escapes").
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '!' | '|' | '>' | '~' | '$'
            | ':' => {
                safe.push('\\');
                safe.push(character);
            }
            _ => safe.push(character),
        }
    }
    safe
}

/// Sentences of unknown origin in which backticks mark code, as the catalogue's do: they stay code, the rest is escaped.
pub fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts.map(|(number, part)| if number % 2 == 1 { code(part) } else { escaped(part) }).collect()
}

/// Text of unknown origin as inline code, in a fence longer than any in it.
pub fn code(text: &str) -> String {
    let text: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.is_empty() { String::new() } else { format!("{fence}{space}{text}{space}{fence}") }
}

fn section(page: &mut String, verdict: &Verdict, texts: &Texts) {
    let say = |key: &str, values: &[(&str, &str)]| texts.line(&format!("report.hover.{key}"), values);
    let _ = writeln!(page, "**{}**\n", escaped(&verdict.summary));
    if let Some(place) = &verdict.place {
        let certainty = texts.line(&format!("report.hover.{}", verdict.certainty.name()), &[]);
        let _ = writeln!(page, "{}: {certainty}\n", place_words(place, texts));
    }
    if let Some(error) = &verdict.error {
        let number = error.code.map(|code| format!(" ({code})")).unwrap_or_default();
        let _ = writeln!(page, "{}{number}: {}\n", code(&error.name), escaped(&error.text));
    }
    list(page, &say("why", &[]), verdict.because.iter().map(|reason| prose(reason)));
    list(page, &say("missing", &[]), verdict.missing.iter().map(|missing| prose(missing)));
    if let Some(reported) = verdict.reported.as_ref().filter(|reported| Some(*reported) != verdict.place.as_ref()) {
        let key = if verdict.trace_trusted { "surfaced" } else { "surfaced-only" };
        let _ = writeln!(page, "{}\n", say(key, &[("place", &place_words(reported, texts))]));
    }
    list(page, &say("candidates", &[]), verdict.candidates.iter().map(|place| place_words(place, texts)));
    page.push_str(&holders(verdict, texts));
    for frame in (0..verdict.frames.len()).rev() {
        page.push_str(&locals(verdict, frame, texts));
    }
    list(
        page,
        &say("assertions", &[]),
        verdict.asserts.iter().map(|it| {
            let place = code(&format!("{}:{}", it.file, it.line));
            let (condition, count) = (code(&it.condition), it.count.to_string());
            say("assertion", &[("condition", &condition), ("place", &place), ("count", &count)])
        }),
    );
    list(
        page,
        &say("advice", &[]),
        verdict.advice.iter().map(|advice| format!("**{}**: {}", prose(&advice.title), prose(&advice.detail))),
    );
    list(
        page,
        &say("followed", &[]),
        verdict.collateral.iter().map(|it| {
            let rank = it.rank.map(|rank| format!("rank {rank}: ")).unwrap_or_default();
            format!("{rank}{}", escaped(&it.summary))
        }),
    );
}

/// The lines that hold the memory, as a table; empty where they were not recorded.
fn holders(verdict: &Verdict, texts: &Texts) -> String {
    let Some(memory) = verdict.memory.as_ref().filter(|memory| !memory.sites.is_empty()) else { return String::new() };
    let mut page =
        "What held the memory when it ran out:\n\n| bytes | blocks | allocated at |\n| ---: | ---: | --- |\n"
            .to_owned();
    for site in &memory.sites {
        let _ =
            writeln!(page, "| {} | {} | {} |", size(site.bytes), site.blocks, cell(&place_words(&site.place, texts)));
    }
    if let Some(elsewhere) = memory.elsewhere.filter(|bytes| *bytes > 0) {
        let _ =
            writeln!(page, "| {} | | by no line of yours: by autograd's threads, or by a library |", size(elsewhere));
    }
    page + "\n"
}

/// What one frame held when the error surfaced, as a table; empty where nothing is known of it.
pub fn locals(verdict: &Verdict, frame: usize, texts: &Texts) -> String {
    let say = |key: &str, values: &[(&str, &str)]| texts.line(&format!("report.hover.{key}"), values);
    let tensors: Vec<&Tensor> = verdict.tensors.iter().filter(|tensor| tensor.frame == frame).collect();
    let objects: Vec<&Object> = verdict.objects.iter().filter(|object| object.frame == frame).collect();
    let Some(place) = verdict.frames.get(frame).filter(|_| !(tensors.is_empty() && objects.is_empty())) else {
        return String::new();
    };
    let line = place.line.to_string();
    let heading = match place.function.as_deref().map(code) {
        Some(function) => say("tensors-of", &[("function", &*function), ("line", &*line)]),
        None => say("tensors", &[("line", &*line)]),
    };
    let mut page = format!("{heading}\n\n");
    if !tensors.is_empty() {
        let _ = writeln!(page, "{}\n| --- | --- | --- | ---: | --- |", say("tensor-columns", &[]));
    }
    for tensor in tensors {
        let bytes = tensor.bytes.map(size).unwrap_or_default();
        let class = tensor.class.as_deref().filter(|class| !USUAL.contains(class)).map(last_word);
        let remarks: Vec<String> = class.map(str::to_owned).into_iter().chain(tensors::remarks(tensor)).collect();
        let cells = [code(&tensor.name), code(&tensors::with_shape(tensor)), code(&tensor.device), bytes];
        let _ =
            writeln!(page, "| {} | {} |", cells.map(|it| cell(&it)).join(" | "), cell(&escaped(&remarks.join(", "))));
    }
    let objects = objects.iter().map(|object| match object.length {
        Some(length) => say("has-items", &[("name", &code(&object.name)), ("count", &*length.to_string())]),
        None => say("is-class", &[("name", &code(&object.name)), ("class", &code(&object.class))]),
    });
    let objects: Vec<String> = objects.collect();
    let _ = writeln!(page, "{}{}", if objects.is_empty() { "" } else { "\n" }, objects.join(", "));
    page.trim_end().to_owned() + "\n\n"
}

/// Classes that say no more than the table does.
const USUAL: [&str; 4] = ["torch.Tensor", "numpy.ndarray", "cupy.ndarray", "jaxlib._jax.ArrayImpl"];

fn last_word(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

/// A bar in a cell ends it, in code as well (GFM, "Tables").
fn cell(text: &str) -> String {
    text.replace("\\|", "|").replace('|', "\\|")
}

fn list(page: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let items: String = items.map(|item| format!("- {item}\n")).collect();
    if !items.is_empty() {
        let _ = writeln!(page, "{title}:\n\n{items}");
    }
}

fn place_words(place: &Place, texts: &Texts) -> String {
    let line = code(&format!("{}:{}", place.file, place.line));
    match place.function.as_deref().map(code) {
        Some(function) => texts.line("report.hover.place-in", &[("line", &line), ("function", &function)]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cublame_core::catalog::Language;

    #[test]
    fn nothing_from_a_log_keeps_a_meaning_of_its_own() {
        assert_eq!(escaped("[x](command:rm) <img> `a` **b**\nc"), r"\[x\]\(command\:rm\) &lt;img\> \`a\` \*\*b\*\* c");
        assert_eq!(prose("call `x.min()` and *look*"), r"call `x.min()` and \*look\*");
        assert_eq!(prose("a ` b <b>"), "a ` b <b>`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(code("\x1b[31mred"), "` [31mred`");
    }

    #[test]
    fn a_verdict_over_its_line() {
        let verdict: Verdict = serde_json::from_str(crate::world::finding::tests::VERDICT).expect("a verdict");
        insta::assert_snapshot!(hover(&verdict, Texts::get(Language::English)));
    }
}
