//! Processes as the system knows them.

use std::fs;

use cublame_core::run::ProcessId;

/// This machine's name, as a run records it.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
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
        Some(stat) => stat.start == process.start && !matches!(stat.state, b'Z' | b'X'),
        None => process.start == 0 && !has_proc() && answers(process.pid),
    }
}

/// What this product reads of /proc/PID/stat (proc(5)).
struct Stat {
    state: u8,
    /// Field 22: clock ticks since boot.
    start: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command in field 2 may itself hold spaces and parentheses: the fields go on after the last one.
    let after = text.iter().rposition(|byte| *byte == b')')? + 2;
    let rest = std::str::from_utf8(text.get(after..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let start = fields.nth(18)?.parse().ok()?;
    Some(Stat { state, start })
}

fn has_proc() -> bool {
    fs::exists("/proc/self/stat").unwrap_or(false)
}

/// Where there is no /proc, the number is all there is to ask.
fn answers(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}
