//! Run configurations written for the tools that keep them in files of the user's: what is to change, from a wish.
//!
//! The command line and the language server ask here alike.
//! What is written comes from `cublame_core::config`; here files are found, read (or taken from the editor where they
//! are open) and replaced.

pub mod notebook;
pub mod pycharm;
pub mod vscode;

pub mod files;
pub mod ipython;
mod records;

use std::path::{Path, PathBuf};

use cublame_core::advice::Setting;
use cublame_core::config::launch_json::{Launch, Profile};
use cublame_core::mode::Mode;

use crate::error::{Error, Result};
use files::{Change, Texts, existing};

/// A tool whose files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    Vscode,
    Pycharm,
    Notebook,
}

/// What a wish comes to, at a place: a folder, a .code-workspace file, a notebook.
///
/// For a notebook only writing (the first of the modes) and removing make sense.
pub fn plan(tool: Tool, place: &Path, wish: &Wish, texts: &Texts) -> Result<Plan> {
    match (tool, wish) {
        (Tool::Vscode, wish) => vscode::plan(place, wish, texts),
        (Tool::Pycharm, wish) => pycharm::plan(place, wish, texts),
        (Tool::Notebook, Wish::Remove) => notebook::plan(place, None, texts),
        (Tool::Notebook, Wish::Write(targets)) => {
            let mode = targets.modes.first().copied().unwrap_or(Mode::Blocking);
            notebook::plan(place, Some(mode), texts)
        }
        (Tool::Notebook, _) => {
            Err(Error::user("a notebook has no configurations: its first cell is written or removed"))
        }
    }
}

/// What is to be done with a tool's configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Configurations of ours for these programs.
    Write(Targets),
    /// Take away everything that cublame has written.
    Remove,
    /// Make the user's own configuration run in a mode.
    Switch { name: String, mode: Mode },
    /// Undo that.
    SwitchBack { name: String },
    /// Copies of the user's own configuration, one a mode.
    Twin { name: String, modes: Vec<Mode> },
    /// Give every configuration that runs this program a setting of PyTorch's allocator.
    Set { program: PathBuf, setting: Setting },
    /// VS Code only: turn the old type `python` of the user's configurations into `debugpy`.
    Upgrade,
}

/// What is to be run. With nothing named, VS Code gets the current file and PyCharm a copy of each configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    pub programs: Vec<PathBuf>,
    pub modules: Vec<String>,
    /// A file or a folder; empty: what pytest itself collects.
    pub pytest: Option<PathBuf>,
    pub torchrun: Vec<PathBuf>,
    pub accelerate: Vec<PathBuf>,
    /// Empty: [`USUAL_MODES`].
    pub modes: Vec<Mode>,
}

/// The modes that profiles are written for unasked.
pub const USUAL_MODES: [Mode; 2] = [Mode::Blocking, Mode::Trace];

/// What a wish comes to. Nothing is written yet.
#[derive(Debug, Default)]
pub struct Plan {
    /// Files that stay as they are may be among them.
    pub changes: Vec<Change>,
    /// What the user should know beside it, as whole sentences without their final dots.
    pub notes: Vec<String>,
}

impl From<Vec<Change>> for Plan {
    fn from(changes: Vec<Change>) -> Self {
        Self { changes, notes: Vec::new() }
    }
}

impl Targets {
    /// `place` writes a path as the tool does, from the absolute path.
    fn launches(&self, place: &dyn Fn(&Path) -> String) -> Result<Vec<Launch>> {
        let file = |path: &PathBuf| Ok(place(&existing(path)?));
        let mut launches = Vec::new();
        for path in &self.programs {
            launches.push(Launch::Program(file(path)?));
        }
        launches.extend(self.modules.iter().cloned().map(Launch::Module));
        if let Some(path) = &self.pytest {
            launches.push(Launch::Pytest(if path.as_os_str().is_empty() { String::new() } else { file(path)? }));
        }
        for path in &self.torchrun {
            launches.push(Launch::Torchrun(file(path)?));
        }
        for path in &self.accelerate {
            launches.push(Launch::Accelerate(file(path)?));
        }
        Ok(launches)
    }

    /// Is there nothing in it but modes?
    pub fn names_nothing(&self) -> bool {
        *self == Self { modes: self.modes.clone(), ..Self::default() }
    }

    fn modes(&self) -> Vec<Mode> {
        if self.modes.is_empty() { USUAL_MODES.to_vec() } else { self.modes.clone() }
    }
}

/// Each launch in each mode.
fn profiles(launches: &[Launch], modes: &[Mode]) -> Vec<Profile> {
    let in_modes = |launch: &Launch| -> Vec<Profile> {
        modes.iter().map(|&mode| Profile { launch: launch.clone(), mode }).collect()
    };
    launches.iter().flat_map(in_modes).collect()
}

/// Nothing runs the program that a setting is for.
fn runs_nowhere(program: &Path, tool: &str) -> Error {
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    Error::user(format!("no run configuration here runs {name}"))
        .hint(format!("`cublame configure {tool} --program {name}` writes one"))
}
