use std::io::{BufRead, BufReader};
use std::process::Child;

use cublame::session::State;
use rustix::process::{Signal, kill_process};

use crate::project::{Project, pid, processes_with, wait_until};

/// Kills the runner once the script has said `ready`; then nothing whose command line has `mark` may stay.
#[track_caller]
fn check_nothing_stays(script: &str, mark: &str) {
    let project = Project::new();
    let mut runner = start(&project, script);
    let guardian = format!("__guardian {}", runner.id());
    assert_eq!(processes_with(&guardian).len(), 1);
    assert!(!processes_with(mark).is_empty(), "the test itself starts nothing");
    kill_process(pid(&runner), Signal::KILL).unwrap();
    runner.wait().unwrap();
    wait_until("all of the run is gone", || processes_with(mark).is_empty());
    wait_until("so is its guardian", || processes_with(&guardian).is_empty());
    let outermost = project.runs().pop().unwrap();
    assert_eq!(outermost.state(), State::Interrupted);
}

fn start(project: &Project, script: &str) -> Child {
    let mut runner = project.run(&["sh", "-c", script]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(runner.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    runner
}

#[test]
fn a_killed_runner_leaves_no_child() {
    check_nothing_stays("echo ready; exec sleep 71001", "sleep 71001");
}

#[test]
fn a_killed_runner_leaves_no_grandchild() {
    check_nothing_stays("sleep 71002 & (sleep 71002 & sleep 71002) & echo ready; wait", "sleep 71002");
}

#[test]
fn a_killed_runner_leaves_no_grandchild_in_a_session_of_its_own() {
    check_nothing_stays("setsid sleep 71003 & setsid -f sleep 71003; echo ready; wait", "sleep 71003");
}

#[test]
fn a_killed_runner_leaves_nobody_who_does_not_want_to_end() {
    check_nothing_stays("trap '' TERM; sleep 71004 & echo ready; sleep 71004", "sleep 71004");
}

#[test]
fn a_killed_runner_leaves_nobody_who_is_stopped() {
    check_nothing_stays("sleep 71005 & kill -STOP $!; echo ready; wait", "sleep 71005");
}

#[test]
fn a_killed_runner_leaves_nobody_who_has_hidden_the_mark() {
    check_nothing_stays("env -i sleep 71006 & echo ready; wait", "sleep 71006");
}

#[test]
fn a_killed_runner_takes_an_inner_run_with_it() {
    check_nothing_stays("$RUN sh -c 'setsid -f sleep 71007; echo ready; sleep 71007'", "sleep 71007");
}

#[test]
fn a_killed_runner_does_not_take_the_script_around_it() {
    let project = Project::new();
    let script = "$RUN sh -c 'echo ready; exec sleep 71008' & read -t 0.01; wait $!; echo script goes on";
    let mut bash = project.bash(script).spawn().unwrap();
    let mut out = BufReader::new(bash.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let run = project.only_run();
    wait_until("run.json is there", || run.run().whole().is_some());
    let runner = run.run().whole().unwrap().runner.unwrap();
    kill_process(rustix::process::Pid::from_raw(runner.pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    line.clear();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "script goes on\n");
    assert!(bash.wait().unwrap().success());
    wait_until("the child is gone", || processes_with("sleep 71008").is_empty());
}

#[test]
fn a_daemon_that_was_left_on_purpose_stays() {
    let project = Project::new();
    let script = "setsid -f sleep 71009 </dev/null >/dev/null 2>&1; echo ready";
    let mut runner = start(&project, script);
    let guardian = format!("__guardian {}", runner.id());
    assert!(runner.wait().unwrap().success());
    wait_until("the guardian is gone", || processes_with(&guardian).is_empty());
    let daemons = processes_with("sleep 71009");
    assert_eq!(daemons.len(), 1);
    kill_process(rustix::process::Pid::from_raw(daemons[0].cast_signed()).unwrap(), Signal::KILL).unwrap();
}
