//! Which Python a project's programs run on.

use std::env;
use std::path::{Path, PathBuf};

/// An interpreter, and why it is this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    pub path: PathBuf,
    /// `setting`, `VIRTUAL_ENV`, `CONDA_PREFIX`, `venv` or `PATH`.
    pub chosen_by: &'static str,
}

/// The setting, else VIRTUAL_ENV, CONDA_PREFIX, the project's `.venv`, PATH.
pub fn choose(setting: Option<&Path>, root: Option<&Path>) -> Interpreter {
    let of_variable = |name| env::var_os(name).map(|folder| PathBuf::from(folder).join("bin/python"));
    let candidates = [
        ("setting", setting.map(Path::to_owned)),
        ("VIRTUAL_ENV", of_variable("VIRTUAL_ENV")),
        ("CONDA_PREFIX", of_variable("CONDA_PREFIX")),
        ("venv", root.map(|root| root.join(".venv/bin/python"))),
    ];
    let found = candidates.into_iter().find_map(|(why, path)| Some((why, path.filter(|path| path.is_file())?)));
    match found {
        Some((chosen_by, path)) => Interpreter { path, chosen_by },
        None => Interpreter { path: on_path(&["python3", "python"]), chosen_by: "PATH" },
    }
}

/// The first of these programs that PATH has; the first name itself where it has none.
fn on_path(names: &[&str]) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let mut there = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    there.find(|file| file.is_file()).unwrap_or_else(|| names.first().map_or_else(PathBuf::new, PathBuf::from))
}
