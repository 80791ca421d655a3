use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::project::{Project, stderr, stdout};

#[test]
fn where_nothing_can_be_written_the_run_goes_on_without_a_report() {
    let project = Project::new();
    let mut command = project.run(&["sh", "-c", "echo out; exit 3"]);
    command.env("CUBLAME_DIR", "/proc/none").env("XDG_STATE_HOME", "/proc/none");
    let output = command.output().unwrap();
    assert_eq!((stdout(&output), output.status.code()), ("out\n".to_owned(), Some(3)));
    assert_eq!(stderr(&output).matches("no report will be written").count(), 1, "{}", stderr(&output));
}

#[test]
fn a_project_that_cannot_be_written_has_its_runs_in_the_state_folder() {
    let project = Project::new();
    let output = project.run(&["true"]).env("CUBLAME_DIR", "/proc/none").output().unwrap();
    assert!(output.status.success());
    assert_eq!(stderr(&output).matches("this run is kept under").count(), 1, "{}", stderr(&output));
    let runs = project.path().join(".local/state/cublame/runs");
    assert_eq!(cublame::session::RunFolder::list(&runs).len(), 1);
}

/// A file size limit of zero fails every write of ours as a full disk does, and leaves the child's pipes alone.
#[test]
fn when_the_disk_is_full_the_child_goes_on_and_the_report_is_called_partial() {
    let project = Project::new();
    fs::create_dir(project.path().join(".cublame")).unwrap();
    fs::write(project.path().join(".cublame/.gitignore"), "*\n").unwrap();
    let output = project.bash("ulimit -f 0; exec $RUN sh -c 'seq 100000; exit 3'").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let expected: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(stdout(&output), expected);
    let said = stderr(&output);
    for sentence in ["the report is partial", "run.json could not", "log.jsonl could not", "report.json could not"] {
        assert!(said.contains(sentence), "{sentence:?} is missing in {said}");
    }
    let run = project.only_run();
    let left: Vec<_> = fs::read_dir(run.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["events"], "nothing half written stays");
}

#[test]
fn when_the_disk_fills_during_the_run_the_report_says_so() {
    let project = Project::new();
    // The child makes the folder of events unreadable and the log unwritable.
    let script = "mkdir $CUBLAME_RUN/log.jsonl; rmdir $CUBLAME_RUN/events; exit 3";
    let output = project.run(&["sh", "-c", script]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let report = project.only_run().report().whole().unwrap();
    assert!(report.partial.iter().any(|sentence| sentence.starts_with("log.jsonl could not be written")), "{report:?}");
    assert!(stderr(&output).contains("the report is partial"));
}

#[test]
fn what_is_written_is_private() {
    let project = Project::new();
    project.run(&["true"]).output().unwrap();
    for entry in fs::read_dir(project.only_run().path()).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.path());
    }
}
