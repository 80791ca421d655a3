//! The place of a failure in its source: the statement, what it surely evaluates, and how it is edited.

use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextRange};

use crate::config::Edit;
use crate::lint::code::{Code, Site};
use crate::lint::edits;
use crate::python::tree;
use crate::python::value::{Scope, Value};
use crate::verdict::Verdict;

use super::Failure;

pub struct Spot<'c, 'p, 'a> {
    pub code: &'c Code<'p, 'a>,
    pub verdict: &'c Verdict,
    pub failure: &'c Failure<'c>,
    /// The statement of the line; None for a line without one.
    pub site: Option<Site<'a>>,
}

impl<'c, 'p, 'a> Spot<'c, 'p, 'a> {
    pub fn new(code: &'c Code<'p, 'a>, failure: &'c Failure<'c>) -> Self {
        let lines = code.module.lines.line_range(failure.line.clamp(1, code.module.lines.line_count()));
        let touches = |range: TextRange| range.start().to_usize() < lines.end && range.end().to_usize() > lines.start;
        let own = |stmt: &'a Stmt| match tree::blocks(stmt).is_empty() {
            true => touches(stmt.range()) && !matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_)),
            false => tree::own_expressions(stmt).into_iter().any(|expr| touches(expr.range())),
        };
        let site = code.sites.iter().rev().find(|site| own(site.stmt)).copied();
        Self { code, verdict: failure.verdict, failure, site }
    }

    pub fn source(&self, node: impl Ranged) -> &'a str {
        self.code.source(node)
    }

    pub fn value(&self, expr: &'a Expr) -> Value<'a> {
        self.site.map_or(Value::Unknown, |site| self.code.value(expr, &site))
    }

    pub fn scope(&self) -> &Scope<'a> {
        self.site.as_ref().map_or(self.code.module_scope(), |site| self.code.scope(site))
    }

    /// The full library name of what an expression means: `torch.nn.Embedding()`.
    pub fn path(&self, expr: &'a Expr) -> Option<String> {
        match self.value(expr) {
            Value::Path { path, .. } => Some(path),
            _ => None,
        }
    }

    /// What the statement evaluates whenever it runs, outer before inner; empty for a compound statement, before which
    /// nothing can be put without knowing how it was reached.
    pub fn evaluated(&self) -> Vec<&'a Expr> {
        let Some(site) = self.site.filter(|site| tree::blocks(site.stmt).is_empty()) else { return Vec::new() };
        let mut found = Vec::new();
        for expr in tree::own_expressions(site.stmt) {
            always(expr, 0, &mut found);
        }
        found
    }

    pub fn calls(&self) -> Vec<&'a ExprCall> {
        self.evaluated().into_iter().filter_map(Expr::as_call_expr).collect()
    }

    /// Lines before the statement, each with its indentation.
    pub fn insert_before(&self, lines: &[String]) -> Option<Vec<Edit>> {
        let site = self.site?;
        let (at, indentation) = line_start(self.code, site.stmt)?;
        let newline = edits::line_end(self.code.text());
        let text: String = lines.iter().map(|line| format!("{indentation}{line}{newline}")).collect();
        Some(vec![Edit::insert(at, text)])
    }

    /// One step of indentation, as the file has it.
    pub fn step(&self) -> &'static str {
        if self.code.text().lines().any(|line| line.starts_with('\t')) { "\t" } else { "    " }
    }
}

fn always<'a>(expr: &'a Expr, depth: u32, found: &mut Vec<&'a Expr>) {
    if depth > tree::MAX_DEPTH {
        return;
    }
    found.push(expr);
    let may_skip = matches!(
        expr,
        Expr::BoolOp(_)
            | Expr::If(_)
            | Expr::ListComp(_)
            | Expr::SetComp(_)
            | Expr::DictComp(_)
            | Expr::Generator(_)
            | Expr::Await(_)
    );
    if !may_skip {
        tree::children(expr).into_iter().for_each(|child| always(child, depth + 1, found));
    }
}

/// Where the lines of a statement begin, and its indentation; None where it shares its line.
pub fn line_start<'a>(code: &Code<'_, 'a>, stmt: &Stmt) -> Option<(usize, &'a str)> {
    let start = edits::own_lines(stmt, &code.module.lines)?.start;
    Some((start, &code.text()[start..stmt.start().to_usize()]))
}

/// Can an expression be written a second time without doing anything a second time?
pub fn is_repeatable(expr: &Expr) -> bool {
    match expr {
        Expr::Name(_) | Expr::NumberLiteral(_) | Expr::StringLiteral(_) => true,
        Expr::Attribute(attribute) => is_repeatable(&attribute.value),
        Expr::Subscript(item) => is_repeatable(&item.value) && is_repeatable(&item.slice),
        Expr::Slice(slice) => {
            [&slice.lower, &slice.upper, &slice.step].into_iter().flatten().all(|part| is_repeatable(part))
        }
        Expr::Tuple(tuple) => tuple.elts.iter().all(is_repeatable),
        Expr::UnaryOp(unary) => is_repeatable(&unary.operand),
        Expr::BinOp(binary) => is_repeatable(&binary.left) && is_repeatable(&binary.right),
        Expr::EllipsisLiteral(_) | Expr::NoneLiteral(_) => true,
        Expr::Call(call) => {
            matches!(call.func.as_ref(), Expr::Attribute(method)
                if VIEWS.contains(&method.attr.as_str()) && is_repeatable(&method.value))
                && call.arguments.args.iter().all(is_repeatable)
                && call.arguments.keywords.iter().all(|keyword| is_repeatable(&keyword.value))
        }
        _ => false,
    }
}

/// Methods of a tensor that only look at it from another side.
const VIEWS: &[&str] = &[
    "view",
    "reshape",
    "flatten",
    "size",
    "permute",
    "transpose",
    "squeeze",
    "unsqueeze",
    "contiguous",
    "detach",
    "long",
    "float",
    "int",
];

/// The source of an expression to which a method call can be appended.
pub fn as_receiver(code: &Code<'_, '_>, expr: &Expr) -> String {
    let source = code.source(expr);
    match expr {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_) => source.to_owned(),
        _ => format!("({source})"),
    }
}
