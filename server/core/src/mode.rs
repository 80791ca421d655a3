//! A mode is an env block. One function computes it; every front end writes it in its own syntax.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
