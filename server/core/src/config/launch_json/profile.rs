//! What one of our profiles holds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::entries::{NAME_PREFIX, NewEntry};
use super::GROUP;
use crate::mode::{Machine, Mode, Os, env_block};

/// A program in a mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub launch: Launch,
    pub mode: Mode,
}

/// How a program is started.
///
/// A path is written with `/`, and is absolute, or relative to the workspace folder,
/// or begins with a folder of several (`${workspaceFolder:api}/train.py`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// The file that the editor shows.
    CurrentFile,
    Program(String),
    Module(String),
    /// A file, a folder or a node id; empty: what pytest itself collects.
    Pytest(String),
    /// A program under torchrun, one process for each GPU.
    Torchrun(String),
    /// A program under `accelerate launch`.
    Accelerate(String),
}

impl Launch {
    /// What a menu calls it.
    pub fn title(&self) -> String {
        match self {
            Launch::CurrentFile => "current file".to_owned(),
            Launch::Program(path) => without_variable(path).to_owned(),
            Launch::Module(name) => format!("module {name}"),
            Launch::Pytest(target) => format!("pytest {}", without_variable(target)).trim_end().to_owned(),
            Launch::Torchrun(path) => format!("torchrun {}", without_variable(path)),
            Launch::Accelerate(path) => format!("accelerate {}", without_variable(path)),
        }
    }

    /// The words after `python`, with VS Code's variables in them.
    pub fn arguments(&self) -> Vec<String> {
        let (module, rest) = self.module_and_arguments();
        let module = module.map(|module| ["-m".to_owned(), module]);
        module.into_iter().flatten().chain(rest).collect()
    }

    /// The module that is run, if it is one, and what follows it; else the program.
    fn module_and_arguments(&self) -> (Option<String>, Vec<String>) {
        match self {
            Launch::CurrentFile => (None, vec!["${file}".to_owned()]),
            Launch::Program(path) => (None, vec![in_workspace(path)]),
            Launch::Module(name) => (Some(name.clone()), Vec::new()),
            Launch::Pytest(target) if target.is_empty() => (Some("pytest".to_owned()), Vec::new()),
            Launch::Pytest(target) => (Some("pytest".to_owned()), vec![in_workspace(target)]),
            Launch::Torchrun(path) => {
                let arguments = ["--standalone", "--nproc_per_node=auto"].map(str::to_owned);
                (Some("torch.distributed.run".to_owned()), arguments.into_iter().chain([in_workspace(path)]).collect())
            }
            Launch::Accelerate(path) => (Some("accelerate.commands.launch".to_owned()), vec![in_workspace(path)]),
        }
    }
}

impl Profile {
    pub fn name(&self) -> String {
        format!("{NAME_PREFIX}{} ({})", self.launch.title(), self.mode)
    }

    pub(super) fn configuration(&self) -> Configuration {
        let (module, mut arguments) = self.launch.module_and_arguments();
        let program = if module.is_none() { arguments.pop() } else { None };
        let block = env_block(self.mode, Os::HERE, &Machine::default(), &BTreeMap::new());
        Configuration {
            name: self.name(),
            kind: "debugpy",
            request: "launch",
            program,
            module,
            args: arguments,
            console: "integratedTerminal",
            just_my_code: true,
            sub_process: true,
            env: block.shared().map(|variable| (variable.name, variable.value.clone())).collect(),
            presentation: Presentation { group: GROUP },
        }
    }
}

/// A configuration of type debugpy, in the order in which it is written (attributes: the Python Debugger's package.json).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Configuration {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    request: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    console: &'static str,
    just_my_code: bool,
    sub_process: bool,
    env: BTreeMap<&'static str, String>,
    presentation: Presentation,
}

impl NewEntry for Configuration {
    fn name(&self) -> &str {
        &self.name
    }
}

#[derive(Serialize)]
struct Presentation {
    group: &'static str,
}

fn in_workspace(path: &str) -> String {
    let is_absolute = path.starts_with('/') || path.starts_with("${") || path.as_bytes().get(1) == Some(&b':');
    if is_absolute { path.to_owned() } else { format!("${{workspaceFolder}}/{path}") }
}

fn without_variable(path: &str) -> &str {
    path.strip_prefix("${workspaceFolder:").and_then(|rest| rest.split_once("}/")).map_or(path, |(_, rest)| rest)
}
