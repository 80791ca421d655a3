//! The answers to `exceptionInfo` and `stackTrace`, as the event that the Python hook would have written.
//!
//! debugpy's `details.stackTrace` has what Python prints, causes first, without the header lines; the frames of the last
//! exception stand innermost first, with a mark at the current one (pydevd_comm.py, build_exception_info_response).

use serde_json::Value;

use crate::event::{DEBUGGER, EventFrame, Exception, Link};

/// None for an exception that somebody will catch, and where the debugger says no more than that it stands.
pub fn uncaught(info: &Value, stack: &Value, thread: i64) -> Option<Exception> {
    let mode = info.get("breakMode")?.as_str()?;
    if mode != "unhandled" && mode != "userUnhandled" {
        return None;
    }
    let text = info.get("details")?.get("stackTrace")?.as_str()?;
    let mut chain = links(text);
    let last = chain.last_mut().filter(|link| !link.type_name.is_empty())?;
    let positions = positions(stack);
    if innermost_first(&last.frames, &positions) {
        last.frames.reverse();
    }
    let main_thread = thread == 1 || last.frames.first().is_some_and(|frame| frame.function == "<module>");
    for frame in chain.iter_mut().flat_map(|link| &mut link.frames) {
        give_columns(frame, &positions);
    }
    let thread = if main_thread { "MainThread".to_owned() } else { format!("Thread-{thread}") };
    Some(Exception { hook: DEBUGGER.to_owned(), thread, main_thread, chain, ..Exception::default() })
}

const SEPARATORS: [(&str, &str); 2] = [
    ("\nThe above exception was the direct cause of the following exception:\n\n", "cause"),
    ("\nDuring handling of the above exception, another exception occurred:\n\n", "context"),
];

fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut rest = text;
    loop {
        let next = SEPARATORS.iter().filter_map(|(words, relation)| Some((rest.find(words)?, words, relation))).min();
        let Some((at, words, relation)) = next else { break };
        links.push(Link { relation: Some((*relation).to_owned()), ..link(&rest[..at]) });
        rest = &rest[at + words.len()..];
    }
    links.push(link(rest));
    links
}

/// Frames, then `Type: message`, of as many lines as the message has.
fn link(text: &str) -> Link {
    let mut frames: Vec<EventFrame> = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        if let Some(frame) = frame(line) {
            frames.push(frame);
        } else if let Some(source) = line.strip_prefix("    ") {
            // What follows the first line are carets, or more lines of the same statement.
            if let Some(frame) = frames.last_mut().filter(|frame| frame.source.is_none()) {
                frame.source = Some(source.trim().to_owned());
            }
        } else if !line.starts_with("  [") && line != "Traceback (most recent call last):" {
            break;
        }
        rest = after;
    }
    let words = rest.trim_end_matches('\n');
    let (type_name, message) = words.split_once(": ").unwrap_or((words, ""));
    Link { type_name: type_name.to_owned(), message: message.to_owned(), frames, ..Link::default() }
}

/// `  File "train.py", line 8, in forward`
fn frame(line: &str) -> Option<EventFrame> {
    let rest = line.strip_prefix("  File \"")?;
    let (file, rest) = rest.rsplit_once("\", line ")?;
    let (number, function) = rest.split_once(", in ")?;
    let function = function.strip_suffix(CURRENT).unwrap_or(function);
    let is_absolute = file.starts_with('/') || file.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/");
    Some(EventFrame {
        file: file.to_owned(),
        path: is_absolute.then(|| file.to_owned()),
        line: number.parse().ok()?,
        function: function.to_owned(),
        ..EventFrame::default()
    })
}

const CURRENT: &str = " (Current frame)";

/// A frame of the answer to `stackTrace`.
#[derive(Debug, PartialEq)]
struct Position {
    path: String,
    line: u32,
    column: u32,
    end_column: Option<u32>,
}

/// Innermost first, as the protocol wants it.
fn positions(stack: &Value) -> Vec<Position> {
    let frames = stack.get("stackFrames").and_then(Value::as_array).into_iter().flatten();
    let number = |frame: &Value, name: &str| u32::try_from(frame.get(name)?.as_u64()?).ok();
    frames
        .filter_map(|frame| {
            Some(Position {
                path: frame.get("source")?.get("path")?.as_str()?.to_owned(),
                line: number(frame, "line")?,
                column: number(frame, "column")?,
                end_column: number(frame, "endColumn"),
            })
        })
        .collect()
}

/// By the debugger's own stack where it has told it; else a program's outermost frame is easily told.
fn innermost_first(frames: &[EventFrame], positions: &[Position]) -> bool {
    let is_first = |position: &Position| {
        frames.first().is_some_and(|frame| frame.file == position.path && frame.line == position.line)
    };
    match positions.first() {
        Some(innermost) => is_first(innermost),
        None => frames.first().is_none_or(|frame| frame.function != "<module>"),
    }
}

/// The columns of a frame, in code points. The debugger counts otherwise, which is the same in a line of ASCII.
fn give_columns(frame: &mut EventFrame, positions: &[Position]) {
    if !frame.source.as_ref().is_some_and(|source| source.is_ascii()) {
        return;
    }
    let there = positions.iter().find(|position| position.path == frame.file && position.line == frame.line);
    if let Some((position, end)) = there.and_then(|position| Some((position, position.end_column?))) {
        frame.column = Some(position.column);
        frame.end_column = Some(end);
    }
}
