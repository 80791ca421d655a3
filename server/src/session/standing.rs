//! What a debugger stands at, in the run folder: `debugger-<pid>.jsonl`, one event as the Python hook would write it.
//!
//! It is there while the program stands. The program's own hook has the word as soon as it goes on; where it ends without
//! having gone on, the file stays and is all that is known.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cublame_core::event::{self, Event, Exception, What};
use cublame_core::evidence::ProcessEvents;

use super::folder::{EVENTS, LARGEST_FILE, RunFolder, State};
use crate::os::{files, processes};

impl RunFolder {
    /// A debugger holds this process at an exception that nobody will catch.
    pub fn stand_at(&self, pid: u32, exception: Exception) -> io::Result<()> {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let event = Event { v: event::VERSION, time, pid, what: What::Exception(exception) };
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        self.write_aside(&name(pid), &line)
    }

    /// It holds the process no more.
    pub fn go_on(&self, pid: u32) -> io::Result<()> {
        match std::fs::remove_file(self.path().join(name(pid))) {
            Err(failure) if failure.kind() != io::ErrorKind::NotFound => Err(failure),
            _ => Ok(()),
        }
    }

    /// Does the hook of this process write into this run?
    pub fn has_events_of(&self, pid: u32) -> bool {
        let names = files::names_beneath(self.path(), &[EVENTS]).unwrap_or_default();
        names.iter().any(|name| name.to_str().is_some_and(|name| name.starts_with(&format!("{pid}-"))))
    }
}

/// The run of a living process: the one that was given to it, or that its own hook has made.
pub fn run_of(pid: u32, runs_folders: &[PathBuf]) -> Option<RunFolder> {
    const NEWEST: usize = 20;
    let given = processes::variable_of(pid, "CUBLAME_RUN").map(|path| PathBuf::from(OsString::from_vec(path)));
    if let Some(run) = given.and_then(|path| RunFolder::open(path).ok()) {
        return Some(run);
    }
    let live = |run: &RunFolder| run.has_events_of(pid) && run.state() == State::Live;
    runs_folders.iter().flat_map(|runs| RunFolder::list(runs).into_iter().take(NEWEST)).find(live)
}

/// The contents of these files, by name.
pub(super) fn files(run: &Path, unread: &mut Vec<String>) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for name in names(run) {
        match files::read_beneath(run, &[&name], LARGEST_FILE) {
            Ok(bytes) => found.push((name, bytes)),
            // The program has gone on between the two looks.
            Err(failure) if failure.kind() == io::ErrorKind::NotFound => {}
            Err(failure) => unread.push(format!("{name} cannot be read: {failure}.")),
        }
    }
    found
}

/// Adds what a debugger stood at to the process's own events, unless the hook has recorded an exception itself.
pub(super) fn join(processes: &mut Vec<ProcessEvents>, stood: ProcessEvents) {
    match processes.iter_mut().find(|process| process.pid == stood.pid) {
        Some(process) => {
            let told = process.events.iter().any(|event| matches!(event.what, What::Exception(_)));
            process.events.extend(stood.events.into_iter().filter(|_| !told));
        }
        None => processes.push(stood),
    }
}

fn name(pid: u32) -> String {
    format!("{PREFIX}{pid}{ENDING}")
}

fn names(run: &Path) -> Vec<String> {
    let names = files::names_beneath(run, &[]).unwrap_or_default();
    let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.starts_with(PREFIX) && name.ends_with(ENDING));
    names.sort_unstable();
    names
}

const PREFIX: &str = "debugger-";
const ENDING: &str = ".jsonl";

#[cfg(test)]
mod tests {
    use super::super::place::Surroundings;
    use super::*;

    fn exception(type_name: &str) -> Exception {
        let link = event::Link { type_name: type_name.to_owned(), ..event::Link::default() };
        Exception { hook: event::DEBUGGER.to_owned(), chain: vec![link], ..Exception::default() }
    }

    fn raised(run: &RunFolder) -> Vec<String> {
        let (processes, unread) = run.events();
        assert_eq!(unread, [""; 0]);
        let events = processes.into_iter().flat_map(|process| process.events);
        let type_name = |event: Event| match event.what {
            What::Exception(exception) => Some(exception.chain[0].type_name.clone()),
            _ => None,
        };
        events.filter_map(type_name).collect()
    }

    #[test]
    fn it_is_an_event_while_it_stands_and_the_hooks_own_word_wins() {
        let project = tempfile::tempdir().unwrap();
        let surroundings = Surroundings { cwd: project.path().to_owned(), ..Surroundings::default() };
        let run = RunFolder::create(&surroundings, SystemTime::now()).unwrap().folder;
        run.stand_at(7, exception("E")).unwrap();
        run.stand_at(8, exception("F")).unwrap();
        assert_eq!(names(run.path()).len(), 2);
        assert_eq!(raised(&run), ["E", "F"]);
        let hook = Event { v: 1, time: 1.0, pid: 7, what: What::Exception(exception("torch.E")) };
        std::fs::write(run.path().join("events/7-a.jsonl"), serde_json::to_vec(&hook).unwrap()).unwrap();
        assert_eq!(raised(&run), ["torch.E", "F"]);
        run.go_on(7).unwrap();
        run.go_on(8).unwrap();
        run.go_on(8).unwrap();
        assert_eq!(names(run.path()), [""; 0]);
        assert_eq!(raised(&run), ["torch.E"]);
    }
}
