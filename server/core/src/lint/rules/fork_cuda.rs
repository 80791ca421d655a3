use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use crate::lint::code::{Code, Site};
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input, device, edits};
use crate::python::tree;
use crate::python::value::{FunctionRef, Scope, Value};

pub const RULE: Rule = Rule {
    name: "fork-cuda",
    severity: Severity::Error,
    what: "A worker process of a DataLoader uses the GPU.",
    why: "On Linux workers are forked (until Python 3.14), and CUDA cannot be used in a fork of a process that uses it: `Cannot \
          re-initialize CUDA in forked subprocess`. Started any other way, each worker takes its own GPU memory.",
    example: "class Data(Dataset):\n    def __getitem__(self, i):\n        return self.x[i].cuda()\n\nDataLoader(Data(), num_workers=4)",
    fix: "Return CPU tensors and move the batch to the GPU in the training loop; or start the workers with `spawn`.",
    quiet: "Without workers, with a start method that is set, and where the dataset's class is not in the file.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let text = code.text();
    if text.contains("set_start_method") || text.contains("get_context") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, call) in &code.calls {
        let site = &code.sites[*index];
        if tree::last_name(&call.func) != Some("DataLoader") || !has_workers(call) {
            continue;
        }
        let is_loader = code.path(&call.func, site).is_some_and(|path| {
            matches!(path.as_str(), "torch.utils.data.DataLoader" | "torch.utils.data.dataloader.DataLoader")
        });
        if !is_loader {
            continue;
        }
        let line = input.lines.line_of(call.start().to_usize());
        for function in run_by_workers(code, call, site) {
            let scope = Scope::of_call(code.program, &function, None);
            if let Some(use_) = first_use(code, &function.def.body, &scope) {
                let message = format!(
                    "this runs in the worker processes of the DataLoader of line {line}, and CUDA cannot be used in a forked process"
                );
                let edit = vec![edits::add_argument(code, call, "multiprocessing_context=\"spawn\"")];
                found.push(
                    RULE.finding(tree::byte_range(use_.range()), message)
                        .with_fix("Start the workers with spawn", Some(edit)),
                );
            }
        }
    }
    found
}

fn has_workers(call: &ExprCall) -> bool {
    let workers = tree::argument(call, 5, "num_workers").and_then(tree::integer);
    workers.is_some_and(|workers| workers > 0) && tree::keyword(call, "multiprocessing_context").is_none()
}

/// `__getitem__` or `__iter__` of the dataset and the collate function.
fn run_by_workers<'a>(code: &Code<'_, 'a>, call: &'a ExprCall, site: &Site<'a>) -> Vec<FunctionRef<'a>> {
    let mut functions = Vec::new();
    if let Some(dataset) = tree::argument(call, 0, "dataset")
        && let dataset @ Value::Instance { .. } = code.value(dataset, site)
    {
        for name in ["__getitem__", "__iter__", "__getitems__"] {
            if let Value::Function(function) = code.program.attribute(&dataset, name) {
                functions.push(function);
            }
        }
    }
    if let Some(collate) = tree::argument(call, 6, "collate_fn")
        && let Value::Function(function) = code.value(collate, site)
    {
        functions.push(function);
    }
    functions
}

/// The first call that surely puts something on a GPU.
fn first_use<'a>(code: &Code<'_, 'a>, body: &'a [Stmt], scope: &Scope<'a>) -> Option<&'a Expr> {
    let mut first = None;
    for stmt in body {
        if !device::surely_uses(code, stmt, scope, &|_| true, 0) {
            continue;
        }
        for expr in tree::own_expressions(stmt) {
            tree::each_expression(expr, &mut |expr| {
                if let Expr::Call(call) = expr
                    && first.is_none()
                    && device::of_call(code, call, scope).is_some()
                {
                    first = Some(expr);
                }
            });
        }
    }
    first
}
