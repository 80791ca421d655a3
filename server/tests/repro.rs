//! `cublame repro` as a user runs it, on a program that fails without torch: what is shown, what is written, what is refused.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Prints a secret, as programs do, and fails.
const FAILS: &str = r#"import random, sys
random.seed(7)
api_key = "abcdefgh-12345678"
print("logging in to https://dev:hunter2@example.org/", file=sys.stderr)
def step():
    raise RuntimeError("CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported.")
step()
"#;

struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".cublame")).unwrap();
        fs::write(folder.path().join("train.py"), FAILS).unwrap();
        Self(folder)
    }

    fn cublame(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cublame"));
        command.args(words).current_dir(self.0.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CUBLAME") {
                command.env_remove(name);
            }
        }
        command.env("XDG_STATE_HOME", self.0.path().join("state")).env("XDG_CACHE_HOME", self.0.path().join("cache"));
        command.env("LC_ALL", "C.UTF-8").env("WANDB_API_KEY", "0123456789abcdef").output().unwrap()
    }

    fn failed() -> Self {
        let project = Self::new();
        assert_eq!(project.cublame(&["run", "--mode", "off", "--", "python3", "train.py"]).status.code(), Some(1));
        project
    }

    fn bundles(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("cublame-repro-")).collect()
    }
}

/// The texts in an archive by their names below its one folder.
fn contents(archive: &Path) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(File::open(archive).unwrap()));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().components().skip(1).collect::<std::path::PathBuf>();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (name.to_str().unwrap().to_owned(), text)
    });
    entries.collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_bundle_is_shown_before_it_is_written_and_holds_no_secret() {
    let project = Project::failed();
    let looked = project.cublame(&["repro", "--dry-run"]);
    assert_eq!((looked.status.code(), text(&looked.stdout)), (Some(0), ""));
    assert_eq!(project.bundles(), [""; 0]);
    let written = project.cublame(&["repro", "--yes"]);
    let [name] = &project.bundles()[..] else { panic!("one bundle: {:?}", project.bundles()) };
    assert_eq!(text(&written.stdout), format!("{name}\n"));
    let contents = contents(&project.0.path().join(name));
    for (name, held) in &contents {
        assert!(text(&looked.stderr).contains(name.as_str()), "{name} was not shown");
        for secret in ["abcdefgh-12345678", "hunter2", "0123456789abcdef"] {
            assert!(!held.contains(secret), "{secret} is in {name}:\n{held}");
        }
    }
    assert_eq!(contents["seeds.txt"], "train.py:2: random.seed(7)\n");
    assert!(contents["sources/train.py"].contains("api_key = [removed]"));
    assert!(contents["log.txt"].contains("https://[removed]@example.org/"));
    assert!(contents["README.md"].starts_with("# "), "{}", contents["README.md"]);
    let report: cublame_core::run::Report = serde_json::from_str(&contents["report.json"]).unwrap();
    assert_eq!(report.verdicts[0].kind, "device-assert");
}

#[test]
fn without_a_terminal_only_yes_agrees() {
    let project = Project::failed();
    for words in [&["repro"][..], &["repro", "--minimal"]] {
        let refused = project.cublame(words);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("there is no terminal to ask on\n  hint: add --yes"));
    }
    assert_eq!(project.bundles(), [""; 0]);
}

#[test]
fn a_bug_report_goes_to_standard_output() {
    let project = Project::failed();
    let page = project.cublame(&["repro", "--issue"]);
    assert_eq!(page.status.code(), Some(0));
    let page = text(&page.stdout);
    for part in ["# ", "## To reproduce", "python3 train.py", "## Environment", "## The end of the log"] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    assert!(!page.contains("hunter2"), "{page}");
}

#[test]
fn a_project_whose_runs_did_not_fail_says_so() {
    let project = Project::new();
    fs::write(project.0.path().join("fine.py"), "print(1)\n").unwrap();
    assert!(project.cublame(&["run", "--mode", "off", "--", "python3", "fine.py"]).status.success());
    let refused = project.cublame(&["repro"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("has failed\n  hint: run the program with `cublame run -- `"));
    let refused = project.cublame(&["repro", "nowhere"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("is called nowhere"));
}
