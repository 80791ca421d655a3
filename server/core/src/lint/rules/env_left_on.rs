use crate::lint::rule::{Rule, Severity};
use crate::lint::variables::Setting;
use crate::lint::{FileKind, Finding, Input};

use super::{env_scoped, env_too_late, is_test};

pub const RULE: Rule = Rule {
    name: "env-left-on",
    severity: Severity::Hint,
    what: "CUDA_LAUNCH_BLOCKING=1 is set for good: in code, an image, an env file, a shell profile, a CI job or a run configuration.",
    why: "Every launch then waits for its kernel. Measured, a transformer's step took 1.4 to 1.6 times as long and a ResNet's \
          1.8 to 2.1 times. It is for one run that looks for a failure, and is easily forgotten.",
    example: "ENV CUDA_LAUNCH_BLOCKING=1",
    fix: "Take it out, and switch it on for one run: `cublame run --mode blocking -- python train.py`.",
    quiet: "Before a single command, under a condition, in tests, in entries that cublame wrote or switched, and where the \
            value is `0`. A function that the file does not call itself is an option.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    if is_test(input.file.path) {
        return Vec::new();
    }
    let flipped = input.code.map(env_scoped::flips).unwrap_or_default();
    // Set too late it slows nothing.
    let late = env_too_late::check(input);
    let mut found = Vec::new();
    for variable in input.variables {
        let on = variable.name == "CUDA_LAUNCH_BLOCKING" && variable.value.as_deref() == Some("1");
        let lasting = matches!(variable.setting, Setting::Code | Setting::Everything | Setting::RunConfiguration);
        if !on || !lasting || flipped.iter().any(|flip| flip.holds(&variable.range)) {
            continue;
        }
        if late.iter().any(|finding| finding.range == variable.range) {
            continue;
        }
        if input.file.kind == FileKind::LaunchJson && is_switched(input, variable.range.start) {
            continue;
        }
        let message = "CUDA_LAUNCH_BLOCKING=1 is left on here: every run is slowed, up to twice as long".to_owned();
        found.push(RULE.finding(variable.range.clone(), message).with_fix("Take it out", variable.removal.clone()));
    }
    found
}

fn is_switched(input: &Input<'_, '_>, offset: usize) -> bool {
    let name = crate::lint::variables::configuration_at(&input.file.text, offset);
    name.is_some_and(|name| input.settings.switched.contains(&name))
}
