use ruff_text_size::Ranged;

use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input};
use crate::python::tree;

pub const RULE: Rule = Rule {
    name: "blocking-dataparallel",
    severity: Severity::Warning,
    what: "CUDA_LAUNCH_BLOCKING=1 in a program that uses nn.DataParallel.",
    why: "One process then launches on several GPUs, and each launch waits: the broadcast of the parameters can wait for itself \
          and the program hangs (pytorch#9163).",
    example: "os.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"1\"\nmodel = torch.nn.DataParallel(model)",
    fix: "Look for the failure on one GPU (`CUDA_VISIBLE_DEVICES=0`), or with `cublame run --mode trace`, which does not wait.",
    quiet: "Where blocking is set outside the file: that is the runner's to say.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let blocking = input.variables.iter().find(|v| v.name == "CUDA_LAUNCH_BLOCKING" && v.value.as_deref() == Some("1"));
    let Some(blocking) = blocking else { return Vec::new() };
    let parallel = code.calls.iter().find(|(index, call)| {
        tree::last_name(&call.func) == Some("DataParallel")
            && code
                .path(&call.func, &code.sites[*index])
                .as_deref()
                .is_some_and(|path| matches!(path, "torch.nn.DataParallel" | "torch.nn.parallel.DataParallel"))
            && tree::argument(call, 1, "device_ids")
                .is_none_or(|devices| !matches!(devices, ruff_python_ast::Expr::List(list) if list.elts.len() < 2))
    });
    let Some((_, parallel)) = parallel else { return Vec::new() };
    let line = input.line_at(parallel.start().to_usize());
    let message = format!("with CUDA_LAUNCH_BLOCKING=1 the DataParallel of {line} can hang on more than one GPU");
    vec![RULE.finding(blocking.range.clone(), message).with_fix("Take the variable out", blocking.removal.clone())]
}
