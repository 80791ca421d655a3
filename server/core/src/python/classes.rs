//! Finding out what an attribute stands for: of a module, a class, an object, a library.

use std::rc::Rc;

use ruff_python_ast::{Expr, Stmt};

use super::Program;
use super::names::canonical;
use super::table::{Bound, assigned};
use super::tree;
use super::value::{ClassRef, FunctionRef, MAX_DEPTH, Scope, Value, any, is_property, path};

impl<'a> Program<'a> {
    pub fn attribute(&self, of: &Value<'a>, name: &str) -> Value<'a> {
        self.attribute_within(of, name, 0)
    }

    pub(super) fn attribute_within(&self, of: &Value<'a>, name: &str, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH || !self.step() {
            return Value::Unknown;
        }
        match of {
            Value::Path { path, call: Some((call, scope)) } if path == "torch.nn.ModuleDict()" => {
                let member = call.arguments.args.first().and_then(|members| entry(members, name));
                member.map_or(Value::Unknown, |member| self.value_within(member, scope, depth + 1))
            }
            Value::Path { path: of, call } => {
                Value::Path { path: canonical(&format!("{of}.{name}")), call: call.clone() }
            }
            Value::Module(index) => {
                let scope = self.module_scope(*index);
                if scope.table().all(name).is_empty() && scope.table().stars.is_empty() {
                    // A submodule of a package: `import pkg.net` and then `pkg.net.f`.
                    return self.imported(*index, 1, name).map_or(Value::Unknown, Value::Module);
                }
                self.name_within(name, None, &scope, depth + 1)
            }
            Value::Instance { class, .. } => self.class_attribute(class, name, Some(of), depth + 1),
            Value::Class(class) => self.class_attribute(class, name, None, depth + 1),
            Value::Super(class, receiver) => self.base_attribute(class, name, receiver.as_deref(), depth + 1),
            Value::Any(values) => any(values.iter().map(|value| self.attribute_within(value, name, depth + 1))),
            _ => Value::Unknown,
        }
    }

    fn class_attribute(&self, class: &ClassRef<'a>, name: &str, receiver: Option<&Value<'a>>, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH || !self.step() {
            return Value::Unknown;
        }
        let table = self.table(&class.def.body);
        if let Some(Bound::Function(def)) = table.get(name, None).map(|binding| &binding.what) {
            let function = FunctionRef {
                def,
                scope: class.scope.clone(),
                class: Some(class.clone()),
                receiver: receiver.cloned().map(Rc::new),
            };
            if is_property(def) {
                return self.returned(&function, None, depth + 1);
            }
            return Value::Function(function);
        }
        if receiver.is_some() {
            let found = self.instance_attribute(class, name, receiver, depth + 1);
            if !matches!(found, Value::Unknown) {
                return found;
            }
        }
        if let Some(binding) = table.get(name, None) {
            return self.bound_within(&binding.what, &class.scope, depth + 1);
        }
        self.base_attribute(class, name, receiver, depth + 1)
    }

    fn base_attribute(&self, class: &ClassRef<'a>, name: &str, receiver: Option<&Value<'a>>, depth: u32) -> Value<'a> {
        for base in self.bases(class) {
            let found = match self.value_within(base, &class.scope, depth + 1) {
                Value::Class(base) if !std::ptr::eq(base.def, class.def) => {
                    self.class_attribute(&base, name, receiver, depth + 1)
                }
                // What a module of torch itself brings along is its methods; the user's attributes are unknown.
                Value::Path { path: base, .. } if base == "torch.nn.Module" => Value::Unknown,
                Value::Path { path: base, .. } if receiver.is_some() => path(format!("{base}().{name}")),
                Value::Path { path: base, .. } => path(format!("{base}.{name}")),
                _ => Value::Unknown,
            };
            if !matches!(found, Value::Unknown) {
                return found;
            }
        }
        Value::Unknown
    }

    pub fn bases(&self, class: &ClassRef<'a>) -> &'a [Expr] {
        class.def.arguments.as_ref().map_or(&[], |arguments| &arguments.args)
    }

    /// Does the class, or one that it is made from, have this library class as a base?
    pub fn derives_from(&self, class: &ClassRef<'a>, is_it: &dyn Fn(&str) -> bool) -> bool {
        self.derives_within(class, is_it, 0)
    }

    fn derives_within(&self, class: &ClassRef<'a>, is_it: &dyn Fn(&str) -> bool, depth: u32) -> bool {
        depth < MAX_DEPTH
            && self.bases(class).iter().any(|base| match self.value(base, &class.scope) {
                Value::Path { path, .. } => is_it(&path),
                Value::Class(base) if !std::ptr::eq(base.def, class.def) => {
                    self.derives_within(&base, is_it, depth + 1)
                }
                _ => false,
            })
    }

    /// `self.name = value` in the class's methods.
    fn instance_attribute(
        &self,
        class: &ClassRef<'a>,
        name: &str,
        receiver: Option<&Value<'a>>,
        depth: u32,
    ) -> Value<'a> {
        let mut found = Vec::new();
        for stmt in &class.def.body {
            let Stmt::FunctionDef(method) = stmt else { continue };
            let Some(receiver_name) = method.parameters.args.first().map(|p| p.parameter.name.as_str()) else {
                continue;
            };
            let mut bounds: Vec<Bound<'a>> = Vec::new();
            tree::each_statement(&method.body, &mut |stmt| match stmt {
                Stmt::Assign(assign) => {
                    for target in &assign.targets {
                        attribute_targets(target, receiver_name, name, &assign.value, &mut bounds);
                    }
                }
                Stmt::AnnAssign(assign) => {
                    if let Some(value) = &assign.value {
                        attribute_targets(&assign.target, receiver_name, name, value, &mut bounds);
                    }
                }
                Stmt::Expr(call) => {
                    if let Some(value) = registered(&call.value, receiver_name, name) {
                        bounds.push(Bound::Value(value));
                    }
                }
                _ => {}
            });
            if bounds.is_empty() {
                continue;
            }
            let function = FunctionRef {
                def: method,
                scope: class.scope.clone(),
                class: Some(class.clone()),
                receiver: receiver.cloned().map(Rc::new),
            };
            let made = match receiver {
                Some(Value::Instance { made: Some((call, scope)), .. }) if method.name.as_str() == "__init__" => {
                    Some((*call, scope))
                }
                _ => None,
            };
            let scope = Scope::of_call(self, &function, made);
            for bound in bounds {
                if !matches!(bound, Bound::Value(Expr::NoneLiteral(_))) {
                    found.push(self.bound_within(&bound, &scope, depth + 1));
                }
            }
        }
        any(found)
    }
}

/// The value of a key in `{"key": value}` or `dict(key=value)`.
fn entry<'a>(mapping: &'a Expr, key: &str) -> Option<&'a Expr> {
    match mapping {
        Expr::Dict(dict) => {
            let is_it = |item: &&ruff_python_ast::DictItem| item.key.as_ref().and_then(tree::string) == Some(key);
            dict.items.iter().find(is_it).map(|item| &item.value)
        }
        Expr::Call(call) => tree::keyword(call, key),
        _ => None,
    }
}

/// Adds what `receiver.name` gets from an assignment to `target`.
fn attribute_targets<'a>(target: &'a Expr, receiver: &str, name: &str, value: &'a Expr, found: &mut Vec<Bound<'a>>) {
    let is_it = |target: &Expr| match target {
        Expr::Attribute(attribute) => {
            attribute.attr.as_str() == name
                && matches!(attribute.value.as_ref(), Expr::Name(of) if of.id.as_str() == receiver)
        }
        _ => false,
    };
    match target {
        Expr::Tuple(tuple) => {
            for (index, item) in tuple.elts.iter().enumerate() {
                if is_it(item) {
                    found.push(assigned(value, Some(index)));
                }
            }
        }
        target if is_it(target) => found.push(Bound::Value(value)),
        _ => {}
    }
}

/// `self.add_module("name", value)` and `self.register_buffer("name", value)`.
fn registered<'a>(expr: &'a Expr, receiver: &str, name: &str) -> Option<&'a Expr> {
    let Expr::Call(call) = expr else { return None };
    let Expr::Attribute(attribute) = call.func.as_ref() else { return None };
    let on_receiver = matches!(attribute.value.as_ref(), Expr::Name(of) if of.id.as_str() == receiver);
    let adds = matches!(attribute.attr.as_str(), "add_module" | "register_module" | "register_buffer");
    let [named, value, ..] = &call.arguments.args[..] else { return None };
    (on_receiver && adds && tree::string(named) == Some(name)).then_some(value)
}
