//! The variables that a child gets from this machine: a mode's env block over what it would start with.

use std::collections::BTreeMap;
use std::path::Path;

use cublame_core::mode::{EnvBlock, Machine, Mode, Os, env_block};

use super::folder::RunFolder;
use crate::{hook, tracer};

/// What a child's environment gets beside what this process has. `journal` is where its launches go.
pub fn environment(
    mode: Mode,
    folder: Option<&RunFolder>,
    journal: Option<String>,
    notes: &mut Vec<String>,
) -> EnvBlock {
    environment_over(&Current::of_this_process(), mode, folder, journal, notes)
}

/// What a child would start with.
#[derive(Debug, Clone, Default)]
pub struct Current {
    pub values: BTreeMap<String, String>,
    /// The names of those whose value is not UTF-8.
    pub unreadable: Vec<String>,
}

impl Current {
    pub fn of_this_process() -> Self {
        let mut current = Self::default();
        for (name, value) in std::env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => {
                    current.values.insert(name, value);
                }
                (Ok(name), Err(_)) => current.unreadable.push(name),
                (Err(_), _) => {}
            }
        }
        current
    }
}

/// The same for a child that would start with `current`, as one that a debugger starts.
pub fn environment_over(
    current: &Current,
    mode: Mode,
    folder: Option<&RunFolder>,
    journal: Option<String>,
    notes: &mut Vec<String>,
) -> EnvBlock {
    let path = |path: &Path| path.to_str().map(str::to_owned);
    let mut hook = match hook::install() {
        Ok(folder) => path(&folder),
        Err(error) => {
            notes.push(format!("Python exceptions are read from the output alone, since {error}"));
            None
        }
    };
    if current.unreadable.iter().any(|name| name == "PYTHONPATH") {
        notes.push(
            "PYTHONPATH is not UTF-8 and stays as it is, so Python exceptions are read from the output.".to_owned(),
        );
        hook = None;
    }
    let mut tracer = None;
    if matches!(mode, Mode::Trace | Mode::Core) && journal.is_some() {
        match tracer::install() {
            Ok(library) => tracer = path(&library),
            Err(error) => notes.push(format!("launches are not traced, since {error}")),
        }
    }
    let run = folder.and_then(|folder| path(folder.path()));
    let has_tracer = tracer.is_some() && journal.is_some();
    let block = env_block(mode, Os::HERE, &Machine { hook, tracer, journal, run }, &current.values);
    // Why there is no tracer was said above.
    let left_out = block.left_out.iter().filter(|left| left.name != "LD_PRELOAD" || has_tracer);
    notes.extend(left_out.map(|left| format!("{} is not set: {}.", left.name, left.why)));
    block
}
