//! A notebook's cells, in order, as one module.

use std::sync::Arc;

use crate::config::Edit;

use super::{FileKind, Finding, Fix, LintFile, Settings, lint};

/// The source of each code cell of an `.ipynb` file, with its number among all cells, from 1; None for a text that is
/// no notebook of format 4.
pub fn code_cells(text: &str) -> Option<Vec<(usize, String)>> {
    let notebook: serde_json::Value = serde_json::from_str(text).ok()?;
    let cells = notebook.get("cells")?.as_array()?;
    let code = (1..).zip(cells).filter(|(_, cell)| cell.get("cell_type").is_some_and(|kind| kind == "code"));
    Some(code.filter_map(|(number, cell)| Some((number, source(cell.get("source")?)?))).collect())
}

/// One string, or a list of lines with their ends (nbformat 4, "multi-line strings").
fn source(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Array(lines) => Some(lines.iter().filter_map(serde_json::Value::as_str).collect()),
        _ => None,
    }
}

/// The findings of each cell; ranges and edits are of the cell's own text.
pub fn lint_cells(path: &str, cells: &[&str], settings: &Settings) -> Vec<Vec<Finding>> {
    let mut text = String::new();
    let mut starts = Vec::with_capacity(cells.len());
    for cell in cells {
        starts.push(text.len());
        text.push_str(cell);
        text.push('\n');
    }
    let path = if path.ends_with(".ipynb") { path.to_owned() } else { format!("{path}.ipynb") };
    let file = LintFile { path: &path, text: Arc::from(text), kind: FileKind::Python };
    let mut by_cell: Vec<Vec<Finding>> = cells.iter().map(|_| Vec::new()).collect();
    for finding in lint(&file, settings) {
        let cell = starts.partition_point(|start| *start <= finding.range.start).saturating_sub(1);
        let (start, end) = (starts[cell], starts[cell] + cells[cell].len());
        let fix = finding.fix.and_then(|fix| moved(fix, start, end));
        let range = finding.range.start - start..finding.range.end.min(end) - start;
        by_cell[cell].push(Finding { range, fix, ..finding });
    }
    by_cell
}

/// A fix inside one cell; None for one that would change another.
fn moved(fix: Fix, start: usize, end: usize) -> Option<Fix> {
    let inside = fix.edits.iter().all(|edit| start <= edit.start && edit.start <= end && edit.end <= end + 1);
    let edits = fix.edits.into_iter().map(|edit| Edit {
        start: edit.start - start,
        end: edit.end.min(end) - start,
        text: edit.text,
    });
    inside.then(|| Fix { title: fix.title, edits: edits.collect() })
}
