//! The machine as the evidence shows it, the PyTorch builds that fit it, and the drivers that those need.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::case::{Said, leading_number};
use super::data;
use crate::event::What;
use crate::evidence::Evidence;
use crate::verdict::Verdict;

/// What is known of the machine and its Python. Everything may be unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Platform {
    /// Of the GPU that failed.
    pub capability: Option<Capability>,
    /// As `torch.cuda.get_arch_list()` has it: `sm_80`, `compute_90`.
    pub arch_list: Option<Vec<String>>,
    pub os: Option<Os>,
    /// `3.12.3`
    pub python: Option<String>,
    /// The interpreter's path.
    pub interpreter: Option<String>,
    /// `2.11.0+cu130`
    pub torch: Option<String>,
    /// The newest CUDA version that the driver supports, as nvidia-smi shows it.
    pub driver_cuda: Option<Version>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Os {
    Linux,
    Windows,
    MacOs,
}

/// Major and minor.
pub type Version = (u32, u32);

/// A GPU's compute capability: 8.6 is written `sm_86` in an architecture list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Capability {
    pub major: u32,
    pub minor: u32,
}

impl Capability {
    /// Reads the digits of `sm_86` or `compute_120`, whose last one is the minor; a letter behind them is left out.
    fn of_digits(digits: &str) -> Option<Self> {
        let number = leading_number(digits)?;
        (number >= 10).then_some(Self { major: number / 10, minor: number % 10 })
    }

    /// Can a GPU of this capability run code of an architecture list's entry?
    ///
    /// Machine code runs on the same major and the same or a later minor; PTX (`compute_`) is compiled for anything later
    /// (CUDA C++ Programming Guide, binary and PTX compatibility).
    fn runs(self, entry: &str) -> bool {
        let specific = entry.ends_with(|last: char| last.is_ascii_alphabetic());
        match (entry.strip_prefix("sm_"), entry.strip_prefix("compute_")) {
            (Some(digits), _) => Self::of_digits(digits).is_some_and(|built| {
                self == built || !specific && self.major == built.major && self.minor >= built.minor
            }),
            (_, Some(digits)) => {
                Self::of_digits(digits).is_some_and(|built| self == built || !specific && self >= built)
            }
            _ => false,
        }
    }

    /// The capabilities of Jetson and Drive modules, whose PyTorch comes from NVIDIA and not from pytorch.org.
    pub(super) fn is_embedded(self) -> bool {
        matches!((self.major, self.minor), (5, 3) | (6, 2) | (7, 2) | (8, 7))
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Capability {
    type Err = std::num::ParseIntError;

    /// `8.6`
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}

impl From<Capability> for String {
    fn from(capability: Capability) -> Self {
        capability.to_string()
    }
}

impl TryFrom<String> for Capability {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl Platform {
    /// What the verdict's message, the log and the hook's events say of the machine.
    pub fn seen(verdict: &Verdict, evidence: &Evidence) -> Self {
        let said = Said::of(verdict, evidence);
        let start = evidence.processes.iter().flat_map(|process| &process.events).find_map(|event| match &event.what {
            What::Start(start) => Some(start),
            _ => None,
        });
        Self {
            capability: capability(&said),
            arch_list: arch_list(&said),
            os: os(verdict, evidence),
            python: start.map(|start| start.python.clone()).filter(|python| !python.is_empty()),
            interpreter: start.map(|start| start.executable.clone()).filter(|path| !path.is_empty()),
            torch: said.lines().find_map(torch_version),
            driver_cuda: driver_cuda(&said),
        }
    }

    /// The same machine with a GPU of this capability.
    pub(super) fn on(&self, capability: Capability) -> Self {
        Self { capability: Some(capability), ..self.clone() }
    }

    /// Has the installed framework code for the GPU? None where either side is unknown.
    pub fn has_code(&self) -> Option<bool> {
        let capability = self.capability?;
        Some(self.arch_list.as_ref()?.iter().any(|entry| capability.runs(entry)))
    }

    /// The CUDA version of the installed torch, from its `+cu130`.
    pub fn torch_cuda(&self) -> Option<Version> {
        let (_, digits) = self.torch.as_ref()?.split_once("+cu")?;
        let number = leading_number(digits)?;
        Some((number / 10, number % 10))
    }

    /// The build that suits the GPU and the driver.
    ///
    /// With a known driver the newest torch that it runs: of one CUDA major version any minor will do (minor version
    /// compatibility), but one that the driver knows is better. Without, the first of the file: it asks least.
    pub(super) fn best_build(&self) -> Option<&'static Build> {
        let builds = BUILDS.build.iter().filter(|build| {
            self.capability.is_none_or(|capability| build.architectures.iter().any(|entry| capability.runs(entry)))
        });
        match self.driver_cuda {
            None => builds.into_iter().next(),
            Some(driver) => builds
                .filter(|build| build.cuda().0 <= driver.0)
                .max_by_key(|build| (version(&build.last_torch), build.cuda() <= driver, build.cuda())),
        }
    }

    /// Can this Python install the build? Unknown counts as yes.
    pub(super) fn python_fits(&self, build: &Build) -> bool {
        let Some(python) = &self.python else { return true };
        (version(&build.first_python)..=version(&build.last_python)).contains(&version(python))
    }
}

/// A family of PyTorch wheels: one index of download.pytorch.org.
#[derive(Debug, Deserialize)]
pub(super) struct Build {
    /// `cu126`
    pub index: String,
    pub cuda: String,
    pub last_torch: String,
    pub first_python: String,
    pub last_python: String,
    pub architectures: Vec<String>,
}

impl Build {
    pub fn cuda(&self) -> Version {
        version(&self.cuda)
    }
}

#[derive(Debug, Default, Deserialize)]
struct Builds {
    build: Vec<Build>,
}

static BUILDS: LazyLock<Builds> = LazyLock::new(|| data("torch_builds.toml", include_str!("torch_builds.toml")));

/// The oldest driver that runs programs of a CUDA major version.
pub(super) fn oldest_driver(cuda_major: u32, os: Option<Os>) -> Option<&'static str> {
    let family = DRIVERS.family.iter().find(|family| family.cuda == cuda_major)?;
    Some(if os == Some(Os::Windows) { &family.windows } else { &family.linux })
}

#[derive(Debug, Default, Deserialize)]
struct Drivers {
    family: Vec<Family>,
    toolkit: Vec<Toolkit>,
}

#[derive(Debug, Deserialize)]
struct Family {
    cuda: u32,
    linux: String,
    windows: String,
}

#[derive(Debug, Deserialize)]
struct Toolkit {
    cuda: String,
    linux: String,
}

static DRIVERS: LazyLock<Drivers> = LazyLock::new(|| data("drivers.toml", include_str!("drivers.toml")));

/// The first two numbers of a version: `2.11.0+cu130` is (2, 11).
fn version(text: &str) -> Version {
    let mut numbers = text.split('.').map(|part| leading_number(part).unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// From torch's warnings: "with CUDA capability sm_120 is not compatible", "which is of cuda capability 6.0.".
fn capability(said: &Said) -> Option<Capability> {
    let digits = said.lines().find_map(|line| line.split_once("CUDA capability sm_"));
    digits.and_then(|(_, digits)| Capability::of_digits(digits)).or_else(|| {
        let rest =
            said.after("which is of cuda capability ").or_else(|| said.after("which is of compute capability "))?;
        rest.trim_end().trim_end_matches('.').split_whitespace().next()?.parse().ok()
    })
}

/// From torch's warnings: "supports CUDA capabilities sm_50 sm_60 sm_90.", or the range "(7.5) - (12.0)".
fn arch_list(said: &Said) -> Option<Vec<String>> {
    if let Some(rest) = said.after("supports CUDA capabilities ") {
        let entries = rest.split_whitespace().map(|entry| entry.trim_end_matches(['.', ',']));
        let entries = entries.take_while(|entry| entry.starts_with("sm_") || entry.starts_with("compute_"));
        return Some(entries.map(str::to_owned).collect());
    }
    let mut lines = said.lines().skip_while(|line| !line.contains("Minimum and Maximum cuda capability supported"));
    let (oldest, newest) = lines.by_ref().take(3).find_map(|line| {
        let (oldest, newest) = line.split_once(") - (")?;
        Some((oldest.rsplit('(').next()?, newest.split(')').next()?))
    })?;
    Some([oldest, newest].map(|capability| format!("sm_{}", capability.replace('.', ""))).to_vec())
}

/// `torch-2.11.0+cu130` or `torch 2.11.0+cu130` or a bare `2.11.0+cu130` in a line.
fn torch_version(line: &str) -> Option<String> {
    let (before, after) = line.split_once("+cu")?;
    let digits = after.find(|character: char| !character.is_ascii_digit()).unwrap_or(after.len());
    let start =
        before.rfind(|character: char| !(character.is_ascii_digit() || character == '.')).map_or(0, |at| at + 1);
    let release = &before[start..];
    (digits > 0 && release.contains('.')).then(|| format!("{release}+cu{}", &after[..digits]))
}

/// From torch ("found version 12040"), or from nvidia-smi ("CUDA Version: 12.4", "Driver Version: 550.54").
fn driver_cuda(said: &Said) -> Option<Version> {
    let from_torch = said.after("too old (found version ").and_then(leading_number);
    let from_torch = from_torch.map(|number| (number / 1000, number % 1000 / 10));
    let from_smi = || said.after("CUDA Version: ").map(version).filter(|found| found.0 > 0);
    let from_driver = || {
        let driver = version(said.after("Driver Version: ")?);
        let known = DRIVERS.toolkit.iter().filter(|toolkit| version(&toolkit.linux) <= driver);
        known.map(|toolkit| version(&toolkit.cuda)).max()
    };
    from_torch.or_else(from_smi).or_else(from_driver)
}

/// From the shape of the paths.
fn os(verdict: &Verdict, evidence: &Evidence) -> Option<Os> {
    let run =
        evidence.run.iter().flat_map(|run| [run.cwd.as_str()].into_iter().chain(run.argv.iter().map(String::as_str)));
    let paths: Vec<&str> = run.chain(verdict.frames.iter().map(|frame| frame.file.as_str())).collect();
    let is_windows =
        |path: &&str| matches!(path.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    if paths.iter().any(is_windows) {
        Some(Os::Windows)
    } else if paths.iter().any(|path| path.starts_with("/Users/") || path.starts_with("/Library/")) {
        Some(Os::MacOs)
    } else if paths.iter().any(|path| path.starts_with('/')) {
        Some(Os::Linux)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(text: &str) -> Capability {
        text.parse().unwrap()
    }

    #[test]
    fn code_runs_on_the_same_major_and_a_later_minor() {
        for (gpu, entry, runs) in [
            ("8.9", "sm_86", true),
            ("8.0", "sm_86", false),
            ("12.0", "sm_90", false),
            ("12.1", "sm_120", true),
            ("6.1", "sm_60", true),
            ("12.0", "compute_90", true),
            ("7.5", "compute_80", false),
            ("9.0", "sm_90a", true),
            ("10.0", "compute_90a", false),
        ] {
            assert_eq!(capability(gpu).runs(entry), runs, "{gpu} {entry}");
        }
    }

    #[test]
    fn a_build_suits_the_gpu_and_the_driver() {
        for (gpu, driver, index) in [
            (Some("12.0"), None, Some("cu128")),
            (Some("12.0"), Some((12, 8)), Some("cu128")),
            (Some("12.0"), Some((13, 0)), Some("cu130")),
            (Some("8.6"), None, Some("cu126")),
            (Some("8.9"), Some((12, 4)), Some("cu126")),
            (Some("7.0"), Some((13, 0)), Some("cu126")),
            (Some("6.1"), None, Some("cu126")),
            (Some("8.6"), Some((11, 4)), Some("cu118")),
            (Some("3.7"), None, Some("cu118")),
            (Some("3.5"), None, None),
            (Some("12.0"), Some((11, 8)), None),
            (None, Some((12, 2)), Some("cu126")),
            (None, Some((10, 2)), None),
        ] {
            let platform = Platform { capability: gpu.map(capability), driver_cuda: driver, ..Platform::default() };
            let found = platform.best_build().map(|build| build.index.as_str());
            assert_eq!(found, index, "{gpu:?} {driver:?}");
        }
    }

    #[test]
    fn versions_are_read_from_lines() {
        assert_eq!(torch_version("torch                 2.11.0+cu130").as_deref(), Some("2.11.0+cu130"));
        assert_eq!(torch_version("a+cu130 b"), None);
        assert_eq!(version("2.11.0+cu130"), (2, 11));
        assert_eq!(version("12.4     |"), (12, 4));
    }

    #[test]
    fn each_family_names_its_oldest_driver() {
        assert_eq!(oldest_driver(12, Some(Os::Linux)), Some("525.60.13"));
        assert_eq!(oldest_driver(12, Some(Os::Windows)), Some("528.33"));
        assert_eq!(oldest_driver(13, None), Some("580"));
        assert_eq!(oldest_driver(9, None), None);
    }
}
