//! `cublame lint` as CI uses it: the binary over a folder.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn lint(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cublame")).arg("lint").args(arguments).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

const BAD: &str = "import os\nпеременная = 1; os.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"true\"\n";

#[test]
fn a_finding_is_one_line_and_the_exit_code_is_1() {
    let folder = project(&[("train.py", BAD), ("README.md", "CUDA_LAUNCH_BLOCKING=true")]);
    let output = lint(folder.path(), &["."]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "train.py:2:17: error[env-bad-value] CUDA_LAUNCH_BLOCKING is switched on by `1` and nothing else: `true` has no \
                    effect\n    fix: Set it to 1\n";
    assert_eq!(stdout(&output), expected);
}

#[test]
fn without_findings_the_exit_code_is_0_and_nothing_is_printed() {
    let folder = project(&[("train.py", "import torch\nx = torch.zeros(1).cuda()\n")]);
    let output = lint(folder.path(), &["."]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
}

#[test]
fn json_has_the_shape_of_the_contract() {
    let folder = project(&[("train.py", BAD)]);
    let output = lint(folder.path(), &["--json", "train.py"]);
    let document = json(&output);
    assert_eq!(document["schema"], 1);
    let finding = &document["findings"][0];
    let place = ["line", "column", "end_line", "end_column"].map(|key| finding[key].as_u64().unwrap());
    assert_eq!(place, [2, 17, 2, 60]);
    assert_eq!(
        (&finding["file"], &finding["rule"], &finding["severity"]),
        (&"train.py".into(), &"env-bad-value".into(), &"error".into())
    );
    let edit = &finding["fix"]["edits"][0];
    assert_eq!((&edit["text"], edit["column"].as_u64()), (&"1".into(), Some(55)));
    assert!(finding.get("cell").is_none());
}

#[test]
fn a_clean_folder_is_an_empty_document() {
    let folder = project(&[]);
    assert_eq!(json(&lint(folder.path(), &["--json", "."])), serde_json::json!({ "schema": 1, "findings": [] }));
}

#[test]
fn hidden_settings_are_read_and_installed_packages_are_not() {
    let folder = project(&[
        (".env", "CUDA_LAUNCH_BLOCKING=yes\n"),
        (".github/workflows/ci.yml", "env:\n  CUDA_LAUNCH_BLOCKING: \"yes\"\n"),
        (".venv/lib/site-packages/x.py", BAD),
        ("build/generated.py", BAD),
        (".gitignore", "build/\n"),
    ]);
    let rows = stdout(&lint(folder.path(), &["."]));
    let files: Vec<&str> = rows.lines().filter(|l| !l.starts_with(' ')).filter_map(|l| l.split(':').next()).collect();
    assert_eq!(files, [".env", ".github/workflows/ci.yml"]);
    assert_eq!(lint(folder.path(), &["build/generated.py"]).status.code(), Some(1), "a file that is named is read");
}

#[test]
fn the_cells_of_a_notebook_are_one_module() {
    let notebook = serde_json::json!({ "nbformat": 4, "cells": [
        { "cell_type": "code", "source": ["%matplotlib inline\n", "import os, torch\n", "x = torch.zeros(1).cuda()"] },
        { "cell_type": "markdown", "source": "text" },
        { "cell_type": "code", "source": "\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'" },
    ] });
    let folder = project(&[("a.ipynb", &notebook.to_string())]);
    let finding = json(&lint(folder.path(), &["--json", "a.ipynb"]))["findings"][0].clone();
    assert_eq!((finding["cell"].as_u64(), finding["line"].as_u64()), (Some(3), Some(2)));
    assert_eq!(finding["rule"], "env-too-late");
    assert!(finding["fix"].is_null(), "a fix that would change another cell is none");
}

#[test]
fn the_project_and_the_command_line_choose_rules() {
    let folder = project(&[
        ("pyproject.toml", "[tool.cublame.lint]\nignore = [\"env-bad-value\"]\n"),
        ("train.py", BAD),
        ("dsa.py", "import os\nos.environ[\"TORCH_USE_CUDA_DSA\"] = \"1\"\n"),
    ]);
    let rules = |arguments: &[&str]| {
        let document = json(&lint(folder.path(), arguments));
        let rows = document["findings"].as_array().unwrap().clone();
        rows.iter().map(|row| row["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(rules(&["--json", "."]), ["dsa-env"]);
    assert_eq!(rules(&["--json", "--ignore", "dsa-env", "."]), Vec::<String>::new());
    let wrong = lint(folder.path(), &["--select", "nonsense", "."]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("`nonsense` is no rule"));
}

#[test]
fn fixes_are_written_and_what_is_left_is_printed() {
    let folder = project(&[("train.py", "import os\nos.environ[\"TORCH_USE_CUDA_DSA\"] = \"1\"\nx = 1\n")]);
    let output = lint(folder.path(), &["--fix", "train.py"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
    assert_eq!(fs::read_to_string(folder.path().join("train.py")).unwrap(), "import os\nx = 1\n");
}

#[test]
fn an_entry_that_was_switched_is_not_left_on() {
    let launch = r#"{"version": "0.2.0", "configurations": [{"name": "Train", "type": "debugpy", "request": "launch",
        "env": {"CUDA_LAUNCH_BLOCKING": "1"}}]}"#;
    let folder = project(&[(".vscode/launch.json", launch)]);
    assert_eq!(lint(folder.path(), &["."]).status.code(), Some(1));
    let switched = r#"{"schema": 1, "switched": [{"file": ".vscode/launch.json", "name": "Train", "mode": "blocking",
        "before": {}, "added": ["env"]}]}"#;
    fs::create_dir(folder.path().join(".cublame")).unwrap();
    fs::write(folder.path().join(".cublame/switched.json"), switched).unwrap();
    assert_eq!(lint(folder.path(), &["."]).status.code(), Some(0));
}

#[test]
fn ci_reads_annotations_and_sarif() {
    let folder = project(&[("a,b.py", BAD)]);
    let annotation = stdout(&lint(folder.path(), &["--format", "github", "."]));
    assert!(
        annotation.starts_with("::error file=a%2Cb.py,line=2,endLine=2,col=17,title=cublame (env-bad-value)::"),
        "{annotation}"
    );
    let sarif = json(&lint(folder.path(), &["--format", "sarif", "."]));
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "env-bad-value");
    assert_eq!(sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startColumn"], 17);
}

#[test]
fn what_cannot_be_read_is_said() {
    let folder = project(&[]);
    fs::write(folder.path().join("latin.py"), b"# caf\xe9 torch\n").unwrap();
    let output = lint(folder.path(), &["."]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("latin.py was left out: it is not UTF-8"));
    let missing = lint(folder.path(), &["nowhere"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no nowhere"));
}
