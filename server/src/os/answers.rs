//! Asking a program a question: it is run, and what it prints is the answer, if that comes in time.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// What asking came to.
#[derive(Debug)]
pub enum Answered {
    InTime {
        status: ExitStatus,
        out: Vec<u8>,
        /// The end of it.
        err: Vec<u8>,
    },
    /// It was killed. One that the kernel will not let go of is left to the kernel.
    TooLate,
}

/// No answer that anybody asks for here is longer.
const LONGEST: u64 = 1 << 20;

/// Runs a command that reads nothing, and waits for its end.
pub fn ask(mut command: Command, patience: Duration) -> io::Result<Answered> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (tell, told) = mpsc::channel();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    thread::spawn(move || {
        let err = thread::spawn(move || read(err));
        let out = read(out);
        // Whoever asked may have stopped listening.
        tell.send((out, err.join().unwrap_or_default())).ok();
    });
    match told.recv_timeout(patience) {
        Ok((out, err)) => Ok(Answered::InTime { status: child.wait()?, out, err }),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            end(child);
            Ok(Answered::TooLate)
        }
    }
}

fn read(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // Half an answer is what there is.
        stream.take(LONGEST).read_to_end(&mut bytes).ok();
    }
    bytes
}

/// A process that waits inside a driver may not die at once, and is not waited for.
fn end(mut child: Child) {
    child.kill().ok();
    thread::spawn(move || child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> Answered {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ask(command, patience).expect("sh runs")
    }

    #[test]
    fn what_is_printed_is_the_answer() {
        let answered = shell("echo yes; echo why >&2; exit 3", Duration::from_secs(60));
        let Answered::InTime { status, out, err } = answered else { panic!("{answered:?}") };
        assert_eq!((status.code(), &*out, &*err), (Some(3), &b"yes\n"[..], &b"why\n"[..]));
    }

    #[test]
    fn one_that_never_answers_is_ended() {
        assert!(matches!(shell("exec sleep 600", Duration::from_millis(20)), Answered::TooLate));
    }
}
