//! What an expression stands for, as far as reading tells: a function, a class, an object of a class, a library's name.

use std::rc::Rc;

use ruff_python_ast::{Expr, ExprCall, StmtClassDef, StmtFunctionDef};

use super::Program;
use super::names::canonical;
use super::table::Table;
use super::tree;

/// How many alternatives of a value are followed, and how deep definitions are.
pub const MAX_ALTERNATIVES: usize = 12;
pub const MAX_DEPTH: u32 = 24;

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

    /// The object that a method was called on.
    pub fn receiver(&self) -> Option<&Rc<Value<'a>>> {
        self.0.receiver.as_ref()
    }

    /// The arguments in sight: parameter, expression, and where that is evaluated.
    pub fn arguments(&self) -> &[(&'a str, &'a Expr, Scope<'a>)] {
        &self.0.arguments
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

pub fn path<'a>(path: impl Into<String>) -> Value<'a> {
    Value::Path { path: canonical(&path.into()), call: None }
}

/// One value for several that it may be; unknown ones among them are left out.
pub fn any<'a>(values: impl IntoIterator<Item = Value<'a>>) -> Value<'a> {
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
