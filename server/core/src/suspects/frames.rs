//! From the frames of a trace to places in the code, and back.

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt as walk_statement};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

use crate::python::program::candidates;
use crate::python::value::{FunctionRef, Scope};
use crate::python::{Module, Program, tree};
use crate::text::LineColumn;
use crate::verdict::{Frame, Place};

use super::walk::{Found, Walk};

/// A frame whose source is at hand.
pub struct Level<'a> {
    pub scope: Scope<'a>,
    pub block: &'a [Stmt],
    /// Where the line's code starts.
    pub at: TextSize,
    /// The expression that was running.
    pub running: Option<TextRange>,
    pub innermost: bool,
}

impl<'a> Walk<'_, 'a> {
    /// The frames whose source is at hand, outermost first, with their arguments where the call is in sight.
    pub(super) fn levels(&self) -> Vec<Level<'a>> {
        let reported = self.query.reported.iter().map(|place| Frame {
            file: place.file.clone(),
            path: place.path.clone(),
            line: place.line,
            column: place.column,
            end_column: place.end_column,
            function: place.function.clone(),
            user: true,
        });
        let frames: Vec<Frame> =
            if self.query.frames.is_empty() { reported.collect() } else { self.query.frames.clone() };
        let mut levels: Vec<Level<'a>> = Vec::new();
        for (index, frame) in frames.iter().enumerate() {
            let Some(module) = self.program.index_of(&frame.file) else { continue };
            let Some(at) = code_start(self.program.module(module), frame.line) else { continue };
            let mut scope = self.program.scope_at(module, at);
            let mut running = range_of(self.program.module(module), frame);
            if let Some(caller) = levels.last_mut()
                && let Some(def) = scope.function()
                && let Some((call, function)) = self.call_of(caller, def)
            {
                caller.running.get_or_insert(call.range());
                scope = Scope::of_call(self.program, &function, Some((call, &caller.scope)));
            }
            let block = scope.function().map_or(self.program.module(module).body(), |def| &def.body);
            if let Some(range) = running {
                running = statement_at(block, at).and_then(|stmt| expression_range(stmt, range));
            }
            levels.push(Level { scope, block, at, running, innermost: index + 1 == frames.len() });
        }
        levels
    }

    /// The call on a frame's line that leads into a function.
    fn call_of(
        &self,
        caller: &Level<'a>,
        def: &'a ruff_python_ast::StmtFunctionDef,
    ) -> Option<(&'a ExprCall, FunctionRef<'a>)> {
        let stmt = statement_at(caller.block, caller.at)?;
        let mut found = None;
        for expr in tree::own_expressions(stmt) {
            tree::each_expression(expr, &mut |expr| {
                if let Expr::Call(call) = expr
                    && found.is_none()
                {
                    let callee = self.program.value(&call.func, &caller.scope);
                    let function = self.callees(&callee).into_iter().find(|f| std::ptr::eq(f.def, def));
                    found = function.map(|function| (call, function));
                }
            });
        }
        found
    }
}

/// The innermost statement that holds a position, not entering functions and classes.
fn statement_at(block: &[Stmt], at: TextSize) -> Option<&Stmt> {
    let stmt = block.iter().rfind(|stmt| stmt.start() <= at)?;
    let inner = tree::blocks(stmt).into_iter().filter(|inner| {
        inner.first().is_some_and(|first| first.start() <= at) && inner.last().is_some_and(|last| last.end() >= at)
    });
    inner.last().and_then(|inner| statement_at(inner, at)).or(Some(stmt))
}

/// Where the code of a line (from 1) starts; None for a line that is not there or is empty.
fn code_start(module: &Module, line: u32) -> Option<TextSize> {
    let range = module.lines.line_range(line);
    let text = module.lines.line(line);
    let indentation = text.len() - text.trim_start().len();
    let blank = text.trim_start().is_empty();
    (!blank).then(|| TextSize::try_from(range.start + indentation).ok()).flatten()
}

/// The bytes of a frame's columns, when the evidence has both.
fn range_of(module: &Module, frame: &Frame) -> Option<TextRange> {
    let offset = |column| TextSize::try_from(module.lines.offset(LineColumn { line: frame.line, column })).ok();
    let start = offset(frame.column?)?;
    let end = frame.end_column.and_then(offset).filter(|end| *end > start).unwrap_or(start);
    Some(TextRange::new(start, end))
}

/// The range of the expression that a frame's columns mean: the exact one, else the widest that starts there, which is
/// one that goes on over several lines.
fn expression_range(stmt: &Stmt, range: TextRange) -> Option<TextRange> {
    let mut exact = None;
    let mut widest: Option<TextRange> = None;
    for expr in tree::own_expressions(stmt) {
        tree::each_expression(expr, &mut |expr| {
            if expr.range() == range {
                exact = Some(range);
            }
            if expr.start() == range.start() && widest.is_none_or(|known| known.end() < expr.end()) {
                widest = Some(expr.range());
            }
        });
    }
    exact.or(widest).or_else(|| (stmt.range() == range).then_some(range))
}

/// The place of a suspect: its first line, as an interpreter would report it.
pub fn place(found: &Found<'_>, program: &Program<'_>) -> Place {
    let module = program.module(found.module);
    let lines = &module.lines;
    let same_line = |a: TextSize, b: TextSize| lines.line_of(a.to_usize()) == lines.line_of(b.to_usize());
    let start = lines.line_column(tree::reported_start(found.expr, same_line).to_usize());
    let end = lines.line_column(found.expr.end().to_usize());
    let line_end = u32::try_from(lines.line(start.line).trim_end().chars().count()).unwrap_or(u32::MAX);
    Place {
        file: module.name.clone(),
        path: module.path.clone(),
        line: start.line,
        column: Some(start.column),
        end_column: Some(if end.line == start.line { end.column } else { line_end.saturating_add(1) }),
        function: Some(found.function.clone()),
    }
}

/// The files that the imports of a module, anywhere in it, could mean.
pub fn imports(module: &Module) -> Vec<String> {
    struct Imports<'m>(&'m str, Vec<String>);
    impl<'a> StatementVisitor<'a> for Imports<'_> {
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            match stmt {
                Stmt::Import(import) => {
                    for alias in &import.names {
                        self.1.extend(candidates(self.0, 0, alias.name.as_str()));
                    }
                }
                Stmt::ImportFrom(import) => {
                    let module = import.module.as_ref().map_or("", |module| module.as_str());
                    self.1.extend(candidates(self.0, import.level, module));
                    for alias in &import.names {
                        let submodule =
                            if module.is_empty() { alias.name.to_string() } else { format!("{module}.{}", alias.name) };
                        self.1.extend(candidates(self.0, import.level, &submodule));
                    }
                }
                _ => walk_statement(self, stmt),
            }
        }
    }
    let mut imports = Imports(&module.name, Vec::new());
    imports.visit_body(module.body());
    imports.1
}
