use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input, code::Code, device, edits};
use crate::python::tree;

use super::is_test;

pub const RULE: Rule = Rule {
    name: "load-no-map-location",
    severity: Severity::Information,
    what: "A checkpoint for load_state_dict is loaded without map_location.",
    why: "torch.load puts every tensor back on the device that it was saved from. On a machine without that device it fails, and \
          with several processes all of them load onto GPU 0, which then runs out of memory.",
    example: "model.load_state_dict(torch.load(\"best.pt\"))",
    fix: "Pass `map_location=\"cpu\"`: load_state_dict copies to where the parameters are.",
    quiet: "In tests, for bytes in memory, for what the file itself saved from the CPU, for the state of schedulers, scalers and samplers, and where the loaded object is not given to \
            load_state_dict in the same function: it may be data that never was on a GPU.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    if is_test(input.file.path) || code.text().contains("torch_xla") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, call) in &code.calls {
        let site = &code.sites[*index];
        let loads = tree::last_name(&call.func) == Some("load")
            && tree::argument(call, 1, "map_location").is_none()
            && !call.arguments.args.is_empty()
            && !call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none())
            && code.path(&call.func, site).as_deref() == Some("torch.load");
        if !loads || is_in_memory(call) || !becomes_state(code, call, site) || was_saved_from_cpu(code, call) {
            continue;
        }
        let edit = vec![edits::add_argument(code, call, "map_location=\"cpu\"")];
        let message = "without map_location this loads onto the GPU that the checkpoint was saved from";
        let range = tree::byte_range(call.range());
        found.push(RULE.finding(range, message).with_fix("Load it to the CPU first", Some(edit)));
    }
    found
}

/// Is it bytes of this process, such as a message of another rank, rather than a file?
fn is_in_memory(call: &ExprCall) -> bool {
    let first = call.arguments.args.first().and_then(tree::last_name).unwrap_or("").to_ascii_lowercase();
    ["bytes", "buffer", "stream"].iter().any(|word| first.contains(word))
}

/// Was it saved by this very file, which had not used a GPU by then?
fn was_saved_from_cpu(code: &Code<'_, '_>, load: &ExprCall) -> bool {
    let Some(path) = load.arguments.args.first().map(|path| code.source(path)) else { return false };
    let before = || code.calls.iter().filter(|(_, call)| call.start() < load.start());
    let saved = before().any(|(index, call)| {
        tree::argument(call, 1, "f").is_some_and(|file| code.source(file) == path)
            && code.path(&call.func, &code.sites[*index]).as_deref() == Some("torch.save")
    });
    saved && before().all(|(index, call)| device::of_call(code, call, code.scope(&code.sites[*index])).is_none())
}

/// What has a state without tensors on a device.
const ON_THE_HOST: &[&str] = &["sched", "scaler", "sampler", "loader", "generator", "meter", "tokenizer"];

/// Is the loaded object given to `load_state_dict`, here or by its name in the same function?
fn becomes_state<'a>(
    code: &crate::lint::code::Code<'_, 'a>,
    load: &'a ExprCall,
    site: &crate::lint::code::Site<'a>,
) -> bool {
    let name = match site.stmt {
        Stmt::Assign(assign) => match (&assign.targets[..], assign.value.as_ref()) {
            ([Expr::Name(name)], Expr::Call(value)) if value.range() == load.range() => Some(name.id.as_str()),
            _ => None,
        },
        _ => None,
    };
    let function = code.scope(site).function().map(|def| def.range());
    code.calls.iter().any(|(index, call)| {
        let same_function = code.scope(&code.sites[*index]).function().map(|def| def.range()) == function;
        let Expr::Attribute(method) = call.func.as_ref() else { return false };
        let receiver = tree::last_name(&method.value).unwrap_or("").to_ascii_lowercase();
        let on_host = ON_THE_HOST.iter().any(|word| receiver.contains(word));
        if !same_function || method.attr.as_str() != "load_state_dict" || on_host {
            return false;
        }
        let mut given = false;
        for argument in &call.arguments.args {
            tree::each_expression(argument, &mut |part| {
                given = given
                    || part.range() == load.range()
                    || name.is_some_and(|name| matches!(part, Expr::Name(used) if used.id.as_str() == name));
            });
        }
        given
    })
}
