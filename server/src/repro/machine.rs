//! What the machine and the project say of themselves, by asking the tools that know.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::os::answers::{Answered, ask};

const PATIENCE: Duration = Duration::from_secs(30);

/// The GPUs and their driver, a line each.
pub fn gpus() -> String {
    let mut command = Command::new("nvidia-smi");
    command.args(["--query-gpu=name,driver_version,memory.total,compute_cap", "--format=csv,noheader"]);
    said(command).unwrap_or_else(|why| format!("no NVIDIA driver answers ({why})\n"))
}

/// The system and its kernel.
pub fn system() -> String {
    let name = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = name.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map_or(std::env::consts::OS, |name| name.trim_matches('"'));
    let kernel = rustix::system::uname();
    format!("{name}, {} {}\n", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy())
}

/// The packages of an interpreter, as `pip freeze` lists them; without pip, by their metadata.
pub fn packages(python: &Path) -> Result<String, String> {
    let with = |words: &[&str]| {
        let mut command = Command::new(python);
        command.args(words).env_remove("PYTHONPATH").env_remove("CUBLAME_RUN").env_remove("CUBLAME_MODE");
        said(command)
    };
    with(&["-m", "pip", "freeze", "--disable-pip-version-check"]).or_else(|_| with(&["-c", BY_METADATA]))
}

const BY_METADATA: &str = "\
from importlib.metadata import distributions
for line in sorted({'%s==%s' % (d.metadata['Name'], d.version) for d in distributions()}, key=str.lower): print(line)
";

pub fn python_version(python: &Path) -> Result<String, String> {
    let mut command = Command::new(python);
    command.arg("--version");
    said(command)
}

/// What Git says of the folder: None where it is in no repository.
pub struct Git {
    /// The commit, the branch, and what is changed or new.
    pub state: String,
    pub diff: String,
}

pub fn git(folder: &Path) -> Option<Git> {
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        // Nothing of the repository's own configuration may start a program.
        command.arg("-C").arg(folder).args(["-c", "core.fsmonitor=false", "-c", "diff.external="]).args(words);
        said(command)
    };
    let commit = git(&["log", "-1", "--format=%H%n%cd%n%s"]).ok()?;
    let status = git(&["status", "--short", "--branch"]).unwrap_or_else(|why| why);
    let diff = git(&["diff", "--no-ext-diff", "--no-textconv", "HEAD"]).unwrap_or_else(|why| why);
    Some(Git { state: format!("{commit}\n{status}"), diff })
}

/// What a command prints, or why it says nothing.
fn said(command: Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match ask(command, PATIENCE) {
        Ok(Answered::InTime { status, out, .. }) if status.success() => Ok(String::from_utf8_lossy(&out).into_owned()),
        Ok(Answered::InTime { status, err, .. }) => {
            let err = String::from_utf8_lossy(&err);
            Err(format!("{name}: {} ({status})", err.lines().next_back().unwrap_or("it failed")))
        }
        Ok(Answered::TooLate) => Err(format!("{name} did not answer in {} seconds", PATIENCE.as_secs())),
        Err(failure) => Err(format!("{name}: {failure}")),
    }
}
