use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command};

use rustix::process::{Signal, WaitOptions, kill_process, waitpid};

use crate::project::{Project, is_ignored, pid, state_of, stdout, wait_until};

/// Starts the command as a job of its own, as a shell does, and waits for its first line.
///
/// In a group whose parents are all elsewhere (a test run without a terminal) the kernel lets no SIGTSTP stop anybody.
fn start(mut command: Command) -> (Child, BufReader<ChildStdout>, String) {
    let mut child = command.process_group(0).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    (child, out, line.trim_end().to_owned())
}

#[test]
fn a_signal_that_a_process_sends_reaches_the_child() {
    let signals = [("TERM", Signal::TERM), ("HUP", Signal::HUP), ("INT", Signal::INT), ("USR1", Signal::USR1)];
    for (name, signal) in signals.into_iter().filter(|(_, signal)| !is_ignored(*signal)) {
        let project = Project::new();
        let script = format!("trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.02; done");
        let (mut child, mut out, _) = start(project.run(&["sh", "-c", &script]));
        kill_process(pid(&child), signal).unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!((rest, child.wait().unwrap().code()), (format!("got {name}\n"), Some(7)));
    }
}

#[test]
fn a_child_that_dies_of_a_forwarded_signal_says_which() {
    let signals = [(Signal::TERM, 15), (Signal::HUP, 1), (Signal::QUIT, 3)];
    for (signal, number) in signals.into_iter().filter(|(signal, _)| !is_ignored(*signal)) {
        let project = Project::new();
        let (mut child, _out, _) = start(project.run(&["sh", "-c", "echo ready; exec sleep 600"]));
        kill_process(pid(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + number));
        assert_eq!(project.only_run().report().whole().unwrap().exit.signal, Some(number));
    }
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let project = Project::new();
    // `kill` on the runner's own group would end the test: the child tells its own number to itself, then to the runner.
    let script = "nohup $RUN sh -c 'kill -HUP $$; kill -HUP $PPID; echo survived' 2>/dev/null";
    let output = project.bash(script).output().unwrap();
    assert_eq!((stdout(&output), output.status.code()), ("survived\n".to_owned(), Some(0)));
}

#[test]
fn a_child_that_stops_itself_stops_us_and_both_are_continued_through_us() {
    let project = Project::new();
    let (mut child, mut out, childs_pid) = start(project.run(&["sh", "-c", "echo $$; kill -STOP $$; echo resumed"]));
    let (_, status) = waitpid(Some(pid(&child)), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
    let childs_pid: i32 = childs_pid.parse().unwrap();
    assert_eq!(state_of(childs_pid), Some('T'));
    kill_process(pid(&child), Signal::CONT).unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest, child.wait().unwrap().code()), ("resumed\n".to_owned(), Some(0)));
}

#[test]
fn a_child_that_somebody_else_continues_continues_us() {
    let project = Project::new();
    let (mut child, mut out, childs_pid) = start(project.run(&["sh", "-c", "echo $$; kill -STOP $$; echo resumed"]));
    waitpid(Some(pid(&child)), WaitOptions::UNTRACED).unwrap();
    let childs_pid: i32 = childs_pid.parse().unwrap();
    kill_process(rustix::process::Pid::from_raw(childs_pid).unwrap(), Signal::CONT).unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest, child.wait().unwrap().code()), ("resumed\n".to_owned(), Some(0)));
}

#[test]
fn a_stop_sent_to_us_stops_the_child() {
    let project = Project::new();
    let script = "echo $$; while :; do sleep 0.02; done";
    let (mut child, _out, childs_pid) = start(project.run(&["sh", "-c", script]));
    let childs_pid: i32 = childs_pid.parse().unwrap();
    kill_process(pid(&child), Signal::TSTP).unwrap();
    let (_, status) = waitpid(Some(pid(&child)), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
    assert_eq!(state_of(childs_pid), Some('T'));
    kill_process(pid(&child), Signal::CONT).unwrap();
    wait_until("the child goes on", || state_of(childs_pid) != Some('T'));
    kill_process(pid(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
}

#[test]
fn a_child_that_is_killed_leaves_a_report() {
    let project = Project::new();
    let (mut child, _out, childs_pid) = start(project.run(&["sh", "-c", "echo $$; exec sleep 600"]));
    kill_process(rustix::process::Pid::from_raw(childs_pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 9));
    assert_eq!(project.only_run().report().whole().unwrap().exit.signal, Some(9));
}
