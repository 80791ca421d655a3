//! The names that a block of code binds: one table a module, a function or a class.

use std::collections::HashMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Comprehension, Expr, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};

use super::tree::MAX_DEPTH;

#[derive(Debug, Default)]
pub struct Table<'a> {
    names: HashMap<&'a str, Vec<Binding<'a>>>,
    /// `from module import *`, in order: level and module.
    pub stars: Vec<(u32, String)>,
}

#[derive(Debug, Clone)]
pub struct Binding<'a> {
    /// Where the binding takes effect: the end of its statement, the start of a loop's body.
    pub at: TextSize,
    pub what: Bound<'a>,
}

#[derive(Debug, Clone)]
pub enum Bound<'a> {
    Function(&'a StmtFunctionDef),
    Class(&'a StmtClassDef),
    /// `import a.b` binds `a`; `import a.b as c` binds all of it.
    Import(String),
    From {
        level: u32,
        module: String,
        name: String,
    },
    Value(&'a Expr),
    /// The value at an index of a value that was unpacked.
    Item(&'a Expr, usize),
    /// What iterating a value gives, or the item at an index of it.
    Element(&'a Expr, Option<usize>),
    /// `with value as name`.
    Entered(&'a Expr),
    /// A declaration without a value: `x: Type`.
    Declared(&'a Expr),
    /// A parameter of the exception handler, a deleted name, an augmented assignment: nothing is known.
    Something,
}

impl<'a> Table<'a> {
    pub fn of(block: &'a [Stmt]) -> Self {
        let mut collect = Collect { table: Table::default(), depth: 0 };
        collect.visit_body(block);
        collect.table
    }

    /// The binding in force at a position, else the last one: a loop may have come round from below.
    pub fn get(&self, name: &str, at: Option<TextSize>) -> Option<&Binding<'a>> {
        let bindings = self.names.get(name)?;
        let in_force = at.and_then(|at| bindings.iter().rev().find(|binding| binding.at <= at));
        let says_something =
            |b: &&Binding<'a>| !matches!(b.what, Bound::Something | Bound::Value(Expr::NoneLiteral(_)));
        in_force.or_else(|| bindings.iter().rev().find(says_something)).or(bindings.last())
    }

    pub fn all(&self, name: &str) -> &[Binding<'a>] {
        self.names.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn names(&self) -> impl Iterator<Item = (&'a str, &[Binding<'a>])> {
        self.names.iter().map(|(name, bindings)| (*name, bindings.as_slice()))
    }

    fn bind(&mut self, name: &'a str, at: TextSize, what: Bound<'a>) {
        self.names.entry(name).or_default().push(Binding { at, what });
    }

    /// Binds the names of an assignment target; `what` makes the binding for the whole target or an item of it.
    fn bind_target(&mut self, target: &'a Expr, at: TextSize, what: &dyn Fn(Option<usize>) -> Bound<'a>) {
        match target {
            Expr::Name(name) => self.bind(name.id.as_str(), at, what(None)),
            Expr::Starred(starred) => self.bind_target(&starred.value, at, &|_| Bound::Something),
            Expr::Tuple(_) | Expr::List(_) => {
                for (index, item) in items(target).iter().enumerate() {
                    match item {
                        Expr::Name(name) => self.bind(name.id.as_str(), at, what(Some(index))),
                        nested => self.bind_target(nested, at, &|_| Bound::Something),
                    }
                }
            }
            _ => {}
        }
    }
}

fn items(target: &Expr) -> &[Expr] {
    match target {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        _ => &[],
    }
}

/// What a target gets of an assigned value: all of it, or the item at an index.
pub fn assigned<'a>(value: &'a Expr, index: Option<usize>) -> Bound<'a> {
    match (index, value) {
        (None, value) => Bound::Value(value),
        (Some(index), Expr::Tuple(tuple)) => tuple.elts.get(index).map_or(Bound::Something, Bound::Value),
        (Some(index), Expr::List(list)) => list.elts.get(index).map_or(Bound::Something, Bound::Value),
        (Some(index), value) => Bound::Item(value, index),
    }
}

struct Collect<'a> {
    table: Table<'a>,
    depth: u32,
}

impl<'a> Visitor<'a> for Collect<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let end = stmt.end();
        match stmt {
            Stmt::FunctionDef(def) => return self.table.bind(def.name.as_str(), end, Bound::Function(def)),
            Stmt::ClassDef(def) => return self.table.bind(def.name.as_str(), end, Bound::Class(def)),
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    self.table.bind_target(target, end, &|index| assigned(&assign.value, index));
                }
            }
            Stmt::AnnAssign(assign) => {
                let what = |_| assign.value.as_deref().map_or(Bound::Declared(&assign.annotation), Bound::Value);
                self.table.bind_target(&assign.target, end, &what);
            }
            Stmt::AugAssign(assign) => self.table.bind_target(&assign.target, end, &|_| Bound::Something),
            Stmt::For(looped) => {
                let start = looped.iter.end();
                self.table.bind_target(&looped.target, start, &|index| Bound::Element(&looped.iter, index));
            }
            Stmt::With(with) => {
                for item in &with.items {
                    if let Some(target) = &item.optional_vars {
                        let what = |_| Bound::Entered(&item.context_expr);
                        self.table.bind_target(target, item.range.end(), &what);
                    }
                }
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    let dotted = alias.name.as_str();
                    match &alias.asname {
                        Some(name) => self.table.bind(name.as_str(), end, Bound::Import(dotted.to_owned())),
                        None => {
                            let root = dotted.split('.').next().unwrap_or(dotted);
                            self.table.bind(root, end, Bound::Import(root.to_owned()));
                        }
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |module| module.as_str());
                for alias in &import.names {
                    if alias.name.as_str() == "*" {
                        self.table.stars.push((import.level, module.to_owned()));
                        continue;
                    }
                    let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    let what = Bound::From {
                        level: import.level,
                        module: module.to_owned(),
                        name: alias.name.as_str().to_owned(),
                    };
                    self.table.bind(name, end, what);
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if self.depth > MAX_DEPTH || matches!(expr, Expr::Lambda(_)) {
            return;
        }
        if let Expr::Named(named) = expr {
            self.table.bind_target(&named.target, expr.end(), &|index| assigned(&named.value, index));
        }
        self.depth += 1;
        visitor::walk_expr(self, expr);
        self.depth -= 1;
    }

    /// A comprehension's names live in a scope of their own; seen from inside it that makes no difference here.
    fn visit_comprehension(&mut self, part: &'a Comprehension) {
        self.table.bind_target(&part.target, TextSize::new(0), &|index| Bound::Element(&part.iter, index));
        visitor::walk_comprehension(self, part);
    }
}
