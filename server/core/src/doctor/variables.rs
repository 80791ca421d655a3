//! The variables that decide how CUDA programs run, and what is wrong with their values.

use super::{Doctor, Facts, Finding, Level};

/// The variables that are looked at.
pub const WATCHED: [&str; 14] = [
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCH_USE_CUDA_DSA",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "NVIDIA_TF32_OVERRIDE",
    "NCCL_P2P_DISABLE",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CUBLAME_MODE",
];

/// One finding a variable that is set, in the order of [`WATCHED`].
pub(super) fn findings(doctor: &Doctor) -> Vec<Finding> {
    let set = WATCHED.into_iter().filter_map(|name| Some((name, doctor.facts.environment.get(name)?)));
    set.filter_map(|(name, value)| finding(doctor, name, value)).collect()
}

/// Does CUDA_VISIBLE_DEVICES leave no GPU to see?
pub(super) fn hides_everything(facts: &Facts) -> bool {
    let value = facts.environment.get("CUDA_VISIBLE_DEVICES");
    value.is_some_and(|value| matches!(value.split(',').next().map(str::trim), Some("" | "-1" | "NoDevFiles")))
}

fn finding(doctor: &Doctor, name: &str, value: &str) -> Option<Finding> {
    let (level, key) = match (name, value) {
        ("CUDA_LAUNCH_BLOCKING", "1") => (Level::Warning, "blocking-on"),
        ("CUDA_LAUNCH_BLOCKING", "0") => return None,
        ("CUDA_LAUNCH_BLOCKING", _) => (Level::Warning, "blocking-misspelt"),
        ("CUDA_VISIBLE_DEVICES", _) if hides_everything(doctor.facts) => (Level::Warning, "visible-none"),
        ("CUDA_VISIBLE_DEVICES", value) => match beyond(value, doctor.facts.driver.installed) {
            Some(number) => return Some(out_of_range(doctor, value, number)),
            None => (Level::Note, "visible"),
        },
        ("PYTORCH_CUDA_ALLOC_CONF", value) => match doctor.facts.environment.get("PYTORCH_ALLOC_CONF") {
            Some(other) if other != value => (Level::Warning, "allocator-twice"),
            _ => (Level::Note, "allocator"),
        },
        ("PYTORCH_ALLOC_CONF", _) => (Level::Note, "allocator"),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", _) => (Level::Warning, "caching-off"),
        ("TORCH_USE_CUDA_DSA", _) => (Level::Warning, "dsa"),
        ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1") => (Level::Warning, "core-dump"),
        ("NVIDIA_TF32_OVERRIDE", "0") => (Level::Note, "tf32-off"),
        ("NCCL_P2P_DISABLE", "1") => (Level::Note, "p2p-off"),
        ("LD_LIBRARY_PATH", value) if names_cuda(value) => (Level::Note, "library-path"),
        ("LD_PRELOAD", value) if !value.is_empty() => (Level::Note, "preload"),
        ("CUDA_DEVICE_ORDER" | "XLA_PYTHON_CLIENT_PREALLOCATE" | "CUBLAME_MODE", _) => (Level::Note, "set"),
        _ => return None,
    };
    let values = [("name", name), ("value", value)];
    let mut finding = doctor.finding(level, name, &format!("variable.{key}"), &values);
    finding.command = (level == Level::Warning).then(|| format!("unset {name}"));
    Some(finding)
}

/// The first ordinal of the list that no GPU has. CUDA stops reading there: it and all that follow are hidden.
fn beyond(value: &str, installed: Option<usize>) -> Option<usize> {
    let installed = installed?;
    value.split(',').map_while(|entry| entry.trim().parse().ok()).find(|number| *number >= installed)
}

fn out_of_range(doctor: &Doctor, value: &str, number: usize) -> Finding {
    let installed = doctor.facts.driver.installed.unwrap_or_default().to_string();
    let values = [("value", value), ("number", &*number.to_string()), ("installed", &*installed)];
    doctor.finding(Level::Warning, "CUDA_VISIBLE_DEVICES", "variable.visible-beyond", &values)
}

/// Is a folder of the search path one of CUDA's?
fn names_cuda(path: &str) -> bool {
    path.split(':').any(|folder| folder.to_ascii_lowercase().contains("cuda"))
}
