//! `textDocument/codeLens`: "Run with cublame" at a script's main, and the last verdict at its line.

use cublame_core::catalog::Texts;
use cublame_core::text::LineIndex;
use serde_json::json;
use tower_lsp::ls_types::{CodeLens, CodeLensParams, Command as LspCommand, Position, Range};

use super::super::backend::Backend;
use super::super::commands::Command;
use crate::world::finding::Finding;

pub fn code_lens(backend: &Backend, params: &CodeLensParams) -> Option<Vec<CodeLens>> {
    let document = backend.documents.get(&params.text_document.uri)?;
    let path = document.path.as_ref()?;
    let snapshot = backend.world.snapshot();
    let findings = snapshot.findings.get(path).map_or(&[][..], |findings| findings);
    let texts = Texts::get(snapshot.language);
    let verdicts = findings.iter().map(|finding| verdict(finding, &document.text, texts));
    let main = (document.language == "python").then(|| main_line(document.text.text())).flatten();
    let run = main.map(|line| {
        let arguments = json!({ "uri": document.uri });
        lens(line, texts.line("editor.run-lens", &[]), Command::Run, arguments)
    });
    Some(run.into_iter().chain(verdicts).collect())
}

fn verdict(finding: &Finding, text: &LineIndex, texts: &Texts) -> CodeLens {
    let certainty = texts.line(&format!("report.certainty.{}", finding.verdict.certainty.name()), &[]);
    let values = [("summary", &*finding.verdict.summary), ("certainty", &*certainty), ("mode", finding.mode.name())];
    let title = texts.line("editor.verdict-lens", &values);
    lens(finding.whereabouts(text).line - 1, title, Command::OpenReport, json!({ "run": finding.run }))
}

fn lens(line: u32, title: String, command: Command, arguments: serde_json::Value) -> CodeLens {
    let start = Position::new(line, 0);
    let command = LspCommand { title, command: command.name().to_owned(), arguments: Some(vec![arguments]) };
    CodeLens { range: Range::new(start, start), command: Some(command), data: None }
}

/// The line (from 0) where a program starts: `if __name__ == "__main__":`, or the first line of a file that does
/// something when it is run. None for a module that only defines.
pub fn main_line(text: &str) -> Option<u32> {
    let mut in_string: Option<&'static str> = None;
    let mut acts = text.starts_with("#!");
    for (number, line) in text.lines().enumerate() {
        let outside = in_string.is_none();
        in_string = after_strings(line, in_string);
        if !outside {
            continue;
        }
        if line.starts_with("if __name__") && line.contains("__main__") {
            return u32::try_from(number).ok();
        }
        acts |= acts_when_run(line);
    }
    acts.then_some(0)
}

/// A loop, a `with` or a call at the left margin.
fn acts_when_run(line: &str) -> bool {
    if ["for ", "while ", "with ", "async with "].iter().any(|word| line.starts_with(word)) {
        return true;
    }
    let name = line.find(|character: char| !(character.is_alphanumeric() || "_.".contains(character)));
    name.is_some_and(|end| end > 0 && line[end..].starts_with('('))
}

/// Which triple quote is open at the end of a line.
fn after_strings(line: &str, mut open: Option<&'static str>) -> Option<&'static str> {
    const QUOTES: [&str; 2] = ["\"\"\"", "'''"];
    let mut rest = line;
    loop {
        let next = QUOTES.into_iter().filter(|&quote| open.is_none_or(|open| open == quote));
        let Some((at, quote)) = next.filter_map(|quote| Some((rest.find(quote)?, quote))).min() else { return open };
        rest = &rest[at + quote.len()..];
        open = if open.is_some() { None } else { Some(quote) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<u32>) {
        assert_eq!(main_line(text), expected, "{text}");
    }

    #[test]
    fn a_program_starts_at_its_main_or_at_its_top() {
        check("import torch\ndef main(): ...\nif __name__ == \"__main__\":\n    main()\n", Some(2));
        check("import torch\nfor step in range(3):\n    pass\n", Some(0));
        check("import torch\ntorch.zeros(3).cuda()\n", Some(0));
        check("#!/usr/bin/env python\nx = 1\n", Some(0));
    }

    #[test]
    fn a_module_that_only_defines_has_none() {
        check("import torch\n\nclass Net(torch.nn.Module):\n    def f(self):\n        run()\n\nx = f(1)\n", None);
        check("\"\"\"Use it so:\nrun()\nif __name__ == '__main__':\n\"\"\"\nimport torch\n", None);
        check("", None);
    }
}
