//! What the Python hook writes into `runs/<id>/events/<pid>-<random>.jsonl`, one JSON object a line.
//!
//! The writer is `server/src/hook/_cublame_hook.py`. A line that does not parse is counted and skipped by the reader.
//! Columns are 1-based code points (the hook converts CPython's byte offsets); times are Unix seconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of the event lines. A reader skips events of a later version and says so.
pub const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Event {
    pub v: u32,
    pub time: f64,
    pub pid: u32,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    Start(Start),
    Exception(Exception),
    /// A cell of a notebook ran to its end. Of a cell that fails, the exception tells.
    Cell(Cell),
    /// The interpreter ends in an orderly way. Without it the process was killed or still lives.
    Exit(Exit),
}

/// The hook was installed in a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Start {
    pub ppid: u32,
    pub argv: Vec<String>,
    pub cwd: String,
    /// `3.12.3`
    pub python: String,
    pub executable: String,
    /// RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK.
    #[serde(default)]
    pub rank: Option<u32>,
    #[serde(default)]
    pub local_rank: Option<u32>,
    /// How many ranks there are: WORLD_SIZE, SLURM_STEP_NUM_TASKS, OMPI_COMM_WORLD_SIZE or PMI_SIZE.
    #[serde(default)]
    pub world_size: Option<u32>,
    /// The machine.
    #[serde(default)]
    pub host: Option<String>,
    /// TORCHELASTIC_RESTART_COUNT.
    #[serde(default)]
    pub restart: Option<u32>,
    /// CUDA_LAUNCH_BLOCKING as it was when the interpreter started.
    #[serde(default)]
    pub launch_blocking: Option<String>,
}

/// A cell of a notebook, as it was when it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cell {
    /// The editor's name for it: the cell's id in the file, or the address of its document.
    #[serde(default)]
    pub id: Option<String>,
    /// What Jupyter shows in brackets.
    pub count: u32,
    /// What the interpreter calls its code, where it ran to its end.
    #[serde(default)]
    pub file: Option<String>,
    /// Absolute path of the notebook, where the front end tells it.
    #[serde(default)]
    pub notebook: Option<String>,
    /// Of the whole source, hex.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The line of the source, from 1, that is line 1 for the interpreter.
    #[serde(default = "one")]
    pub first_line: u32,
    /// Left out where it is long, and when the same cell runs again.
    #[serde(default)]
    pub source: Option<String>,
}

fn one() -> u32 {
    1
}

impl Cell {
    /// The name that IPython's tracebacks have for it.
    pub fn name(&self) -> String {
        format!("Cell In[{}]", self.count)
    }
}

/// What [`Exception::hook`] says of an event that was made of a debugger's answers.
pub const DEBUGGER: &str = "debugger";

/// An exception that nobody caught, or that a hook was told of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exception {
    /// `excepthook`, `threading`, `unraisable`, `atexit`, `pytest`, `multiprocessing`, `ipython`, or [`DEBUGGER`].
    pub hook: String,
    pub thread: String,
    pub main_thread: bool,
    /// The rank, repeated here because it may be set after the start.
    #[serde(default)]
    pub rank: Option<u32>,
    /// Innermost cause first: the last one is the exception that the interpreter prints last.
    pub chain: Vec<Link>,
    /// How many links of the chain were beyond the hook's bound.
    #[serde(default)]
    pub links_left_out: u32,
    /// What held the GPU's memory when it ran out, where the run records that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<HeldMemory>,
    /// SHA-256 of each source file that the frames name, hex, by absolute path, as it was on disk at this moment.
    #[serde(default)]
    pub hashes: BTreeMap<String, String>,
    /// The cells of a notebook that frames are in, by the file that the interpreter has for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cells: BTreeMap<String, Cell>,
}

impl Exception {
    /// The cell that was being run: the outermost that the trace came through.
    pub fn running_cell(&self) -> Option<&Cell> {
        self.chain.last()?.frames.iter().find_map(|frame| self.cells.get(&frame.file))
    }
}

/// The memory history of the framework, summed up by the line that allocated, before anything unwound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeldMemory {
    pub device: u32,
    /// Bytes in live blocks.
    pub allocated: u64,
    /// Those of them that no line of the user's allocated, as far as is known: by autograd's threads, or by a library.
    pub elsewhere: u64,
    /// What holds the most first.
    pub sites: Vec<HeldSite>,
    /// Bytes in live blocks over time, in Unix seconds.
    #[serde(default)]
    pub history: Vec<(f64, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeldSite {
    pub file: String,
    #[serde(default)]
    pub path: Option<String>,
    pub line: u32,
    pub function: String,
    pub bytes: u64,
    pub blocks: u64,
}

/// One exception of a chain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Link {
    /// `torch.AcceleratorError`; a builtin has no module.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The names of its base classes, nearest first, without `object`.
    #[serde(default)]
    pub bases: Vec<String>,
    pub message: String,
    #[serde(default)]
    pub notes: Vec<String>,
    /// How the *next* link came from this one: `cause` (raise from), `context` (during handling), `group` (a leaf of the
    /// exception group that follows). None for the last.
    #[serde(default)]
    pub relation: Option<String>,
    /// Outermost first. At most the hook's bound; `frames_left_out` says how many are missing in the middle.
    pub frames: Vec<EventFrame>,
    #[serde(default)]
    pub frames_left_out: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventFrame {
    /// `co_filename` as it is.
    pub file: String,
    /// Absolute path of a file that existed when the event was written.
    #[serde(default)]
    pub path: Option<String>,
    pub line: u32,
    #[serde(default)]
    pub end_line: Option<u32>,
    #[serde(default)]
    pub column: Option<u32>,
    /// One past the last column.
    #[serde(default)]
    pub end_column: Option<u32>,
    /// `co_qualname` where the interpreter has it, else `co_name`; empty for the place that a SyntaxError names.
    pub function: String,
    /// The line's text.
    #[serde(default)]
    pub source: Option<String>,
    /// The file was written to after the process had started, so that the line may be another one than the one that ran.
    #[serde(default)]
    pub changed: bool,
    /// The tensors that its local variables held, those first that the line names. Only of the deepest frames that may be
    /// the user's, and only as many as the hook's bounds allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locals: Vec<Local>,
}

/// A local variable, an item of one, or an attribute of `self`: what it is, never what it holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Local {
    /// `tok`, `batch['x']`, `xs[0]`, `self.weight`
    pub name: String,
    /// As a traceback prints a class: a builtin has no module, nor has one of `__main__`.
    pub class: String,
    #[serde(flatten)]
    pub what: LocalKind,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum LocalKind {
    Tensor(Described),
    /// Of NumPy, CuPy or JAX.
    Array(Described),
    Module,
    Optimizer,
    /// A list, tuple or dict that holds more than was told.
    Container {
        length: u64,
    },
    /// Of a later version, or one of which no more may be asked.
    #[default]
    #[serde(other)]
    Object,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Described {
    pub shape: Vec<u64>,
    /// `int64`
    pub dtype: String,
    /// `cuda:0`, `cpu`; `traced` of a value that a compiler only stands for.
    pub device: String,
    /// In elements. None where they are no whole number of them, and of a layout that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<i64>>,
    /// `sparse_coo`; None for the common layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_grad: Option<bool>,
    /// Its elements' bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exit {
    /// SHA-256 of each source file named in this process's events, hex, by absolute path.
    #[serde(default)]
    pub hashes: BTreeMap<String, String>,
    /// How many exceptions repeated an earlier one, or were beyond the hook's bound for one process.
    #[serde(default)]
    pub exceptions_left_out: u32,
}
