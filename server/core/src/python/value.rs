//! What an expression stands for, as far as reading tells: a function, a class, an object of a class, a library's name.

use std::rc::Rc;

use ruff_python_ast::{Expr, ExprCall, Operator, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextSize};

use super::Program;
use super::libraries;
use super::table::{Binding, Bound, Table, assigned};
use super::tree::{self, children};

/// How many alternatives of a value are followed, and how deep definitions are.
const MAX_ALTERNATIVES: usize = 12;
const MAX_DEPTH: u32 = 24;

#[derive(Clone)]
pub enum Value<'a> {
    Unknown,
    /// A number, a string, a container of Python: no tensor and no callable.
    Host,
    /// A library's thing by its full name, such as `torch.nn.Embedding`; `()` stands for what a call of it gave, with
    /// that call beside it: `torch.nn.Embedding()`, `cupy.RawModule().get_function()`.
    Path {
        path: String,
        call: Option<(&'a ExprCall, Scope<'a>)>,
    },
    Module(usize),
    Function(FunctionRef<'a>),
    Lambda(&'a Expr, Scope<'a>),
    Class(ClassRef<'a>),
    Instance {
        class: ClassRef<'a>,
        made: Option<(&'a ExprCall, Scope<'a>)>,
    },
    /// `super()` inside a method of this class.
    Super(ClassRef<'a>, Option<Rc<Value<'a>>>),
    /// The elements of a list, tuple, set or dictionary that is written out.
    Elements(Vec<(&'a Expr, Scope<'a>)>),
    Any(Vec<Value<'a>>),
}

#[derive(Clone)]
pub struct FunctionRef<'a> {
    pub def: &'a StmtFunctionDef,
    /// Where it is defined.
    pub scope: Scope<'a>,
    pub class: Option<ClassRef<'a>>,
    /// The object that it was taken from.
    pub receiver: Option<Rc<Value<'a>>>,
}

#[derive(Clone)]
pub struct ClassRef<'a> {
    pub def: &'a StmtClassDef,
    /// Where it is defined.
    pub scope: Scope<'a>,
}

/// Where a name is looked up: a module, or one call of a function with its arguments.
#[derive(Clone)]
pub struct Scope<'a>(Rc<Inner<'a>>);

struct Inner<'a> {
    module: usize,
    table: Rc<Table<'a>>,
    function: Option<&'a StmtFunctionDef>,
    class: Option<ClassRef<'a>>,
    receiver: Option<Rc<Value<'a>>>,
    arguments: Vec<(&'a str, &'a Expr, Scope<'a>)>,
    parent: Option<Scope<'a>>,
}

impl<'a> Scope<'a> {
    pub fn of_module(module: usize, table: Rc<Table<'a>>) -> Self {
        let inner =
            Inner { module, table, function: None, class: None, receiver: None, arguments: Vec::new(), parent: None };
        Self(Rc::new(inner))
    }

    /// A function with nothing known of its arguments.
    pub fn of_function(
        program: &Program<'a>,
        def: &'a StmtFunctionDef,
        outer: &Scope<'a>,
        class: Option<ClassRef<'a>>,
    ) -> Self {
        let function = FunctionRef { def, scope: outer.clone(), class, receiver: None };
        Self::of_call(program, &function, None)
    }

    /// A function as called here.
    pub fn of_call(
        program: &Program<'a>,
        function: &FunctionRef<'a>,
        call: Option<(&'a ExprCall, &Scope<'a>)>,
    ) -> Self {
        let arguments = call.map_or_else(Vec::new, |(call, scope)| bind(function, call, scope));
        let inner = Inner {
            module: function.scope.module(),
            table: program.table(&function.def.body),
            function: Some(function.def),
            class: function.class.clone(),
            receiver: function.receiver.clone(),
            arguments,
            parent: Some(function.scope.clone()),
        };
        Self(Rc::new(inner))
    }

    pub fn module(&self) -> usize {
        self.0.module
    }

    pub fn function(&self) -> Option<&'a StmtFunctionDef> {
        self.0.function
    }

    pub fn class(&self) -> Option<&ClassRef<'a>> {
        self.0.class.as_ref()
    }

    pub fn parent(&self) -> Option<&Scope<'a>> {
        self.0.parent.as_ref()
    }

    pub fn table(&self) -> &Table<'a> {
        &self.0.table
    }

    /// `Class.method`, `function`, `<module>`.
    pub fn name(&self) -> String {
        self.0.function.map_or_else(|| "<module>".to_owned(), |def| def.name.to_string())
    }
}

/// Which argument goes to which parameter.
fn bind<'a>(function: &FunctionRef<'a>, call: &'a ExprCall, scope: &Scope<'a>) -> Vec<(&'a str, &'a Expr, Scope<'a>)> {
    let parameters = &function.def.parameters;
    let positional = parameters.posonlyargs.iter().chain(&parameters.args);
    let is_method = function.class.is_some() && !is_static(function.def);
    let mut positional = positional.skip(usize::from(is_method && function.receiver.is_some()));
    let mut bound = Vec::new();
    for argument in &call.arguments.args {
        if argument.is_starred_expr() {
            break;
        }
        let Some(parameter) = positional.next() else { break };
        bound.push((parameter.parameter.name.as_str(), argument, scope.clone()));
    }
    for keyword in &call.arguments.keywords {
        let Some(name) = &keyword.arg else { continue };
        let known = parameters.iter_non_variadic_params().find(|p| p.parameter.name.as_str() == name.as_str());
        if let Some(parameter) = known {
            bound.push((parameter.parameter.name.as_str(), &keyword.value, scope.clone()));
        }
    }
    bound
}

pub fn is_static(def: &StmtFunctionDef) -> bool {
    def.decorator_list.iter().any(|decorator| tree::dotted(&decorator.expression).as_deref() == Some("staticmethod"))
}

pub fn is_property(def: &StmtFunctionDef) -> bool {
    def.decorator_list
        .iter()
        .filter_map(|decorator| tree::last_name(&decorator.expression))
        .any(|name| name == "property" || name == "cached_property")
}

/// Calls that hand back what they were given, seen by this module: methods of a model that return the model.
const SAME_MODEL: &[&str] = &[
    "cuda",
    "to",
    "cpu",
    "eval",
    "train",
    "half",
    "float",
    "double",
    "bfloat16",
    "requires_grad_",
    "apply",
    "share_memory",
    "to_empty",
    "compile",
    "xpu",
    "type",
];

/// Library calls whose result stands for their first argument.
pub const WRAPPERS: &[&str] = &[
    "torch.compile",
    "torch.jit.script",
    "torch.jit.trace",
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.cuda.make_graphed_callables",
    "torch.no_grad()",
    "torch.inference_mode()",
    "torch.vmap",
    "torch.func.vmap",
    "torch.func.grad",
    "torch.optim.swa_utils.AveragedModel",
    "torch.nn.utils.parametrizations.weight_norm",
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm",
    "torch.nn.utils.parametrizations.spectral_norm",
    "functools.partial",
    "functools.cache",
    "functools.lru_cache",
    "copy.deepcopy",
    "copy.copy",
    "jax.jit",
    "jax.pmap",
    "jax.vmap",
    "jax.grad",
    "jax.value_and_grad",
    "jax.checkpoint",
    "equinox.filter_jit",
    "flax.nnx.jit",
    "numba.cuda.jit",
    "triton.jit",
];

impl<'a> Program<'a> {
    pub fn value(&self, expr: &'a Expr, scope: &Scope<'a>) -> Value<'a> {
        self.value_within(expr, scope, 0)
    }

    fn value_within(&self, expr: &'a Expr, scope: &Scope<'a>, depth: u32) -> Value<'a> {
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

    fn name_within(&self, name: &str, at: Option<TextSize>, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        if depth > MAX_DEPTH || !self.step() {
            return Value::Unknown;
        }
        if let Some(binding) = scope.0.table.get(name, at) {
            // A parameter that is bound again below keeps its own value above that.
            let still_parameter = at.is_some_and(|at| binding.at > at) && self.is_parameter(name, scope);
            if !still_parameter {
                let defined = |b: &&Binding<'a>| matches!(b.what, Bound::Function(_) | Bound::Class(_));
                let definitions: Vec<_> = scope.0.table.all(name).iter().filter(defined).collect();
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
        if let Some(parent) = &scope.0.parent {
            return self.name_within(name, None, parent, depth + 1);
        }
        for (level, module) in scope.0.table.stars.iter().rev() {
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
        scope.0.function.is_some_and(|def| def.parameters.includes(name))
    }

    fn parameter_within(&self, name: &str, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        let Some(def) = scope.0.function else { return Value::Unknown };
        let first = def.parameters.posonlyargs.iter().chain(&def.parameters.args).next();
        let is_receiver = first.is_some_and(|first| first.parameter.name.as_str() == name) && !is_static(def);
        if is_receiver && let Some(class) = &scope.0.class {
            return match &scope.0.receiver {
                Some(receiver) => receiver.as_ref().clone(),
                None => Value::Instance { class: class.clone(), made: None },
            };
        }
        if let Some((_, argument, from)) = scope.0.arguments.iter().find(|(bound, _, _)| *bound == name) {
            return self.value_within(argument, from, depth);
        }
        let Some(parameter) = def.parameters.iter_non_variadic_params().find(|p| p.parameter.name.as_str() == name)
        else {
            return Value::Unknown;
        };
        let outer = scope.0.parent.as_ref().unwrap_or(scope);
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

    fn bound_within(&self, what: &Bound<'a>, scope: &Scope<'a>, depth: u32) -> Value<'a> {
        match what {
            Bound::Function(def) => {
                // A method is looked up through its class; a function inside one is not a method of it.
                Value::Function(FunctionRef { def, scope: scope.clone(), class: None, receiver: None })
            }
            Bound::Class(def) => Value::Class(ClassRef { def, scope: scope.clone() }),
            Bound::Import(dotted) => {
                self.imported(scope.module(), 0, dotted).map_or_else(|| path(dotted.clone()), Value::Module)
            }
            Bound::From { level, module, name } => self.from_import(scope.module(), *level, module, name, depth),
            Bound::Value(expr) => self.value_within(expr, scope, depth),
            Bound::Item(expr, index) => self.item_within(expr, *index, scope, depth),
            Bound::Element(iterated, index) => self.element_within(iterated, *index, scope, depth),
            Bound::Entered(expr) => self.value_within(expr, scope, depth),
            Bound::Declared(annotation) => self.annotated_within(annotation, scope, depth),
            Bound::Something => Value::Unknown,
        }
    }

    fn from_import(&self, from: usize, level: u32, module: &str, name: &str, depth: u32) -> Value<'a> {
        if let Some(index) = self.imported(from, level, module) {
            let scope = self.module_scope(index);
            if !scope.0.table.all(name).is_empty() || !scope.0.table.stars.is_empty() {
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
    fn elements_within(&self, of: &Value<'a>, depth: u32) -> Value<'a> {
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

    pub fn attribute(&self, of: &Value<'a>, name: &str) -> Value<'a> {
        self.attribute_within(of, name, 0)
    }

    fn attribute_within(&self, of: &Value<'a>, name: &str, depth: u32) -> Value<'a> {
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
                if scope.0.table.all(name).is_empty() && scope.0.table.stars.is_empty() {
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
                .0
                .receiver
                .clone()
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
    fn returned(&self, function: &FunctionRef<'a>, call: Option<(&'a ExprCall, &Scope<'a>)>, depth: u32) -> Value<'a> {
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

/// Annotations that say: not a tensor.
const HOST_TYPES: &[&str] = &[
    "builtins.int",
    "builtins.str",
    "builtins.float",
    "builtins.bool",
    "builtins.dict",
    "builtins.list",
    "builtins.bytes",
    "typing.Dict",
    "typing.List",
    "typing.Sequence",
    "pathlib.Path",
    "builtins.tuple",
];

/// Calls that give something of Python's, not a tensor.
const HOST_CALLS: &[&str] = &[
    "builtins.len",
    "builtins.int",
    "builtins.str",
    "builtins.float",
    "builtins.bool",
    "builtins.range",
    "builtins.dict",
    "builtins.list",
    "builtins.set",
    "builtins.tuple",
    "builtins.max",
    "builtins.min",
    "builtins.sum",
    "builtins.round",
    "builtins.sorted",
    "builtins.open",
    "builtins.input",
    "builtins.repr",
    "collections.defaultdict",
    "collections.OrderedDict",
    "collections.Counter",
    "collections.deque",
    "os.getenv",
    "random.randint",
    "random.choice",
    "random.randrange",
    "random.random",
    "json.load",
    "json.loads",
    "time.time",
    "argparse.ArgumentParser().parse_args",
];

fn is_module_container(path: &str) -> bool {
    matches!(
        path,
        "torch.nn.ModuleList()"
            | "torch.nn.ModuleDict()"
            | "torch.nn.Sequential()"
            | "torch.nn.ParameterList()"
            | "collections.OrderedDict()"
    )
}

pub fn path<'a>(path: impl Into<String>) -> Value<'a> {
    Value::Path { path: canonical(&path.into()), call: None }
}

/// One name for what has several: `torch.nn.modules.sparse.Embedding` is `torch.nn.Embedding`.
fn canonical(path: &str) -> String {
    for (from, to) in ALIASES {
        if let Some(rest) = path.strip_prefix(from) {
            return format!("{to}{rest}");
        }
    }
    if let Some(rest) = path.strip_prefix("torch.nn.modules.")
        && let Some((_, name)) = rest.split_once('.')
    {
        return format!("torch.nn.{name}");
    }
    path.to_owned()
}

const ALIASES: &[(&str, &str)] = &[
    ("torch.cuda.graphs.", "torch.cuda."),
    ("torch.distributions.categorical.", "torch.distributions."),
    ("torch.distributions.bernoulli.", "torch.distributions."),
    ("torch.distributions.multinomial.", "torch.distributions."),
    ("tqdm.auto.", "tqdm."),
    ("cupy.core.", "cupy."),
    ("jax._src.", "jax."),
];

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

/// One value for several that it may be; unknown ones among them are left out.
fn any<'a>(values: impl IntoIterator<Item = Value<'a>>) -> Value<'a> {
    let mut all = Vec::new();
    for value in values {
        match value {
            Value::Unknown => {}
            Value::Any(values) => all.extend(values),
            value => all.push(value),
        }
        if all.len() > MAX_ALTERNATIVES {
            break;
        }
    }
    match all.len() {
        0 => Value::Unknown,
        1 => all.remove(0),
        _ => Value::Any(all),
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
