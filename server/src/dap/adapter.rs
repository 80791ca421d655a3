//! Finds debugpy, and starts its adapter with the project's own interpreter.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::interpreter;

/// An interpreter, and the folder of a debugpy that it can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Debugpy {
    pub python: PathBuf,
    /// The package's folder, which Python can run, and its `adapter` too.
    pub folder: PathBuf,
}

impl Debugpy {
    /// That of the project's interpreter, else one that an editor or another interpreter of this machine brings:
    /// debugpy is Python alone, and runs from any folder.
    pub fn find(python: Option<&Path>, cwd: &Path) -> Result<Self> {
        let root = cwd.ancestors().find(|folder| folder.join(".venv/bin/python").is_file());
        let python = match python {
            Some(python) => python.to_owned(),
            None => interpreter::choose(None, root).path,
        };
        let own = package(&python)?;
        let elsewhere = || bundled(std::env::var_os("HOME").map(PathBuf::from).as_deref());
        let folder = own.or_else(elsewhere).or_else(|| others(&python)).ok_or_else(|| {
            Error::environment(format!("{} has no debugpy, and no editor here brings one", python.display()))
                .hint(format!("run `{} -m pip install debugpy`", python.display()))
        })?;
        Ok(Self { python, folder })
    }

    /// The command that speaks the protocol on its standard streams.
    pub fn adapter(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.folder.join("adapter"));
        command
    }
}

fn on_path() -> Vec<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).flat_map(|folder| [folder.join("python3"), folder.join("python")]).collect()
}

/// The folder of the debugpy that an interpreter would import, found without importing it.
fn package(python: &Path) -> Result<Option<PathBuf>> {
    const PROGRAM: &str = "\
import importlib.util, sys
found = importlib.util.find_spec('debugpy')
print(next(iter(found.submodule_search_locations or ['']), '') if found else '')";
    let cannot = || Error::user(format!("{} is no Python that runs", python.display()));
    let hint = "name the interpreter of your project with `--python`";
    let output = Command::new(python)
        .args(["-c", PROGRAM])
        // Nothing of ours watches this look.
        .env_remove("CUBLAME_MODE")
        .env_remove("CUBLAME_RUN")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|failure| cannot().because(failure).hint(hint))?;
    if !output.status.success() {
        return Err(cannot().hint(hint));
    }
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    Ok(is_debugpy(&folder).then_some(folder))
}

/// The debugpy of another interpreter on PATH.
fn others(python: &Path) -> Option<PathBuf> {
    const MOST: usize = 4;
    let there = on_path().into_iter().filter(|other| other != python && other.is_file());
    there.take(MOST).find_map(|other| package(&other).ok().flatten())
}

/// The debugpy inside an editor: of the Python Debugger extension, or of Neovim's Mason.
fn bundled(home: Option<&Path>) -> Option<PathBuf> {
    const EXTENSIONS: [&str; 9] = [
        ".vscode/extensions",
        ".vscode-server/extensions",
        ".vscode-insiders/extensions",
        ".vscode-server-insiders/extensions",
        ".vscode-oss/extensions",
        ".cursor/extensions",
        ".cursor-server/extensions",
        ".windsurf/extensions",
        ".local/share/code-server/extensions",
    ];
    const MASON: &str = ".local/share/nvim/mason/packages/debugpy/venv/lib";
    let home = home?;
    let extensions = EXTENSIONS.iter().flat_map(|folder| newest_first(&home.join(folder)));
    let of_vscode = extensions
        .filter(|folder| named(folder).starts_with("ms-python.debugpy-"))
        .map(|folder| folder.join("bundled/libs/debugpy"));
    let of_mason = newest_first(&home.join(MASON)).into_iter().map(|lib| lib.join("site-packages/debugpy"));
    of_vscode.chain(of_mason).find(|folder| is_debugpy(folder))
}

fn is_debugpy(folder: &Path) -> bool {
    folder.join("adapter/__main__.py").is_file()
}

fn named(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// By the numbers in their names: `1.10` comes before `1.9`.
fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let numbers = |path: &PathBuf| -> Vec<u64> {
        named(path).split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_an_editor_is_taken() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(bundled(Some(home.path())), None);
        let put = |folder: &str| {
            let adapter = home.path().join(folder).join("adapter");
            std::fs::create_dir_all(&adapter).unwrap();
            std::fs::write(adapter.join("__main__.py"), "").unwrap();
            home.path().join(folder)
        };
        let mason = put(".local/share/nvim/mason/packages/debugpy/venv/lib/python3.12/site-packages/debugpy");
        assert_eq!(bundled(Some(home.path())), Some(mason));
        put(".vscode/extensions/ms-python.debugpy-2025.9.1-linux-x64/bundled/libs/debugpy");
        let newest = put(".vscode/extensions/ms-python.debugpy-2025.10.0-linux-x64/bundled/libs/debugpy");
        put(".vscode/extensions/someone.debugpy-9999.0.0/bundled/libs/debugpy");
        std::fs::create_dir_all(home.path().join(".vscode/extensions/ms-python.debugpy-2026.0.0")).unwrap();
        assert_eq!(bundled(Some(home.path())), Some(newest));
    }

    #[test]
    fn a_program_that_is_no_python_is_said() {
        for python in ["/nonexistent/python", "/bin/false"] {
            let error = Debugpy::find(Some(Path::new(python)), Path::new("/")).unwrap_err();
            assert!(error.to_string().contains("--python"), "{error}");
        }
    }
}
