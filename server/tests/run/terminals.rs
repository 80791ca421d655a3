use std::fs;

use crate::project::{Project, state_of, wait_until};
use crate::terminal::{CTRL_C, CTRL_Z, Terminal};

#[test]
fn a_stream_that_is_a_terminal_stays_one() {
    // Inside the loop descriptor 1 is the file, so stdout is asked about through a copy.
    let which = "for fd in 0 3 2; do if [ -t $fd ]; then echo yes; else echo no; fi; done 3>&1 >which";
    let cases = [
        ("", "yes\nyes\nyes\n"),
        (">out", "yes\nno\nyes\n"),
        ("2>err", "yes\nyes\nno\n"),
        ("</dev/null", "no\nyes\nyes\n"),
        ("</dev/null >out 2>&1", "no\nno\nno\n"),
    ];
    for (redirections, expected) in cases {
        let project = Project::new();
        let (status, shown) = Terminal::bash(&project, &format!("$RUN sh -c '{which}' {redirections}")).finish();
        assert!(status.success(), "{shown}");
        let found = fs::read_to_string(project.path().join("which")).unwrap();
        assert_eq!(found, expected, "with {redirections:?}");
    }
}

#[test]
fn line_feeds_are_translated_once_and_by_the_real_terminal() {
    let project = Project::new();
    let script = "$RUN printf 'one\\ntwo\\r\\n\\tthree'";
    assert_eq!(Terminal::bash(&project, script).finish().1, "one\r\ntwo\r\r\n\tthree");
    assert_eq!(Terminal::untranslated(&project, script).finish().1, "one\ntwo\r\n\tthree");
}

#[test]
fn both_streams_on_one_terminal_keep_their_order() {
    let project = Project::new();
    let script = "$RUN sh -c 'for i in $(seq 300); do echo out $i; echo err $i >&2; done'";
    let expected: String = (1..=300).map(|i| format!("out {i}\r\nerr {i}\r\n")).collect();
    assert_eq!(Terminal::bash(&project, script).finish().1, expected);
}

#[test]
fn the_window_size_is_there_at_the_start_and_follows() {
    let project = Project::new();
    let script = "trap 'stty size <&1' WINCH; stty size <&1; while :; do sleep 0.02; done";
    let mut terminal = Terminal::bash(&project, &format!("read; $RUN sh -c \"{script}\""));
    terminal.resize(33, 101);
    terminal.press("\n");
    terminal.wait_for("33 101\r\n");
    terminal.resize(40, 132);
    terminal.wait_for("40 132\r\n");
    terminal.press(CTRL_C);
    assert_eq!(terminal.finish().0.code(), Some(128 + 2));
}

#[test]
fn ctrl_c_reaches_the_child_once() {
    let project = Project::new();
    let program = "
import os, signal, subprocess, sys
count = 0
def interrupted(*_):
    global count
    count += 1
    os.write(1, b'interrupted\\n')
signal.signal(signal.SIGINT, interrupted)
# Not print: a signal that comes while another handler prints would enter the same buffer twice.
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'fence\\n'))
print('ready', flush=True)
sys.stdin.readline()
subprocess.run(['kill', '-USR1', str(os.getppid())])
sys.stdin.readline()
print('count', count)
";
    fs::write(project.path().join("count.py"), program).unwrap();
    let mut terminal = Terminal::bash(&project, "$RUN python3 count.py");
    terminal.wait_for("ready");
    terminal.press(CTRL_C);
    terminal.wait_for("interrupted");
    terminal.press("\n");
    // The runner handles its signals in turn: behind this one no second Ctrl-C can be on its way.
    terminal.wait_for("fence");
    terminal.press("\n");
    terminal.wait_for("count 1");
    assert!(terminal.finish().0.success());
}

#[test]
fn ctrl_z_stops_the_job_and_fg_continues_it() {
    let project = Project::new();
    let mut terminal = Terminal::interactive_bash(&project);
    fs::write(project.path().join("job.sh"), "echo pid $$.; read line; echo got $line; exit 5").unwrap();
    terminal.press("$RUN sh job.sh\n");
    terminal.wait_for("pid ");
    let pid: i32 = terminal.wait_for(".").parse().unwrap();
    terminal.press(CTRL_Z);
    terminal.wait_for("Stopped");
    wait_until("the child is stopped", || state_of(pid) == Some('T'));
    terminal.press("fg\n");
    wait_until("the child goes on", || state_of(pid) == Some('S'));
    terminal.press("hello\n");
    terminal.wait_for("got hello");
    terminal.press("echo code $?.\n");
    terminal.wait_for("code 5.");
    terminal.press("exit\n");
    terminal.finish();
}

#[test]
fn a_child_that_ignores_ctrl_z_goes_on() {
    let project = Project::new();
    fs::write(project.path().join("job.sh"), "trap '' TSTP; echo ready; read line; echo got $line").unwrap();
    let mut terminal = Terminal::interactive_bash(&project);
    terminal.press("$RUN sh job.sh\n");
    terminal.wait_for("ready");
    terminal.press(CTRL_Z);
    terminal.press("hello\n");
    let between = terminal.wait_for("got hello");
    assert!(!between.contains("Stopped"), "{between:?}");
    terminal.press("exit\n");
    terminal.finish();
}

#[test]
fn a_terminal_that_goes_away_ends_the_run() {
    let project = Project::new();
    let mut terminal = Terminal::interactive_bash(&project);
    fs::write(project.path().join("job.sh"), "echo pid $$.; exec sleep 600").unwrap();
    terminal.press("$RUN sh job.sh\n");
    terminal.wait_for("pid ");
    let pid: i32 = terminal.wait_for(".").parse().unwrap();
    terminal.hang_up();
    wait_until("the child is gone", || state_of(pid).is_none());
    wait_until("the report is there", || project.only_run().report().whole().is_some());
}
