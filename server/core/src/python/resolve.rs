//! Finding out what an expression stands for: names, calls, containers, annotations.

use ruff_python_ast::{Expr, ExprCall, Operator, Stmt};
use ruff_text_size::{Ranged, TextSize};

use std::rc::Rc;

use super::Program;
use super::libraries;
use super::names::{HOST_CALLS, HOST_TYPES, SAME_MODEL, WRAPPERS, canonical, is_module_container};
use super::table::{Binding, Bound};
use super::tree::{self, children};
use super::value::{ClassRef, FunctionRef, MAX_ALTERNATIVES, MAX_DEPTH, Scope, Value, any, is_static, path};

impl<'a> Program<'a> {
    pub fn value(&self, expr: &'a Expr, scope: &Scope<'a>) -> Value<'a> {
        self.value_within(expr, scope, 0)
    }

    pub(super) fn value_within(&self, expr: &'a Expr, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH || !self.step() {
            return Value::Unknown;
        }
        let deeper = depth + 1;
        match expr {
            Expr::Name(name) => self.name_within(name.id.as_str(), Some(name.start()), scope, deeper),
            Expr::Attribute(attribute) => {
                let of = self.value_within(&attribute.value, scope, deeper);
                self.attribute_within(&of, attribute.attr.as_str(), deeper)
            }
            Expr::Call(call) => self.call_within(call, scope, deeper),
            Expr::Subscript(subscript) => {
                let of = self.value_within(&subscript.value, scope, deeper);
                match of {
                    Value::Function(_) => of,
                    Value::Path { path, call } if call.is_none() => Value::Path { path: format!("{path}[]"), call },
                    _ => self.elements_within(&of, deeper),
                }
            }
            Expr::List(list) => Value::Elements(list.elts.iter().map(|e| (e, scope.clone())).collect()),
            Expr::Tuple(tuple) => Value::Elements(tuple.elts.iter().map(|e| (e, scope.clone())).collect()),
            Expr::Set(set) => Value::Elements(set.elts.iter().map(|e| (e, scope.clone())).collect()),
            Expr::Dict(dict) => Value::Elements(dict.items.iter().map(|item| (&item.value, scope.clone())).collect()),
            Expr::ListComp(comprehension) => Value::Elements(vec![(&comprehension.elt, scope.clone())]),
            Expr::SetComp(comprehension) => Value::Elements(vec![(&comprehension.elt, scope.clone())]),
            Expr::Generator(comprehension) => Value::Elements(vec![(&comprehension.elt, scope.clone())]),
            Expr::DictComp(comprehension) => Value::Elements(vec![(&comprehension.value, scope.clone())]),
            Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_)
            | Expr::FString(_)
            | Expr::TString(_)
            | Expr::Slice(_) => Value::Host,
            Expr::If(choice) => {
                any([self.value_within(&choice.body, scope, deeper), self.value_within(&choice.orelse, scope, deeper)])
            }
            Expr::BoolOp(choice) => any(choice.values.iter().map(|value| self.value_within(value, scope, deeper))),
            Expr::Named(named) => self.value_within(&named.value, scope, deeper),
            Expr::Await(awaited) => self.value_within(&awaited.value, scope, deeper),
            Expr::Starred(starred) => self.value_within(&starred.value, scope, deeper),
            Expr::Lambda(_) => Value::Lambda(expr, scope.clone()),
            Expr::BinOp(binary) => {
                let left = self.value_within(&binary.left, scope, deeper);
                let right = self.value_within(&binary.right, scope, deeper);
                match (left, right) {
                    (Value::Elements(mut left), Value::Elements(right)) if binary.op == Operator::Add => {
                        left.extend(right);
                        Value::Elements(left)
                    }
                    (Value::Elements(elements), Value::Host | Value::Unknown) if binary.op == Operator::Mult => {
                        Value::Elements(elements)
                    }
                    (Value::Host, Value::Host) => Value::Host,
                    _ => Value::Unknown,
                }
            }
            Expr::UnaryOp(unary) => match self.value_within(&unary.operand, scope, deeper) {
                Value::Host => Value::Host,
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }

    /// What a name stands for at a position of a scope, or at its end.
    pub fn name(&self, name: &str, at: Option<TextSize>, scope: &Scope<'a>) -> Value<'a> {
        self.name_within(name, at, scope, 0)
    }

    pub(super) fn name_within(&self, name: &str, at: Option<TextSize>, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH || !self.step() {
            return Value::Unknown;
        }
        if let Some(binding) = scope.table().get(name, at) {
            // A parameter that is bound again below keeps its own value above that.
            let still_parameter = at.is_some_and(|at| binding.at > at) && self.is_parameter(name, scope);
            if !still_parameter {
                let defined = |b: &&Binding<'a>| matches!(b.what, Bound::Function(_) | Bound::Class(_));
                let definitions: Vec<_> = scope.table().all(name).iter().filter(defined).collect();
                if definitions.len() > 1 && defined(&binding) {
                    // Defined in several branches, one of which was taken.
                    return any(definitions.into_iter().map(|b| self.bound_within(&b.what, scope, depth + 1)));
                }
                return self.bound_within(&binding.what, scope, depth + 1);
            }
        }
        if self.is_parameter(name, scope) {
            return self.parameter_within(name, scope, depth + 1);
        }
        if let Some(parent) = scope.parent() {
            return self.name_within(name, None, parent, depth + 1);
        }
        for (level, module) in scope.table().stars.iter().rev() {
            match self.imported(scope.module(), *level, module) {
                Some(index) => {
                    let value = self.name_within(name, None, &self.module_scope(index), depth + 1);
                    if !matches!(&value, Value::Path { path, .. } if path.starts_with("builtins.")) {
                        return value;
                    }
                }
                None if *level == 0 => return path(format!("{module}.{name}")),
                None => {}
            }
        }
        if self.module(scope.module()).is_cell() {
            for (index, module) in self.modules().iter().enumerate() {
                let other = index != scope.module() && module.is_cell();
                if other && !self.table(module.body()).all(name).is_empty() {
                    return self.name_within(name, None, &self.module_scope(index), depth + 1);
                }
            }
        }
        if libraries::is_builtin(name) { path(format!("builtins.{name}")) } else { Value::Unknown }
    }

    fn is_parameter(&self, name: &str, scope: &Scope<'a>) -> bool {
        scope.function().is_some_and(|def| def.parameters.includes(name))
    }

    fn parameter_within(&self, name: &str, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        let Some(def) = scope.function() else { return Value::Unknown };
        let first = def.parameters.posonlyargs.iter().chain(&def.parameters.args).next();
        let is_receiver = first.is_some_and(|first| first.parameter.name.as_str() == name) && !is_static(def);
        if is_receiver && let Some(class) = scope.class() {
            return match scope.receiver() {
                Some(receiver) => receiver.as_ref().clone(),
                None => Value::Instance { class: class.clone(), made: None },
            };
        }
        if let Some((_, argument, from)) = scope.arguments().iter().find(|(bound, _, _)| *bound == name) {
            return self.value_within(argument, from, depth);
        }
        let Some(parameter) = def.parameters.iter_non_variadic_params().find(|p| p.parameter.name.as_str() == name)
        else {
            return Value::Unknown;
        };
        let outer = scope.parent().unwrap_or(scope);
        match parameter.default.as_deref() {
            Some(default) if !default.is_none_literal_expr() => self.value_within(default, outer, depth),
            _ => parameter
                .parameter
                .annotation
                .as_deref()
                .map_or(Value::Unknown, |annotation| self.annotated_within(annotation, outer, depth)),
        }
    }

    /// An object of the type that an annotation names.
    fn annotated_within(&self, annotation: &'a Expr, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        match annotation {
            Expr::Subscript(subscript) if tree::last_name(&subscript.value) == Some("Optional") => {
                return self.annotated_within(&subscript.slice, scope, depth + 1);
            }
            Expr::BinOp(either) if either.op == Operator::BitOr => {
                return self.annotated_within(&either.left, scope, depth + 1);
            }
            Expr::Subscript(_) => return Value::Unknown,
            _ => {}
        }
        match self.value_within(annotation, scope, depth) {
            Value::Class(class) => Value::Instance { class, made: None },
            Value::Path { path, .. } if HOST_TYPES.contains(&path.as_str()) => Value::Host,
            Value::Path { path, .. } => Value::Path { path: format!("{path}()"), call: None },
            _ => Value::Unknown,
        }
    }

    pub(super) fn bound_within(&self, what: &Bound<'a>, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        match what {
            Bound::Function(def) => {
                // A method is looked up through its class; a function inside one is not a method of it.
                Value::Function(FunctionRef { def, scope: scope.clone(), class: None, receiver: None })
            }
            Bound::Class(def) => Value::Class(ClassRef { def, scope: scope.clone() }),
            Bound::Import(dotted) => {
                self.imported(scope.module(), 0, dotted).map_or_else(|| path(dotted.clone()), Value::Module)
            }
            Bound::From { level, module, name } => self.import_from(scope.module(), *level, module, name, depth),
            Bound::Value(expr) => self.value_within(expr, scope, depth),
            Bound::Item(expr, index) => self.item_within(expr, *index, scope, depth),
            Bound::Element(iterated, index) => self.element_within(iterated, *index, scope, depth),
            Bound::Entered(expr) => self.value_within(expr, scope, depth),
            Bound::Declared(annotation) => self.annotated_within(annotation, scope, depth),
            Bound::Something => Value::Unknown,
        }
    }

    fn import_from(&self, from: usize, level: u32, module: &str, name: &str, depth: u32) -> Value<'a> {
        if let Some(index) = self.imported(from, level, module) {
            let scope = self.module_scope(index);
            if !scope.table().all(name).is_empty() || !scope.table().stars.is_empty() {
                return self.name_within(name, None, &scope, depth + 1);
            }
        }
        let submodule = if module.is_empty() { name.to_owned() } else { format!("{module}.{name}") };
        match self.imported(from, level, &submodule) {
            Some(index) => Value::Module(index),
            None => path(canonical(&submodule)),
        }
    }

    /// The item at an index of a value that is unpacked: `a, b = f(x)`.
    fn item_within(&self, expr: &'a Expr, index: usize, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        if let Expr::Call(call) = expr
            && let Expr::Attribute(attribute) = call.func.as_ref()
            && matches!(attribute.attr.as_str(), "prepare" | "setup" | "initialize")
            && let Some(argument) = call.arguments.args.get(index)
        {
            // accelerator.prepare(model, optimizer), fabric.setup(model, optimizer) hand back what they were given.
            return self.value_within(argument, scope, depth + 1);
        }
        match self.value_within(expr, scope, depth + 1) {
            Value::Elements(elements) => {
                elements.get(index).map_or(Value::Unknown, |(item, scope)| self.value_within(item, scope, depth + 1))
            }
            Value::Path { path, call } if path.ends_with(')') => Value::Path { path: format!("{path}[]"), call },
            _ => Value::Unknown,
        }
    }

    /// What iterating an expression gives, or the item at an index of that.
    fn element_within(&self, iterated: &'a Expr, index: Option<usize>, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH {
            return Value::Unknown;
        }
        let deeper = depth + 1;
        if let Expr::Call(call) = iterated {
            let first = call.arguments.args.first();
            let name = tree::last_name(&call.func).unwrap_or("");
            match (name, index, first) {
                ("range", ..) => return Value::Host,
                ("enumerate", Some(0), _) => return Value::Host,
                ("enumerate", Some(_), Some(first)) => return self.element_within(first, None, scope, deeper),
                ("enumerate", None, _) => return Value::Unknown,
                ("zip", Some(index), _) => {
                    let argument = call.arguments.args.get(index);
                    return argument.map_or(Value::Unknown, |a| self.element_within(a, None, scope, deeper));
                }
                ("reversed" | "sorted" | "list" | "tuple" | "set" | "tqdm" | "trange" | "track", _, Some(first)) => {
                    return self.element_within(first, index, scope, deeper);
                }
                ("items" | "keys" | "values" | "named_children" | "children", ..) => {
                    let Expr::Attribute(attribute) = call.func.as_ref() else { return Value::Unknown };
                    let is_key = name == "keys" || (index == Some(0) && name != "values" && name != "children");
                    if is_key {
                        return Value::Host;
                    }
                    let of = self.value_within(&attribute.value, scope, deeper);
                    return self.elements_within(&of, deeper);
                }
                _ => {}
            }
        }
        let of = self.value_within(iterated, scope, deeper);
        let element = self.elements_within(&of, deeper);
        match (element, index) {
            (element, None) => element,
            (Value::Elements(items), Some(index)) => {
                items.get(index).map_or(Value::Unknown, |(item, scope)| self.value_within(item, scope, deeper))
            }
            (Value::Any(values), Some(index)) => any(values.into_iter().map(|value| match value {
                Value::Elements(items) => {
                    items.get(index).map_or(Value::Unknown, |(item, scope)| self.value_within(item, scope, deeper))
                }
                _ => Value::Unknown,
            })),
            _ => Value::Unknown,
        }
    }

    /// What a container holds.
    pub(super) fn elements_within(&self, of: &Value<'a>, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH {
            return Value::Unknown;
        }
        match of {
            Value::Elements(items) => {
                any(items.iter().take(MAX_ALTERNATIVES).map(|(item, scope)| self.value_within(item, scope, depth + 1)))
            }
            Value::Path { path, call: Some((call, scope)) } if is_module_container(path) => {
                any(call.arguments.args.iter().take(MAX_ALTERNATIVES).map(|argument| {
                    match self.value_within(argument, scope, depth + 1) {
                        of @ Value::Elements(_) => self.elements_within(&of, depth + 1),
                        member => member,
                    }
                }))
            }
            Value::Any(values) => any(values.iter().map(|value| self.elements_within(value, depth + 1))),
            _ => Value::Unknown,
        }
    }

    pub fn elements(&self, of: &Value<'a>) -> Value<'a> {
        self.elements_within(of, 0)
    }

    fn call_within(&self, call: &'a ExprCall, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH || !self.step() {
            return Value::Unknown;
        }
        let deeper = depth + 1;
        if let Expr::Attribute(attribute) = call.func.as_ref()
            && SAME_MODEL.contains(&attribute.attr.as_str())
        {
            match self.value_within(&attribute.value, scope, deeper) {
                same @ (Value::Instance { .. } | Value::Any(_)) => return same,
                Value::Path { path, call } if path.ends_with(')') => return Value::Path { path, call },
                _ => {}
            }
        }
        if let Expr::Name(name) = call.func.as_ref()
            && name.id.as_str() == "super"
            && let Some(class) = scope.class()
        {
            let receiver = scope
                .receiver()
                .cloned()
                .unwrap_or_else(|| Rc::new(Value::Instance { class: class.clone(), made: None }));
            return Value::Super(class.clone(), Some(receiver));
        }
        let callee = self.value_within(&call.func, scope, deeper);
        self.result_of(&callee, call, scope, deeper)
    }

    fn result_of(&self, callee: &Value<'a>, call: &'a ExprCall, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH {
            return Value::Unknown;
        }
        match callee {
            Value::Path { path, .. } if HOST_CALLS.contains(&path.as_str()) => Value::Host,
            Value::Path { path, call: made } if path.ends_with(".get_function") => {
                Value::Path { path: format!("{path}()"), call: made.clone() }
            }
            Value::Path { path, .. } => Value::Path { path: format!("{path}()"), call: Some((call, scope.clone())) },
            Value::Class(class) => Value::Instance { class: class.clone(), made: Some((call, scope.clone())) },
            Value::Function(function) => self.returned(function, Some((call, scope)), depth + 1),
            Value::Lambda(Expr::Lambda(lambda), inner) => self.value_within(&lambda.body, inner, depth + 1),
            Value::Any(values) => any(values.iter().map(|value| self.result_of(value, call, scope, depth + 1))),
            _ => Value::Unknown,
        }
    }

    /// What a function of the user's returns.
    pub(super) fn returned(
        &self,
        function: &FunctionRef<'a>,
        call: Option<(&'a ExprCall, &Scope<'a>)>,
        depth: u32,
    ) -> Value<'a> {
        if depth > MAX_DEPTH {
            return Value::Unknown;
        }
        let scope = Scope::of_call(self, function, call);
        let mut returns = Vec::new();
        tree::each_statement(&function.def.body, &mut |stmt| {
            if let Stmt::Return(returned) = stmt
                && let Some(value) = returned.value.as_deref()
            {
                returns.push(value);
            }
        });
        any(returns.into_iter().take(MAX_ALTERNATIVES).map(|value| self.value_within(value, &scope, depth + 1)))
    }

    /// What a wrapper stands for: the function inside `torch.compile(f)`, `partial(f, ..)`, `jax.jit(f)`.
    pub fn unwrapped(&self, value: &Value<'a>) -> Option<Value<'a>> {
        let Value::Path { path, call: Some((call, scope)) } = value else { return None };
        let wrapper = path.strip_suffix("()")?;
        if !WRAPPERS.contains(&wrapper) {
            return None;
        }
        let argument = call.arguments.args.first().or_else(|| tree::keyword(call, "module"))?;
        Some(self.value(argument, scope))
    }

    /// The full names of a function's decorators; one with arguments ends with `()`, and a `functools.partial` of a
    /// decorator counts as that decorator.
    pub fn decorators(&self, function: &FunctionRef<'a>) -> Vec<String> {
        let names = function.def.decorator_list.iter().filter_map(|decorator| {
            match self.value(&decorator.expression, &function.scope) {
                Value::Path { path, call: Some((call, scope)) } if path == "functools.partial()" => {
                    match self.value(call.arguments.args.first()?, &scope) {
                        Value::Path { path, .. } => Some(format!("{path}()")),
                        _ => None,
                    }
                }
                Value::Path { path, .. } => Some(path),
                _ => None,
            }
        });
        names.collect()
    }

    /// Every name and attribute of an expression that could be a function or an object of the user's.
    pub fn mentioned(&self, expr: &'a Expr, scope: &Scope<'a>) -> Vec<Value<'a>> {
        let value = self.value(expr, scope);
        if !matches!(value, Value::Unknown | Value::Elements(_)) {
            return vec![value];
        }
        match expr {
            Expr::List(_) | Expr::Tuple(_) | Expr::Dict(_) => {
                children(expr).into_iter().take(MAX_ALTERNATIVES).map(|child| self.value(child, scope)).collect()
            }
            _ => vec![value],
        }
    }
}
