//! Reads the files that the Python hook appends to, while it may still be doing so.

use std::path::Path;

use cublame_core::event::{self, Event};
use cublame_core::evidence::{Crash, ProcessEvents};
use serde::Deserialize;

use super::folder::{EVENTS, LARGEST_FILE};
use super::standing;
use crate::os::files;

/// The events of a run, one entry a process in the order of their first event, and what could not be read.
pub fn read(run: &Path) -> (Vec<ProcessEvents>, Vec<String>) {
    let names = match names(run, ".jsonl") {
        Ok(names) => names,
        Err(failure) => return (Vec::new(), vec![format!("{EVENTS}/ cannot be read: {failure}.")]),
    };

    let (mut processes, mut unread) = (Vec::new(), Vec::new());
    for name in names {
        match files::read_beneath(run, &[EVENTS, &name], LARGEST_FILE) {
            Ok(bytes) => {
                let (process, mut sentences) = parse(&name, &bytes);
                processes.extend(process);
                unread.append(&mut sentences);
            }
            Err(failure) => unread.push(format!("{EVENTS}/{name} cannot be read: {failure}.")),
        }
    }
    for (label, bytes) in standing::files(run, &mut unread) {
        let (process, mut sentences) = parse_as(&label, &bytes);
        unread.append(&mut sentences);
        process.into_iter().for_each(|process| standing::join(&mut processes, process));
    }
    let first = |process: &ProcessEvents| process.events.first().map_or(f64::INFINITY, |event| event.time);
    processes.sort_by(|a, b| first(a).total_cmp(&first(b)));
    (processes, unread)
}

/// What Python's faulthandler wrote into the files that the hook opened for it, and what could not be read. A process
/// that lives, or was killed, leaves an empty file.
pub fn read_crashes(run: &Path) -> (Vec<Crash>, Vec<String>) {
    let (mut crashes, mut unread) = (Vec::new(), Vec::new());
    // That the folder cannot be read is already said of the events.
    for name in names(run, ".fault").unwrap_or_default() {
        match files::read_beneath(run, &[EVENTS, &name], LARGEST_FILE) {
            Ok(bytes) => {
                let pid = name.split('-').next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
                let text = String::from_utf8_lossy(&bytes);
                // Above it may stand where the process was when it was asked, as it lived.
                if let Some(at) = text.find("Fatal Python error") {
                    crashes.push(Crash { pid, text: text[at..].to_owned() });
                }
            }
            Err(failure) => unread.push(format!("{EVENTS}/{name} cannot be read: {failure}.")),
        }
    }
    (crashes, unread)
}

fn names(run: &Path, ending: &str) -> std::io::Result<Vec<String>> {
    let names = files::names_beneath(run, &[EVENTS])?;
    let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.ends_with(ending) && !name.starts_with('.'));
    names.sort_unstable();
    Ok(names)
}

/// One file: the events of one process, and sentences about the lines that are not events.
pub fn parse(name: &str, bytes: &[u8]) -> (Option<ProcessEvents>, Vec<String>) {
    parse_as(&format!("{EVENTS}/{name}"), bytes)
}

fn parse_as(label: &str, bytes: &[u8]) -> (Option<ProcessEvents>, Vec<String>) {
    let mut events: Vec<Event> = Vec::new();
    let (mut damaged, mut later, mut cut_off) = (0, 0, false);
    let mut rest = bytes;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, after) = match end {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, &[][..]),
        };
        rest = after;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match read_line(line) {
            Line::Event(event) => events.push(*event),
            Line::OfALaterVersion => later += 1,
            Line::Damaged if end.is_none() => cut_off = true,
            Line::Damaged => damaged += 1,
        }
    }

    let mut unread = Vec::new();
    if damaged > 0 {
        unread.push(format!("{} in {label} {} left out.", count(damaged, "damaged line"), was(damaged)));
    }
    if later > 0 {
        let events = count(later, "event");
        unread.push(format!("{events} in {label} {} of a later version of cublame and left out.", was(later)));
    }
    if cut_off {
        unread.push(format!("The last line of {label} is cut off: its process was stopped while it wrote."));
    }
    let process = events.first().map(|first| first.pid).map(|pid| ProcessEvents { pid, events });
    (process, unread)
}

enum Line {
    Event(Box<Event>),
    OfALaterVersion,
    Damaged,
}

fn read_line(line: &[u8]) -> Line {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { v }) if v > event::VERSION => Line::OfALaterVersion,
        Ok(_) => serde_json::from_slice(line).map_or(Line::Damaged, |event| Line::Event(Box::new(event))),
        Err(_) => Line::Damaged,
    }
}

fn count(number: u32, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn was(number: u32) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

#[cfg(test)]
mod tests {
    use cublame_core::event::What;

    use super::*;

    const START: &str = r#"{"v":1,"time":10.5,"pid":7,"event":"start","ppid":1,"argv":["train.py"],"cwd":"/home/dev/proj","python":"3.12.3","executable":"/usr/bin/python3"}"#;
    const EXIT: &str = r#"{"v":1,"time":11.5,"pid":7,"event":"exit"}"#;

    #[track_caller]
    fn check(text: &[u8], events: usize, unread: &[&str]) {
        let (process, sentences) = parse("7-a.jsonl", text);
        assert_eq!(process.map_or(0, |process| process.events.len()), events);
        assert_eq!(sentences, unread);
    }

    #[test]
    fn whole_lines_are_events() {
        check(format!("{START}\n{EXIT}\n").as_bytes(), 2, &[]);
        let (process, _) = parse("7-a.jsonl", START.as_bytes());
        let process = process.unwrap();
        assert_eq!(process.pid, 7);
        assert!(matches!(&process.events[0].what, What::Start(start) if start.argv == ["train.py"]));
    }

    #[test]
    fn a_last_line_without_its_end_still_counts_when_it_is_whole() {
        check(format!("{START}\n{EXIT}").as_bytes(), 2, &[]);
    }

    #[test]
    fn a_damaged_line_costs_itself_only() {
        check(
            &[START.as_bytes(), b"not json", b"\xff", EXIT.as_bytes(), b""].join(&b'\n'),
            2,
            &["2 damaged lines in events/7-a.jsonl were left out."],
        );
        check(b"{\"v\":1}\n", 0, &["1 damaged line in events/7-a.jsonl was left out."]);
        check(
            b"\0\0\0\0",
            0,
            &["The last line of events/7-a.jsonl is cut off: its process was stopped while it wrote."],
        );
    }

    #[test]
    fn a_last_line_that_is_cut_off_is_said() {
        let cut = &EXIT[..20];
        check(
            format!("{START}\n{cut}").as_bytes(),
            1,
            &["The last line of events/7-a.jsonl is cut off: its process was stopped while it wrote."],
        );
    }

    #[test]
    fn a_later_version_is_said_and_not_guessed_at() {
        check(
            format!("{START}\n{{\"v\":2,\"anything\":[]}}\n").as_bytes(),
            1,
            &["1 event in events/7-a.jsonl was of a later version of cublame and left out."],
        );
    }

    #[test]
    fn what_a_crash_left_is_read_and_an_empty_file_is_none() {
        let run = tempfile::tempdir().unwrap();
        let events = run.path().join(EVENTS);
        std::fs::create_dir(&events).unwrap();
        std::fs::write(events.join("7-a.fault"), b"Fatal Python error: Segmentation fault\n\xff").unwrap();
        std::fs::write(events.join("8-b.fault"), "").unwrap();
        std::fs::write(events.join("7-a.jsonl"), START).unwrap();
        let (crashes, unread) = read_crashes(run.path());
        assert_eq!(crashes.iter().map(|crash| crash.pid).collect::<Vec<_>>(), [7]);
        assert!(crashes[0].text.starts_with("Fatal Python error"));
        assert_eq!(unread, [""; 0]);
    }
}
