//! Edits of Python source by whole lines.

use ruff_python_ast::{ExprCall, Stmt};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::text::LineIndex;

use super::code::Code;

/// The bytes of the lines that a statement has for itself, with their ends; None where it shares a line.
pub fn own_lines(stmt: &Stmt, lines: &LineIndex) -> Option<std::ops::Range<usize>> {
    let text = lines.text();
    let first = lines.line_of(stmt.start().to_usize());
    let last = lines.line_of(stmt.end().to_usize());
    let start = lines.line_range(first).start;
    let end = lines.line_range(last).end;
    let before = &text[start..stmt.start().to_usize()];
    let after = text[stmt.end().to_usize()..end].trim_start();
    let alone = before.trim().is_empty() && (after.is_empty() || after.starts_with('#'));
    let next = if last < lines.line_count() { lines.line_range(last + 1).start } else { text.len() };
    alone.then_some(start..next)
}

/// Takes a statement out; the only one of its block becomes `pass`.
pub fn delete(code: &Code<'_, '_>, stmt: &Stmt, block: &[Stmt]) -> Option<Vec<Edit>> {
    let lines = own_lines(stmt, &code.module.lines)?;
    if block.len() == 1 && !std::ptr::eq(block.as_ptr(), code.module.body().as_ptr()) {
        return Some(vec![Edit::replace(stmt.start().to_usize(), stmt.end().to_usize(), "pass")]);
    }
    Some(vec![Edit::delete(lines.start, lines.end)])
}

/// Moves a statement of one line to before another one, with that one's indentation.
pub fn move_before(code: &Code<'_, '_>, stmt: &Stmt, block: &[Stmt], target: &Stmt) -> Option<Vec<Edit>> {
    let lines = &code.module.lines;
    let at = own_lines(target, lines)?.start;
    let indentation = &lines.text()[at..target.start().to_usize()];
    let moved = code.source(stmt);
    let mut edits = delete(code, stmt, block)?;
    edits.insert(0, Edit::insert(at, format!("{indentation}{moved}{}", line_end(lines.text()))));
    Some(edits)
}

/// The end of line that a text uses.
pub fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Where a module-level line can be put so that every top-level import is above it.
pub fn after_imports(code: &Code<'_, '_>) -> usize {
    let lines = &code.module.lines;
    let is_import = |stmt: &&Stmt| matches!(stmt, Stmt::Import(_) | Stmt::ImportFrom(_));
    let last = code.module.body().iter().filter(is_import).filter_map(|stmt| own_lines(stmt, lines)).last();
    last.map_or(0, |range| range.end)
}

/// An argument behind the last one of a call; on a line of its own where the arguments are on lines of their own.
pub fn add_argument(code: &Code<'_, '_>, call: &ExprCall, argument: &str) -> Edit {
    let text = code.text();
    let parenthesis = call.end().to_usize() - 1;
    let arguments = call.arguments.range().start().to_usize() + 1;
    let Some(last) = call.arguments.iter_source_order().last().map(|last| last.range()) else {
        return Edit::insert(parenthesis, argument);
    };
    let after = last.end().to_usize().min(parenthesis);
    let rest = &text[after..parenthesis];
    if rest.contains([')', '#']) {
        // Its own parentheses, or a comment: behind both.
        let separator = if rest.trim_end().ends_with(',') { " " } else { ", " };
        return Edit::insert(parenthesis, format!("{separator}{argument}"));
    }
    let comma = rest.trim_start().starts_with(',');
    let line = text[..last.start().to_usize()].rfind('\n').map_or(0, |at| at + 1);
    let indentation = &text[line..last.start().to_usize()];
    let own_line = line > arguments && indentation.trim().is_empty() && rest.contains('\n');
    match (comma, own_line) {
        (true, true) => {
            let end = after + rest.find(',').map_or(0, |at| at + 1);
            Edit::insert(end, format!("{}{indentation}{argument},", line_end(text)))
        }
        (false, true) => Edit::insert(after, format!(",{}{indentation}{argument}", line_end(text))),
        (true, false) => Edit::insert(parenthesis, format!(" {argument}")),
        (false, false) => Edit::insert(after, format!(", {argument}")),
    }
}

/// `import module` below the imports, unless the module has the name already; and the name to use.
pub fn imported(code: &Code<'_, '_>, library: &str) -> (String, Option<Edit>) {
    if let Some(name) = code.name_of(library) {
        return (name.to_owned(), None);
    }
    let newline = line_end(code.text());
    (library.to_owned(), Some(Edit::insert(after_imports(code), format!("import {library}{newline}"))))
}
