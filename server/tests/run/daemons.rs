use std::fs::File;
use std::io::Write;

use crate::project::{Project, stderr, stdout};

#[test]
fn a_straggler_is_waited_for() {
    let project = Project::new();
    let output = project.run(&["sh", "-c", "(sleep 0.3; echo late) & echo early"]).output().unwrap();
    assert_eq!((stdout(&output), stderr(&output)), ("early\nlate\n".to_owned(), String::new()));
    assert_eq!(project.only_run().log().whole().unwrap().total_lines, 2);
}

#[test]
fn a_daemon_does_not_hold_the_run_and_keeps_its_output() {
    let project = Project::new();
    let pipe = project.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let mut runner = project.run(&["sh", "-c", "cat pipe & echo early; exit 4"]).spawn().unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(4));
    let report = project.only_run().report().whole().unwrap();
    for (sentence, name) in report.partial.iter().zip(["stdout", "stderr"]) {
        let expected = format!("still has {name} open; its output from then on was not recorded.");
        assert!(sentence.starts_with("Process ") && sentence.ends_with(&expected), "{sentence}");
    }
    assert_eq!(report.partial.len(), 2);

    File::options().write(true).open(&pipe).unwrap().write_all(b"late\n").unwrap();
    let output = runner.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "early\nlate\n");
    assert!(stderr(&output).starts_with("cublame: the report is partial."), "{}", stderr(&output));
}
