use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use crate::project::{Project, stderr, stdout, wait_until};

/// Deterministic bytes without any pattern that a line reader would like.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(count)
    .collect()
}

#[track_caller]
fn check_exact(bytes: &[u8]) {
    let project = Project::new();
    fs::write(project.path().join("bytes"), bytes).unwrap();
    let output = project.run(&["sh", "-c", "cat bytes; cat bytes >&2"]).output().unwrap();
    assert!(output.stdout == bytes, "stdout was changed");
    assert!(output.stderr == bytes, "stderr was changed");
    assert!(output.status.success());
}

#[test]
fn bytes_come_through_as_they_are() {
    check_exact(b"");
    check_exact(b"no line end");
    check_exact(b"\0\xff\xfe\r\n\n\r\x1b[2K\x04\x1a");
    check_exact(&noise(5003).repeat(2000));
    let bar: String = (0..20_000).map(|step| format!("\r{step:>6}/20000 [{}]", "#".repeat(step % 40))).collect();
    check_exact(bar.as_bytes());
}

#[test]
fn one_line_of_100_megabytes_comes_through() {
    let project = Project::new();
    let length = 100_000_000_u64;
    let mut command = project.run(&["sh", "-c", &format!("head -c {length} /dev/zero | tr '\\0' x")]);
    let mut child = command.spawn().unwrap();
    let mut piece = vec![0; 1 << 20];
    let (mut out, mut total) = (child.stdout.take().unwrap(), 0);
    loop {
        let count = out.read(&mut piece).unwrap();
        if count == 0 {
            break;
        }
        assert!(piece[..count].iter().all(|byte| *byte == b'x'));
        total += count as u64;
    }
    assert_eq!(total, length);
    assert!(child.wait().unwrap().success());
    assert!(project.only_run().path().join("log.jsonl").metadata().unwrap().len() < 1 << 20);
}

#[test]
fn one_file_for_both_keeps_the_order() {
    let project = Project::new();
    let script = "$RUN sh -c 'for i in $(seq 500); do echo out $i; echo err $i >&2; done' 2>&1";
    let expected: String = (1..=500).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(stdout(&project.bash(script).output().unwrap()), expected);

    let script = script.replace("2>&1", ">both 2>&1");
    assert!(project.bash(&script).status().unwrap().success());
    assert_eq!(fs::read_to_string(project.path().join("both")).unwrap(), expected);
}

#[test]
fn a_full_stdout_does_not_hold_stderr_up() {
    let project = Project::new();
    let mut child = project.run(&["sh", "-c", "head -c 9000000 /dev/zero & echo heard >&2; wait"]).spawn().unwrap();
    let mut heard = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut heard).unwrap();
    assert_eq!(heard, "heard\n");
    let mut bytes = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 9_000_000);
    assert!(child.wait().unwrap().success());
}

#[test]
fn stdin_passes() {
    let project = Project::new();
    let sent = noise(5003).repeat(500);
    let mut child = project.run(&["cat"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn({
        let sent = sent.clone();
        move || stdin.write_all(&sent).unwrap()
    });
    assert!(child.wait_with_output().unwrap().stdout == sent);
    writer.join().unwrap();

    let output = project.bash("$RUN cat <&-").output().unwrap();
    assert_eq!(stdout(&output), "");
    assert_eq!(stdout(&project.bash("$RUN sh -c 'echo said' >&-; echo $?").output().unwrap()), "0\n");
    assert_eq!(stdout(&project.bash("$RUN sh -c 'echo err >&2; echo out' 2>&-").output().unwrap()), "out\n");
}

#[test]
fn a_reader_that_leaves_ends_the_child_as_without_us() {
    let project = Project::new();
    let output = project.bash("set -o pipefail; $RUN yes | head -1").output().unwrap();
    assert_eq!((stdout(&output), output.status.code()), ("y\n".to_owned(), Some(128 + 13)));
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_silent_child_meets_the_readers_end_at_its_next_write() {
    let project = Project::new();
    let script = "echo $$; read x; echo two; echo survived >&2";
    let mut child = project.run(&["sh", "-c", script]).stdin(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let pipe = fs::read_link(format!("/proc/{}/fd/1", line.trim_end())).unwrap();
    let runners_files = format!("/proc/{}/fd", child.id());
    let holds_the_pipe = || {
        let files = fs::read_dir(&runners_files).unwrap();
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|link| link == pipe))
    };
    assert!(holds_the_pipe());
    drop(reader);
    wait_until("the runner lets go of the child's pipe", || !holds_the_pipe());
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 13), "{}", stderr(&output));
}

#[test]
fn what_was_said_is_in_the_log() {
    let project = Project::new();
    project.run(&["sh", "-c", "echo out; echo err >&2"]).output().unwrap();
    let log = project.only_run().log().whole().unwrap();
    let mut texts: Vec<&str> = log.lines.iter().map(|line| line.text.as_str()).collect();
    texts.sort_unstable();
    assert_eq!((texts, log.total_lines, log.total_bytes), (vec!["err", "out"], 2, 8));
}
