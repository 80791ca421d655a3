//! Signals to this process, and who sent them.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH, SIGXFSZ};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;

pub use signal_hook::consts::signal::{SIGCHLD as CHILD_CHANGED, SIGWINCH as WINDOW_CHANGED};
pub use signal_hook::consts::signal::{SIGCONT, SIGKILL, SIGSTOP, SIGTERM};

/// SIGSTKFLT of Linux (signal(7)): the hook has Python write its stacks at it.
pub const ASK_FOR_STACKS: i32 = 16;

/// What a supervisor hears instead of dying or stopping of it.
pub struct Signals {
    inner: SignalsInfo<WithOrigin>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    pub signal: i32,
    pub sender: Sender,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A terminal's Ctrl-C, Ctrl-\, Ctrl-Z or hang-up: the kernel sends it to the whole foreground group, once each.
    Kernel,
    /// `kill` and its like; 0 when the sender is outside this process's pid namespace.
    Process(i32),
}

impl Signals {
    /// Starts to listen. A signal that was ignored when this process started stays ignored, for the child as well:
    /// a handler of ours would be reset to the default action by exec (execve(2)), and nohup would lose its effect.
    pub fn listen() -> io::Result<Self> {
        let ignored = ignored_signals();
        let wanted = LISTENED.into_iter().filter(|signal| *signal == SIGCHLD || ignored & (1 << (signal - 1)) == 0);
        Ok(Self { inner: SignalsInfo::new(wanted)? })
    }

    /// Blocks until there is at least one.
    pub fn wait(&mut self) -> Vec<Received> {
        self.inner.wait().map(|origin| received(&origin)).collect()
    }

    pub fn pending(&mut self) -> Vec<Received> {
        self.inner.pending().map(|origin| received(&origin)).collect()
    }
}

/// Stops this process as Ctrl-Z would have, and returns when it was continued.
pub fn stop_this_process() {
    // Raising SIGSTOP fails for no valid reason, and without it the run only goes on in the foreground.
    signal_hook::low_level::raise(SIGSTOP).ok();
}

/// Survives what ends ordinary processes: for a guardian that must outlive its neighbours.
pub fn shrug_off_termination() -> io::Result<Signals> {
    Ok(Signals { inner: SignalsInfo::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])? })
}

/// From now on a file size limit (ulimit -f) fails our writes, as a full disk does, and does not kill us (setrlimit(2)).
pub fn survive_file_size_limits() {
    if ignored_signals() & (1 << (SIGXFSZ - 1)) == 0 {
        // Without the handler only the limit's usual effect comes back.
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).ok();
    }
}

const LISTENED: [i32; 9] = [SIGCHLD, SIGWINCH, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2];

/// Does a process that is told this tell it on?
pub fn is_forwarded(signal: i32) -> bool {
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2].contains(&signal)
}

/// Does it ask to end?
pub fn is_termination(signal: i32) -> bool {
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(&signal)
}

fn received(origin: &signal_hook::low_level::siginfo::Origin) -> Received {
    let sender = origin.process.map_or(Sender::Kernel, |process| Sender::Process(process.pid));
    Received { signal: origin.signal, sender }
}

/// The mask SigIgn of /proc/self/status (proc(5)); where there is none, nothing is known to be ignored.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
