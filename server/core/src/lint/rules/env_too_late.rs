use ruff_text_size::Ranged;

use crate::lint::rule::{Rule, Severity};
use crate::lint::variables::{What, changes};
use crate::lint::{Finding, Input, code::Code, device, edits};
use crate::python::table::Bound;

use super::env_scoped;

pub const RULE: Rule = Rule {
    name: "env-too-late",
    severity: Severity::Warning,
    what: "A variable that CUDA reads once is set after the program has already used the GPU.",
    why: "CUDA_LAUNCH_BLOCKING and its like are read when the CUDA context is created, which the first tensor on the \
          device does. Set later they have no effect, and PyTorch then even leaves out its warning that the trace may be \
          wrong. Importing torch is not too late, and neither is `torch.cuda.is_available()`.",
    example: "import os, torch\nx = torch.zeros(1, device=\"cuda\")\nos.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"1\"",
    fix: "Move the assignment above the first use of the GPU, or better set the variable outside: `cublame run --mode blocking`.",
    quiet: "Where it is not certain that the GPU was used before: under a condition, in another function, in a loop that \
            may not run, and for variables that are read later, such as CUBLAS_WORKSPACE_CONFIG and NCCL_DEBUG.",
    check,
};

/// Read when the context is created or when the driver starts, and never again.
const READ_WITH_THE_CONTEXT: &[&str] = &[
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_MODULE_LOADING",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "CUDA_COREDUMP_FILE",
    "CUDA_INJECTION64_PATH",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
];

/// Read when their library is imported.
const READ_WITH_THE_IMPORT: &[(&str, &str)] = &[("NUMBA_ENABLE_CUDASIM", "numba")];

/// Everything the rule finds, also for the rule that must not say the opposite: what is too late is not left on.
pub fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let flipped = env_scoped::flips(code);
    let mut found = Vec::new();
    for change in changes(code) {
        if !matches!(change.what, What::Set | What::SetDefault) || change.site.in_class_body {
            continue;
        }
        if flipped.iter().any(|flip| flip.holds(&change.range)) {
            continue;
        }
        let name = change.name.as_str();
        let scope = code.scope(&change.site);
        if READ_WITH_THE_CONTEXT.contains(&name) {
            let block = scope.function().map_or(code.module.body(), |def| &def.body);
            let first = device::first_use_before(code, block, change.site.stmt.start(), scope, &|_| true);
            if let Some(first) = first {
                let line = input.line_at(first.start().to_usize());
                let message = format!(
                    "{name} is set after {line} has used the GPU: it was read then, and this has no effect any more"
                );
                let edit = change.alone.then(|| moved(code, &change.site, first)).flatten();
                found.push(
                    RULE.finding(change.range.clone(), message)
                        .with_fix("Move it above the first use of the GPU", edit),
                );
            }
        }
        if let Some((_, library)) = READ_WITH_THE_IMPORT.iter().find(|(known, _)| *known == name)
            && scope.function().is_none()
            && imported_before(code, library, &change.range)
        {
            let message = format!("{name} is set after {library} was imported, which is when it is read");
            found.push(RULE.finding(change.range, message));
        }
    }
    found
}

/// Moves the assignment, where `os` is known above the first use.
fn moved(
    code: &Code<'_, '_>,
    site: &crate::lint::code::Site<'_>,
    first: &ruff_python_ast::Stmt,
) -> Option<Vec<crate::config::Edit>> {
    let written = code.source(site.stmt);
    let root = written.split(['.', '[', '(']).next()?;
    let is_known = code
        .module_scope()
        .table()
        .all(root)
        .iter()
        .any(|b| matches!(b.what, Bound::Import(_) | Bound::From { .. }) && b.at <= first.start());
    let simple = site.stmt.as_assign_stmt().is_none_or(|assign| assign.value.is_string_literal_expr());
    if !is_known || !simple {
        return None;
    }
    edits::move_before(code, site.stmt, site.block, first)
}

fn imported_before(code: &Code<'_, '_>, library: &str, range: &std::ops::Range<usize>) -> bool {
    use ruff_python_ast::Stmt;
    code.module.body().iter().take_while(|stmt| stmt.end().to_usize() <= range.start).any(|stmt| match stmt {
        Stmt::Import(import) => import.names.iter().any(|alias| alias.name.as_str().split('.').next() == Some(library)),
        Stmt::ImportFrom(import) => {
            import.level == 0
                && import.module.as_ref().is_some_and(|module| module.as_str().split('.').next() == Some(library))
        }
        _ => false,
    })
}
