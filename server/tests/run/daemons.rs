use std::fs::File;
use std::io::{Read, Write};

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
    let mut runner = project.run(&["sh", "-c", "cat pipe 2>/dev/null & echo early; exit 4"]).spawn().unwrap();
    let mut out = runner.stdout.take().unwrap();
    let mut said = String::new();
    runner.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(4));
    assert!(said.contains("still has stdout open; its output from then on was not recorded"), "{said}");
    let report = project.only_run().report().whole().unwrap();
    assert!(report.partial[0].starts_with("Process "), "{:?}", report.partial);

    File::options().write(true).open(&pipe).unwrap().write_all(b"late\n").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "early\nlate\n");
}
