use std::collections::BTreeSet;

use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

use crate::config::Edit;
use crate::lint::device::{self, Device};
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input};
use crate::python::tree;

use super::is_test;

pub const RULE: Rule = Rule {
    name: "hardcoded-device",
    severity: Severity::Information,
    what: "A GPU other than the first is written into the code.",
    why: "On a machine with fewer GPUs, or with CUDA_VISIBLE_DEVICES set, it fails with `invalid device ordinal`.",
    example: "model.to(\"cuda:1\")",
    fix: "Write `cuda` and choose the GPU with CUDA_VISIBLE_DEVICES.",
    quiet: "In tests, in defaults that an option can change, and in programs that use several numbered GPUs on purpose.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let Some(code) = input.code else { return Vec::new() };
    if is_test(input.file.path) {
        return Vec::new();
    }
    let mut places: Vec<(i64, &Expr)> = Vec::new();
    let mut numbers: BTreeSet<i64> = BTreeSet::new();
    for (index, call) in &code.calls {
        let site = &code.sites[*index];
        let written = |expr: &Expr| match tree::string(expr).and_then(|text| text.strip_prefix("cuda:")) {
            Some(number) => number.parse::<i64>().ok(),
            None => None,
        };
        let name = tree::last_name(&call.func).unwrap_or("");
        let arguments = call.arguments.args.iter().chain(tree::keyword(call, "device"));
        let numbered: Vec<(i64, &Expr)> =
            arguments.filter_map(|argument| Some((written(argument)?, argument))).collect();
        numbers.extend(numbered.iter().map(|(number, _)| *number));
        let takes_device = name == "device" && code.path(&call.func, site).as_deref() == Some("torch.device")
            || device::of_call(code, call, code.scope(site)).is_some();
        if takes_device {
            if let Some(Device::Number(number)) = device::of_call(code, call, code.scope(site)) {
                numbers.insert(number);
            }
            places.extend(numbered);
        }
    }
    if numbers.len() > 1 {
        return Vec::new();
    }
    let found = places.into_iter().filter(|(number, _)| *number > 0).map(|(number, place)| {
        let range = tree::byte_range(place.range());
        let source = code.source(place);
        let edit = source.find(&format!("cuda:{number}")).map(|at| {
            let start = range.start + at + "cuda".len();
            vec![Edit::delete(start, start + format!(":{number}").len())]
        });
        let message =
            format!("GPU {number} is written into the code: with fewer GPUs visible this is an invalid device");
        RULE.finding(range, message).with_fix("Use the current device", edit)
    });
    found.collect()
}
