//! `--mode trace` from the command line to the verdict, with a stand-in for the driver in place of a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project::{CUBLAME, Project, stderr};

/// Two launches before a synchronisation that succeeds, two after it, and an error that surfaces at the next one.
const PROGRAM: &str = r#"
import ctypes, os
library = ctypes.CDLL(os.environ["STANDIN_LIBRARY"])
P = ctypes.c_void_p
def launch(function):
    return library.cuLaunchKernel(P(function), 1, 1, 1, 64, 1, 1, 0, P(0x500), None, None)
def fill():
    launch(0x10); launch(0x11)
def forward(turn):
    return launch(0x20 + turn)  # @fault
fill()
assert library.cuStreamSynchronize(P(0x500)) == 0
for turn in range(2): forward(turn)
if library.cuStreamSynchronize(P(0x500)): raise RuntimeError("CUDA error: an illegal memory access was encountered")
"#;

#[test]
fn the_line_that_launched_is_proved_at_full_speed() {
    let project = Project::new();
    // `launch` is a library's here: the blame goes to the line that calls it.
    let library = project.path().join("site-packages");
    fs::create_dir(&library).unwrap();
    let (helper, program) = PROGRAM.split_at(PROGRAM.find("def fill").unwrap());
    fs::write(library.join("runtime.py"), helper).unwrap();
    fs::write(project.path().join("train.py"), format!("from runtime import *\n{program}")).unwrap();
    let output = project
        .command(CUBLAME)
        .args(["run", "--mode", "trace", "--", "python3", "train.py"])
        .env("PYTHONPATH", &library)
        .env("STANDIN_LIBRARY", stand_in(&project.path()))
        .env("STANDIN", "cuStreamSynchronize:2=700")
        .env("PYENV_ROOT", std::env::var_os("PYENV_ROOT").unwrap_or_else(|| home().join(".pyenv").into()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report = project.only_run().report().whole().unwrap();
    assert_eq!(report.partial, Vec::<String>::new());
    let verdict = &report.verdicts[0];
    let place = verdict.place.as_ref().unwrap();
    let text = fs::read_to_string(project.path().join("train.py")).unwrap();
    let fault = 1 + text.lines().position(|line| line.contains("# @fault")).unwrap();
    assert_eq!((place.file.ends_with("train.py"), place.line as usize), (true, fault), "{}", stderr(&output));
    assert_eq!(verdict.certainty, cublame_core::Certainty::Exact, "{:?}", verdict.because);
    assert_eq!(verdict.reported.as_ref().unwrap().line as usize, text.lines().count());
    assert_eq!(verdict.frames.iter().filter(|frame| frame.user).count(), 2);
    let journals = project.only_run().path().join("journal");
    assert_eq!(fs::read_dir(journals).unwrap().count(), 1);
}

/// A program that looks at itself while its second launch never ends.
const LOOKING: &str = r#"
import subprocess
launch(0x10)
launch(0x20)  # @running
for turn in range(3):
    launch(0x30)  # @queued
print(subprocess.run([os.environ["LOOK_WITH"], "top"], capture_output=True, text=True, check=True).stdout)
"#;

#[test]
fn top_shows_what_runs_and_what_waits_with_their_lines() {
    let project = Project::new();
    let library = project.path().join("site-packages");
    fs::create_dir(&library).unwrap();
    fs::write(library.join("runtime.py"), PROGRAM.split_at(PROGRAM.find("def fill").unwrap()).0).unwrap();
    let text = format!("from runtime import *{LOOKING}");
    fs::write(project.path().join("train.py"), &text).unwrap();
    let run = || {
        let mut command = project.command(CUBLAME);
        command
            .env("PYTHONPATH", &library)
            .env("STANDIN_LIBRARY", project.path().join("libcuda.so.1"))
            .env("STANDIN", "arrive:2=1")
            .env("LOOK_WITH", CUBLAME)
            .env("PYENV_ROOT", std::env::var_os("PYENV_ROOT").unwrap_or_else(|| home().join(".pyenv").into()));
        command
    };
    stand_in(&project.path());
    let output = run().args(["run", "--mode", "trace", "--", "python3", "train.py"]).output().unwrap();
    let line = |mark: &str| 1 + text.lines().position(|line| line.contains(mark)).unwrap();
    let rows = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        let rows = text.lines().filter(|line| line.contains("train.py:"));
        // Without the ages.
        rows.map(|row| row.split_whitespace().filter(|word| !is_age(word)).collect::<Vec<_>>().join(" ")).collect()
    };
    let expected = [
        "done kernel_10 train.py:3 in <module>".to_owned(),
        format!("running kernel_20 train.py:{} in <module>", line("@running")),
        format!("queued x3 kernel_30 train.py:{} in <module>", line("@queued")),
    ];
    assert_eq!(rows(&output.stdout), expected, "{output:?}");
    // The run has ended: the same from what was kept.
    let after = run().arg("top").output().unwrap();
    assert_eq!(rows(&after.stdout), expected, "{after:?}");
    assert!(String::from_utf8_lossy(&after.stdout).contains("mode trace, ended"), "{after:?}");
}

fn is_age(word: &str) -> bool {
    matches!(word, "ms" | "s" | "min")
        || word.chars().all(|character| character.is_ascii_digit() || ".:".contains(character))
}

/// The stand-in of the tracer's own tests, as `libcuda.so.1`.
fn stand_in(folder: &Path) -> PathBuf {
    let driver = folder.join("libcuda.so.1");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tracer/tests/programs/standin.rs");
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args([
            "--edition=2024",
            "--crate-name=standin",
            "--crate-type=cdylib",
            "-Clink-arg=-Wl,-soname,libcuda.so.1",
            "-o",
        ])
        .arg(&driver)
        .arg(source)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    driver
}

pub fn home() -> PathBuf {
    std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default()
}
