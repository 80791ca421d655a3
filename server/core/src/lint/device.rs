//! Where a program first touches a GPU.
//!
//! Importing torch, `is_available()`, `device_count()` and `get_device_name()` do not create a context; the first tensor on
//! the device does (measured with torch 2.11). So only what puts something on a device counts.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextSize};

use crate::python::table::Bound;
use crate::python::tree;
use crate::python::value::{Scope, Value};

use super::code::{Code, holds, is_main_guard};

/// Which device a call means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// `cuda`, the current one.
    Current,
    Number(i64),
    /// `f"cuda:{rank}"`
    Computed,
}

/// The device that a call puts something on; None for a call that is not known to touch one.
pub fn of_call<'a>(code: &Code<'_, 'a>, call: &'a ExprCall, scope: &Scope<'a>) -> Option<Device> {
    let name = tree::last_name(&call.func)?;
    let arguments = &call.arguments;
    match (name, call.func.as_ref()) {
        ("cuda", Expr::Attribute(attribute)) => {
            if let Value::Path { path, .. } = code.program.value(&call.func, scope)
                && !path.starts_with("torch")
                && !path.contains("()")
            {
                return None;
            }
            if matches!(attribute.value.as_ref(), Expr::Name(name) if name.id.as_str() == "torch") {
                return None;
            }
            match arguments.args.first().or_else(|| tree::keyword(call, "device")) {
                None => Some(Device::Current),
                Some(device) => of_expression(code, device, scope, 0).or(match tree::integer(device) {
                    Some(number) => Some(Device::Number(number)),
                    None => Some(Device::Computed),
                }),
            }
        }
        ("to", Expr::Attribute(_)) => arguments
            .args
            .iter()
            .chain(tree::keyword(call, "device"))
            .find_map(|argument| of_expression(code, argument, scope, 0)),
        ("synchronize" | "Stream" | "mem_get_info", _) => {
            let path = library_path(code, &call.func, scope)?;
            matches!(path.as_str(), "torch.cuda.synchronize" | "torch.cuda.Stream" | "torch.cuda.mem_get_info")
                .then_some(Device::Current)
        }
        ("array" | "asarray" | "zeros" | "ones" | "empty" | "full" | "arange" | "linspace" | "eye", _)
            if library_path(code, &call.func, scope).is_some_and(|path| path == format!("cupy.{name}")) =>
        {
            Some(Device::Current)
        }
        _ => {
            let device = tree::keyword(call, "device")?;
            let path = library_path(code, &call.func, scope)?;
            let makes = path.starts_with("torch.") && !path.contains("()") && path != "torch.device";
            makes.then(|| of_expression(code, device, scope, 0)).flatten()
        }
    }
}

fn library_path<'a>(code: &Code<'_, 'a>, expr: &'a Expr, scope: &Scope<'a>) -> Option<String> {
    match code.program.value(expr, scope) {
        Value::Path { path, .. } => Some(path),
        _ => None,
    }
}

/// The CUDA device that an expression names: `"cuda:1"`, `torch.device("cuda")`, a name for one of these, a choice with
/// the CPU. Where there is no GPU the choice does not matter.
pub fn of_expression<'a>(code: &Code<'_, 'a>, expr: &'a Expr, scope: &Scope<'a>, depth: u32) -> Option<Device> {
    if depth > 6 {
        return None;
    }
    match expr {
        Expr::StringLiteral(_) => of_text(tree::string(expr)?),
        Expr::FString(text) => {
            let starts = text
                .value
                .iter()
                .next()
                .is_some_and(|_| code.source(expr).trim_start_matches(['f', 'F', '"', '\'']).starts_with("cuda:"));
            starts.then_some(Device::Computed)
        }
        Expr::If(choice) => of_expression(code, &choice.body, scope, depth + 1)
            .or_else(|| of_expression(code, &choice.orelse, scope, depth + 1)),
        Expr::Call(call) => {
            let is_device = tree::last_name(&call.func) == Some("device")
                && library_path(code, &call.func, scope).as_deref() == Some("torch.device");
            let first = call.arguments.args.first()?;
            if !is_device {
                return None;
            }
            let device = of_expression(code, first, scope, depth + 1)?;
            match call.arguments.args.get(1) {
                Some(index) => Some(tree::integer(index).map_or(Device::Computed, Device::Number)),
                None => Some(device),
            }
        }
        Expr::Name(name) => {
            let binding = [Some(scope), scope.parent()].into_iter().flatten().find_map(|scope| {
                match scope.table().all(name.id.as_str()) {
                    [only] => Some((only, scope)),
                    _ => None,
                }
            });
            match binding {
                Some((binding, scope)) => match &binding.what {
                    Bound::Value(value) => of_expression(code, value, scope, depth + 1),
                    _ => None,
                },
                None => None,
            }
        }
        _ => None,
    }
}

fn of_text(text: &str) -> Option<Device> {
    match text.strip_prefix("cuda")? {
        "" => Some(Device::Current),
        rest => rest.strip_prefix(':')?.parse().ok().map(Device::Number),
    }
}

/// The first statement that surely touches the GPU before a position, in the same run of statements: earlier in its
/// block, or before one of the blocks around it, within the same function.
pub fn first_use_before<'a>(
    code: &Code<'_, 'a>,
    block: &'a [Stmt],
    at: TextSize,
    scope: &Scope<'a>,
    wanted: &dyn Fn(Device) -> bool,
) -> Option<&'a Stmt> {
    for stmt in block {
        if stmt.start() >= at {
            return None;
        }
        if stmt.end() > at {
            let inner = tree::blocks(stmt).into_iter().find(|inner| holds(inner, at))?;
            return first_use_before(code, inner, at, scope, wanted);
        }
        if surely_uses(code, stmt, scope, wanted, 0) {
            return Some(stmt);
        }
    }
    None
}

/// Does a statement touch the GPU whenever it runs?
pub fn surely_uses<'a>(
    code: &Code<'_, 'a>,
    stmt: &'a Stmt,
    scope: &Scope<'a>,
    wanted: &dyn Fn(Device) -> bool,
    depth: u32,
) -> bool {
    if depth > 6 || matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
        return false;
    }
    let in_header = tree::own_expressions(stmt).into_iter().any(|expr| evaluates_use(code, expr, scope, wanted, depth));
    if in_header {
        return true;
    }
    let all = |block: &'a [Stmt]| block.iter().any(|stmt| surely_uses(code, stmt, scope, wanted, depth + 1));
    match stmt {
        Stmt::With(with) => all(&with.body),
        Stmt::If(_) if is_main_guard(stmt) => tree::blocks(stmt).first().is_some_and(|block| all(block)),
        // Without a GPU nothing on one matters, so this condition is none.
        Stmt::If(choice) if code.source(choice.test.as_ref()).contains("is_available()") => all(&choice.body),
        Stmt::If(choice) => {
            let has_else = choice.elif_else_clauses.last().is_some_and(|clause| clause.test.is_none());
            has_else && tree::blocks(stmt).into_iter().all(all)
        }
        _ => false,
    }
}

fn evaluates_use<'a>(
    code: &Code<'_, 'a>,
    expr: &'a Expr,
    scope: &Scope<'a>,
    wanted: &dyn Fn(Device) -> bool,
    depth: u32,
) -> bool {
    if depth > 12 {
        return false;
    }
    if let Expr::Call(call) = expr {
        if of_call(code, call, scope).is_some_and(wanted) {
            return true;
        }
        if let Value::Function(function) = code.program.value(&call.func, scope)
            && depth < 4
            && !function.def.is_async
            && function.def.decorator_list.is_empty()
        {
            let inner = Scope::of_call(code.program, &function, Some((call, scope)));
            if is_generator(&function.def.body) {
                return false;
            }
            // What follows a return may not run.
            let always = function.def.body.iter().take_while(|stmt| !may_leave(stmt));
            if always.into_iter().any(|stmt| surely_uses(code, stmt, &inner, wanted, depth + 2)) {
                return true;
            }
        }
    }
    match expr {
        // These may evaluate nothing of what is in them.
        Expr::BoolOp(_)
        | Expr::If(_)
        | Expr::ListComp(_)
        | Expr::SetComp(_)
        | Expr::DictComp(_)
        | Expr::Generator(_) => false,
        _ => tree::children(expr).into_iter().any(|child| evaluates_use(code, child, scope, wanted, depth + 1)),
    }
}

fn may_leave(stmt: &Stmt) -> bool {
    let mut leaves = false;
    tree::each_statement(std::slice::from_ref(stmt), &mut |inner| {
        leaves = leaves || (matches!(inner, Stmt::Return(_) | Stmt::Raise(_)) && !std::ptr::eq(inner, stmt));
    });
    leaves
}

fn is_generator(body: &[Stmt]) -> bool {
    let mut yields = false;
    tree::each_statement(body, &mut |stmt| {
        for expr in tree::own_expressions(stmt) {
            tree::each_expression(expr, &mut |expr| {
                yields = yields || matches!(expr, Expr::Yield(_) | Expr::YieldFrom(_));
            });
        }
    });
    yields
}
