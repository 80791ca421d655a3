//! Processes as the system knows them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use cublame_core::run::{Exit, ProcessId};
use cublame_core::scrub::Identity;
use rustix::process::{Pid, Signal, WaitOptions};

/// This machine's name, as a run records it.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whose name is taken out of what leaves the machine: this user's, and the machine's that a run was on.
pub fn identity(host: &str) -> Identity {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let host = if host.is_empty() { host_name() } else { host.to_owned() };
    Identity { home: variable("HOME"), user: variable("USER"), host }
}

/// This process, in a form that outlives its number.
pub fn this_process() -> ProcessId {
    identify(std::process::id())
}

/// The process that has this number now. `start` is 0 when there is none, or where the system does not tell.
pub fn identify(pid: u32) -> ProcessId {
    ProcessId { pid, start: stat(pid).map_or(0, |stat| stat.start) }
}

/// Is exactly this process there and not a zombie? A later process of the same number is another one.
pub fn is_alive(process: ProcessId) -> bool {
    match stat(process.pid) {
        Some(stat) => stat.start == process.start && !stat.is_dead(),
        None => process.start == 0 && !has_proc() && answers(process.pid),
    }
}

/// Is exactly this process stopped, as by SIGSTOP or Ctrl-Z?
pub fn is_stopped(process: ProcessId) -> bool {
    stat(process.pid).is_some_and(|stat| stat.start == process.start && stat.state == b'T')
}

/// What became of a child since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Ended(Exit),
    Stopped,
}

/// Never blocks. Reaps the child when it has ended.
pub fn look_at_child(child: ProcessId) -> io::Result<Option<Change>> {
    match rustix::process::waitpid(Some(number(child.pid)?), WaitOptions::NOHANG | WaitOptions::UNTRACED)? {
        None => Ok(None),
        Some((_, status)) if status.stopped() => Ok(Some(Change::Stopped)),
        Some((_, status)) => {
            Ok(Some(Change::Ended(Exit { code: status.exit_status(), signal: status.terminating_signal() })))
        }
    }
}

/// Sends a signal to a child that this process has not reaped yet, so that its number cannot be another's.
pub fn signal_child(child: ProcessId, signal: i32) -> io::Result<()> {
    Ok(rustix::process::kill_process(number(child.pid)?, named(signal)?)?)
}

/// Sends a signal to exactly this process and never to a later one of the same number.
#[cfg(target_os = "linux")]
pub fn signal_exactly(process: ProcessId, signal: i32) -> io::Result<()> {
    let pidfd = rustix::process::pidfd_open(number(process.pid)?, rustix::process::PidfdFlags::empty())?;
    // Whoever the descriptor stands for cannot change any more: one look decides.
    if identify(process.pid) != process {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(rustix::process::pidfd_send_signal(pidfd, named(signal)?)?)
}

#[cfg(not(target_os = "linux"))]
pub fn signal_exactly(process: ProcessId, signal: i32) -> io::Result<()> {
    signal_child(process, signal)
}

/// Tells the own process group, this process included.
pub fn signal_own_group(signal: i32) -> io::Result<()> {
    Ok(rustix::process::kill_current_process_group(named(signal)?)?)
}

/// The living processes of a family: those that carry one of `marks` as the value of the variable `name`, `head`,
/// their descendants, and the members of the groups and sessions that one of them leads.
///
/// The marks of members join `marks`: a run inside a run has a mark of its own.
/// The group of `head` itself does not count: it may be the user's shell script.
pub fn family(name: &str, marks: &mut BTreeSet<Vec<u8>>, head: Option<ProcessId>) -> Vec<ProcessId> {
    let all: Vec<Relative> = all_processes()
        .into_iter()
        .filter(|stat| stat.pid != std::process::id())
        .map(|stat| Relative { stat, mark: variable_of(stat.pid, name) })
        .collect();
    let is_head = |stat: &Stat| head == Some(ProcessId { pid: stat.pid, start: stat.start });
    let heads = all.iter().map(|relative| relative.stat).filter(is_head).map(|stat| stat.pid).collect();
    let members = members(&all, heads, marks);
    let identity = |stat: Stat| ProcessId { pid: stat.pid, start: stat.start };
    all.iter().map(|relative| relative.stat).filter(|stat| members.contains(&stat.pid)).map(identity).collect()
}

struct Relative {
    stat: Stat,
    mark: Option<Vec<u8>>,
}

fn members(all: &[Relative], mut members: BTreeSet<u32>, marks: &mut BTreeSet<Vec<u8>>) -> BTreeSet<u32> {
    loop {
        let before = (members.len(), marks.len());
        for Relative { stat, mark } in all {
            let is_related = [stat.pid, stat.parent, stat.group, stat.session].iter().any(|pid| members.contains(pid));
            if is_related || mark.as_ref().is_some_and(|mark| marks.contains(mark)) {
                members.insert(stat.pid);
                marks.extend(mark.clone());
            }
        }
        if (members.len(), marks.len()) == before {
            return members;
        }
    }
}

/// A process that has this file (as /proc/PID/fd names it) open, other than this one.
pub fn holder_of(file: &Path) -> Option<u32> {
    let this = std::process::id();
    all_processes().into_iter().map(|stat| stat.pid).filter(|pid| *pid != this).find(|pid| {
        let open = fs::read_dir(format!("/proc/{pid}/fd"));
        open.into_iter().flatten().flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link == file))
    })
}

/// What this product reads of /proc/PID/stat (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    pid: u32,
    state: u8,
    parent: u32,
    group: u32,
    session: u32,
    /// Field 22: clock ticks since boot.
    start: u64,
}

impl Stat {
    fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(pid: u32, text: &[u8]) -> Option<Stat> {
    // The command in field 2 may itself hold spaces and parentheses: the fields go on after the last one.
    let after = text.iter().rposition(|byte| *byte == b')')? + 2;
    let rest = std::str::from_utf8(text.get(after..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    Some(Stat { pid, state, parent, group, session, start })
}

/// The living ones.
fn all_processes() -> Vec<Stat> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers.filter_map(|entry| stat(entry.file_name().to_str()?.parse().ok()?)).filter(|stat| !stat.is_dead()).collect()
}

/// A variable as it was when the process started its program (/proc/PID/environ, proc(5)).
pub fn variable_of(pid: u32, name: &str) -> Option<Vec<u8>> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |entry: &[u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    environment.split(|byte| *byte == 0).find_map(value)
}

fn has_proc() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

/// Where there is no /proc, the number is all there is to ask.
fn answers(pid: u32) -> bool {
    number(pid).is_ok_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

fn number(pid: u32) -> io::Result<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn named(signal: i32) -> io::Result<Signal> {
    Signal::from_named_raw(signal).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stat_line_is_read_past_a_command_with_parentheses() {
        let line = b"42 (a) R (b)) S 7 40 39 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 2 3\n";
        let expected = Stat { pid: 42, state: b'S', parent: 7, group: 40, session: 39, start: 98765 };
        assert_eq!(parse_stat(42, line), Some(expected));
        for damaged in [&b""[..], b"42 (a", b"42 (a) S 7", b"42 (a) S x 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1"] {
            assert_eq!(parse_stat(42, damaged), None);
        }
    }

    #[test]
    fn this_process_is_alive_and_its_namesake_is_not() {
        let this = this_process();
        assert!(this.start > 0 && is_alive(this));
        assert!(!is_alive(ProcessId { start: this.start + 1, ..this }));
    }

    #[test]
    fn a_family_follows_parents_marks_and_the_groups_that_members_lead() {
        let relative = |pid, parent, group, session, mark: &str| Relative {
            stat: Stat { pid, state: b'S', parent, group, session, start: 0 },
            mark: (!mark.is_empty()).then(|| mark.into()),
        };
        let all = [
            relative(1, 0, 1, 1, ""),
            relative(10, 1, 10, 10, ""), // a shell script, which leads the group of everything that it starts
            relative(20, 1, 10, 10, ""), // the child, whose runner is gone
            relative(21, 20, 10, 10, "/runs/inner"),
            relative(30, 1, 10, 10, ""),  // a neighbour in the script's pipeline
            relative(22, 21, 22, 22, ""), // a grandchild in a session of its own
            relative(23, 1, 22, 22, ""),  // and one that it left behind there
            relative(40, 1, 40, 40, "/runs/outer"),
            relative(50, 1, 50, 50, "/runs/inner"),
            relative(60, 1, 60, 60, "/runs/another"),
        ];
        let mut marks = BTreeSet::from([b"/runs/outer".to_vec()]);
        assert_eq!(members(&all, BTreeSet::from([20]), &mut marks), BTreeSet::from([20, 21, 22, 23, 40, 50]));
        assert_eq!(marks.len(), 2);
        assert_eq!(members(&all, BTreeSet::new(), &mut BTreeSet::new()), BTreeSet::new());
    }
}
