//! The files of a run folder other than the events: `run.json` and `report.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::mode::Mode;
use crate::telemetry::Record;
use crate::verdict::Verdict;

pub const SCHEMA: u32 = 1;

/// `run.json`: written once, when the run is created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    pub schema: u32,
    pub id: String,
    /// Who watches it.
    pub watch: Watch,
    pub mode: Mode,
    pub argv: Vec<String>,
    pub cwd: String,
    /// Absolute path of the script that is run, where the command names one.
    pub entry: Option<String>,
    /// Unix seconds.
    pub started: f64,
    pub host: String,
    /// The supervisor; null for an adopted run.
    pub runner: Option<ProcessId>,
    /// The child of the supervisor, or the process that created the folder.
    pub child: Option<ProcessId>,
    /// CUDA_LAUNCH_BLOCKING=1 was put into the child's environment by the runner itself; of an adopted run, by the env block
    /// of mode blocking.
    pub blocking: bool,
    /// Values of variables on the allow-list only: no secret leaves.
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Watch {
    /// `cublame run` has its streams and its exit status, and writes `report.json`.
    Supervised,
    /// Only the mode's variables were there: hook events, and no report on disk.
    Adopted,
}

/// A process that cannot be confused with a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessId {
    pub pid: u32,
    /// Field 22 of /proc/PID/stat, clock ticks since boot (proc(5)); 0 where the system has none.
    pub start: u64,
}

/// `report.json`: written once, when the run has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    pub schema: u32,
    pub run: String,
    pub finished: f64,
    pub exit: Exit,
    /// What could not be kept, such as "the disk was full". Empty for a whole report.
    pub partial: Vec<String>,
    pub verdicts: Vec<Verdict>,
    /// What the GPUs did around the failure; left out where nothing failed or no GPU could be asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub telemetry: Vec<Record>,
}

/// How the child ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Exit {
    pub fn success(self) -> bool {
        self.code == Some(0)
    }
}
