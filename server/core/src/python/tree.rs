//! Small questions about the syntax tree.

use ruff_python_ast::visitor::source_order::{self, SourceOrderVisitor};
use ruff_python_ast::{ExceptHandler, Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

/// Expressions nested deeper than this are not read: no person wrote them, and the stack is finite.
pub const MAX_DEPTH: u32 = 120;

/// The direct parts of an expression, in source order. The body of a lambda is not one: it runs when called.
pub fn children(expr: &Expr) -> Vec<&Expr> {
    struct Collect<'a>(Vec<&'a Expr>);
    impl<'a> SourceOrderVisitor<'a> for Collect<'a> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.0.push(expr);
        }
    }
    if matches!(expr, Expr::Lambda(_)) {
        return Vec::new();
    }
    let mut collect = Collect(Vec::new());
    source_order::walk_expr(&mut collect, expr);
    collect.0
}

/// The expressions that a statement itself evaluates, without those of the statements inside it, in source order.
pub fn own_expressions(stmt: &Stmt) -> Vec<&Expr> {
    match stmt {
        Stmt::Expr(s) => vec![&s.value],
        Stmt::Return(s) => s.value.as_deref().into_iter().collect(),
        Stmt::Assign(s) => s.targets.iter().chain([s.value.as_ref()]).collect(),
        Stmt::AugAssign(s) => vec![&s.target, &s.value],
        Stmt::AnnAssign(s) => [s.target.as_ref()].into_iter().chain(s.value.as_deref()).collect(),
        Stmt::For(s) => vec![&s.iter],
        Stmt::While(s) => vec![&s.test],
        Stmt::If(s) => {
            [s.test.as_ref()].into_iter().chain(s.elif_else_clauses.iter().filter_map(|c| c.test.as_ref())).collect()
        }
        Stmt::With(s) => s.items.iter().map(|item| &item.context_expr).collect(),
        Stmt::Match(s) => vec![&s.subject],
        Stmt::Raise(s) => s.exc.as_deref().into_iter().chain(s.cause.as_deref()).collect(),
        Stmt::Assert(s) => [s.test.as_ref()].into_iter().chain(s.msg.as_deref()).collect(),
        Stmt::Delete(s) => s.targets.iter().collect(),
        _ => Vec::new(),
    }
}

/// The blocks inside a compound statement, in source order. A function's and a class's body are blocks of their own
/// scope and not among them.
pub fn blocks(stmt: &Stmt) -> Vec<&[Stmt]> {
    match stmt {
        Stmt::For(s) => vec![&s.body, &s.orelse],
        Stmt::While(s) => vec![&s.body, &s.orelse],
        Stmt::If(s) => {
            [&s.body[..]].into_iter().chain(s.elif_else_clauses.iter().map(|clause| &clause.body[..])).collect()
        }
        Stmt::With(s) => vec![&s.body],
        Stmt::Match(s) => s.cases.iter().map(|case| &case.body[..]).collect(),
        Stmt::Try(s) => {
            let handlers = s.handlers.iter().map(|ExceptHandler::ExceptHandler(handler)| &handler.body[..]);
            [&s.body[..]].into_iter().chain(handlers).chain([&s.orelse[..], &s.finalbody[..]]).collect()
        }
        _ => Vec::new(),
    }
}

/// Calls `see` with each statement of a block and of the blocks inside it, not entering functions and classes.
pub fn each_statement<'a>(block: &'a [Stmt], see: &mut dyn FnMut(&'a Stmt)) {
    for stmt in block {
        see(stmt);
        for inner in blocks(stmt) {
            each_statement(inner, see);
        }
    }
}

/// Calls `see` with an expression and everything in it, outer before inner.
pub fn each_expression<'a>(expr: &'a Expr, see: &mut dyn FnMut(&'a Expr)) {
    fn walk<'a>(expr: &'a Expr, depth: u32, see: &mut dyn FnMut(&'a Expr)) {
        if depth > MAX_DEPTH {
            return;
        }
        see(expr);
        for child in children(expr) {
            walk(child, depth + 1, see);
        }
    }
    walk(expr, 0, see);
}

/// `a.b.c` as text; None for anything that is not names and dots.
pub fn dotted(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Name(name) => Some(name.id.to_string()),
        Expr::Attribute(attribute) => Some(format!("{}.{}", dotted(&attribute.value)?, attribute.attr)),
        _ => None,
    }
}

/// The last name of what a call calls: `c` for `a.b.c(..)`, `f` for `f[grid](..)`.
pub fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Subscript(subscript) => last_name(&subscript.value),
        Expr::Call(call) => last_name(&call.func),
        _ => None,
    }
}

pub fn keyword<'a>(call: &'a ExprCall, name: &str) -> Option<&'a Expr> {
    call.arguments.keywords.iter().find(|k| k.arg.as_ref().is_some_and(|arg| arg.as_str() == name)).map(|k| &k.value)
}

/// The positional argument at an index, or the keyword of that name.
pub fn argument<'a>(call: &'a ExprCall, index: usize, name: &str) -> Option<&'a Expr> {
    call.arguments.args.get(index).filter(|arg| !arg.is_starred_expr()).or_else(|| keyword(call, name))
}

/// A whole number written out, with its sign.
pub fn integer(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::NumberLiteral(number) => number.value.as_int()?.as_i64(),
        Expr::UnaryOp(unary) if unary.op == ruff_python_ast::UnaryOp::USub => integer(&unary.operand)?.checked_neg(),
        _ => None,
    }
}

pub fn string(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::StringLiteral(string) => Some(string.value.to_str()),
        _ => None,
    }
}

/// Where an interpreter says that an expression is: a method call in a chain over several lines is on its name's line.
pub fn reported_start(expr: &Expr, same_line: impl Fn(TextSize, TextSize) -> bool) -> TextSize {
    if let Expr::Call(call) = expr
        && let Expr::Attribute(attribute) = call.func.as_ref()
        && !same_line(expr.start(), attribute.attr.start())
    {
        return attribute.attr.start();
    }
    expr.start()
}

pub fn byte_range(range: TextRange) -> std::ops::Range<usize> {
    range.start().to_usize()..range.end().to_usize()
}
