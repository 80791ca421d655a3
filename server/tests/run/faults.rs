//! What can go wrong round a run, one at a time: each leaves a report or a clear word, no process, and the child as it was.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use cublame::session::State;
use rustix::process::{Signal, kill_process};

use crate::project::{Project, pid, processes_with, stderr, stdout, wait_until};

/// A program of Python's in the project.
fn write(project: &Project, name: &str, text: &str) -> String {
    let path = project.path().join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn first_verdict(project: &Project) -> cublame_core::Verdict {
    let report = project.only_run().report().whole().unwrap();
    report.verdicts.into_iter().next().unwrap()
}

#[track_caller]
fn check_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
}

#[test]
fn a_killed_child_is_a_report_with_its_signal() {
    let project = Project::new();
    let output = project.run(&["sh", "-c", "echo out; kill -KILL $$"]).output().unwrap();
    check_code(&output, 137);
    assert_eq!(stdout(&output), "out\n");
    let report = project.only_run().report().whole().unwrap();
    assert_eq!((report.exit.signal, report.verdicts[0].kind.as_str()), (Some(9), "oom-host"));
}

#[test]
fn a_killed_runner_is_said_to_be_interrupted() {
    let project = Project::new();
    let mut runner = project.run(&["sh", "-c", "echo ready; exec sleep 72001"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(runner.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let run = project.only_run();
    wait_until("run.json is there", || run.run().whole().is_some());
    kill_process(pid(&runner), Signal::KILL).unwrap();
    runner.wait().unwrap();
    wait_until("nothing stays", || processes_with("sleep 72001").is_empty());
    assert_eq!(run.state(), State::Interrupted);
    // The next run does well beside it.
    check_code(&project.run(&["true"]).output().unwrap(), 0);
}

#[test]
fn a_folder_that_is_removed_during_the_run_is_said() {
    let project = Project::new();
    let program = write(
        &project,
        "gone.py",
        "import os, shutil\nshutil.rmtree(os.environ['CUBLAME_RUN'])\nprint('out')\nraise ValueError('in vain')\n",
    );
    let output = project.run(&["python3", &program]).output().unwrap();
    check_code(&output, 1);
    assert_eq!(stdout(&output), "out\n");
    let said = stderr(&output);
    assert!(said.contains("ValueError: in vain") && said.contains("report.json could not be written"), "{said}");
    assert_eq!(project.runs().len(), 0);
}

#[test]
fn a_folder_that_becomes_read_only_is_said() {
    let project = Project::new();
    let program = write(
        &project,
        "shut.py",
        "import os\nos.chmod(os.environ['CUBLAME_RUN'], 0o500)\nraise ValueError('in vain')\n",
    );
    let output = project.run(&["python3", &program]).output().unwrap();
    check_code(&output, 1);
    let run = project.only_run();
    fs::set_permissions(run.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // Root may write all the same: then there is a report, else a word.
    let told = stderr(&output).contains("report.json could not be written");
    assert!(told || run.report().whole().is_some(), "{}", stderr(&output));
}

#[test]
fn sixty_four_ranks_that_fail_at_once_are_one_report() {
    let project = Project::new();
    let program = write(
        &project,
        "rank.py",
        "import os, time\nmeeting = os.environ['MEETING']\nwhile not os.path.exists(meeting):\n    time.sleep(0.005)\n\
         raise RuntimeError('CUDA error: an illegal memory access was encountered')  # @fault\n",
    );
    let meeting = project.path().join("meeting");
    let script = format!(
        "for rank in $(seq 0 63); do RANK=$rank WORLD_SIZE=64 python3 {program} & done; touch {}; wait; exit 1",
        meeting.display()
    );
    let output = project.run(&["bash", "-c", &script]).env("MEETING", &meeting).output().unwrap();
    check_code(&output, 1);
    let verdict = first_verdict(&project);
    assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("illegal-address", 5));
    assert!(verdict.rank.is_some_and(|rank| rank < 64));
    assert_eq!(verdict.missing, [""; 0]);
    assert_eq!(project.only_run().events().0.len(), 64);
}

#[test]
fn a_million_lines_are_passed_on_and_the_failure_among_them_is_found() {
    let project = Project::new();
    let program = write(
        &project,
        "flood.py",
        "import sys\nsys.stderr.write(''.join('line %d\\n' % number for number in range(1000000)))\n\
         raise RuntimeError('CUDA error: an illegal memory access was encountered')  # @fault\n",
    );
    let output = project.run(&["python3", &program]).output().unwrap();
    check_code(&output, 1);
    let lines = output.stderr.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"line ")).count();
    assert_eq!(lines, 1_000_000);
    let verdict = first_verdict(&project);
    assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("illegal-address", 3));
    let log = project.only_run().log().whole().unwrap();
    assert!(log.total_lines >= 1_000_000 && log.lines.len() < 100_000, "{} lines kept", log.lines.len());
}

/// The hook's times jump by a year, back and forth; the order of the program's own failures stays.
#[test]
fn a_clock_that_jumps_costs_no_report() {
    let project = Project::new();
    let program = write(
        &project,
        "clock.py",
        "import threading, time\nreal = time.time\njump = iter([3e7, -3e7, 5e7] * 100)\n\
         time.time = lambda: real() + next(jump)\n\
         raise RuntimeError('CUDA error: an illegal memory access was encountered')  # @fault\n",
    );
    let output = project.run(&["python3", &program]).output().unwrap();
    check_code(&output, 1);
    let verdict = first_verdict(&project);
    assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("illegal-address", 5));
}

#[test]
fn a_run_whose_clock_runs_elsewhere_is_reported() {
    let faketime = "/usr/bin/faketime";
    if !fs::exists(faketime).unwrap() {
        return;
    }
    let project = Project::new();
    let program = write(&project, "past.py", "raise ValueError('long ago')  # @fault\n");
    let output = project
        .command(faketime)
        .args([
            "-f",
            "@2001-01-01 00:00:00",
            crate::project::CUBLAME,
            "run",
            "--mode",
            "off",
            "--",
            "python3",
            &program,
        ])
        .output()
        .unwrap();
    check_code(&output, 1);
    assert_eq!(first_verdict(&project).place.unwrap().line, 1);
    let run = project.only_run();
    assert!(run.id().starts_with("2001"), "{}", run.id());
    // The present goes on beside it.
    check_code(&project.run(&["true"]).output().unwrap(), 0);
    assert_eq!(project.runs().len(), 2);
}

#[test]
fn a_child_that_closes_its_streams_and_lives_on_is_waited_for() {
    let project = Project::new();
    let program = write(
        &project,
        "closed.py",
        "import os, sys, time\nprint('out', flush=True)\nos.close(0)\nos.close(1)\nos.close(2)\ntime.sleep(0.5)\n\
         raise RuntimeError('CUDA error: an illegal memory access was encountered')  # @fault\n",
    );
    let bare = project.command("python3").arg(&program).output().unwrap();
    let output = project.run(&["python3", &program]).output().unwrap();
    // Python says with a code of its own that it could not write its last words.
    check_code(&output, bare.status.code().unwrap());
    assert_eq!(stdout(&output), "out\n");
    let verdict = first_verdict(&project);
    assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("illegal-address", 7));
}

#[test]
fn a_thousand_short_lived_workers_are_no_burden() {
    let project = Project::new();
    let program = write(
        &project,
        "workers.py",
        "import os\nfor number in range(1000):\n    pid = os.fork()\n    if pid == 0:\n        os._exit(0)\n    os.waitpid(pid, 0)\n\
         raise RuntimeError('CUDA error: an illegal memory access was encountered')  # @fault\n",
    );
    let output = project.run(&["python3", &program]).output().unwrap();
    check_code(&output, 1);
    let verdict = first_verdict(&project);
    assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("illegal-address", 7));
    // A fork that has nothing to tell leaves no file.
    assert_eq!(fs::read_dir(project.only_run().path().join("events")).unwrap().count(), 1);
}

#[test]
fn a_killed_server_leaves_the_run_that_it_started() {
    let project = Project::new();
    let mut server =
        project.command(crate::project::CUBLAME).arg("lsp").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let uri = format!("file://{}", project.path().display());
    let program = write(
        &project,
        "train.py",
        "import time\nopen('alive', 'w').close()\ntime.sleep(1)\nraise ValueError('own')  # @fault\n",
    );
    let mut say = |message: serde_json::Value| {
        use std::io::Write;
        let text = message.to_string();
        let pipe = server.stdin.as_mut().unwrap();
        write!(pipe, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        pipe.flush().unwrap();
    };
    say(serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "capabilities": {}, "processId": null, "workspaceFolders": [{ "uri": uri, "name": "proj" }],
        "initializationOptions": { "settings": { "mode": "off" } } } }));
    say(serde_json::json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
    say(serde_json::json!({ "jsonrpc": "2.0", "id": 2, "method": "workspace/executeCommand", "params": {
        "command": "cublame.run", "arguments": [{ "uri": format!("file://{program}") }] } }));
    wait_until("the program runs", || project.path().join("alive").exists());
    kill_process(pid(&server), Signal::KILL).unwrap();
    server.wait().unwrap();
    let mut rest = Vec::new();
    server.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    let run = project.only_run();
    wait_until("the run has its report", || run.report().whole().is_some());
    assert_eq!(run.report().whole().unwrap().verdicts[0].place.as_ref().unwrap().line, 4);
}
