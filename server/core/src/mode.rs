//! A mode is an env block. One function computes it; every front end writes it in its own syntax.

mod env;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use env::{EnvBlock, Half, LeftOut, Machine, OUR_SHARED_VARIABLES, Os, Variable, env_block};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing is added but the hook.
    Off,
    /// CUDA_LAUNCH_BLOCKING=1: every launch waits for its kernel.
    Blocking,
    /// The launch journal: the exact line at full speed.
    Trace,
    /// Trace, and a GPU core dump as proof: the process aborts at the fault.
    Core,
    /// Index, label and probability arguments are checked before the launch.
    Guard,
    /// Under compute-sanitizer.
    Sanitize,
}

impl Mode {
    pub const ALL: [Mode; 6] = [Mode::Off, Mode::Blocking, Mode::Trace, Mode::Core, Mode::Guard, Mode::Sanitize];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::Blocking => "blocking",
            Mode::Trace => "trace",
            Mode::Core => "core",
            Mode::Guard => "guard",
            Mode::Sanitize => "sanitize",
        }
    }

    /// One sentence for a menu: what the mode gives and what it costs (the costs are measured, README.md).
    pub fn summary(self) -> &'static str {
        match self {
            Mode::Off => "nothing is changed; a failure is reported from its output and exception alone",
            Mode::Blocking => {
                "every launch waits for its kernel: the failing line is right, the run up to twice as long"
            }
            Mode::Trace => "the failing line at full speed, from a journal of launches (Linux)",
            Mode::Core => "trace, and the GPU's core dump as proof; the process ends at the fault (Linux)",
            Mode::Guard => "indices, labels and probabilities are checked before the launch; the CUDA context survives",
            Mode::Sanitize => "under NVIDIA's compute-sanitizer: finds the bad access itself, many times slower",
        }
    }
}

/// The words that stand before the user's command; empty for every mode but sanitize.
///
/// `--require-cuda-init no` keeps the exit code of a process that never touches CUDA (a launcher, a test without a GPU),
/// which compute-sanitizer would otherwise end with 255 (Compute Sanitizer user manual, "Command Line Options").
pub fn prefix(mode: Mode) -> Vec<String> {
    let words: &[&str] = match mode {
        Mode::Sanitize => {
            &["compute-sanitizer", "--tool", "memcheck", "--target-processes", "all", "--require-cuda-init", "no"]
        }
        Mode::Off | Mode::Blocking | Mode::Trace | Mode::Core | Mode::Guard => &[],
    };
    words.iter().map(|&word| word.to_owned()).collect()
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Mode::ALL.into_iter().find(|mode| mode.name() == word).ok_or_else(|| UnknownMode(word.to_owned()))
    }
}

/// A word that names no mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode(pub String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        write!(f, "`{}` is not a mode; the modes are {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownMode {}
