use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cublame_core::run::Exit;

use crate::project::{CUBLAME, Project, stderr, stdout};

#[test]
fn the_childs_own_code_comes_through() {
    for code in [0, 1, 2, 42, 125, 126, 127, 200, 255] {
        let project = Project::new();
        let output = project.run(&["sh", "-c", &format!("exit {code}")]).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert_eq!((stdout(&output), stderr(&output)), (String::new(), String::new()));
        let report = project.only_run().report().whole().unwrap();
        assert_eq!(report.exit, Exit { code: Some(code), signal: None });
        assert!(report.partial.is_empty());
    }
}

#[test]
fn a_child_that_a_signal_ended_is_128_and_its_number() {
    for (name, number) in [("KILL", 9), ("TERM", 15), ("ABRT", 6), ("SEGV", 11)] {
        let project = Project::new();
        let output = project.run(&["sh", "-c", &format!("kill -{name} $$")]).output().unwrap();
        assert_eq!(output.status.code(), Some(128 + number));
        assert_eq!(project.only_run().report().whole().unwrap().exit, Exit { code: None, signal: Some(number) });
    }
}

#[track_caller]
fn check_own_failure(project: &Project, mut command: Command, code: i32, sentence: &str) {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert!(stderr(&output).contains(sentence), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    assert_eq!(project.runs(), [], "a run that never was leaves no folder");
}

#[test]
fn a_command_that_does_not_exist_is_127() {
    let project = Project::new();
    check_own_failure(&project, project.run(&["no-such-command"]), 127, "there is no command `no-such-command`");
    check_own_failure(&project, project.run(&["./train.py"]), 127, "check the path");
    executable(&project, "script", "#!/no/such/interpreter\n");
    check_own_failure(&project, project.run(&["./script"]), 127, "the interpreter of ./script does not exist");
}

#[test]
fn a_command_that_cannot_be_executed_is_126() {
    let project = Project::new();
    fs::write(project.path().join("train.py"), "print()\n").unwrap();
    check_own_failure(&project, project.run(&["./train.py"]), 126, "chmod +x ./train.py");
    check_own_failure(&project, project.run(&["./.git"]), 126, "./.git is a folder");
}

#[test]
fn our_own_usage_errors_are_125() {
    let project = Project::new();
    for words in [&["run"][..], &["run", "--mdoe", "off", "--", "true"], &["run", "--mode", "fast", "--", "true"]] {
        let mut command = project.command(CUBLAME);
        command.args(words);
        check_own_failure(&project, command, 125, "--help");
    }
}

#[test]
fn a_script_without_its_first_line_is_run_by_the_shell() {
    let project = Project::new();
    executable(&project, "script", "echo $0 $1\n");
    let output = project.run(&["./script", "one"]).output().unwrap();
    assert_eq!(stdout(&output), "./script one\n");
}

#[test]
fn what_stands_after_the_command_is_the_commands_own() {
    let project = Project::new();
    let output = project.command(CUBLAME).args(["run", "--mode=off", "echo", "--mode", "x", "--"]).output().unwrap();
    assert_eq!(stdout(&output), "--mode x --\n");
}

#[test]
fn a_nested_run_is_a_run_of_its_own() {
    let project = Project::new();
    let output =
        project.run(&[CUBLAME, "run", "--mode", "blocking", "--", "printenv", "CUBLAME_RUN"]).output().unwrap();
    let [inner, outer] = project.runs().try_into().unwrap();
    assert_eq!(stdout(&output).trim_end(), inner.path().to_str().unwrap());
    assert!(inner.run().whole().unwrap().blocking && !outer.run().whole().unwrap().blocking);
}

#[test]
fn the_mode_is_an_environment() {
    let project = Project::new();
    let mut command = project.command(CUBLAME);
    command.args(["run", "--mode", "blocking", "--", "sh", "-c", "echo $CUDA_LAUNCH_BLOCKING $CUBLAME_MODE"]);
    assert_eq!(stdout(&command.output().unwrap()), "1 blocking\n");

    fs::write(project.path().join(".cublame/mode"), "blocking\n").unwrap();
    let output = project.command(CUBLAME).args(["run", "--", "printenv", "CUDA_LAUNCH_BLOCKING"]).output().unwrap();
    assert_eq!((stdout(&output), stderr(&output)), ("1\n".to_owned(), String::new()));

    fs::write(project.path().join(".cublame/mode"), "fast\n").unwrap();
    let mut command = project.command(CUBLAME);
    let output = command.env("CUBLAME_MODE", "off").args(["run", "--", "printenv", "CUBLAME_MODE"]).output().unwrap();
    assert_eq!((stdout(&output), stderr(&output)), ("off\n".to_owned(), String::new()));
    let output = project.command(CUBLAME).args(["run", "--", "true"]).output().unwrap();
    assert_eq!(stderr(&output).matches("`fast` is not a mode").count(), 1, "{}", stderr(&output));
    fs::write(project.path().join(".cublame/mode"), "trace\n").unwrap();
    let output = project.command(CUBLAME).args(["run", "--", "printenv", "CUBLAME_MODE"]).output().unwrap();
    assert_eq!((stdout(&output), stderr(&output)), ("trace\n".to_owned(), String::new()));

    fs::write(project.path().join(".cublame/mode"), "guard\n").unwrap();
    let output = project.command(CUBLAME).args(["run", "--", "printenv", "CUBLAME_MODE"]).output().unwrap();
    assert_eq!((stdout(&output), stderr(&output)), ("guard\n".to_owned(), String::new()));
}

#[test]
fn the_report_is_written_where_it_is_asked_for() {
    let project = Project::new();
    let mut command = project.command(CUBLAME);
    command.args(["run", "--mode", "off", "--report", "out.json", "--", "sh", "-c", "exit 3"]);
    assert_eq!(command.output().unwrap().status.code(), Some(3));
    let copy = fs::read(project.path().join("out.json")).unwrap();
    assert_eq!(copy.trim_ascii(), fs::read(project.only_run().report_path()).unwrap().trim_ascii());

    let mut command = project.command(CUBLAME);
    command.args(["run", "--mode", "off", "--report", "no/such/folder.json", "--", "true"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("no/such/folder.json could not be written"));
}

fn executable(project: &Project, name: &str, text: &str) {
    let path = project.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}
