//! Reads a program backwards from where a failure surfaced, in the order in which it ran.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::{ExceptHandler, Expr, ExprContext, Stmt, StmtWith};
use ruff_text_size::{Ranged, TextRange, TextSize};

use crate::python::value::{FunctionRef, Scope, Value, is_property};
use crate::python::{Program, tree};
use crate::verdict::Phase;

use super::Query;
use super::enter::captured_graph;
use super::fit::{self, Guess};
use super::frames::Level;
use super::index;
use super::kernels::{Launcher, Operation};

/// An expression that could be the culprit.
pub struct Found<'a> {
    /// Per cent: see [`fit::weight`].
    pub weight: u32,
    /// How far back: 0 is where the failure surfaced.
    pub order: u32,
    pub module: usize,
    pub expr: &'a Expr,
    pub function: String,
    pub why: &'static str,
}

/// How often one function is read, from different callers, and how deep calls are followed.
pub const MOST_ENTRIES: u32 = 3;
pub const MAX_CALLS: u32 = 40;

/// What remains of a weight, in per cent, of code that ran in an earlier turn of a loop, of code that a library may call
/// back, of the branch of an exception handler, of a graph's capture, of
/// code found only by its name or by looking like a model, and of code that nothing leads to.
const EARLIER_TURN: u32 = 80;
pub const CALLED_BACK: u32 = 90;
const HANDLER: u32 = 70;
const CAPTURED: u32 = 60;
pub const BY_NAME: u32 = 80;
pub const ANY_MODEL: u32 = 65;
const ELSEWHERE: u32 = 50;

pub struct Walk<'p, 'a> {
    pub(super) program: &'p Program<'a>,
    pub(super) query: &'p Query,
    found: Vec<Found<'a>>,
    order: u32,
    /// What remains of the weight of what is read now.
    pub(super) share: u32,
    /// Functions by the address of their body: how often they were read.
    pub(super) entered: HashMap<usize, u32>,
    pub(super) calls: u32,
    /// A backward pass ran later than what is read now.
    pub(super) backward: bool,
    /// Names of properties of the user's classes: an attribute of such a name runs code.
    properties: HashSet<&'a str>,
    pub(super) by_name: HashMap<&'a str, Vec<FunctionRef<'a>>>,
    pub(super) captures: Vec<(usize, &'a StmtWith)>,
}

impl<'p, 'a> Walk<'p, 'a> {
    pub fn new(program: &'p Program<'a>, query: &'p Query) -> Self {
        let mut properties = HashSet::new();
        let mut by_name: HashMap<&'a str, Vec<FunctionRef<'a>>> = HashMap::new();
        let mut captures = Vec::new();
        for module in 0..program.modules().len() {
            let mut blocks = vec![program.module(module).body()];
            for (def, scope) in program.functions(module) {
                blocks.push(&def.body);
                if is_property(def) {
                    properties.insert(def.name.as_str());
                }
                let outer = scope.parent().cloned().unwrap_or_else(|| scope.clone());
                let function = FunctionRef { def, scope: outer, class: scope.class().cloned(), receiver: None };
                by_name.entry(def.name.as_str()).or_default().push(function);
            }
            for block in blocks {
                tree::each_statement(block, &mut |stmt| {
                    if let Stmt::With(with) = stmt
                        && with.items.iter().any(|item| captured_graph(&item.context_expr).is_some())
                    {
                        captures.push((module, with));
                    }
                });
            }
        }
        Self {
            program,
            query,
            found: Vec::new(),
            order: 0,
            share: 100,
            entered: HashMap::new(),
            calls: 0,
            backward: query.phase == Some(Phase::Backward),
            properties,
            by_name,
            captures,
        }
    }

    pub fn run(mut self) -> Vec<Found<'a>> {
        let levels = self.levels();
        for level in &levels {
            self.entered.insert(level.block.as_ptr() as usize, MOST_ENTRIES);
        }
        for level in levels.iter().rev() {
            self.until(level.block, level, &level.scope);
        }
        // The whole stack may have run before, when it was reached from a loop.
        let looped = levels.iter().any(|level| in_loop(level.block, level.at));
        if looped {
            self.share = EARLIER_TURN;
            for level in levels.iter().rev().filter(|level| level.scope.function().is_some()) {
                for stmt in level.block.iter().rev().take_while(|stmt| stmt.start() > level.at) {
                    self.statement(stmt, &level.scope);
                }
            }
        }
        if self.found.is_empty() {
            self.elsewhere(&levels);
        }
        self.found
    }

    /// Nothing that leads to the frames fits: the culprit may run in another thread, or be called by a library.
    fn elsewhere(&mut self, levels: &[Level<'a>]) {
        self.share = ELSEWHERE;
        if let Some(first) = levels.first() {
            self.block(first.block, &first.scope);
        }
        for module in 0..self.program.modules().len() {
            for (def, scope) in self.program.functions(module).into_iter().rev() {
                let times = self.entered.entry(def.body.as_ptr() as usize).or_default();
                if *times == 0 {
                    *times = MOST_ENTRIES;
                    self.block(&def.body, &scope);
                }
            }
        }
    }

    /// Reads a block backwards from the statement that holds a frame's line.
    fn until(&mut self, block: &'a [Stmt], level: &Level<'a>, scope: &Scope<'a>) {
        let Some(index) = block.iter().rposition(|stmt| stmt.start() <= level.at) else { return };
        let stmt = &block[index];
        let inside = tree::blocks(stmt).into_iter().find(|inner| {
            inner.first().is_some_and(|first| first.start() <= level.at)
                && inner.last().is_some_and(|last| last.end() >= level.at)
        });
        match inside {
            Some(inner) => {
                self.until(inner, level, scope);
                if matches!(stmt, Stmt::For(_) | Stmt::While(_)) {
                    let share = self.share;
                    self.share = share * EARLIER_TURN / 100;
                    for later in inner.iter().rev().take_while(|later| later.start() > level.at) {
                        self.statement(later, scope);
                    }
                    self.share = share;
                }
                if let Stmt::Try(attempt) = stmt {
                    let in_body = std::ptr::eq(inner.as_ptr(), attempt.body.as_ptr());
                    if !in_body {
                        self.block(&attempt.body, scope);
                    }
                }
                self.header(stmt, scope, None);
            }
            None => {
                match stmt {
                    // A loop's header runs again after its body; a `with` fails at its end when its body ran.
                    Stmt::For(_) | Stmt::While(_) => {
                        let share = self.share;
                        self.share = share * EARLIER_TURN / 100;
                        for inner in tree::blocks(stmt).into_iter().rev() {
                            self.block(inner, scope);
                        }
                        self.share = share;
                    }
                    Stmt::With(with) => self.block(&with.body, scope),
                    _ => {}
                }
                let limit = level.running.map(|running| (running, level.innermost));
                self.header(stmt, scope, limit);
            }
        }
        for earlier in block[..index].iter().rev() {
            self.statement(earlier, scope);
        }
    }

    /// Reads what a statement itself evaluates; with a running expression, only what was evaluated by then.
    fn header(&mut self, stmt: &'a Stmt, scope: &Scope<'a>, running: Option<(TextRange, bool)>) {
        if let Stmt::AugAssign(assign) = stmt
            && running.is_none()
            && let Expr::Subscript(subscript) = assign.target.as_ref()
        {
            // `x[i] += y` reads and writes.
            for written in [true, false] {
                let guess = index::subscript(self.program, subscript, written, scope);
                self.guesses(&assign.target, guess.into_iter().collect(), scope);
            }
        }
        let mut parts = tree::own_expressions(stmt);
        if matches!(stmt, Stmt::Assign(_) | Stmt::AnnAssign(_)) && parts.len() > 1 {
            // The value is evaluated before the targets are assigned to: read backwards, the targets come first.
            let value = parts.pop();
            parts.splice(0..0, value);
        }
        for expr in parts.into_iter().rev() {
            self.expression(expr, scope, running, 0);
        }
    }

    pub(super) fn block(&mut self, block: &'a [Stmt], scope: &Scope<'a>) {
        for stmt in block.iter().rev() {
            self.statement(stmt, scope);
        }
    }

    fn statement(&mut self, stmt: &'a Stmt, scope: &Scope<'a>) {
        if !self.program.step() {
            return;
        }
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            Stmt::Try(attempt) => {
                self.block(&attempt.finalbody, scope);
                self.block(&attempt.orelse, scope);
                let share = self.share;
                self.share = share * HANDLER / 100;
                for ExceptHandler::ExceptHandler(handler) in attempt.handlers.iter().rev() {
                    self.block(&handler.body, scope);
                }
                self.share = share;
                self.block(&attempt.body, scope);
                return;
            }
            Stmt::With(with) if with.items.iter().any(|item| captured_graph(&item.context_expr).is_some()) => {
                // Captured work does not run here; it is read where the graph is replayed.
                let share = self.share;
                self.share = share * CAPTURED / 100;
                self.block(&with.body, scope);
                self.share = share;
            }
            Stmt::For(looped) => {
                self.block(&looped.orelse, scope);
                self.block(&looped.body, scope);
                if let instance @ Value::Instance { .. } = self.program.value(&looped.iter, scope) {
                    self.enter_method(&instance, &["__iter__", "__next__", "__getitem__"], None);
                }
            }
            _ => {
                for inner in tree::blocks(stmt).into_iter().rev() {
                    self.block(inner, scope);
                }
            }
        }
        self.header(stmt, scope, None);
    }

    pub(super) fn expression(
        &mut self,
        expr: &'a Expr,
        scope: &Scope<'a>,
        running: Option<(TextRange, bool)>,
        depth: u32,
    ) {
        if depth > tree::MAX_DEPTH || !self.program.step() {
            return;
        }
        let evaluated = running.is_none_or(|(range, innermost)| {
            expr.end() <= range.end() && (innermost || expr.range() != range) && !is_store(expr)
        });
        if evaluated {
            self.order += 1;
            match expr {
                Expr::Call(call) => self.call(expr, call, scope),
                Expr::Subscript(subscript) => {
                    match self.program.value(&subscript.value, scope) {
                        instance @ Value::Instance { .. } => self.enter_method(&instance, &["__getitem__"], None),
                        _ => {
                            let guess = index::subscript(self.program, subscript, is_store(expr), scope);
                            self.guesses(expr, guess.into_iter().collect(), scope);
                        }
                    };
                }
                Expr::Attribute(attribute) if self.properties.contains(attribute.attr.as_str()) => {
                    let of = self.program.value(&attribute.value, scope);
                    self.enter_method(&of, &[attribute.attr.as_str()], None);
                }
                _ => {}
            }
        }
        for child in tree::children(expr).into_iter().rev() {
            self.expression(child, scope, running, depth + 1);
        }
    }

    pub(super) fn guesses(&mut self, expr: &'a Expr, guesses: Vec<Guess>, scope: &Scope<'a>) {
        for (operation, sure) in guesses {
            let mut weight = fit::weight(self.query, operation) * sure / 100 * self.share / 100;
            if matches!(operation, Operation::CustomKernel(launcher) if launcher != Launcher::Extension)
                && self.is_named_kernel(expr)
            {
                weight = weight.max(100 * self.share / 100);
            }
            if weight > 0 {
                self.found.push(Found {
                    weight,
                    order: self.order,
                    module: scope.module(),
                    expr,
                    function: scope.name(),
                    why: operation.why(),
                });
            }
        }
    }

    /// Does the evidence name the very kernel that is launched here?
    fn is_named_kernel(&self, launch: &Expr) -> bool {
        let Some(kernel) = self.query.kernel.as_deref() else { return false };
        tree::last_name(launch).is_some_and(|name| name.len() > 2 && kernel.starts_with(name))
    }
}

fn is_store(expr: &Expr) -> bool {
    matches!(expr, Expr::Subscript(subscript) if subscript.ctx == ExprContext::Store)
}

fn in_loop(block: &[Stmt], at: TextSize) -> bool {
    block.iter().any(|stmt| {
        stmt.start() <= at
            && stmt.end() >= at
            && (matches!(stmt, Stmt::For(_) | Stmt::While(_))
                || tree::blocks(stmt).into_iter().any(|inner| in_loop(inner, at)))
    })
}
