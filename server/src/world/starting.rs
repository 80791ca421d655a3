//! Runs that the server starts, and how they are stopped. Closing the editor never ends a training.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cublame_core::mode::Mode;
use cublame_core::run::{ProcessId, Run, Watch};

use super::orders::{Refusal, Then};
use super::standing::KnownRun;
use super::{Editor, Event, Level, Progress, World};
use crate::error::Error;
use crate::os::processes;
use crate::repro::minimal;

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// None: what `cublame run` itself takes, the workspace's mode first.
    pub mode: Option<Mode>,
    /// The folder of the run whose failing call is to be taken out: then this is its command, to be run for that.
    pub reproduces: Option<PathBuf>,
    /// Under a debugger, which holds it at its failure where a person can answer.
    pub debug: bool,
    /// After how long a silence it is asked where it stands.
    pub hang_seconds: Option<u32>,
}

/// The children of this server that have not ended. They are not ended with it.
#[derive(Debug, Default)]
pub struct Children {
    last: u64,
    by_number: BTreeMap<u64, Child>,
}

#[derive(Debug, Clone, Copy)]
struct Child {
    process: ProcessId,
}

impl Start {
    /// The command line that runs it, by this very program.
    pub fn command(&self, cublame: &Path) -> Vec<String> {
        if let Some(run) = &self.reproduces {
            // The user has seen the command already.
            let words = ["repro", "--minimal", "--yes"].map(str::to_owned);
            return [cublame.display().to_string()]
                .into_iter()
                .chain(words)
                .chain([run.display().to_string()])
                .collect();
        }
        let subcommand = if self.debug { "debug" } else { "run" };
        let mut words = vec![cublame.display().to_string(), subcommand.to_owned()];
        if let Some(mode) = self.mode {
            words.extend(["--mode".to_owned(), mode.to_string()]);
        }
        if let (Some(seconds), false) = (self.hang_seconds, self.debug) {
            words.extend(["--hang-after".to_owned(), seconds.to_string()]);
        }
        words.push("--".to_owned());
        words.extend(self.argv.iter().cloned());
        words
    }
}

/// The first word of a command line that makes the rest of it run in a session of its own: a run that the server starts
/// is not of the editor's terminal, and no signal to the editor's group reaches it.
pub const IN_NEW_SESSION: &str = "in-new-session";

/// Becomes this program with these words, in a session of its own. It returns only when that cannot be done.
pub fn in_new_session(words: &[OsString]) -> Error {
    // A process that leads its group already is the only one refused, and that one is alone already.
    rustix::process::setsid().ok();
    match std::env::current_exe() {
        Ok(cublame) => {
            Error::internal("the run could not be started").because(Command::new(cublame).args(words).exec())
        }
        Err(failure) => Error::environment("the path of this program cannot be read").because(failure),
    }
}

impl<E: Editor> World<E> {
    /// Starts a run, in a terminal of the editor's where it has one. The number of the child, where it is ours.
    pub(super) fn start(&mut self, start: &Start) -> Result<Option<u64>, String> {
        let cublame = self.cublame.clone();
        let command = start.command(&cublame);
        if self.editor.run_in_terminal(&command, &start.cwd) {
            return Ok(None);
        }
        let failed = |error| format!("{} could not be started in {}: {error}", command.join(" "), start.cwd.display());
        // Its streams are in the run folder. A pipe to this process would break when the editor is closed.
        let mut child = tokio::process::Command::new(&cublame)
            .arg(IN_NEW_SESSION)
            .args(&command[1..])
            .current_dir(&start.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(false)
            .spawn()
            .map_err(failed)?;
        let process = processes::identify(child.id().unwrap_or_default());
        self.children.last += 1;
        let number = self.children.last;
        self.children.by_number.insert(number, Child { process });
        self.editor.progress(number, Progress::Begin(start.argv.join(" ")));
        let events = self.events.clone();
        let reproduces = start.reproduces.clone();
        tokio::spawn(async move {
            let ended = child.wait().await.map(|status| status.code());
            if let Some(run) = reproduces {
                let (failure, made) = reproduced(ended, &run);
                events.post(Event::ChildEnded { child: number, failure });
                if let Some(program) = made {
                    events.post(Event::Written { outcome: Ok(()), then: Then::Open(program) });
                }
                return;
            }
            let failure = match ended {
                Ok(Some(code @ 125..=127)) => Some(not_started(code)),
                Ok(_) => None,
                Err(error) => Some(format!("the run was lost sight of: {error}")),
            };
            events.post(Event::ChildEnded { child: number, failure });
        });
        Ok(Some(number))
    }

    pub(super) fn child_ended(&mut self, number: u64, failure: Option<String>) {
        self.children.by_number.remove(&number);
        self.editor.progress(number, Progress::End(failure.clone().unwrap_or_else(|| "ended".to_owned())));
        if let Some(failure) = failure {
            self.editor.tell(Level::Warning, failure);
        }
        self.look();
    }

    pub(super) fn stop_child(&mut self, number: u64) {
        if let Some(child) = self.children.by_number.get(&number)
            && let Err(failure) = stop(child.process)
        {
            self.editor.tell(Level::Warning, failure);
        }
    }

    /// Stops a run by its id, whoever started it; without an id the newest that runs.
    pub(super) fn stop_run(&mut self, id: Option<&str>) -> Result<String, Refusal> {
        let running = |run: &&KnownRun| run.outcome.is_running() && id.is_none_or(|id| run.run.id == id);
        let newest = self.known_runs().filter(running).max_by_key(|run| run.generation());
        let Some(run) = newest.map(|run| run.run.clone()) else {
            return Err(match id {
                Some(id) => self.refused("not-running", &[("run", id)]),
                None => self.refused("none-running", &[]),
            });
        };
        if run.host != processes::host_name() {
            return Err(self.refused("elsewhere", &[("run", &run.id), ("host", &run.host)]));
        }
        let Some(process) = watcher(&run) else { return Err(self.refused("no-watcher", &[("run", &run.id)])) };
        stop(process).map(|()| run.id).map_err(Refusal)
    }
}

/// The process to ask: the supervisor passes the signal on to its child.
fn watcher(run: &Run) -> Option<ProcessId> {
    match run.watch {
        Watch::Supervised => run.runner,
        Watch::Adopted => run.child,
    }
}

/// Sends SIGTERM, after a look whether the process is still the one that was meant.
fn stop(process: ProcessId) -> Result<(), String> {
    use rustix::process::{Pid, Signal, kill_process};

    if !processes::is_alive(process) {
        return Err(format!("process {} has ended already", process.pid));
    }
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let Some(pid) = pid else { return Err(format!("{} is no process", process.pid)) };
    kill_process(pid, Signal::TERM).map_err(|error| format!("process {} could not be stopped: {error}", process.pid))
}

/// What to say of a reproducer that was not made, and the program that was.
fn reproduced(ended: std::io::Result<Option<i32>>, run: &Path) -> (Option<String>, Option<PathBuf>) {
    match ended {
        Ok(Some(0)) => (None, Some(run.join("repro").join(minimal::PROGRAM))),
        _ => {
            let run = run.display();
            (Some(format!("the failing call could not be taken out: `cublame repro --minimal {run}` says why")), None)
        }
    }
}

/// The exit codes with which `cublame run` says that the child was never there.
fn not_started(code: i32) -> String {
    let why = match code {
        126 => "it is not executable",
        127 => "it was not found",
        _ => "cublame run could not start it",
    };
    format!("the program did not run: {why} (exit code {code})")
}
