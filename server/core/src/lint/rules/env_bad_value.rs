use crate::config::Edit;
use crate::lint::rule::{Rule, Severity};
use crate::lint::{Finding, Input};

pub const RULE: Rule = Rule {
    name: "env-bad-value",
    severity: Severity::Error,
    what: "CUDA_LAUNCH_BLOCKING has a value other than 0 and 1.",
    why: "Only the value `1` switches blocking on. `true`, `yes` and `2` do nothing, so the run is asynchronous and its trace \
          misleads, while everybody believes it to be exact.",
    example: "export CUDA_LAUNCH_BLOCKING=true",
    fix: "Write `1`, or `0` for off.",
    quiet: "For an empty value, which is a way to unset it, and for values that are only known when the program runs.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let blocking = input.variables.iter().filter(|variable| variable.name == "CUDA_LAUNCH_BLOCKING");
    let wrong = blocking.filter_map(|variable| {
        let value = variable.value.as_deref()?;
        if matches!(value, "0" | "1" | "") {
            return None;
        }
        let off = matches!(value.to_ascii_lowercase().trim(), "false" | "no" | "off" | "none" | "0");
        let right = if off { "0" } else { "1" };
        let message = format!("CUDA_LAUNCH_BLOCKING is switched on by `1` and nothing else: `{value}` has no effect");
        let edit = variable.value_range.clone().map(|range| vec![Edit::replace(range.start, range.end, right)]);
        Some(RULE.finding(variable.range.clone(), message).with_fix(format!("Set it to {right}"), edit))
    });
    wrong.collect()
}
