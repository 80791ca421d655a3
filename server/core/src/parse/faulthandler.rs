//! Python's faulthandler: `Fatal Python error: X` and the stacks of the threads, most recent call first.

use std::sync::LazyLock;

use regex::Regex;

use super::traceback::{Frame, frame_of};
use super::{Clean, Taken, What};

/// The stack of the current thread, outermost frame first like every other stack here.
pub(super) fn take(lines: &[&Clean]) -> Option<Taken> {
    let first = lines.first()?.text.trim();
    let reason = if let Some(found) = FATAL.captures(first) {
        found.get(1)?.as_str().to_owned()
    } else if CURRENT.is_match(first) {
        String::new()
    } else {
        return None;
    };
    let mut used = 0;
    let before_current = |line: &&Clean| !CURRENT.is_match(line.text.trim()) && !FATAL.is_match(line.text.trim());
    if !reason.is_empty() {
        used = 1 + lines[1..].iter().take(HEAD_LINES).take_while(|line| before_current(line)).count();
    }
    let mut frames: Vec<Frame> = Vec::new();
    if lines.get(used).is_none_or(|line| !CURRENT.is_match(line.text.trim())) {
        return Taken::one(1, What::Stack { reason, frames });
    }
    used += 1;
    used += usize::from(lines.get(used).is_some_and(|line| line.text.trim() == "Garbage-collecting"));
    while let Some((frame, _)) = lines.get(used).and_then(|line| frame_of(&line.text)) {
        frames.push(frame);
        used += 1;
    }
    // The other threads are no more than where they happened to be.
    while lines.get(used).is_some_and(|line| is_of_a_stack(&line.text)) {
        used += 1;
    }
    frames.reverse();
    Taken::one(used, What::Stack { reason, frames })
}

/// Lines between `Fatal Python error` and the current thread: other threads may come first.
const HEAD_LINES: usize = 400;

/// The stack of each thread that faulthandler named, in its order, each outermost frame first.
pub fn stacks(text: &str) -> Vec<Vec<Frame>> {
    let mut stacks: Vec<Vec<Frame>> = Vec::new();
    for line in text.lines() {
        if let (Some((frame, _)), Some(stack)) = (frame_of(line), stacks.last_mut()) {
            stack.insert(0, frame);
        } else if CURRENT.is_match(line.trim()) || line.trim_start().starts_with("Thread 0x") {
            stacks.push(Vec::new());
        }
    }
    stacks.retain(|stack| !stack.is_empty());
    stacks
}

fn is_of_a_stack(text: &str) -> bool {
    frame_of(text).is_some() || THREAD.is_match(text.trim()) || text.starts_with("Extension modules:")
}

static FATAL: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"^(?:Fatal Python error|Windows fatal exception): (.+)$"));
static CURRENT: LazyLock<Regex> = LazyLock::new(|| super::regex(r"^Current thread\b.*\(most recent call first\)"));
static THREAD: LazyLock<Regex> = LazyLock::new(|| super::regex(r"^Thread 0x.*\(most recent call first\)|^<.*>$"));
