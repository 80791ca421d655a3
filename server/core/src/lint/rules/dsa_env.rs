use crate::lint::rule::{Rule, Severity};
use crate::lint::variables::Setting;
use crate::lint::{FileKind, Finding, Input};

pub const RULE: Rule = Rule {
    name: "dsa-env",
    severity: Severity::Warning,
    what: "TORCH_USE_CUDA_DSA is set as an environment variable.",
    why: "It is a macro of PyTorch's own compilation. The wheels are built without it, and the variable changes nothing when a \
          program runs.",
    example: "os.environ[\"TORCH_USE_CUDA_DSA\"] = \"1\"",
    fix: "Take it out. What helps is `cublame run --mode trace`, or CUDA_LAUNCH_BLOCKING=1.",
    quiet: "In files that build PyTorch or an extension: those that run `setup.py` or cmake.",
    check,
};

fn check(input: &Input<'_, '_>) -> Vec<Finding> {
    let text = &input.file.text;
    let builds = input.file.kind != FileKind::Python
        && ["setup.py", "cmake", "pip install -e", "pip wheel", "python -m build"]
            .iter()
            .any(|word| text.contains(word));
    if builds {
        return Vec::new();
    }
    let set = input.variables.iter().filter(|variable| {
        variable.name == "TORCH_USE_CUDA_DSA"
            && variable.setting != Setting::Ours
            && variable.value.as_deref() != Some("0")
    });
    set.map(|variable| {
        let message = "TORCH_USE_CUDA_DSA is read when PyTorch is compiled: as a variable of a run it does nothing";
        RULE.finding(variable.range.clone(), message).with_fix("Take it out", variable.removal.clone())
    })
    .collect()
}
