//! The verdict: what every rendering shows, in the shape that `report.json` and `--json` promise.
//!
//! Lines and columns are 1-based, columns count Unicode code points, sizes are bytes, absent is null.

use serde::{Deserialize, Serialize};

/// The version of the JSON shape below. Fields are added without raising it; a changed meaning raises it.
pub const SCHEMA: u32 = 1;

/// The document that `cublame explain --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdicts {
    pub schema: u32,
    /// The first is the root cause.
    pub verdicts: Vec<Verdict>,
}

impl Verdicts {
    pub fn new(verdicts: Vec<Verdict>) -> Self {
        Self { schema: SCHEMA, verdicts }
    }
}

/// One failure: what it is, which line did it, how sure that is and why, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// A kind of the catalogue, such as `device-assert`.
    pub kind: String,
    /// One sentence without its final dot.
    pub summary: String,
    pub error: Option<CudaError>,
    pub exception: Option<ExceptionText>,
    /// The culprit, or the best candidate.
    pub place: Option<Place>,
    /// Where the error surfaced: the deepest user frame, null when the evidence has none.
    pub reported: Option<Place>,
    pub certainty: Certainty,
    /// Can `reported` be believed to be the culprit? For an asynchronous kind never from the text alone.
    pub trace_trusted: bool,
    /// Why this place and this certainty, in reading order.
    pub because: Vec<String>,
    /// Evidence that was looked for and not there.
    pub missing: Vec<String>,
    pub phase: Option<Phase>,
    pub asserts: Vec<DeviceAssert>,
    pub memory: Option<Memory>,
    /// Outermost first, as Python prints them.
    pub frames: Vec<Frame>,
    pub tensors: Vec<Tensor>,
    /// Modules and optimisers of the failing frames, and what else is only known by its class. Left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Object>,
    pub rank: Option<u32>,
    pub device: Option<u32>,
    /// Failures that only followed from this one.
    pub collateral: Vec<Collateral>,
    pub advice: Vec<Advice>,
    /// False for a failure that the program caught and survived.
    pub fatal: bool,
    /// Other lines that could be the culprit, best first, when `place` is a choice among several.
    #[serde(default)]
    pub candidates: Vec<Place>,
}

impl Verdict {
    /// The guard found the argument before a kernel ran: nothing failed on the GPU, and the CUDA context lives.
    pub fn is_of_guard(&self) -> bool {
        self.exception.as_ref().is_some_and(|exception| is_exception_of_guard(&exception.type_name))
    }
}

/// The exceptions of `server/python/cublame/guard_errors.py`.
pub(crate) fn is_exception_of_guard(type_name: &str) -> bool {
    matches!(type_name.rsplit('.').next(), Some("GuardIndexError" | "GuardValueError"))
}

/// How sure `place` is. The order is from sure to unsure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// This launch, or this synchronous call, is proved to have failed.
    Exact,
    /// One candidate by inference, or a small ranked set.
    Likely,
    /// Where it surfaced, or a guess from the source.
    Suspect,
    Unknown,
}

impl Certainty {
    /// As JSON has it, and as the catalogue's keys end.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Exact => "exact",
            Certainty::Likely => "likely",
            Certainty::Suspect => "suspect",
            Certainty::Unknown => "unknown",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Forward,
    Backward,
    Optimizer,
    Capture,
    Replay,
    Load,
    Import,
}

/// The error's name and code in the CUDA runtime API (`cudaError_t` in driver_types.h).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CudaError {
    /// `cudaErrorAssert`
    pub name: String,
    /// 710
    pub code: Option<u32>,
    /// The code before CUDA 10.1 (59), where it differed.
    pub legacy_code: Option<u32>,
    /// `device-side assert triggered`
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExceptionText {
    /// With its module where known: `torch.AcceleratorError`.
    #[serde(rename = "type")]
    pub type_name: String,
    pub message: String,
}

/// A line of somebody's source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// As the evidence has it.
    pub file: String,
    /// The absolute path on this machine, where it could be resolved.
    pub path: Option<String>,
    pub line: u32,
    pub column: Option<u32>,
    /// One past the last column.
    pub end_column: Option<u32>,
    pub function: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Frame {
    pub file: String,
    pub path: Option<String>,
    pub line: u32,
    pub column: Option<u32>,
    pub end_column: Option<u32>,
    pub function: Option<String>,
    /// The user's own code, as against a library's or the interpreter's.
    pub user: bool,
}

/// Equal assertions are one entry with a count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceAssert {
    pub file: String,
    pub line: u32,
    pub kernel: Option<String>,
    pub condition: String,
    pub count: u64,
}

/// Bytes. What the message of an out-of-memory failure said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Memory {
    pub requested: Option<u64>,
    pub capacity: Option<u64>,
    pub free: Option<u64>,
    pub allocated: Option<u64>,
    pub reserved_unallocated: Option<u64>,
    #[serde(default)]
    pub reserved: Option<u64>,
    /// The whole process, memory outside the framework included.
    #[serde(default)]
    pub process: Option<u64>,
    /// Private pools, such as those of CUDA graphs.
    #[serde(default)]
    pub private_pools: Option<u64>,
    pub others: Vec<OtherProcess>,
    /// The lines whose allocations hold the most, the largest first. Left out where they were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<MemorySite>,
    /// Held by no line of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<MemoryRise>,
}

/// A line and what its allocations still hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemorySite {
    pub place: Place,
    pub bytes: u64,
    pub blocks: u64,
}

/// Memory that rose steadily until it ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryRise {
    pub bytes_per_second: u64,
    pub seconds: u64,
    /// Live allocations rose: a leak. Else only what the GPU had in use, which an allocator may keep for later.
    pub allocated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OtherProcess {
    pub pid: u32,
    pub bytes: u64,
}

/// A tensor of a failing frame, as it stood when the error surfaced. Never a value: after a GPU fault reading one fails or
/// hangs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tensor {
    /// `tok`, `batch['x']`, `self.weight`
    pub name: String,
    pub shape: Vec<u64>,
    pub dtype: String,
    pub device: String,
    /// Index into `frames`.
    pub frame: usize,
    /// `torch.nn.parameter.Parameter`
    #[serde(default)]
    pub class: Option<String>,
    /// In elements.
    #[serde(default)]
    pub strides: Option<Vec<i64>>,
    /// `sparse_coo`; null for the common layout.
    #[serde(default)]
    pub layout: Option<String>,
    #[serde(default)]
    pub requires_grad: Option<bool>,
    #[serde(default)]
    pub bytes: Option<u64>,
}

/// Something of a failing frame that is no tensor: only its class is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Object {
    pub name: String,
    pub class: String,
    /// `module`, `optimizer`, `container`, `object`
    pub kind: String,
    /// Index into `frames`.
    pub frame: usize,
    /// How many items a container has.
    #[serde(default)]
    pub length: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Collateral {
    pub rank: Option<u32>,
    pub summary: String,
}

/// What to do. Rebuilt from the catalogue by its id whenever a report is read: a report on disk is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advice {
    pub id: String,
    pub title: String,
    pub detail: String,
    pub command: Option<String>,
    /// A unified diff of the source that carries it out, where one is safe.
    pub edit: Option<String>,
}
