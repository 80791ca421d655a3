//! What a rule is: its check and its own documentation.

use std::ops::Range;

use super::{Finding, Fix, Input};

pub struct Rule {
    /// As in settings and comments: `env-too-late`.
    pub name: &'static str,
    pub severity: Severity,
    /// One sentence: what it finds.
    pub what: &'static str,
    pub why: &'static str,
    /// Code that it fires on.
    pub example: &'static str,
    pub fix: &'static str,
    /// Where it stays quiet on purpose.
    pub quiet: &'static str,
    pub check: fn(&Input<'_, '_>) -> Vec<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program fails, or does not do what the line says.
    Error,
    Warning,
    Information,
    /// Right now and here it may be meant.
    Hint,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Information => "information",
            Severity::Hint => "hint",
        }
    }
}

impl Rule {
    pub fn finding(&self, range: Range<usize>, message: impl Into<String>) -> Finding {
        Finding { rule: self.name, severity: self.severity, message: message.into(), range, fix: None }
    }

    /// The rule's page, in Markdown.
    pub fn documentation(&self) -> String {
        let Rule { name, severity, what, why, example, fix, quiet, .. } = self;
        let severity = severity.name();
        format!(
            "# {name}\n\n{what}\nSeverity: {severity}.\n\n## Why\n\n{why}\n\n## Example\n\n```\n{example}\n```\n\n\
             ## Fix\n\n{fix}\n\n## When it is quiet\n\n{quiet}\nA comment `# cublame: ignore[{name}]` on the line silences it.\n"
        )
    }
}

impl Finding {
    pub fn with_fix(mut self, title: impl Into<String>, edits: Option<Vec<crate::config::Edit>>) -> Self {
        self.fix = edits.filter(|edits| !edits.is_empty()).map(|edits| Fix { title: title.into(), edits });
        self
    }
}
