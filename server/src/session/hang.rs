//! A run that is silent for a while is asked for the stacks of its Python processes, and goes on.
//!
//! The hook has faulthandler write them at SIGSTKFLT, which Linux defines for a coprocessor that it never had: neither the
//! kernel nor people nor schedulers send it. Only a process of this run that has the hook's file, and that catches the signal
//! now, is sent it: a program that was started in the place of a Python interpreter would die of it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cublame_core::hang::{Hang, Standing};
use cublame_core::run::ProcessId;

use super::folder::{EVENTS, LARGEST_FILE};
use crate::os::{files, processes, signals};

/// Watches a run until it is dropped.
pub struct HangWatch {
    stop: mpsc::Sender<()>,
    retired: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HangWatch {
    /// `progress` grows with the run's output. `tell` is told of a hang, again when a silent run stands elsewhere, and None
    /// when something came.
    pub fn start(
        after: Duration,
        run: PathBuf,
        child: ProcessId,
        progress: impl Fn() -> u64 + Send + 'static,
        tell: impl Fn(Option<Hang>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let glance = (after / 4).clamp(Duration::from_millis(50), Duration::from_secs(1));
        let retired = Arc::<AtomicBool>::default();
        let is_retired = Arc::clone(&retired);
        let watch = move || {
            let said = || progress() + size_of_events(&run);
            let (mut last, mut since) = (said(), Instant::now());
            let (mut asked, mut told): (Instant, Option<Vec<Standing>>) = (since, None);
            while stopped.recv_timeout(glance) == Err(RecvTimeoutError::Timeout) {
                if is_retired.load(Ordering::SeqCst) {
                    return;
                }
                let now = said();
                if now != last {
                    (last, since) = (now, Instant::now());
                    asked = since;
                    if told.take().is_some() {
                        tell(None);
                    }
                } else if asked.elapsed() >= after {
                    let processes = ask(&run, child);
                    asked = Instant::now();
                    if told.as_ref() != Some(&processes) && !is_retired.load(Ordering::SeqCst) {
                        told = Some(processes.clone());
                        tell(Some(Hang { silent: since.elapsed().as_secs(), processes }));
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("hang".to_owned()).spawn(watch)?;
        Ok(Self { stop, retired, thread: Some(thread) })
    }

    /// The run is being ended: what comes from now on says nothing of whether it hung.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
    }
}

impl Drop for HangWatch {
    fn drop(&mut self) {
        self.stop.send(()).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn size_of_events(run: &Path) -> u64 {
    let names = files::names_beneath(run, &[EVENTS]).unwrap_or_default();
    let events = names.iter().filter(|name| name.as_bytes().ends_with(b".jsonl"));
    events.filter_map(|name| run.join(EVENTS).join(name).symlink_metadata().ok()).map(|file| file.len()).sum()
}

/// How long a process may take to answer. One that is stuck in the kernel does not.
const PATIENCE: Duration = Duration::from_secs(1);

/// The hook's file of a process is written to in one go; so long without growth, it has been.
const SETTLED: Duration = Duration::from_millis(40);

/// One after the other: a forked child writes into the file of its parent.
fn ask(run: &Path, child: ProcessId) -> Vec<Standing> {
    let mut marks = BTreeSet::from([run.as_os_str().as_bytes().to_vec()]);
    let family = processes::family("CUBLAME_RUN", &mut marks, Some(child));
    let names = files::names_beneath(run, &[EVENTS]).unwrap_or_default();
    let mut standing = Vec::new();
    for process in family {
        let start = format!("{}-", process.pid);
        let of_process = |name: &&str| name.starts_with(&start) && name.ends_with(".fault");
        let Some(name) = names.iter().filter_map(|name| name.to_str()).find(of_process) else { continue };
        if !catches(process.pid, signals::ASK_FOR_STACKS) {
            continue;
        }
        let read = || files::read_beneath(run, &[EVENTS, name], LARGEST_FILE).unwrap_or_default();
        let before = read().len();
        if processes::signal_exactly(process, signals::ASK_FOR_STACKS).is_err() {
            continue;
        }
        let (begin, mut grown) = (Instant::now(), (Instant::now(), before));
        let mut answer = Vec::new();
        while begin.elapsed() < PATIENCE && (answer.is_empty() || grown.0.elapsed() < SETTLED) {
            thread::sleep(SETTLED / 4);
            let now = read();
            if now.len() != grown.1 {
                grown = (Instant::now(), now.len());
                answer = now.get(before..).unwrap_or_default().to_vec();
            }
        }
        standing.push(Standing { pid: process.pid, stacks: String::from_utf8_lossy(&answer).into_owned() });
    }
    standing
}

/// Has the process a handler for this signal? exec(2) takes handlers away.
fn catches(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    caught.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
