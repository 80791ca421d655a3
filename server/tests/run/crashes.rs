//! A process that dies by a signal below Python: the hook's faulthandler tells the line.

use std::fs;

use crate::project::{CUBLAME, Project, stderr};

const PROGRAM: &str = "import ctypes, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
def step():
    ctypes.string_at(0)  # @fault
step()
";

#[test]
fn a_segmentation_fault_has_its_python_line() {
    let project = Project::new();
    fs::write(project.path().join("train.py"), PROGRAM).unwrap();
    let output = project
        .command(CUBLAME)
        .args(["run", "--mode", "blocking", "--", "python3", "train.py"])
        .env("PYENV_ROOT", std::env::var_os("PYENV_ROOT").unwrap_or_else(|| crate::trace::home().join(".pyenv").into()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(128 + 11), "{output:?}");
    let report = project.only_run().report().whole().unwrap();
    let verdict = &report.verdicts[0];
    let place = verdict.place.as_ref().unwrap();
    let fault = 1 + PROGRAM.lines().position(|line| line.contains("# @fault")).unwrap();
    assert_eq!((verdict.kind.as_str(), place.line as usize), ("segfault", fault), "{}", stderr(&output));
    assert_eq!(verdict.certainty, cublame_core::Certainty::Likely);
    assert!(verdict.fatal);
}
