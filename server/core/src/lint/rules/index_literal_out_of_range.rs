use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input, code::Code};
use crate::python::table::Bound;
use crate::python::tree;
use crate::python::value::{Scope, Value};

pub const RULE: Rule = Rule {
    name: "index-literal-out-of-range",
    severity: Severity::Error,
    what: "An index that is written out is outside of the table that it is looked up in.",
    why: "On the GPU this is a device-side assertion: it surfaces at a later line, and the process has to be started again.",
    example: "emb = torch.nn.Embedding(10, 4)\nemb(torch.tensor([3, 10]))",
    fix: "Give the table one row more than the largest index, or correct the index.",
    quiet: "Where the size or the index is only known when the program runs.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let mut found = Vec::new();
    for (index, call) in &code.calls {
        let site = &code.sites[*index];
        let scope = code.scope(site);
        let Some(first) = call.arguments.args.first() else { continue };
        let candidate = literals(code, first, scope, 0);
        if candidate.is_empty() {
            continue;
        }
        let Some((size, what, written)) = table_size(code, call, scope) else { continue };
        if let Some((value, place)) =
            candidate.into_iter().filter(|(value, _)| *value < 0 || *value >= size).max_by_key(|(value, _)| *value)
        {
            let message = format!("{value} is outside of {what}, whose indices are 0 to {}", size - 1);
            // A negative index is no matter of the table's size.
            let edit = (value >= size && value < i64::MAX).then(|| {
                let range = tree::byte_range(written.range());
                vec![Edit::replace(range.start, range.end, (value + 1).to_string())]
            });
            let finding = RULE.finding(tree::byte_range(place.range()), message);
            found.push(finding.with_fix(format!("Make room for {value}"), edit));
        }
    }
    found
}

/// The number of places that a call looks indices up in, what they are, and where the number is written.
fn table_size<'a>(code: &Code<'_, 'a>, call: &'a ExprCall, scope: &Scope<'a>) -> Option<(i64, String, &'a Expr)> {
    match code.program.value(&call.func, scope) {
        Value::Path { path, call: Some((made, _)) } if path == "torch.nn.Embedding()" => {
            let written = tree::argument(made, 0, "num_embeddings")?;
            let size = tree::integer(written)?;
            Some((size, format!("an embedding of {size} rows"), written))
        }
        Value::Path { path, .. } if path == "torch.nn.functional.one_hot" => {
            let written = tree::argument(call, 1, "num_classes")?;
            let size = tree::integer(written)?;
            (size > 0).then(|| (size, format!("{size} classes"), written))
        }
        _ => None,
    }
}

/// The whole numbers of `torch.tensor([...])`, also under a name that is bound once.
fn literals<'a>(code: &Code<'_, 'a>, expr: &'a Expr, scope: &Scope<'a>, depth: u32) -> Vec<(i64, &'a Expr)> {
    if depth > 4 {
        return Vec::new();
    }
    match expr {
        Expr::Name(name) => match scope.table().all(name.id.as_str()) {
            [only] => match &only.what {
                Bound::Value(value) if !is_changed(code, name.id.as_str(), scope) => {
                    literals(code, value, scope, depth + 1)
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        },
        Expr::Call(call) => {
            let name = tree::last_name(&call.func).unwrap_or("");
            if matches!(name, "cuda" | "to" | "long" | "unsqueeze" | "reshape" | "view")
                && let Expr::Attribute(attribute) = call.func.as_ref()
            {
                return literals(code, &attribute.value, scope, depth + 1);
            }
            let makes = matches!(name, "tensor" | "LongTensor" | "as_tensor")
                && matches!(code.program.value(&call.func, scope),
                    Value::Path { path, .. } if matches!(path.as_str(), "torch.tensor" | "torch.LongTensor" | "torch.as_tensor"));
            let mut numbers = Vec::new();
            if makes && let Some(first) = call.arguments.args.first() {
                collect(first, &mut numbers);
            }
            numbers
        }
        _ => Vec::new(),
    }
}

fn collect<'a>(expr: &'a Expr, numbers: &mut Vec<(i64, &'a Expr)>) {
    match expr {
        Expr::List(list) => list.elts.iter().for_each(|item| collect(item, numbers)),
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|item| collect(item, numbers)),
        item => numbers.extend(tree::integer(item).map(|number| (number, item))),
    }
}

/// Is an item of this name assigned to, or one of its in-place methods called?
fn is_changed(code: &Code<'_, '_>, name: &str, scope: &Scope<'_>) -> bool {
    let function = scope.function().map(|def| def.range());
    let assigned = code.sites.iter().any(|site| {
        let targets = tree::own_expressions(site.stmt);
        targets.iter().any(|target| {
            matches!(target, Expr::Subscript(item) if item.ctx.is_store()
                && matches!(item.value.as_ref(), Expr::Name(of) if of.id.as_str() == name))
        })
    });
    let in_place = code.calls.iter().any(|(index, call)| {
        let here = code.scope(&code.sites[*index]).function().map(|def| def.range()) == function;
        here && matches!(call.func.as_ref(), Expr::Attribute(attribute)
            if attribute.attr.as_str().ends_with('_')
                && matches!(attribute.value.as_ref(), Expr::Name(of) if of.id.as_str() == name))
    });
    assigned || in_place
}
