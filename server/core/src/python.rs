//! Python source read without running it: what a name stands for, what a call calls, which lines ran before a line.
//!
//! The parser recovers from half-written code, so every text is a module; what cannot be followed is `Value::Unknown`.
//! Both the ranking of suspects and the lint rules read code through this module.

use std::sync::Arc;

use ruff_python_ast::{ModModule, PySourceType, Stmt};
use ruff_python_parser::{Parsed, parse_unchecked_source};

use crate::text::LineIndex;

pub mod program;
pub mod value;

mod classes;
mod resolve;

pub mod libraries;
pub mod names;
pub mod seeds;
pub mod table;
pub mod tree;

mod depth;

pub use program::Program;
pub use value::{Scope, Value};

/// One parsed file, or one notebook cell.
#[derive(Debug)]
pub struct Module {
    /// As the evidence names it.
    pub name: String,
    pub path: Option<String>,
    pub lines: LineIndex,
    parsed: Parsed<ModModule>,
}

impl Module {
    /// Anything that is not named as a Python file is read as a notebook cell, where `%magic` and `!command` are syntax.
    /// Code nested deeper than any person writes is read as an empty module.
    pub fn parse(name: impl Into<String>, path: Option<String>, text: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let lines = LineIndex::new(text);
        let kind = if name.ends_with(".py") || name.ends_with(".pyw") || name.ends_with(".pyi") {
            PySourceType::Python
        } else {
            PySourceType::Ipynb
        };
        let parsed = parse(lines.text(), kind);
        let parsed = depth::without_what_nobody_wrote(parsed, kind);
        Self { name, path, lines, parsed }
    }

    pub fn body(&self) -> &[Stmt] {
        self.parsed.suite()
    }

    pub fn parsed(&self) -> &Parsed<ModModule> {
        &self.parsed
    }

    /// Notebook cells share their globals: a name of one may come from another.
    pub fn is_cell(&self) -> bool {
        !self.name.ends_with(".py") && !self.name.ends_with(".pyw") && !self.name.ends_with(".pyi")
    }
}

/// The parser takes text that is half typed, but for one thing: an escape of IPython in the middle of an expression, as in
/// `{?x`, ends ruff_python_parser 0.0.10 with "unreachable code". Such a cell is read as plain Python.
fn parse(text: &str, kind: PySourceType) -> Parsed<ModModule> {
    std::panic::catch_unwind(|| parse_unchecked_source(text, kind))
        .unwrap_or_else(|_| parse_unchecked_source(text, PySourceType::Python))
}
