use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::code::{Code, Site};
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input, device, edits};
use crate::python::tree;
use crate::python::value::{FunctionRef, Scope, Value};

pub const RULE: Rule = Rule {
    name: "fork-cuda",
    severity: Severity::Error,
    what: "A forked process uses the GPU: a worker of a DataLoader, a process or a pool of multiprocessing.",
    why: "On Linux workers are forked (until Python 3.14), and CUDA cannot be used in a fork of a process that uses it: `Cannot \
          re-initialize CUDA in forked subprocess`. Started any other way, each worker takes its own GPU memory.",
    example: "class Data(Dataset):\n    def __getitem__(self, i):\n        return self.x[i].cuda()\n\nDataLoader(Data(), num_workers=4)",
    fix: "Return CPU tensors and move the batch to the GPU in the training loop; or start the workers with `spawn`.",
    quiet: "Without workers, with a start method that is set, where the dataset's class or the process's function is not in the \
            file, and for a process that is started before the GPU is used.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let text = code.text();
    if ["set_start_method", "get_context"].iter().any(|word| text.contains(word)) {
        return Vec::new();
    }
    // What a name stands for is looked up only where it can be one of these.
    let (processes, pools) = (text.contains("multiprocessing"), text.contains("Pool"));
    let mut found = Vec::new();
    for (index, call) in &code.calls {
        let site = &code.sites[*index];
        match tree::last_name(&call.func) {
            Some("DataLoader") => of_loader(input, code, call, site, &mut found),
            Some("Process") if processes => of_process(input, code, call, site, &mut found),
            Some(name) if pools && GIVES_WORK.contains(&name) => of_pool(input, code, call, site, &mut found),
            _ => {}
        }
    }
    found
}

fn of_loader<'a>(
    input: &Input<'_, 'a>,
    code: &Code<'_, 'a>,
    call: &'a ExprCall,
    site: &Site<'a>,
    found: &mut Vec<Finding>,
) {
    let is_loader = || {
        let path = code.path(&call.func, site).unwrap_or_default();
        matches!(path.as_str(), "torch.utils.data.DataLoader" | "torch.utils.data.dataloader.DataLoader")
    };
    if !has_workers(call) || !is_loader() {
        return;
    }
    let line = input.line_at(call.start().to_usize());
    for function in run_by_workers(code, call, site) {
        let scope = Scope::of_call(code.program, &function, None);
        if let Some(use_) = first_use(code, &function.def.body, &scope) {
            let message = format!(
                "this runs in the worker processes of the DataLoader of {line}, and CUDA cannot be used in a forked process"
            );
            let edit = vec![edits::add_argument(code, call, "multiprocessing_context=\"spawn\"")];
            let finding = RULE.finding(tree::byte_range(use_.range()), message);
            found.push(finding.with_fix("Start the workers with spawn", Some(edit)));
        }
    }
}

/// `Process(target=work)` after the GPU was used.
fn of_process<'a>(
    input: &Input<'_, 'a>,
    code: &Code<'_, 'a>,
    call: &'a ExprCall,
    site: &Site<'a>,
    found: &mut Vec<Finding>,
) {
    let path = code.path(&call.func, site).unwrap_or_default();
    let Some(module) = path.strip_suffix(".Process").filter(|module| MODULES.contains(module)) else { return };
    let Some(target) = tree::argument(call, 1, "target") else { return };
    let spawned = |module: &str| format!("{module}.get_context(\"spawn\")");
    let edit = match call.func.as_ref() {
        Expr::Attribute(function) => {
            let range = tree::byte_range(function.value.range());
            vec![Edit::replace(range.start, range.end, spawned(code.source(function.value.as_ref())))]
        }
        function => {
            let (name, import) = edits::imported(code, module);
            let range = tree::byte_range(function.range());
            let replaced = Edit::replace(range.start, range.end, format!("{}.Process", spawned(&name)));
            import.into_iter().chain([replaced]).collect()
        }
    };
    let fix = ("Start the process with spawn", Some(edit));
    in_child(input, code, (call, site), target, "the process", fix, found);
}

/// `pool.map(work, items)` after the GPU was used.
fn of_pool<'a>(
    input: &Input<'_, 'a>,
    code: &Code<'_, 'a>,
    call: &'a ExprCall,
    site: &Site<'a>,
    found: &mut Vec<Finding>,
) {
    let Expr::Attribute(method) = call.func.as_ref() else { return };
    let Value::Path { path, call: made } = code.value(&method.value, site) else { return };
    let of_pools = path.strip_suffix(".Pool()").is_some_and(|module| MODULES.contains(&module));
    let of_executors = matches!(
        path.as_str(),
        "concurrent.futures.ProcessPoolExecutor()" | "concurrent.futures.process.ProcessPoolExecutor()"
    );
    let (Some(work), Some((made, _))) = (call.arguments.args.first(), made) else { return };
    if !of_pools && !of_executors {
        return;
    }
    let edit = match made.func.as_ref() {
        Expr::Attribute(function) if of_pools => {
            let range = tree::byte_range(function.value.range());
            let module = code.source(function.value.as_ref());
            Some(vec![Edit::replace(range.start, range.end, format!("{module}.get_context(\"spawn\")"))])
        }
        _ => None,
    };
    in_child(input, code, (call, site), work, "the pool", ("Start the pool with spawn", edit), found);
}

/// Reports what a child process runs, where its parent has surely used the GPU before.
fn in_child<'a>(
    input: &Input<'_, 'a>,
    code: &Code<'_, 'a>,
    (call, site): (&'a ExprCall, &Site<'a>),
    work: &'a Expr,
    who: &str,
    (title, edit): (&str, Option<Vec<Edit>>),
    found: &mut Vec<Finding>,
) {
    let Value::Function(function) = code.value(work, site) else { return };
    let scope = code.scope(site);
    let block = scope.function().map_or(code.module.body(), |def| &def.body);
    let Some(before) = device::first_use_before(code, block, site.stmt.start(), scope, &|_| true) else { return };
    let inner = Scope::of_call(code.program, &function, None);
    let Some(use_) = first_use(code, &function.def.body, &inner) else { return };
    let (line, earlier) = (input.line_at(call.start().to_usize()), input.line_at(before.start().to_usize()));
    let message =
        format!("this runs in {who} that {line} forks after {earlier} has used the GPU, and CUDA cannot be used there");
    let range = tree::byte_range(use_.range());
    // Several processes that run the same function are one mistake.
    if found.iter().all(|known| known.range != range) {
        found.push(RULE.finding(range, message).with_fix(title, edit));
    }
}

const MODULES: &[&str] = &["multiprocessing", "torch.multiprocessing"];

/// Methods of pools and executors that take the function to run.
const GIVES_WORK: &[&str] =
    &["map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async", "apply", "apply_async", "submit"];

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
