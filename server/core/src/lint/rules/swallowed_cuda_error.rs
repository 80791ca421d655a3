use ruff_python_ast::{ExceptHandler, Expr, Stmt};
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input, code::Code, code::Site, device};
use crate::python::tree;

use super::is_test;

pub const RULE: Rule = Rule {
    name: "swallowed-cuda-error",
    severity: Severity::Warning,
    what: "An exception handler goes on after any RuntimeError of GPU code.",
    why: "After a device assertion or an illegal address the CUDA context is dead: every later call fails as well, and the loop \
          spins through the rest of the data with errors that have nothing to do with it. Only out of memory can be survived.",
    example: "for batch in loader:\n    try:\n        loss = step(batch.cuda())\n        loss.backward()\n    except RuntimeError:\n        continue",
    fix: "Catch out of memory only: `except torch.cuda.OutOfMemoryError`.",
    quiet: "Where the handler looks at the message, raises, returns or calls something that may, where the `try` holds \
            nothing that surely runs on the GPU, and where the function tries out devices.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    if is_test(input.file.path) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for site in &code.sites {
        let Stmt::Try(attempt) = site.stmt else { continue };
        if !runs_on_gpu(code, &attempt.body, site) || tries_devices(code, site) {
            continue;
        }
        for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
            let Some(caught) = handler.type_.as_deref() else { continue };
            let broad = matches!(caught, Expr::Name(name) if matches!(name.id.as_str(), "RuntimeError" | "Exception"));
            if !broad || !handler.body.iter().all(only_goes_on) {
                continue;
            }
            let message = "this goes on after any CUDA error; all but out of memory leave the context dead, and every later call \
                           fails too";
            let edit = code.name_of("torch").map(|torch| {
                let range = tree::byte_range(caught.range());
                vec![Edit::replace(range.start, range.end, format!("{torch}.cuda.OutOfMemoryError"))]
            });
            found.push(
                RULE.finding(tree::byte_range(caught.range()), message).with_fix("Catch out of memory only", edit),
            );
        }
    }
    found
}

/// Is there a backward pass, or something put on the device, among statements that run when the block does?
fn runs_on_gpu<'a>(code: &Code<'_, 'a>, body: &'a [Stmt], site: &Site<'a>) -> bool {
    let scope = code.scope(site);
    let mut runs = false;
    let mut imports_torch = code.name_of("torch").is_some();
    tree::each_statement(body, &mut |stmt| {
        for expr in tree::own_expressions(stmt) {
            tree::each_expression(expr, &mut |expr| {
                let Expr::Call(call) = expr else { return };
                let backward = tree::last_name(&call.func) == Some("backward") && call.func.is_attribute_expr();
                let asks = matches!(tree::last_name(&call.func), Some("mem_get_info" | "synchronize" | "Stream"));
                let uses = !asks && device::of_call(code, call, scope).is_some();
                runs = runs || backward && imports_torch || uses;
            });
        }
        imports_torch = imports_torch && !matches!(stmt, Stmt::Import(_) | Stmt::ImportFrom(_));
    });
    runs
}

/// Does the function count the devices? Then it tries them out one by one, and a bad one is news, not an accident.
fn tries_devices<'a>(code: &Code<'_, 'a>, site: &Site<'a>) -> bool {
    let function = code.scope(site).function().map(|def| def.range());
    code.calls.iter().any(|(index, call)| {
        let here = code.scope(&code.sites[*index]).function().map(|def| def.range()) == function;
        here && tree::last_name(&call.func) == Some("device_count")
    })
}

/// `pass`, `continue`, a print or a line for the log: what does not look at the error.
fn only_goes_on(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Pass(_) | Stmt::Continue(_) => true,
        Stmt::Expr(only) => match only.value.as_ref() {
            Expr::Call(call) => match call.func.as_ref() {
                Expr::Name(name) => name.id.as_str() == "print",
                Expr::Attribute(attribute) => {
                    let object = tree::last_name(&attribute.value).unwrap_or("").to_ascii_lowercase();
                    let logs = matches!(
                        attribute.attr.as_str(),
                        "debug" | "info" | "warning" | "warn" | "error" | "exception"
                    );
                    logs && (object.contains("log") || object == "warnings") || attribute.attr.as_str() == "empty_cache"
                }
                _ => false,
            },
            value => value.is_ellipsis_literal_expr() || value.is_string_literal_expr(),
        },
        _ => false,
    }
}
