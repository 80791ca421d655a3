//! Files as people have them: read-only, behind links, in several folders, with mistakes on the command line.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::project::Project;

#[test]
fn a_read_only_file_is_left_alone() {
    let project = Project::new();
    let path = project.write(".vscode/launch.json", b"{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let said = project.configure(&["vscode"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("is read-only") && said.stderr.contains("chmod u+w"), "{}", said.stderr);
    assert_eq!(project.read(".vscode/launch.json"), b"{}");
}

#[test]
fn a_link_stays_a_link() {
    let project = Project::new();
    project.write("dotfiles/bash/bashrc", b"alias ll='ls -l'\n");
    symlink("bash/bashrc", project.path("dotfiles/bashrc")).unwrap();
    symlink("dotfiles/bashrc", project.path(".bashrc")).unwrap();
    project.configured(&["shell", "--shell", "/usr/bin/bash"]);
    assert!(project.path(".bashrc").is_symlink() && project.path("dotfiles/bashrc").is_symlink());
    assert!(project.text("dotfiles/bash/bashrc").contains("pydebug"));
    assert_eq!(fs::read_dir(project.path("dotfiles/bash")).unwrap().count(), 1, "nothing is left aside");
}

#[test]
fn a_link_to_nothing_is_filled_and_a_loop_is_refused() {
    let project = Project::new();
    symlink("dotfiles/zshrc", project.path(".zshrc")).unwrap();
    project.configured(&["shell", "--shell", "zsh"]);
    assert!(project.path(".zshrc").is_symlink() && project.text("dotfiles/zshrc").contains("pydebug"));
    symlink(".bashrc", project.path(".bashrc")).unwrap();
    let said = project.configure(&["shell", "--shell", "bash"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
}

#[test]
fn if_one_file_is_broken_the_other_is_not_written() {
    let project = Project::new();
    project.write(".vscode/launch.json", b"{}");
    project.write(".vscode/tasks.json", b"{ \"tasks\": [ }");
    let before = project.files();
    assert_eq!(project.configure(&["vscode"]).code, 2);
    assert_eq!(project.files(), before);
}

#[test]
fn a_program_is_named_from_the_workspace_folder() {
    let project = Project::new();
    project.write("src/train.py", b"");
    project.write("tests/test_a.py", b"");
    project.configured(&[
        "vscode",
        "--program",
        "src/train.py",
        "--module",
        "proj.train",
        "--pytest",
        "tests",
        "--torchrun",
        "src/train.py",
        "--accelerate",
        "src/train.py",
        "--mode",
        "blocking",
    ]);
    let text = project.text(".vscode/launch.json");
    assert!(text.contains(r#""program": "${workspaceFolder}/src/train.py""#), "{text}");
    for name in
        ["src/train.py", "module proj.train", "pytest tests", "torchrun src/train.py", "accelerate src/train.py"]
    {
        assert!(text.contains(&format!("\"name\": \"cublame: {name} (blocking)\"")), "{text}");
    }
    let said = project.configure(&["vscode", "--program", "missing.py"]);
    assert!(said.code == 2 && said.stderr.contains("missing.py"), "{}", said.stderr);
}

#[test]
fn in_a_multi_root_workspace_the_folder_is_named() {
    let project = Project::new();
    project.write("libs/trainer/train.py", b"");
    let workspace = r#"{"folders": [{"path": "api"}, {"path": "libs/trainer", "name": "the trainer"}]}"#;
    project.write("all.code-workspace", workspace.as_bytes());
    project.configured(&[
        "vscode",
        "--dir",
        "all.code-workspace",
        "--program",
        "libs/trainer/train.py",
        "--mode",
        "trace",
    ]);
    let text = project.text("all.code-workspace");
    assert!(text.contains(r#""program": "${workspaceFolder:the trainer}/train.py""#), "{text}");
    assert!(text.contains(r#""name": "cublame: train.py (trace)""#), "{text}");
    assert!(!project.path(".vscode").exists());
}

#[test]
fn sanitize_is_a_task_and_no_profile() {
    let project = Project::new();
    project.configured(&["vscode", "--mode", "sanitize"]);
    assert!(!project.path(".vscode/launch.json").exists());
    assert!(project.text(".vscode/tasks.json").contains("\"sanitize\""));
    project.write(".vscode/launch.json", br#"{"configurations": [{"name": "a"}]}"#);
    let said = project.configure(&["vscode", "--switch", "a", "--mode", "sanitize"]);
    assert!(said.code == 2 && said.stderr.contains("words before"), "{}", said.stderr);
}

#[test]
fn a_switch_is_remembered_out_of_the_repository() {
    let project = Project::new();
    project.write(".vscode/launch.json", br#"{"configurations": [{"name": "a", "type": "python"}]}"#);
    let said = project.configured(&["vscode", "--dry-run"]);
    assert!(said.stderr.contains("`a` has the type `python`"), "{}", said.stderr);
    project.configured(&["vscode", "--switch", "a", "--mode", "blocking"]);
    assert_eq!(project.text(".cublame/.gitignore").lines().last(), Some("*"));
    let record: serde_json::Value = serde_json::from_str(&project.text(".cublame/switched.json")).unwrap();
    assert_eq!(record["switched"][0]["name"], "a");
    project.configured(&["vscode", "--switch", "a", "--mode", "trace"]);
    project.configured(&["vscode", "--upgrade"]);
    project.configured(&["vscode", "--remove"]);
    assert_eq!(project.text(".vscode/launch.json"), r#"{"configurations": [{"name": "a", "type": "debugpy"}]}"#);
    let said = project.configure(&["vscode", "--switch-back", "a"]);
    assert!(said.code == 2 && said.stderr.contains("is not switched"), "{}", said.stderr);
}

#[test]
fn pycharm_takes_the_users_configuration_of_a_program_where_there_is_one() {
    let project = Project::new();
    let (_, script) =
        crate::project::fixtures("run_xml").into_iter().find(|(name, _)| name == "script.run.xml").unwrap();
    project.write(".run/train.run.xml", &script);
    project.write("train.py", b"");
    project.write("eval.py", b"");
    project.configured(&["pycharm", "--program", "train.py", "--program", "eval.py", "--mode", "blocking"]);
    let copy = project.text(".run/cublame_ train (blocking).run.xml");
    assert!(copy.contains("--epochs 70"), "{copy}");
    let new = project.text(".run/cublame_ eval.py (blocking).run.xml");
    assert!(new.contains("<module name=\"proj\" />") && new.contains("$PROJECT_DIR$/eval.py"), "{new}");
}

#[test]
fn the_lines_for_everything_else_are_printed() {
    let said = Project::new().configured(&["other", "--mode", "trace"]);
    for line in [
        "ENV CUBLAME_MODE=\"trace\"",
        "#SBATCH --export=ALL,CUBLAME_MODE=trace",
        "-x CUBLAME_MODE=trace",
        "require(\"dap\")",
        "dape-configs",
    ] {
        assert!(said.stdout.contains(line), "{line}: {}", said.stdout);
    }
}
