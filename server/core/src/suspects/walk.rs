//! Reads a program backwards from where a failure surfaced, in the order in which it ran.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt as walk_statement};
use ruff_python_ast::{ExceptHandler, Expr, ExprCall, ExprContext, Stmt, StmtWith};
use ruff_text_size::{Ranged, TextRange, TextSize};

use crate::python::libraries::{Origin, origin};
use crate::python::program::candidates;
use crate::python::value::{FunctionRef, Scope, Value, is_property};
use crate::python::{Module, Program, tree};
use crate::text::LineColumn;
use crate::verdict::{Frame, Phase, Place};

use super::fit::{self, Guess};
use super::Query;
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
const MOST_ENTRIES: u32 = 3;
const MAX_CALLS: u32 = 40;

/// What remains of a weight, in per cent, of code that ran in an earlier turn of a loop, of code that a library may call
/// back, of the branch of an exception handler, and of code found only by its name.
const EARLIER_TURN: u32 = 80;
const CALLED_BACK: u32 = 90;
const HANDLER: u32 = 70;
const CAPTURED: u32 = 60;
const BY_NAME: u32 = 80;
const ANY_MODEL: u32 = 65;

pub struct Walk<'p, 'a> {
    program: &'p Program<'a>,
    query: &'p Query,
    found: Vec<Found<'a>>,
    order: u32,
    /// What remains of the weight of what is read now.
    share: u32,
    /// Functions by the address of their body: how often they were read.
    entered: HashMap<usize, u32>,
    calls: u32,
    /// A backward pass ran later than what is read now.
    backward: bool,
    /// Names of properties of the user's classes: an attribute of such a name runs code.
    properties: HashSet<&'a str>,
    by_name: HashMap<&'a str, Vec<FunctionRef<'a>>>,
    captures: Vec<(usize, &'a StmtWith)>,
}

/// A frame whose source is at hand.
struct Level<'a> {
    scope: Scope<'a>,
    block: &'a [Stmt],
    /// Where the line's code starts.
    at: TextSize,
    /// The expression that was running.
    running: Option<TextRange>,
    innermost: bool,
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
        self.found
    }

    /// The frames whose source is at hand, outermost first, with their arguments where the call is in sight.
    fn levels(&self) -> Vec<Level<'a>> {
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
                let guess = fit::subscript(self.program, subscript, written, scope);
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

    fn block(&mut self, block: &'a [Stmt], scope: &Scope<'a>) {
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

    fn expression(&mut self, expr: &'a Expr, scope: &Scope<'a>, running: Option<(TextRange, bool)>, depth: u32) {
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
                            let guess = fit::subscript(self.program, subscript, is_store(expr), scope);
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

    fn guesses(&mut self, expr: &'a Expr, guesses: Vec<Guess>, scope: &Scope<'a>) {
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

    fn call(&mut self, expr: &'a Expr, call: &'a ExprCall, scope: &Scope<'a>) {
        let method = match call.func.as_ref() {
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => "",
        };
        if method == "replay" {
            return self.replay(&call.func);
        }
        if matches!(method, "backward" | "manual_backward")
            || tree::dotted(&call.func).is_some_and(|f| f.ends_with("autograd.grad"))
        {
            self.backward = true;
        }
        if let ("apply", Expr::Attribute(attribute)) = (method, call.func.as_ref())
            && let function @ Value::Class(_) = self.program.value(&attribute.value, scope)
        {
            let passes: &[&str] = if self.backward { &["backward", "forward"] } else { &["forward"] };
            self.enter_method(&function, passes, Some((call, scope)));
            return;
        }
        let guesses = fit::call(self.program, call, scope);
        let unknown = guesses.is_empty();
        self.guesses(expr, guesses, scope);
        let callee = self.program.value(&call.func, scope);
        if let (Value::Path { .. }, Expr::Attribute(attribute)) = (&callee, call.func.as_ref())
            && TRAINING_METHODS.contains(&method)
            && let trained @ Value::Instance { .. } = self.program.value(&attribute.value, scope)
        {
            // A method of the library's base class, such as `Trainer.train`, calls what the user's class overrides.
            let share = self.share;
            self.share = share * CALLED_BACK / 100;
            self.enter_method(&trained, ENTRY_METHODS, None);
            self.share = share;
        }
        self.enter(&callee, call, scope, unknown);
    }

    /// Reads the functions that a call runs.
    fn enter(&mut self, callee: &Value<'a>, call: &'a ExprCall, scope: &Scope<'a>, unknown: bool) {
        match callee {
            Value::Lambda(Expr::Lambda(lambda), inner) => self.expression(&lambda.body, inner, None, 0),
            Value::Any(values) => {
                for value in values {
                    self.enter(value, call, scope, false);
                }
            }
            Value::Path { path, call: made } => {
                if let Some(inner) = self.program.unwrapped(callee) {
                    return self.enter(&inner, call, scope, false);
                }
                if path == "torch.nn.Sequential()"
                    && let Some((made, made_in)) = made
                {
                    for member in made.arguments.args.iter().rev() {
                        let member = self.program.value(member, made_in);
                        self.enter(&member, call, scope, false);
                    }
                    return;
                }
                if !calls_back(path) {
                    return;
                }
                self.called_back(call, scope);
                if let Some((made, made_in)) = made
                    && !std::ptr::eq(*made, call)
                {
                    self.called_back(made, made_in);
                }
            }
            Value::Unknown => {
                self.called_back(call, scope);
                if unknown || guessed_model(call) {
                    self.enter_by_name(call, scope);
                }
            }
            callee => {
                for function in self.callees(callee) {
                    self.enter_function(&function, Some((call, scope)));
                }
            }
        }
    }

    /// The user's functions that calling a value runs.
    fn callees(&self, callee: &Value<'a>) -> Vec<FunctionRef<'a>> {
        match callee {
            Value::Function(function) => vec![function.clone()],
            Value::Instance { .. } => {
                let method = ["forward", "__call__"].into_iter().find_map(|name| self.method(callee, name));
                method.into_iter().collect()
            }
            Value::Class(_) => self.method(callee, "__init__").into_iter().collect(),
            Value::Any(values) => values.iter().flat_map(|value| self.callees(value)).collect(),
            Value::Path { .. } => self.program.unwrapped(callee).map_or_else(Vec::new, |inner| self.callees(&inner)),
            _ => Vec::new(),
        }
    }

    fn method(&self, of: &Value<'a>, name: &str) -> Option<FunctionRef<'a>> {
        match of {
            Value::Instance { class, .. } | Value::Class(class)
                if !self.program.table(&class.def.body).all(name).is_empty() || is_property_name(name) =>
            {
                match self.program.attribute(of, name) {
                    Value::Function(function) => Some(function),
                    _ => None,
                }
            }
            _ => match self.program.attribute(of, name) {
                Value::Function(function) => Some(function),
                _ => None,
            },
        }
    }

    fn enter_method(&mut self, of: &Value<'a>, names: &[&str], call: Option<(&'a ExprCall, &Scope<'a>)>) {
        for name in names {
            if let Some(function) = self.method(of, name).or_else(|| self.property(of, name)) {
                self.enter_function(&function, call);
            }
        }
    }

    fn property(&self, of: &Value<'a>, name: &str) -> Option<FunctionRef<'a>> {
        let (Value::Instance { class, .. } | Value::Class(class)) = of else { return None };
        let functions = self.by_name.get(name)?;
        let of_class = |f: &&FunctionRef<'a>| f.class.as_ref().is_some_and(|c| std::ptr::eq(c.def, class.def));
        functions.iter().find(of_class).filter(|f| is_property(f.def)).cloned()
    }

    fn enter_function(&mut self, function: &FunctionRef<'a>, call: Option<(&'a ExprCall, &Scope<'a>)>) {
        let times = self.entered.entry(function.def.body.as_ptr() as usize).or_default();
        if *times >= MOST_ENTRIES || self.calls >= MAX_CALLS {
            return;
        }
        if matches!(fit::device_function(self.program, function), Some(fit::Device::Kernel(_))) {
            return;
        }
        *times += 1;
        self.calls += 1;
        let scope = Scope::of_call(self.program, function, call);
        self.block(&function.def.body, &scope);
        self.calls -= 1;
    }

    /// A library was given functions or objects of the user's: it may call them.
    fn called_back(&mut self, call: &'a ExprCall, scope: &Scope<'a>) {
        let share = self.share;
        self.share = share * CALLED_BACK / 100;
        let arguments = call.arguments.args.iter().chain(call.arguments.keywords.iter().map(|k| &k.value));
        let arguments: Vec<&'a Expr> = arguments.collect();
        for argument in arguments.into_iter().rev() {
            for value in self.program.mentioned(argument, scope) {
                match &value {
                    Value::Function(function) => self.enter_function(function, None),
                    Value::Lambda(Expr::Lambda(lambda), inner) => self.expression(&lambda.body, inner, None, 0),
                    Value::Instance { .. } => self.enter_method(&value, ENTRY_METHODS, None),
                    Value::Path { .. } => {
                        if let Some(Value::Function(function)) = self.program.unwrapped(&value) {
                            self.enter_function(&function, None);
                        }
                    }
                    _ => {}
                }
            }
        }
        self.share = share;
    }

    /// A call that could not be followed runs the user's functions of that name, if they are few; one that looks like
    /// a model's, the models that are here.
    fn enter_by_name(&mut self, call: &'a ExprCall, scope: &Scope<'a>) {
        let Some(name) = tree::last_name(&call.func) else { return };
        let share = self.share;
        let named = self.by_name.get(name).cloned().unwrap_or_default();
        if !named.is_empty() && named.len() <= 3 && !name.starts_with("__") {
            self.share = share * BY_NAME / 100;
            for function in named {
                self.enter_function(&function, Some((call, scope)));
            }
        } else if guessed_model(call) || call.func.is_name_expr() && self.is_parameter(name, scope) {
            self.share = share * ANY_MODEL / 100;
            for function in self.by_name.get("forward").cloned().unwrap_or_default().into_iter().rev().take(8) {
                self.enter_function(&function, None);
            }
        }
        self.share = share;
    }

    fn is_parameter(&self, name: &str, scope: &Scope<'a>) -> bool {
        scope.function().is_some_and(|def| def.parameters.includes(name))
    }

    /// The replay of a graph runs what was captured into it.
    fn replay(&mut self, replay: &'a Expr) {
        let Expr::Attribute(attribute) = replay else { return };
        let graph = tree::last_name(&attribute.value);
        let of_graph = |with: &StmtWith| {
            with.items.iter().filter_map(|item| captured_graph(&item.context_expr)).any(|g| tree::last_name(g) == graph)
        };
        let captures = self.captures.clone();
        let any_of_it = captures.iter().any(|(_, with)| of_graph(with));
        for (module, with) in captures.into_iter().rev().filter(|(_, with)| !any_of_it || of_graph(with)) {
            let times = self.entered.entry(with.body.as_ptr() as usize).or_default();
            *times += 1;
            if *times == 1 {
                let scope = self.program.scope_at(module, with.start());
                self.block(&with.body, &scope);
            }
        }
    }
}

/// Methods of an object that a trainer, a loader or a wrapper calls.
const ENTRY_METHODS: &[&str] = &[
    "training_step",
    "validation_step",
    "compute_loss",
    "forward",
    "__call__",
    "__getitem__",
    "__iter__",
    "collate_fn",
];

/// Methods of a library's base class that run what a class of the user's overrides.
const TRAINING_METHODS: &[&str] =
    &["train", "fit", "evaluate", "predict", "test", "validate", "run", "step", "propagate", "forward", "learn"];

fn is_property_name(name: &str) -> bool {
    !name.starts_with("__")
}

/// May a library function of this name call what it is given?
fn calls_back(path: &str) -> bool {
    match origin(path) {
        Origin::Builtin => matches!(
            path,
            "builtins.map"
                | "builtins.filter"
                | "builtins.next"
                | "builtins.iter"
                | "builtins.list"
                | "builtins.sorted"
        ),
        Origin::Host => false,
        _ => !path.starts_with("numpy"),
    }
}

fn guessed_model(call: &ExprCall) -> bool {
    call.func.is_name_expr()
        || call.func.is_attribute_expr() && {
            let name = tree::last_name(&call.func).unwrap_or("");
            ["model", "net", "encoder", "decoder", "module", "backbone", "policy", "forward"]
                .iter()
                .any(|w| name.contains(w))
        }
}

/// The graph that `torch.cuda.graph(g)` captures into.
fn captured_graph(context: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = context else { return None };
    (tree::last_name(&call.func) == Some("graph")).then(|| tree::argument(call, 0, "cuda_graph")).flatten()
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
