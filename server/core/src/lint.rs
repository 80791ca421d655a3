//! The mistakes that make CUDA debugging fail, and those that cause the failures, found before the program runs.
//!
//! A rule fires only where it is sure. A comment `# cublame: ignore[rule]` on a line silences it there, `# cublame: ignore`
//! silences every rule.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::config::Edit;
use crate::python::{Module, Program};
use crate::text::LineIndex;

mod configuration;
mod file_kind;
pub mod notebook;
pub mod rule;
pub mod rules;

pub mod document;

pub(crate) mod code;
pub(crate) mod device;
pub(crate) mod edits;
mod launches;
mod variables;

pub use configuration::Configuration;
pub use file_kind::FileKind;
pub use rule::{Rule, Severity};
pub use rules::RULES;

#[derive(Debug, Clone)]
pub struct LintFile<'t> {
    pub path: &'t str,
    pub text: Arc<str>,
    pub kind: FileKind,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Only these rules; None: all of them.
    pub select: Option<BTreeSet<String>>,
    pub ignore: BTreeSet<String>,
    /// Names of run configurations in this file that were switched by cublame (`.cublame/switched.json`): not left on.
    pub switched: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub rule: &'static str,
    pub severity: Severity,
    /// One or two sentences, without a final dot.
    pub message: String,
    /// Bytes of the file's text.
    pub range: Range<usize>,
    pub fix: Option<Fix>,
}

/// Edits of the file that the finding is in.
#[derive(Debug, Clone, PartialEq)]
pub struct Fix {
    /// What an editor shows in its menu.
    pub title: String,
    pub edits: Vec<Edit>,
}

/// The findings in a file, in the order of their places.
pub fn lint(file: &LintFile<'_>, settings: &Settings) -> Vec<Finding> {
    lint_cells_of(file, &[], settings)
}

/// `cells`: where each cell of a notebook starts in the text, and its number.
fn lint_cells_of(file: &LintFile<'_>, cells: &[(usize, usize)], settings: &Settings) -> Vec<Finding> {
    if !file_kind::may_matter(&file.text) {
        return Vec::new();
    }
    let mut findings = match file.kind {
        FileKind::Python => python(file, cells, settings),
        _ => {
            let lines = LineIndex::new(Arc::clone(&file.text));
            check(&Input { file, lines: &lines, cells, variables: &variables::of_file(file), code: None, settings })
        }
    };
    findings.sort_by(|a, b| (a.range.start, a.range.end, a.rule).cmp(&(b.range.start, b.range.end, b.rule)));
    findings.dedup();
    findings
}

/// The edits of all fixes that can be made together: of two that change the same text, the first.
pub fn fix_all(findings: &[Finding]) -> Vec<Edit> {
    let mut chosen: Vec<Edit> = Vec::new();
    for fix in findings.iter().filter_map(|finding| finding.fix.as_ref()) {
        // Two fixes may insert the same import or helper.
        let there = |edit: &&Edit| edit.start == edit.end && chosen.contains(edit);
        let new: Vec<&Edit> = fix.edits.iter().filter(|edit| !there(edit)).collect();
        let clashes = |edit: &&Edit| chosen.iter().any(|other| edit.start < other.end && other.start < edit.end);
        if !new.iter().any(clashes) {
            let new: Vec<Edit> = new.into_iter().cloned().collect();
            chosen.extend(new);
        }
    }
    chosen
}

/// What a rule sees of a file.
pub struct Input<'i, 'a> {
    pub file: &'i LintFile<'i>,
    pub lines: &'i LineIndex,
    cells: &'i [(usize, usize)],
    /// The environment variables that the file sets, whatever its language.
    pub variables: &'i [variables::Variable],
    /// A Python file, read.
    pub code: Option<&'i code::Code<'i, 'a>>,
    pub settings: &'i Settings,
}

impl Input<'_, '_> {
    /// The line at an offset, as a message names it: `line 5`, in a notebook `line 2 of cell 3`.
    pub fn line_at(&self, offset: usize) -> String {
        let line = self.lines.line_of(offset);
        match self.cells.iter().rev().find(|(start, _)| *start <= offset) {
            Some((start, number)) => format!("line {} of cell {number}", line - self.lines.line_of(*start) + 1),
            None => format!("line {line}"),
        }
    }
}

fn python(file: &LintFile<'_>, cells: &[(usize, usize)], settings: &Settings) -> Vec<Finding> {
    // A script without the ending is Python too; only a notebook's cells have another syntax.
    let name = if file.path.ends_with(".ipynb") { "cell" } else { "file.py" };
    let modules = [Module::parse(name, None, Arc::clone(&file.text))];
    // Only this file is at hand: other modules are not asked for.
    let program = Program::new(&modules, |_| true);
    let code = code::Code::read(&program);
    let variables = variables::of_python(&code);
    check(&Input { file, lines: &modules[0].lines, cells, variables: &variables, code: Some(&code), settings })
}

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let selected = |rule: &&Rule| {
        let settings = input.settings;
        settings.select.as_ref().is_none_or(|select| select.contains(rule.name)) && !settings.ignore.contains(rule.name)
    };
    let found = RULES.iter().filter(selected).flat_map(|rule| {
        if let Some(code) = input.code {
            code.program.refill();
        }
        (rule.check)(input)
    });
    found.filter(|finding| !is_ignored(finding, input.lines)).collect()
}

/// Is there a `cublame: ignore` comment on one of the finding's lines that means its rule?
fn is_ignored(finding: &Finding, lines: &LineIndex) -> bool {
    let first = lines.line_of(finding.range.start);
    let last = lines.line_of(finding.range.end.max(finding.range.start));
    (first..=last).any(|line| {
        let Some((_, after)) = lines.line(line).split_once("cublame: ignore") else { return false };
        match after.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((names, _)) => names.split(',').any(|name| name.trim() == finding.rule),
            None => true,
        }
    })
}

#[cfg(test)]
mod tests;
