use std::ops::Range;

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::rule::{Rule, Severity};
use crate::lint::variables::{Change, What, changes};
use crate::lint::{Finding, Input, code::Code, edits};
use crate::python::tree;

pub const RULE: Rule = Rule {
    name: "env-scoped",
    severity: Severity::Warning,
    what: "CUDA_LAUNCH_BLOCKING is switched on and off again around a step.",
    why: "CUDA reads the variable once, when its context is created. Set before that, blocking stays on for the whole run; set \
          after it, blocking never comes on. Either way the switch does not do what it says.",
    example: "os.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"1\"\nloss = step(batch)\nos.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"0\"",
    fix: "Wait after every operation instead, with a dispatch mode that synchronises: it works at any time and only inside its \
          `with` block.",
    quiet: "In tests of the variable itself, and where the two changes are in different blocks.",
    check,
};

/// A switch on and off again in one block.
pub struct Flip<'a> {
    on: Change<'a>,
    off: Change<'a>,
}

impl Flip<'_> {
    /// Is this range one of the two changes?
    pub fn holds(&self, range: &Range<usize>) -> bool {
        self.on.range == *range || self.off.range == *range
    }
}

/// The switches of a file: `1` and later, with something between, `0`, another value or nothing, in the same block or in
/// the `finally` of the `try` that follows.
pub fn flips<'a>(code: &Code<'_, 'a>) -> Vec<Flip<'a>> {
    let blocking: Vec<Change<'a>> = changes(code)
        .into_iter()
        .filter(|change| change.name == "CUDA_LAUNCH_BLOCKING" && change.alone && change.magic.is_none())
        .collect();
    let mut found = Vec::new();
    for (index, on) in blocking.iter().enumerate() {
        let is_on = on.what == What::Set && on.value.and_then(tree::string) == Some("1");
        if !is_on {
            continue;
        }
        let off = blocking[index + 1..].iter().find(|off| {
            let ends =
                off.what == What::Unset || off.what == What::Set && off.value.and_then(tree::string) != Some("1");
            ends && (same_block(on, off) && something_between(on, off) || in_finally_after(on, off))
        });
        if let Some(off) = off {
            found.push(Flip { on: on.clone(), off: off.clone() });
        }
    }
    found
}

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let found = flips(code).into_iter().map(|flip| {
        let message = "CUDA reads CUDA_LAUNCH_BLOCKING once, when its context is created: switched on and off around a step it \
                       is either never on or on for good";
        let edit = context_manager(code, &flip);
        RULE.finding(flip.on.range.clone(), message).with_fix("Wait after every operation of the step instead", edit)
    });
    found.collect()
}

fn same_block(on: &Change<'_>, off: &Change<'_>) -> bool {
    std::ptr::eq(on.site.block.as_ptr(), off.site.block.as_ptr())
}

fn index_in_block(change: &Change<'_>) -> Option<usize> {
    change.site.block.iter().position(|stmt| std::ptr::eq(stmt, change.site.stmt))
}

fn something_between(on: &Change<'_>, off: &Change<'_>) -> bool {
    matches!((index_in_block(on), index_in_block(off)), (Some(on), Some(off)) if off > on + 1)
}

fn in_finally_after(on: &Change<'_>, off: &Change<'_>) -> bool {
    let next = index_in_block(on).and_then(|index| on.site.block.get(index + 1));
    matches!(next, Some(Stmt::Try(attempt)) if std::ptr::eq(attempt.finalbody.as_ptr(), off.site.block.as_ptr()))
}

/// The step in a `with` block of a dispatch mode that is defined below the imports.
fn context_manager(code: &Code<'_, '_>, flip: &Flip<'_>) -> Option<Vec<Edit>> {
    let torch = code.name_of("torch")?;
    let block = flip.on.site.block;
    let (on, off) = (index_in_block(&flip.on)?, index_in_block(&flip.off)?);
    if !same_block(&flip.on, &flip.off) {
        return None;
    }
    let lines = &code.module.lines;
    let text = lines.text();
    let newline = edits::line_end(text);
    let first = edits::own_lines(flip.on.site.stmt, lines)?;
    let last = edits::own_lines(flip.off.site.stmt, lines)?;
    let between = &block[on + 1..off];
    let has_long_string = between.iter().any(|stmt| {
        let mut long = false;
        tree::each_statement(std::slice::from_ref(stmt), &mut |stmt| {
            for expr in tree::own_expressions(stmt) {
                tree::each_expression(expr, &mut |expr| {
                    let string = matches!(expr, Expr::StringLiteral(_) | Expr::FString(_) | Expr::BytesLiteral(_));
                    long = long || string && code.source(expr).contains('\n');
                });
            }
        });
        long
    });
    if has_long_string {
        return None;
    }
    let indentation = &text[first.start..flip.on.site.stmt.start().to_usize()];
    let step = if indentation.contains('\t') { "\t" } else { "    " };
    let mut edits = vec![Edit::insert(edits::after_imports(code), definition(torch, newline))];
    edits.push(Edit::replace(first.start, first.end, format!("{indentation}with SynchronisedOperations():{newline}")));
    let (from, to) = (lines.line_of(first.end), lines.line_of(last.start));
    for line in from..to {
        let range = lines.line_range(line);
        if !text[range.clone()].trim().is_empty() {
            edits.push(Edit::insert(range.start, step));
        }
    }
    edits.push(Edit::delete(last.start, last.end));
    Some(edits)
}

fn definition(torch: &str, newline: &str) -> String {
    let lines = [
        "from torch.utils._python_dispatch import TorchDispatchMode",
        "",
        "",
        "class SynchronisedOperations(TorchDispatchMode):",
        "    \"\"\"Waits for the GPU after every operation, so that a CUDA error is raised where it happens.\"\"\"",
        "",
        "    def __torch_dispatch__(self, func, types, args=(), kwargs=None):",
        "        result = func(*args, **(kwargs or {}))",
        "        TORCH.cuda.synchronize()",
        "        return result",
        "",
        "",
        "",
    ];
    lines.join(newline).replace("TORCH", torch)
}
