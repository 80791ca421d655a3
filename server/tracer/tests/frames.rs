//! The frames that the tracer reads are those that the interpreter itself gives, in every version on this machine.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use common::{interpreters, python, trace};
use cublame_journal::{FrameState, Journal, Kind};

#[test]
fn every_launch_has_the_interpreters_own_stack() {
    for interpreter in interpreters() {
        let traced = trace(&mut python(&interpreter, "scenes.py"));
        assert!(traced.output.status.success(), "{}: {:?}", interpreter.display(), traced.output);
        let journal = traced.journal();
        assert_eq!(journal.frame_state, FrameState::Verified, "{}", interpreter.display());
        assert_eq!((journal.lost, journal.recording), (0, true));
        let expected = expected(&traced.stdout());
        let launches: Vec<_> = journal.calls.iter().filter(|call| call.kind == Kind::Kernel).collect();
        assert_eq!(launches.len(), expected.len());
        assert!(expected.len() > 90);
        for (call, expected) in launches.iter().zip(&expected) {
            let mut seen = seen(journal, call.stack);
            // The launch itself is a frame deeper than the stack that was printed.
            assert!(seen.remove(0).contains("driver.py"), "{}: {seen:?}", interpreter.display());
            assert_eq!(&seen, expected, "{}", interpreter.display());
        }
    }
}

/// `FILE:LINE FUNCTION`, innermost first.
fn seen(journal: &Journal, stack: u32) -> Vec<String> {
    let line = |frame: &cublame_journal::read::Frame| frame.location.map_or(0, |location| location.line);
    let frames = journal.frames(stack);
    frames.iter().rev().map(|frame| format!("{}:{} {}", frame.file, line(frame), frame.function)).collect()
}

/// The stacks that the program printed, in the order of the launches.
fn expected(stdout: &str) -> Vec<Vec<String>> {
    stdout
        .lines()
        .enumerate()
        .map(|(index, line)| {
            let (number, stack) = line.split_once(' ').unwrap();
            assert_eq!(number.parse(), Ok(index + 1));
            stack.split('|').map(str::to_owned).collect()
        })
        .collect()
}
