use ruff_text_size::Ranged;

use crate::lint::device::{self, Device};
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input, edits};
use crate::python::tree;

pub const RULE: Rule = Rule {
    name: "set-device-late",
    severity: Severity::Warning,
    what: "torch.cuda.set_device comes after something was put on the current device.",
    why: "Until then the current device is 0 in every process. All ranks put their model on the same GPU, which runs out of \
          memory, or fails later with tensors on two devices.",
    example: "model = Net().cuda()\ntorch.cuda.set_device(local_rank)",
    fix: "Call set_device first.",
    quiet: "Where the earlier use names its device, is under a condition, or is in another function.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    let mut found = Vec::new();
    for (index, call) in &code.calls {
        let site = &code.sites[*index];
        if tree::last_name(&call.func) != Some("set_device")
            || code.path(&call.func, site).as_deref() != Some("torch.cuda.set_device")
        {
            continue;
        }
        // A fixed number is a choice of the program, not of a rank.
        if call.arguments.args.first().is_none_or(|device| tree::integer(device) == Some(0)) {
            continue;
        }
        let scope = code.scope(site);
        let block = scope.function().map_or(code.module.body(), |def| &def.body);
        let current = |device| device == Device::Current;
        let Some(first) = device::first_use_before(code, block, site.stmt.start(), scope, &current) else { continue };
        let line = input.line_at(first.start().to_usize());
        let message =
            format!("{line} has already put something on device 0: set the device before the first use of the GPU");
        let alone = site.stmt.as_expr_stmt().is_some_and(|only| only.value.range() == call.range());
        let known = call.arguments.args.first().is_some_and(|argument| is_known_at(code, argument, site, first));
        let edit = (alone && known).then(|| edits::move_before(code, site.stmt, site.block, first)).flatten();
        found
            .push(RULE.finding(tree::byte_range(call.range()), message).with_fix("Move it before the first use", edit));
    }
    found
}

/// Are all names of an expression bound before a statement?
fn is_known_at<'a>(
    code: &crate::lint::code::Code<'_, 'a>,
    expr: &'a ruff_python_ast::Expr,
    site: &crate::lint::code::Site<'a>,
    first: &ruff_python_ast::Stmt,
) -> bool {
    let scope = code.scope(site);
    let mut known = true;
    tree::each_expression(expr, &mut |part| {
        if let ruff_python_ast::Expr::Name(name) = part {
            let name = name.id.as_str();
            let parameter = scope.function().is_some_and(|def| def.parameters.includes(name));
            let here = scope.table().all(name);
            let bound = match here.first() {
                Some(binding) => binding.at <= first.start(),
                None => parameter || crate::python::libraries::is_builtin(name) || scope.parent().is_some(),
            };
            known = known && bound;
        }
    });
    known
}
