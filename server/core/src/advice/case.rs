//! What decides whether an advice can work: the run, its framework, its system, and what was said.

use super::PLANS;
use super::command;
use super::platform::{Os, Platform};
use crate::catalog::facts;
use crate::catalog::facts::Subject;
use crate::evidence::Evidence;
use crate::mode::Mode;
use crate::run::Watch;
use crate::verdict::{Certainty, DeviceAssert, Phase, Place, Verdict};

pub(super) struct Case<'a> {
    pub verdict: &'a Verdict,
    pub evidence: &'a Evidence,
    pub platform: &'a Platform,
    pub said: Said<'a>,
    pub framework: Framework,
    /// The command of the run, quoted for its system's shell.
    argv: Option<String>,
    python: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framework {
    Torch,
    TensorFlow,
    Jax,
    CuPy,
    Numba,
    Unknown,
}

impl<'a> Case<'a> {
    pub fn new(verdict: &'a Verdict, evidence: &'a Evidence, platform: &'a Platform) -> Self {
        let said = Said::of(verdict, evidence);
        let framework = framework(verdict, &said);
        let argv = evidence.run.as_ref().map(|run| run.argv.as_slice()).filter(|argv| !argv.is_empty());
        let argv = argv.and_then(|argv| command::quote(argv, platform.os));
        let python = platform.interpreter.clone().filter(|path| command::is_plain(path));
        Case {
            verdict,
            evidence,
            platform,
            said,
            framework,
            argv,
            python: python.unwrap_or_else(|| "python".to_owned()),
        }
    }

    /// What any command may be filled with.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.argv.as_deref().map(|argv| ("argv", argv)).into_iter().chain([("python", self.python.as_str())])
    }

    /// Did it fail in the backward pass, and is it placed where that was started?
    pub fn lacks_its_forward_line(&self) -> bool {
        let Verdict { phase, place, reported, .. } = self.verdict;
        let line = |place: &Option<Place>| place.as_ref().map(|place| (place.file.clone(), place.line));
        *phase == Some(Phase::Backward)
            && place.is_some()
            && line(place) == line(reported)
            && self.framework == Framework::Torch
    }

    /// Would this advice be wrong or idle here?
    pub fn forbids(&self, advice: &str) -> bool {
        let settled = self.is_settled();
        let wrong_here = match advice {
            "rerun-blocking" => settled || self.was_blocking() || self.is_hip() || self.framework == Framework::Jax,
            // The guard knows the arguments of torch's own kernels, and no assertion of their inner logic.
            "rerun-guard" => {
                self.mode() == Some(Mode::Guard) || self.verdict.is_of_guard() || !self.fires_on_an_argument()
            }
            "find-memory-holder" => self.verdict.memory.as_ref().is_some_and(|memory| !memory.sites.is_empty()),
            "rerun-core" => settled || !(self.was_blocking() || self.mode() == Some(Mode::Trace)),
            "avoid-blocking-deadlock" => self.forbids("rerun-blocking") || !self.drives_several_gpus(),
            "serialise-hip" => settled || !self.is_hip(),
            "block-until-ready" => settled || self.framework != Framework::Jax,
            "run-under-cublame" => self.evidence.run.as_ref().is_some_and(|run| run.watch == Watch::Supervised),
            "rerun-sanitizer" => self.mode() == Some(Mode::Sanitize),
            "look-earlier" => self.verdict.place.is_none(),
            "interpret-triton" => !self.said.any("triton") && !self.has_frame_in("triton"),
            "list-gpus" => self.verdict.kind == "invalid-device-ordinal" && !self.uses_another_framework(),
            "simulate-numba" => self.framework != Framework::Numba,
            "run-on-cpu" => self.verdict.is_of_guard(),
            "restart-kernel" => !self.in_notebook() || self.verdict.is_of_guard(),
            // A process that has ended needs no advice to be ended.
            "restart-process" => self.in_notebook() || self.verdict.is_of_guard() || self.evidence.exit.is_some(),
            _ => false,
        };
        wrong_here
            || self.is_hip() && NVIDIA_ONLY.contains(&advice)
            || self.platform.os == Some(Os::Windows) && NOT_ON_WINDOWS.contains(&advice)
            || self.platform.os == Some(Os::Linux) && advice == "raise-tdr-delay"
            || self.uses_another_framework() && TORCH_ONLY.contains(&advice)
    }

    pub fn is_settled(&self) -> bool {
        self.verdict.certainty == Certainty::Exact
    }

    pub fn is_hip(&self) -> bool {
        self.verdict.error.as_ref().is_some_and(|error| error.name.starts_with("hip"))
            || ["HIP error", "hipError", "HIP out of memory"].iter().any(|mark| self.said.any(mark))
    }

    /// The command line of an advice, unless this system's shell has no such command.
    pub fn command_of(&self, advice: &str) -> Option<&'static str> {
        let command = PLANS.commands.get(advice)?.as_str();
        (self.platform.os != Some(Os::Windows) || !command.starts_with("env ")).then_some(command)
    }

    /// Does one of the assertions look at what the program handed to an op? One that left no line may.
    fn fires_on_an_argument(&self) -> bool {
        let asserts = &self.verdict.asserts;
        let about_an_argument = |fired: &DeviceAssert| {
            let known = facts().assert(&fired.condition, fired.kernel.as_deref().unwrap_or_default());
            // What torch.compile generates goes past the guard.
            known.is_some_and(|known| known.subject != Subject::Other && known.id != "inductor-index")
        };
        asserts.is_empty() || asserts.iter().any(about_an_argument)
    }

    /// It is known not to be PyTorch.
    pub fn uses_another_framework(&self) -> bool {
        !matches!(self.framework, Framework::Torch | Framework::Unknown)
    }

    fn mode(&self) -> Option<Mode> {
        self.evidence.run.as_ref().map(|run| run.mode)
    }

    /// Blocking launches were in force: known from the runner or the user, never from the text.
    fn was_blocking(&self) -> bool {
        self.evidence.blocking || self.evidence.run.as_ref().is_some_and(|run| run.blocking)
    }

    /// Several GPUs are driven by one process, where blocking launches can wait for each other (pytorch#9163).
    fn drives_several_gpus(&self) -> bool {
        ["DataParallel(", "nn.DataParallel", "data_parallel.py", "parallel_apply", " in replica "]
            .iter()
            .any(|mark| self.said.any(mark) || self.has_frame_in(mark))
    }

    fn in_notebook(&self) -> bool {
        let is_cell = |file: &str| {
            file.starts_with("Cell In[") || file.starts_with("<ipython-input") || file.contains("ipykernel_")
        };
        let places = [&self.verdict.place, &self.verdict.reported];
        places.into_iter().flatten().any(|place| is_cell(&place.file))
            || self.verdict.frames.iter().any(|frame| is_cell(&frame.file))
    }

    fn has_frame_in(&self, part: &str) -> bool {
        self.verdict.frames.iter().any(|frame| frame.file.contains(part))
    }
}

const NVIDIA_ONLY: [&str; 16] = [
    "rerun-guard",
    "rerun-sanitizer",
    "rerun-core",
    "find-shared-memory-race",
    "find-stream-race",
    "find-gpu-holders",
    "free-other-processes",
    "free-memory-outside",
    "check-ecc",
    "check-nvlink",
    "check-topology",
    "check-compute-mode",
    "check-gpu-answers",
    "log-api-errors",
    "rebuild-extension",
    "list-gpus",
];

const NOT_ON_WINDOWS: [&str; 14] = [
    "rerun-core",
    "find-port-holder",
    "reload-uvm",
    "unset-library-path",
    "confirm-oom-kill",
    "measure-shm",
    "raise-shm",
    "start-fabric-manager",
    "check-fabric-state",
    "remove-compat-library",
    "check-mps",
    "restart-mps",
    "reset-gpu",
    "read-kernel-log",
];

const TORCH_ONLY: [&str; 23] = [
    "rerun-guard",
    "run-on-cpu",
    "rerun-core",
    "clone-views",
    "find-stream-race",
    "check-device-guard",
    "disable-cudnn",
    "leave-room-for-driver",
    "unpin-memory",
    "create-handle-early",
    "checkpoint-activations",
    "evaluate-without-grad",
    "find-memory-holder",
    "lower-precision",
    "keep-dataset-on-cpu",
    "clear-plan-cache",
    "switch-linalg-library",
    "check-sparse-invariants",
    "compare-architectures",
    "count-devices",
    "check-extension-build",
    "rebuild-extension",
    "rebuild-for-this-gpu",
];

/// What was said of the failure: the exception's message, the error's text, then the log, line by line.
pub(super) struct Said<'a> {
    lines: Vec<&'a str>,
}

impl<'a> Said<'a> {
    pub fn of(verdict: &'a Verdict, evidence: &'a Evidence) -> Self {
        let message = verdict.exception.iter().flat_map(|exception| exception.message.lines());
        let error = verdict.error.iter().map(|error| error.text.as_str());
        let log = evidence.log.iter().flat_map(|log| log.lines.iter().map(|line| line.text.as_str()));
        Self { lines: message.chain(error).chain(log).collect() }
    }

    pub fn lines(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().copied()
    }

    pub fn any(&self, part: &str) -> bool {
        self.lines.iter().any(|line| line.contains(part))
    }

    /// The rest of the first line that has `mark`, behind it.
    pub fn after(&self, mark: &str) -> Option<&'a str> {
        self.lines().find_map(|line| line.split_once(mark).map(|(_, rest)| rest))
    }
}

/// The digits at the start of a text, as a number.
pub(super) fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

fn framework(verdict: &Verdict, said: &Said) -> Framework {
    let by_name = |name: &str| match name {
        "torch" | "torchvision" | "torchaudio" => Some(Framework::Torch),
        "tensorflow" | "keras" => Some(Framework::TensorFlow),
        "jax" | "jaxlib" | "flax" => Some(Framework::Jax),
        "cupy" | "cupy_backends" => Some(Framework::CuPy),
        "numba" => Some(Framework::Numba),
        _ => None,
    };
    let by_type = verdict.exception.as_ref().and_then(|exception| match exception.type_name.rsplit('.').next() {
        Some("XlaRuntimeError" | "JaxRuntimeError") => Some(Framework::Jax),
        Some("CUDARuntimeError") => Some(Framework::CuPy),
        Some("CudaAPIError") => Some(Framework::Numba),
        _ => exception.type_name.split('.').next().and_then(by_name),
    });
    let package = |file: &str| file.split(['/', '\\']).rev().find_map(by_name);
    let by_frame = || verdict.frames.iter().rev().filter(|frame| !frame.user).find_map(|frame| package(&frame.file));
    let by_text = || {
        if said.any("Dst tensor is not initialized") || said.any("tensorflow.") {
            Some(Framework::TensorFlow)
        } else if said.any("XlaRuntimeError") {
            Some(Framework::Jax)
        } else if said.any("Tried to allocate") || said.any("CUDA kernel errors might") || said.any("torch.") {
            Some(Framework::Torch)
        } else {
            None
        }
    };
    by_type.or_else(by_frame).or_else(by_text).unwrap_or(Framework::Unknown)
}
