//! The advice that is computed: one function a decision of `plans.toml`.

use std::collections::BTreeMap;

use super::case::{Case, leading_number};
use super::memory;
use super::platform::{Capability, Os, oldest_driver};
use super::{PLANS, Step};
use crate::blame::guard;
use crate::catalog::facts;

/// Carries out the decision that a plan names.
/// What comes before a kind's own advice.
pub(super) fn whatever_the_kind(case: &Case) -> Option<Step> {
    case.lacks_its_forward_line().then(|| Step::new("rerun-anomaly"))
}

pub(super) fn decide(name: &str, case: &Case) -> Vec<Step> {
    match name {
        "assertion" => assertion(case),
        "guard-for-line" if !case.is_settled() => vec![Step::new("rerun-guard")],
        "guard-for-value" if case.is_settled() => vec![Step::new("rerun-guard")],
        "guard-for-line" | "guard-for-value" => Vec::new(),
        "memory" => memory::decide(case),
        "wheel" => wheel(case),
        "cuda-build" => cuda_build(case),
        "driver" => driver(case),
        "mismatch" => mismatch(case),
        "library" => library(case),
        "xid" => xid(case),
        "collective" => collective(case),
        "port" => port(case),
        _ => {
            debug_assert!(false, "no decision is called <{name}>");
            Vec::new()
        }
    }
}

/// What to check for the assertions that fired: indices, labels, probabilities or the framework itself.
fn assertion(case: &Case) -> Vec<Step> {
    if let Some(argument) = guard::argument(case.verdict) {
        let named = PLANS.guarded.iter().find(|(part, _)| argument.contains(part.as_str()));
        return vec![Step::new(named.map_or(ANY_VALUE, |(_, check)| check))];
    }
    let mut checks: Vec<&str> = Vec::new();
    for fired in &case.verdict.asserts {
        let known = facts().assert(&fired.condition, fired.kernel.as_deref().unwrap_or_default());
        let check = known.and_then(|known| PLANS.asserts.get(&known.id)).map_or(ANY_VALUE, String::as_str);
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    if checks.is_empty() {
        checks.push(ANY_VALUE);
    }
    checks.into_iter().map(Step::new).collect()
}

/// For an assertion that the catalogue does not know, or that left no line.
const ANY_VALUE: &str = "check-values";

/// No code for this GPU: which side is at fault, and what to install.
fn wheel(case: &Case) -> Vec<Step> {
    let platform = case.platform;
    if case.uses_another_framework() {
        return vec![Step::new("upgrade-for-gpu")];
    }
    if case.said.any("bitsandbytes") && platform.has_code() != Some(false) {
        return vec![Step::new("upgrade-bitsandbytes")];
    }
    let Some(capability) = platform.capability else {
        return vec![Step::new("compare-architectures"), Step::new("rebuild-extension")];
    };
    if capability.is_embedded() {
        return vec![Step::new("install-embedded-build").with("capability", capability)];
    }
    let suitable = || match platform.best_build() {
        Some(build) => {
            let step = Step::new("install-matching-build").with("capability", capability).with("index", &build.index);
            let mut steps = vec![step.with("torch", &build.last_torch)];
            steps.extend(python_change(case));
            steps.push(Step::new("reinstall-extensions"));
            steps
        }
        None => vec![Step::new("build-from-source").with("capability", capability)],
    };
    match platform.has_code() {
        Some(true) => vec![Step::new("rebuild-extension-for").with("capability", capability)],
        Some(false) => suitable(),
        None => [Step::new("compare-architectures")].into_iter().chain(suitable()).collect(),
    }
}

/// The build needs another Python than the one in use.
fn python_change(case: &Case) -> Option<Step> {
    let build = case.platform.best_build()?;
    let python = case.platform.python.as_ref()?;
    (!case.platform.python_fits(build)).then(|| {
        let step = Step::new("change-python").with("python", python).with("index", &build.index);
        step.with("first", &build.first_python).with("last", &build.last_python)
    })
}

fn cuda_build(case: &Case) -> Vec<Step> {
    if case.platform.os == Some(Os::MacOs) {
        return vec![Step::new("leave-cuda-on-mac")];
    }
    let build = case.platform.best_build().map(|build| Step::new("install-cuda-build").with("index", &build.index));
    build.into_iter().chain(blackwell(case)).chain(python_change(case)).chain([Step::new("choose-device")]).collect()
}

/// A driver that is too old: the newest build that it runs, and the driver that the installed one needs.
fn driver(case: &Case) -> Vec<Step> {
    let platform = case.platform;
    let Some((major, minor)) = platform.driver_cuda.filter(|_| !case.uses_another_framework()) else {
        return vec![Step::new("show-driver"), Step::new("update-driver")];
    };
    let older = platform.best_build().map(|build| {
        let step = Step::new("install-older-build").with("driver", format!("{major}.{minor}"));
        step.with("index", &build.index).with("cuda", &build.cuda).with("torch", &build.last_torch)
    });
    let needed = platform.torch_cuda().and_then(|cuda| Some((cuda, oldest_driver(cuda.0, platform.os)?)));
    let update = match needed {
        Some(((major, minor), driver)) => {
            Step::new("update-driver-to").with("driver", driver).with("cuda", format!("{major}.{minor}"))
        }
        None => Step::new("update-driver"),
    };
    older.into_iter().chain(blackwell(case)).chain(python_change(case)).chain([update]).collect()
}

/// While the GPU is unknown the offered build may lack the newest architecture: what to take on such a GPU.
fn blackwell(case: &Case) -> Option<Step> {
    /// The first CUDA version with code for Blackwell, whose GPUs no older driver knows.
    const FIRST_CUDA: (u32, u32) = (12, 8);
    let is_possible = case.platform.driver_cuda.is_none_or(|driver| driver >= FIRST_CUDA);
    if case.platform.capability.is_some() || !is_possible {
        return None;
    }
    let build = case.platform.on(Capability { major: 12, minor: 0 }).best_build()?;
    let is_other = case.platform.best_build().is_none_or(|offered| offered.index != build.index);
    is_other.then(|| Step::new("install-blackwell-build").with("index", &build.index))
}

/// 804 (cudaErrorCompatNotSupportedOnDevice) is about the compatibility package alone; 803 is mostly a missing reboot.
fn mismatch(case: &Case) -> Vec<Step> {
    let code = case.verdict.error.as_ref().and_then(|error| error.code);
    match code {
        Some(804) => vec![Step::new("remove-compat-library"), Step::new("update-driver")],
        _ => vec![Step::new("reboot-after-driver-update"), Step::new("remove-compat-library")],
    }
}

fn library(case: &Case) -> Vec<Step> {
    if case.said.any("nvJitLink") {
        return vec![Step::new("unset-library-path"), Step::new("reinstall-cleanly")];
    }
    if case.said.any("undefined symbol") {
        return vec![Step::new("rebuild-against-torch"), Step::new("unset-library-path")];
    }
    if case.said.any("libcuda.so") {
        return vec![Step::new("list-gpus"), Step::new("give-container-gpu"), Step::new("install-driver")];
    }
    if case.said.any("DLL load failed") || case.said.any("WinError 126") {
        return vec![Step::new("install-vc-runtime"), Step::new("reinstall-cleanly")];
    }
    match missing_cuda_library(case) {
        Some((library, major)) => {
            vec![Step::new("install-cuda-runtime").with("library", library).with("major", major)]
        }
        None => vec![Step::new("find-missing-library")],
    }
}

/// `libcudart.so.11.0` and the major version that it belongs to.
fn missing_cuda_library(case: &Case) -> Option<(String, u32)> {
    let names = ["libcudart.so.", "libcublas.so.", "libcublasLt.so.", "libnvrtc.so."];
    names.into_iter().find_map(|name| {
        let rest = case.said.after(name)?;
        let end = rest.find(|character: char| !(character.is_ascii_digit() || character == '.')).unwrap_or(rest.len());
        let number = rest[..end].trim_end_matches('.');
        Some((format!("{name}{number}"), leading_number(number)?))
    })
}

/// The driver's own reports, each with its meaning and decisive check (NVIDIA, Xid Errors).
fn xid(case: &Case) -> Vec<Step> {
    const KNOWN: [u32; 12] = [13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 119];
    let mut seen = Vec::new();
    for line in case.said.lines() {
        let Some((_, rest)) = line.split_once("Xid") else { continue };
        let number = match rest.split_once("): ") {
            Some((_, number)) => leading_number(number),
            None => leading_number(rest.trim_start()),
        };
        // 120 is the same processor's error report; the advice is that of 119.
        let number = number.map(|number| if number == 120 { 119 } else { number });
        seen.extend(number.filter(|number| KNOWN.contains(number) && !seen.contains(number)));
    }
    if seen.is_empty() {
        return vec![Step::new("read-kernel-log")];
    }
    seen.iter().map(|number| Step::new(&format!("xid-{number}"))).collect()
}

/// How far one rank had come in one process group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Progress {
    enqueued: Option<u64>,
    completed: Option<u64>,
    /// The collective that timed out: its sequence number and its name.
    waiting: Option<(u64, String)>,
}

/// A collective timeout: compares the sequence numbers that the ranks' watchdogs printed.
fn collective(case: &Case) -> Vec<Step> {
    let mut groups: BTreeMap<String, BTreeMap<u32, Progress>> = BTreeMap::new();
    for line in case.said.lines() {
        let Some(rank) = line.split("Rank ").skip(1).find_map(leading_number) else { continue };
        let group = line.split_once("PG ID ").and_then(|(_, rest)| leading_number(rest));
        let group = group.map(|group| group.to_string()).unwrap_or_default();
        let number = |mark: &str| line.split_once(mark).and_then(|(_, rest)| leading_number(rest)).map(u64::from);
        let progress = groups.entry(group).or_default().entry(rank).or_default();
        progress.enqueued =
            number("last enqueued NCCL work: ").or(number("last enqueued work: ")).or(progress.enqueued);
        progress.completed =
            number("last completed NCCL work: ").or(number("last completed work: ")).or(progress.completed);
        if let (Some(sequence), Some((_, operation))) = (number("SeqNum="), line.split_once("OpType=")) {
            let operation: String = operation.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            progress.waiting = Some((sequence, operation));
        }
    }
    let found =
        groups.values().filter(|ranks| ranks.len() > 1).find_map(|ranks| mismatch_of(ranks).or_else(|| laggard(ranks)));
    found.map_or_else(|| vec![Step::new("compare-sequence-numbers")], |step| vec![step])
}

/// Two ranks wait in different collectives under the same number.
fn mismatch_of(ranks: &BTreeMap<u32, Progress>) -> Option<Step> {
    let waiting: Vec<(u32, u64, &str)> = ranks
        .iter()
        .filter_map(|(rank, progress)| progress.waiting.as_ref().map(|(number, name)| (*rank, *number, name.as_str())))
        .collect();
    let (first, rest) = waiting.split_first()?;
    let other = rest.iter().find(|other| other.1 == first.1 && other.2 != first.2)?;
    let step = Step::new("align-collectives").with("sequence", first.1);
    Some(step.with("rank", first.0).with("operation", first.2).with("other", other.0).with("instead", other.2))
}

/// One rank is behind all others. A tie says nothing.
fn laggard(ranks: &BTreeMap<u32, Progress>) -> Option<Step> {
    let behind = |count: fn(&Progress) -> Option<u64>| {
        let mut counts: Vec<(u64, u32)> = ranks.iter().filter_map(|(rank, of)| Some((count(of)?, *rank))).collect();
        counts.sort_unstable();
        let [(lowest, rank), (next, _), ..] = counts[..] else { return None };
        (lowest < next).then(|| (rank, lowest, counts[counts.len() - 1].0))
    };
    let (rank, at, ahead) = behind(|progress| progress.enqueued).or_else(|| behind(|progress| progress.completed))?;
    Some(Step::new("look-at-lagging-rank").with("rank", rank).with("sequence", at).with("ahead", ahead))
}

/// The port that the message names.
fn port(case: &Case) -> Vec<Step> {
    let named = case.said.after("port: ").or_else(|| case.said.after("port:")).or_else(|| case.said.after("port "));
    let after_host = || case.said.after("[::]:").or_else(|| case.said.after("0.0.0.0:"));
    let port = named.and_then(leading_number).or_else(|| after_host().and_then(leading_number));
    port.map(|port| Step::new("find-port-holder").with("port", port)).into_iter().collect()
}
