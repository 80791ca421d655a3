//! What a call runs: the user's functions, what a library calls back, what a graph replays.

use ruff_python_ast::{Expr, ExprCall, StmtWith};
use ruff_text_size::Ranged;

use crate::python::libraries::{Origin, origin};
use crate::python::tree;
use crate::python::value::{FunctionRef, Scope, Value, is_property};

use super::calls::{self, Device};
use super::walk::{ANY_MODEL, BY_NAME, CALLED_BACK, MAX_CALLS, MOST_ENTRIES, Walk};

impl<'a> Walk<'_, 'a> {
    pub(super) fn call(&mut self, expr: &'a Expr, call: &'a ExprCall, scope: &Scope<'a>) {
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
        let guesses = calls::call(self.program, call, scope);
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
    pub(super) fn callees(&self, callee: &Value<'a>) -> Vec<FunctionRef<'a>> {
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

    pub(super) fn enter_method(&mut self, of: &Value<'a>, names: &[&str], call: Option<(&'a ExprCall, &Scope<'a>)>) {
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
        if matches!(calls::device_function(self.program, function), Some(Device::Kernel(_))) {
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
pub fn captured_graph(context: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = context else { return None };
    (tree::last_name(&call.func) == Some("graph")).then(|| tree::argument(call, 0, "cuda_graph")).flatten()
}
