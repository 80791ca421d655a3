//! What is wrong with a machine before any program fails: facts to findings, each with its remedy.
//!
//! The remedies are those of the verdicts: a driver that is missing is what `no-driver` is about, whoever noticed it.

mod variables;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::advice::{self, Capability, Os, Platform};
use crate::catalog::{Texts, facts as catalogue};
use crate::evidence::Evidence;
use crate::verdict::{Certainty, ExceptionText, Verdict};

pub use variables::WATCHED;

/// The document that `cublame doctor --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    pub schema: u32,
    #[serde(flatten)]
    pub facts: Facts,
    pub findings: Vec<Finding>,
}

/// What was seen of a machine. Everything may be absent, and says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub driver: Driver,
    pub interpreter: Interpreter,
    /// The variables of [`WATCHED`] that are set.
    pub environment: BTreeMap<String, String>,
    /// The examined process is in a container, where a driver comes from outside.
    pub container: bool,
}

/// The NVIDIA driver: its half in the kernel, and the library that programs load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Driver {
    /// `580.159.04`, as the kernel module says.
    pub version: Option<String>,
    /// GPUs that the kernel module drives, hidden ones included.
    pub installed: Option<usize>,
    pub library: Library,
}

/// What asking libcuda came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Library {
    #[default]
    Absent,
    /// Something is called libcuda and lacks an entry point.
    Incomplete { what: String },
    /// The driver's own answer was an error: `CUresult` of cuda.h.
    Refused { code: u32, name: String },
    /// It did not answer in time.
    Silent { seconds: u64 },
    /// The process that asked it died.
    Died { how: String },
    /// The GPUs are those that a program sees, in its order.
    Works {
        /// The newest CUDA version that the driver supports.
        cuda: (u32, u32),
        gpus: Vec<Gpu>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    pub name: String,
    pub capability: Capability,
    /// Bytes.
    pub memory: u64,
    /// Compute mode EXCLUSIVE_PROCESS: one process at a time.
    pub exclusive: bool,
}

/// The project's Python, and what it was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Interpreter {
    /// Running it would be running a program of a workspace that the user does not trust.
    NotTrusted,
    NotFound,
    /// It could not be asked.
    Failed {
        path: String,
        why: String,
    },
    Asked(Python),
}

/// What an interpreter says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Python {
    pub executable: String,
    /// Why it is this one: `VIRTUAL_ENV`.
    pub chosen_by: String,
    /// `3.12.3`
    pub version: String,
    /// `2.11.0+cu130`
    pub torch: Option<String>,
    /// The CUDA version that torch was built for: `13.0`. None in a build for the CPU.
    pub torch_cuda: Option<String>,
    /// The same of ROCm.
    pub torch_hip: Option<String>,
    /// What torch has code for: `sm_80`, `compute_90`.
    pub architectures: Vec<String>,
    /// Why torch, which is installed, cannot be imported.
    pub torch_failure: Option<String>,
    /// Versions of other frameworks that are installed.
    pub frameworks: BTreeMap<String, String>,
}

/// One line of the examination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub level: Level,
    /// `no-driver`: a kind of the catalogue where there is one for it.
    pub id: String,
    /// One sentence without its final dot.
    pub says: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// A command line that does it.
    pub command: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Good,
    /// Worth knowing.
    Note,
    /// It works, and not as it should.
    Warning,
    /// Programs will fail.
    Fault,
}

/// The version of the JSON shape.
pub const SCHEMA: u32 = 1;

/// Examines a machine.
pub fn examine(facts: Facts, texts: &Texts) -> Examination {
    let doctor = Doctor { facts: &facts, texts };
    let findings = [doctor.driver(), doctor.gpus(), doctor.python(), doctor.fit(), variables::findings(&doctor)];
    Examination { schema: SCHEMA, findings: findings.concat(), facts }
}

struct Doctor<'a> {
    facts: &'a Facts,
    texts: &'a Texts,
}

impl Doctor<'_> {
    fn driver(&self) -> Vec<Finding> {
        let version = self.facts.driver.version.as_deref();
        vec![match (&self.facts.driver.library, version) {
            (Library::Works { cuda: (major, minor), .. }, version) => {
                let cuda = format!("{major}.{minor}");
                match version {
                    Some(version) => self.good("driver", "driver", &[("version", version), ("cuda", &cuda)]),
                    None => self.good("driver", "driver-unversioned", &[("cuda", &cuda)]),
                }
            }
            (Library::Absent, None) => self.treated(Level::Note, "no-driver", "driver-absent", &[]),
            // The kernel has it and programs do not find its library: a container without the driver's files.
            (Library::Absent, Some(version)) => {
                self.treated(Level::Fault, "no-driver", "driver-library-absent", &[("version", version)])
            }
            (Library::Incomplete { what }, _) => {
                self.treated(Level::Fault, "driver-mismatch", "driver-incomplete", &[("what", what)])
            }
            (Library::Refused { code: NO_DEVICE, .. }, _) if variables::hides_everything(self.facts) => {
                self.finding(Level::Note, "no-device", "driver-hidden", &[])
            }
            (Library::Refused { code, name }, _) => {
                let kind = match *code {
                    STUB_LIBRARY => "driver-mismatch",
                    code => catalogue().error_coded(code).map_or("unknown-error", |spelled| spelled.kind.id.as_str()),
                };
                self.treated(Level::Fault, kind, "driver-refused", &[("name", name), ("code", &code.to_string())])
            }
            (Library::Silent { seconds }, _) => {
                self.treated(Level::Fault, "gpu-lost", "driver-silent", &[("seconds", &seconds.to_string())])
            }
            (Library::Died { how }, _) => self.treated(Level::Fault, "driver-mismatch", "driver-died", &[("how", how)]),
        }]
    }

    fn gpus(&self) -> Vec<Finding> {
        let gpu = |(number, gpu): (usize, &Gpu)| {
            let (number, capability, memory) =
                (number.to_string(), gpu.capability.to_string(), advice::size(gpu.memory));
            let values =
                [("number", &*number), ("name", &*gpu.name), ("capability", &*capability), ("memory", &*memory)];
            let seen = self.good("gpu", "gpu", &values);
            let alone = self.finding(Level::Note, "exclusive-gpu", "gpu-exclusive", &[("number", &number)]);
            [Some(seen), gpu.exclusive.then_some(alone)]
        };
        let mut findings: Vec<Finding> = self.seen_gpus().iter().enumerate().flat_map(gpu).flatten().collect();
        let seen = self.seen_gpus().len();
        if let Some(installed) = self.facts.driver.installed.filter(|&installed| seen > 0 && installed > seen) {
            let values = [("seen", &*seen.to_string()), ("installed", &*installed.to_string())];
            findings.push(self.finding(Level::Note, "hidden-gpus", "gpus-hidden", &values));
        }
        findings
    }

    fn python(&self) -> Vec<Finding> {
        let python = match &self.facts.interpreter {
            Interpreter::NotTrusted => {
                return vec![self.finding(Level::Note, "not-trusted", "python-not-trusted", &[])];
            }
            Interpreter::NotFound => return vec![self.finding(Level::Note, "no-python", "python-not-found", &[])],
            Interpreter::Failed { path, why } => {
                let values = [("path", &**path), ("why", &**why)];
                return vec![self.finding(Level::Warning, "python-failed", "python-failed", &values)];
            }
            Interpreter::Asked(python) => python,
        };
        let values = [
            ("version", &*python.version),
            ("path", &*python.executable),
            ("chosen", &*self.say(&format!("chosen.{}", python.chosen_by))),
        ];
        let mut findings = vec![self.good("python", "python", &values)];
        findings.push(self.torch(python));
        if !python.frameworks.is_empty() {
            let list: Vec<String> =
                python.frameworks.iter().map(|(name, version)| format!("{name} {version}")).collect();
            findings.push(self.good("frameworks", "frameworks", &[("list", &list.join(", "))]));
        }
        findings
    }

    fn torch(&self, python: &Python) -> Finding {
        if let Some(failure) = &python.torch_failure {
            let kind = catalogue().kind_worded(failure).map_or("library-missing", |kind| kind.id.as_str());
            return self.treated_saying(Level::Fault, kind, "torch-broken", &[("failure", failure)], failure);
        }
        let Some(version) = python.torch.as_deref() else {
            return self.finding(Level::Note, "no-torch", "torch-absent", &[]);
        };
        match (&python.torch_cuda, &python.torch_hip) {
            (Some(cuda), _) if python.architectures.is_empty() => {
                self.good("torch", "torch-unlisted", &[("version", version), ("cuda", cuda)])
            }
            (Some(cuda), _) => {
                let architectures = python.architectures.join(" ");
                let values = [("version", version), ("cuda", cuda), ("architectures", &architectures)];
                self.good("torch", "torch", &values)
            }
            (None, Some(hip)) => {
                self.finding(Level::Note, "torch-rocm", "torch-rocm", &[("version", version), ("hip", hip)])
            }
            (None, None) => {
                let level = if self.seen_gpus().is_empty() { Level::Note } else { Level::Fault };
                self.treated(level, "not-compiled-cuda", "torch-cpu", &[("version", version)])
            }
        }
    }

    /// Do the driver, the GPUs and torch go together?
    fn fit(&self) -> Vec<Finding> {
        let Interpreter::Asked(python) = &self.facts.interpreter else { return Vec::new() };
        let (Some(torch), Some(cuda)) = (&python.torch, &python.torch_cuda) else { return Vec::new() };
        let Library::Works { cuda: driver, gpus } = &self.facts.driver.library else { return Vec::new() };
        let mut findings = Vec::new();
        let major = cuda.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_some_and(|major| major > driver.0) {
            let driver = format!("{}.{}", driver.0, driver.1);
            let values = [("version", &**torch), ("cuda", &**cuda), ("driver", &*driver)];
            findings.push(self.treated(Level::Fault, "driver-too-old", "torch-too-new", &values));
        }
        let mut asked = Vec::new();
        for gpu in gpus {
            let platform = self.platform(Some(gpu.capability));
            if platform.has_code() == Some(false) && !asked.contains(&gpu.capability) {
                asked.push(gpu.capability);
                let capability = gpu.capability.to_string();
                let values = [("version", &**torch), ("name", &*gpu.name), ("capability", &*capability)];
                let says = self.texts.line("doctor.torch-lacks-code", &values);
                findings.push(self.with_remedy(Level::Fault, "no-kernel-image", says, &platform, ""));
            }
        }
        if findings.is_empty() && !gpus.is_empty() {
            findings.push(self.good("fit", "torch-fits", &[("version", torch)]));
        }
        findings
    }

    fn seen_gpus(&self) -> &[Gpu] {
        match &self.facts.driver.library {
            Library::Works { gpus, .. } => gpus,
            _ => &[],
        }
    }

    /// The machine in the words of the advice.
    fn platform(&self, capability: Option<Capability>) -> Platform {
        let driver_cuda = match &self.facts.driver.library {
            Library::Works { cuda, .. } => Some(*cuda),
            _ => None,
        };
        let python = match &self.facts.interpreter {
            Interpreter::Asked(python) => Some(python),
            _ => None,
        };
        Platform {
            capability,
            arch_list: python.map(|python| python.architectures.clone()).filter(|list| !list.is_empty()),
            os: Some(Os::Linux),
            python: python.map(|python| python.version.clone()),
            interpreter: python.map(|python| python.executable.clone()),
            torch: python.and_then(|python| python.torch.clone()),
            driver_cuda,
        }
    }

    fn good(&self, id: &str, key: &str, values: &[(&str, &str)]) -> Finding {
        self.finding(Level::Good, id, key, values)
    }

    /// A finding whose remedy, if it needs one, is a sentence of its own.
    fn finding(&self, level: Level, id: &str, key: &str, values: &[(&str, &str)]) -> Finding {
        let remedy = self.texts.find(&format!("doctor.{key}-remedy")).map(str::to_owned);
        Finding { level, id: id.to_owned(), says: self.say_with(key, values), remedy, command: None }
    }

    /// A finding that is treated as a failure of that kind is.
    fn treated(&self, level: Level, kind: &str, key: &str, values: &[(&str, &str)]) -> Finding {
        self.treated_saying(level, kind, key, values, "")
    }

    fn treated_saying(&self, level: Level, kind: &str, key: &str, values: &[(&str, &str)], said: &str) -> Finding {
        let capability = self.seen_gpus().first().map(|gpu| gpu.capability);
        self.with_remedy(level, kind, self.say_with(key, values), &self.platform(capability), said)
    }

    fn with_remedy(&self, level: Level, kind: &str, says: String, platform: &Platform, said: &str) -> Finding {
        let advice = advice::advise_on(&bare(kind, said), &Evidence::default(), platform, self.texts);
        let wrong_place = if self.facts.container { "install-driver" } else { "give-container-gpu" };
        let first = advice.into_iter().find(|advice| !ANSWERED.contains(&&*advice.id) && advice.id != wrong_place);
        let (remedy, command) = match first {
            Some(advice) => (Some(format!("{}: {}", advice.title, advice.detail)), advice.command),
            None => (None, None),
        };
        Finding { level, id: kind.to_owned(), says, remedy, command }
    }

    fn say(&self, key: &str) -> String {
        self.say_with(key, &[])
    }

    fn say_with(&self, key: &str, values: &[(&str, &str)]) -> String {
        self.texts.line(&format!("doctor.{key}"), values)
    }
}

/// CUDA_ERROR_NO_DEVICE
const NO_DEVICE: u32 = 100;
/// CUDA_ERROR_STUB_LIBRARY: the toolkit's library for linking, which has no driver behind it.
const STUB_LIBRARY: u32 = 34;

/// Advice that asks for what has just been looked at.
const ANSWERED: [&str; 6] = [
    "list-gpus",
    "count-devices",
    "show-driver",
    "compare-architectures",
    "check-visible-devices",
    "leave-cuda-on-mac",
];

/// A failure of a kind of which nothing else is known.
fn bare(kind: &str, said: &str) -> Verdict {
    let exception = ExceptionText { type_name: "ImportError".to_owned(), message: said.to_owned() };
    Verdict {
        kind: kind.to_owned(),
        summary: String::new(),
        error: None,
        exception: (!said.is_empty()).then_some(exception),
        place: None,
        reported: None,
        certainty: Certainty::Unknown,
        trace_trusted: false,
        because: Vec::new(),
        missing: Vec::new(),
        phase: None,
        asserts: Vec::new(),
        memory: None,
        frames: Vec::new(),
        tensors: Vec::new(),
        objects: Vec::new(),
        rank: None,
        device: None,
        collateral: Vec::new(),
        advice: Vec::new(),
        fatal: true,
        candidates: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
