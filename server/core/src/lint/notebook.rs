//! A notebook's cells, in order, as one module.

use std::sync::Arc;

use crate::config::Edit;

use super::{FileKind, Finding, Fix, LintFile, Settings, lint_cells_of};

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

/// The findings of each cell, given by number and text; ranges and edits are of the cell's own text.
pub fn lint_cells(path: &str, cells: &[(usize, &str)], settings: &Settings) -> Vec<Vec<Finding>> {
    let mut text = String::new();
    let mut starts = Vec::with_capacity(cells.len());
    for (number, cell) in cells {
        starts.push((text.len(), *number));
        text.push_str(cell);
        text.push('\n');
    }
    let path = if path.ends_with(".ipynb") { path.to_owned() } else { format!("{path}.ipynb") };
    let file = LintFile { path: &path, text: Arc::from(text), kind: FileKind::Python };
    let mut by_cell: Vec<Vec<Finding>> = cells.iter().map(|_| Vec::new()).collect();
    for finding in lint_cells_of(&file, &starts, settings) {
        let cell = starts.partition_point(|(start, _)| *start <= finding.range.start).saturating_sub(1);
        let (start, end) = (starts[cell].0, starts[cell].0 + cells[cell].1.len());
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings of each cell, as `rule: the underlined text (message)`.
    fn found(cells: &[(usize, &str)]) -> Vec<String> {
        let by_cell = lint_cells("a.ipynb", cells, &Settings::default());
        let all = cells.iter().zip(by_cell).flat_map(|((number, text), found)| {
            let shown = move |it: Finding| format!("{number} {}: {}: {}", it.rule, &text[it.range.clone()], it.message);
            found.into_iter().map(shown)
        });
        all.collect()
    }

    #[test]
    fn cells_are_one_module_in_order_with_their_magics() {
        let cells = [
            (1, "import os, torch\n\nx = torch.ones(3).cuda()"),
            (3, "%matplotlib inline\n%env CUDA_LAUNCH_BLOCKING=1\n"),
            (4, "os.environ['CUDA_VISIBLE_DEVICES'] = '1'"),
            (6, "!CUDA_LAUNCH_BLOCKING=true python train.py\n!CUDA_LAUNCH_BLOCKING=1 python train.py"),
        ];
        let late = "is set after line 3 of cell 1 has used the GPU: it was read then, and this has no effect any more";
        assert_eq!(
            found(&cells),
            [
                format!("3 env-too-late: %env CUDA_LAUNCH_BLOCKING=1: CUDA_LAUNCH_BLOCKING {late}"),
                format!("4 env-too-late: os.environ['CUDA_VISIBLE_DEVICES'] = '1': CUDA_VISIBLE_DEVICES {late}"),
                "6 env-bad-value: CUDA_LAUNCH_BLOCKING=true: CUDA_LAUNCH_BLOCKING is switched on by `1` and nothing else: \
                 `true` has no effect"
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn a_magic_is_corrected_and_taken_out_in_its_cell() {
        let cells =
            [(1, "import torch"), (2, "%env CUDA_LAUNCH_BLOCKING = true\n"), (3, "%set_env TORCH_USE_CUDA_DSA 1\n")];
        let by_cell = lint_cells("a.ipynb", &cells, &Settings::default());
        let fixed = |cell: usize| {
            let fix = by_cell[cell][0].fix.as_ref().expect("a fix");
            crate::config::apply(cells[cell].1, &fix.edits)
        };
        assert_eq!(fixed(1), "%env CUDA_LAUNCH_BLOCKING = 1\n");
        assert_eq!(fixed(2), "");
    }
}
