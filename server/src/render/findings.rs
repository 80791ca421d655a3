//! Findings of the lint rules as text, as GitHub annotations and as SARIF.

use std::fmt::Write;

use cublame_core::lint::RULES;
use cublame_core::lint::document::{Document, Row};
use serde_json::{Value, json};

/// One line a finding, `file:line:column`, as compilers write it and terminals make it a link.
pub fn text(document: &Document) -> String {
    let mut out = String::new();
    for row in &document.findings {
        let Row { line, column, severity, rule, message, .. } = row;
        // Writing to a string cannot fail.
        writeln!(out, "{}:{line}:{column}: {severity}[{rule}] {message}", place(row)).ok();
        if let Some(fix) = &row.fix {
            writeln!(out, "    fix: {}", fix.title).ok();
        }
    }
    out
}

fn place(row: &Row) -> String {
    match row.cell {
        Some(cell) => format!("{}:cell {cell}", row.file),
        None => row.file.clone(),
    }
}

/// Workflow commands (docs.github.com, "Workflow commands for GitHub Actions").
pub fn github(document: &Document) -> String {
    let mut out = String::new();
    for row in &document.findings {
        let command = match row.severity {
            "error" => "error",
            "warning" => "warning",
            _ => "notice",
        };
        let Row { line, column, end_line, rule, .. } = row;
        let file = property(&row.file);
        let message = data(&row.message);
        writeln!(
            out,
            "::{command} file={file},line={line},endLine={end_line},col={column},title=cublame ({rule})::{message}"
        )
        .ok();
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// SARIF 2.1.0 (docs.oasis-open.org/sarif).
pub fn sarif(document: &Document) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|rule| {
            json!({
                "id": rule.name,
                "shortDescription": { "text": rule.what },
                "fullDescription": { "text": rule.why },
                "help": { "text": rule.fix, "markdown": rule.documentation() },
                "defaultConfiguration": { "level": level(rule.severity.name()) },
            })
        })
        .collect();
    let results: Vec<Value> = document
        .findings
        .iter()
        .map(|row| {
            json!({
                "ruleId": row.rule,
                "level": level(row.severity),
                "message": { "text": row.message },
                "locations": [{ "physicalLocation": {
                    "artifactLocation": { "uri": row.file.replace('\\', "/") },
                    "region": {
                        "startLine": row.line, "startColumn": row.column,
                        "endLine": row.end_line, "endColumn": row.end_column,
                    },
                } }],
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "columnKind": "unicodeCodePoints",
            "tool": { "driver": { "name": "cublame", "version": crate::VERSION, "rules": rules } },
            "results": results,
        }],
    })
}

fn level(severity: &str) -> &'static str {
    match severity {
        "error" => "error",
        "warning" => "warning",
        _ => "note",
    }
}
