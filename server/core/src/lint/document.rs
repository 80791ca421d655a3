//! The findings as the JSON that `cublame lint --json` promises. Lines and columns are 1-based, columns code points.

use serde::Serialize;

use crate::text::{LineColumn, LineIndex};

use super::Finding;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    pub schema: u32,
    pub findings: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub file: String,
    /// In a notebook the number of the cell, from 1; the lines are of that cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<usize>,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
    pub rule: &'static str,
    pub severity: &'static str,
    pub message: String,
    pub fix: Option<RowFix>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowFix {
    pub title: String,
    pub edits: Vec<RowEdit>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowEdit {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
    pub text: String,
}

impl Document {
    pub fn new(findings: Vec<Row>) -> Self {
        Self { schema: 1, findings }
    }
}

impl Row {
    /// A finding of the text that `lines` is of.
    pub fn new(file: &str, cell: Option<usize>, lines: &LineIndex, finding: &Finding) -> Self {
        let (start, end) = ends(lines, finding.range.start, finding.range.end);
        let fix = finding.fix.as_ref().map(|fix| RowFix {
            title: fix.title.clone(),
            edits: fix
                .edits
                .iter()
                .map(|edit| {
                    let (start, end) = ends(lines, edit.start, edit.end);
                    RowEdit {
                        line: start.line,
                        column: start.column,
                        end_line: end.line,
                        end_column: end.column,
                        text: edit.text.clone(),
                    }
                })
                .collect(),
        });
        Self {
            file: file.to_owned(),
            cell,
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            rule: finding.rule,
            severity: finding.severity.name(),
            message: finding.message.clone(),
            fix,
        }
    }
}

fn ends(lines: &LineIndex, start: usize, end: usize) -> (LineColumn, LineColumn) {
    (lines.line_column(start), lines.line_column(end))
}
