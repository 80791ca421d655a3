//! A Python file as the rules see it: its statements with where they stand, its calls, its classes.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};

use crate::python::value::{ClassRef, Scope, Value};
use crate::python::{Module, Program, tree};

pub struct Code<'p, 'a> {
    pub program: &'p Program<'a>,
    pub module: &'a Module,
    scopes: Vec<Scope<'a>>,
    /// Every statement, in source order.
    pub sites: Vec<Site<'a>>,
    /// Every call outside lambdas, with the index of its statement.
    pub calls: Vec<(usize, &'a ExprCall)>,
    pub classes: Vec<ClassRef<'a>>,
}

/// A statement and where it stands.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    pub stmt: &'a Stmt,
    /// The block that it is in.
    pub block: &'a [Stmt],
    scope: usize,
    /// It runs only if something is so: inside `if`, `elif`, `except`, `match`; `if __name__ == "__main__"` is no
    /// condition.
    pub conditional: bool,
    pub in_class_body: bool,
}

impl<'p, 'a> Code<'p, 'a> {
    /// Reads the first module of a program.
    pub fn read(program: &'p Program<'a>) -> Self {
        let mut code = Self {
            program,
            module: program.module(0),
            scopes: vec![program.module_scope(0)],
            sites: Vec::new(),
            calls: Vec::new(),
            classes: Vec::new(),
        };
        code.block(code.module.body(), 0, false, None, 0);
        code
    }

    pub fn scope(&self, site: &Site<'a>) -> &Scope<'a> {
        &self.scopes[site.scope]
    }

    pub fn module_scope(&self) -> &Scope<'a> {
        &self.scopes[0]
    }

    pub fn value(&self, expr: &'a Expr, site: &Site<'a>) -> Value<'a> {
        self.program.value(expr, self.scope(site))
    }

    /// The full library name that an expression means, such as `torch.nn.DataParallel`.
    pub fn path(&self, expr: &'a Expr, site: &Site<'a>) -> Option<String> {
        match self.value(expr, site) {
            Value::Path { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The name that the module has for an imported library, such as `t` after `import torch as t`.
    pub fn name_of(&self, library: &str) -> Option<&'a str> {
        let table = self.scopes[0].table();
        let mut names: Vec<&'a str> = table
            .names()
            .filter(|(name, _)| {
                matches!(self.program.name(name, None, &self.scopes[0]), Value::Path { path, .. } if path == library)
            })
            .map(|(name, _)| name)
            .collect();
        names.sort_unstable();
        names.first().copied()
    }

    pub fn text(&self) -> &'a str {
        self.module.lines.text()
    }

    pub fn source(&self, node: impl Ranged) -> &'a str {
        &self.text()[tree::byte_range(node.range())]
    }

    fn block(&mut self, block: &'a [Stmt], scope: usize, conditional: bool, class: Option<&ClassRef<'a>>, depth: u32) {
        if depth > tree::MAX_DEPTH {
            return;
        }
        for stmt in block {
            let index = self.sites.len();
            self.sites.push(Site { stmt, block, scope, conditional, in_class_body: class.is_some() });
            for expr in tree::own_expressions(stmt) {
                tree::each_expression(expr, &mut |expr| {
                    if let Expr::Call(call) = expr {
                        self.calls.push((index, call));
                    }
                });
            }
            match stmt {
                Stmt::FunctionDef(def) => {
                    let inner = Scope::of_function(self.program, def, &self.scopes[scope], class.cloned());
                    self.scopes.push(inner);
                    self.block(&def.body, self.scopes.len() - 1, false, None, depth + 1);
                }
                Stmt::ClassDef(def) => {
                    let inner = ClassRef { def, scope: self.scopes[scope].clone() };
                    self.classes.push(inner.clone());
                    self.block(&def.body, scope, conditional, Some(&inner), depth + 1);
                }
                _ => {
                    let decides = matches!(stmt, Stmt::If(_) | Stmt::Match(_)) && !is_main_guard(stmt);
                    for (place, inner) in tree::blocks(stmt).into_iter().enumerate() {
                        let handler =
                            matches!(stmt, Stmt::Try(attempt) if place >= 1 && place <= attempt.handlers.len());
                        self.block(inner, scope, conditional || decides || handler, class, depth + 1);
                    }
                }
            }
        }
    }
}

/// `if __name__ == "__main__":`
pub fn is_main_guard(stmt: &Stmt) -> bool {
    let Stmt::If(guard) = stmt else { return false };
    matches!(guard.test.as_ref(), Expr::Compare(compare)
        if matches!(compare.left.as_ref(), Expr::Name(name) if name.id.as_str() == "__name__"))
}

/// The method of a class's own body.
pub fn method<'a>(class: &ClassRef<'a>, name: &str) -> Option<&'a StmtFunctionDef> {
    class.def.body.iter().find_map(|stmt| match stmt {
        Stmt::FunctionDef(def) if def.name.as_str() == name => Some(def),
        _ => None,
    })
}

/// Does a block hold a position?
pub fn holds(block: &[Stmt], at: TextSize) -> bool {
    block.first().is_some_and(|first| first.start() <= at) && block.last().is_some_and(|last| last.end() >= at)
}
