//! The GPUs of a run, sampled beside it: a ring of records, `telemetry.jsonl` at its end.
//!
//! A thread of the supervisor asks NVML twice a second. The child is not touched, and a machine without NVML has no thread.

mod nvml;

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cublame_core::telemetry::Record;

use crate::os::files;

/// The file in the run folder.
pub const TELEMETRY: &str = "telemetry.jsonl";

/// The sampling of a run.
#[derive(Debug)]
pub struct Telemetry {
    stop: mpsc::Sender<()>,
    stopped: mpsc::Receiver<()>,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    gpus: Vec<Record>,
    ring: VecDeque<Record>,
    processes_at_start: Vec<Record>,
    /// As they were listed last while the child ran: what it held is gone once it has ended.
    processes: Vec<Record>,
}

/// Twice a second.
const INTERVAL: Duration = Duration::from_millis(500);
/// Of samples and reports of the driver: an hour of one GPU.
const MOST: usize = 7200;
/// Every so many samples the processes on the GPUs are listed.
const PROCESSES_EVERY: u32 = 8;

/// How long a GPU that does not answer may hold up the end of a run.
const PATIENCE: Duration = Duration::from_millis(200);

impl Telemetry {
    /// Starts to sample the GPUs that the child sees. `visible` is its CUDA_VISIBLE_DEVICES. None without a thread.
    pub fn start(visible: Option<String>) -> Option<Self> {
        let (stop, asked) = mpsc::channel();
        let (done, stopped) = mpsc::channel();
        let kept = Arc::<Mutex<Kept>>::default();
        let keep = Arc::clone(&kept);
        let sampling = move || {
            nvml::with_gpus(visible.as_deref(), |gpus| sample(gpus, &asked, &keep));
            drop(done);
        };
        thread::Builder::new().name("telemetry".to_owned()).spawn(sampling).ok()?;
        Some(Self { stop, stopped, kept })
    }

    /// All that was recorded, in the order of time; empty where there is no GPU to ask.
    ///
    /// A short program may have ended before NVML was even loaded, and a lost GPU may never answer: neither is waited for.
    pub fn finish(self) -> Vec<Record> {
        // The thread may have ended on its own.
        self.stop.send(()).ok();
        let has_begun = !self.lock().gpus.is_empty();
        if has_begun {
            self.stopped.recv_timeout(PATIENCE).ok();
        }
        let Kept { gpus, ring, processes_at_start, processes } = std::mem::take(&mut *self.lock());
        gpus.into_iter().chain(processes_at_start).chain(ring).chain(processes).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Samples until it is told to stop, and asks once more then: the driver reports a fault about when the child ends.
fn sample(gpus: &nvml::Gpus<'_>, asked: &mpsc::Receiver<()>, kept: &Mutex<Kept>) {
    // What takes time is asked for before the lock is taken.
    let keep = |change: &dyn Fn(&mut Kept)| change(&mut kept.lock().unwrap_or_else(PoisonError::into_inner));
    let described = gpus.described();
    keep(&|kept| kept.gpus.clone_from(&described));
    for number in 0_u32.. {
        if number.is_multiple_of(PROCESSES_EVERY) {
            let listed = gpus.processes(now());
            let at_start = number == 0;
            keep(&|kept| if at_start { &mut kept.processes_at_start } else { &mut kept.processes }.clone_from(&listed));
        }
        let found: Vec<Record> = gpus.sample(now()).into_iter().chain(gpus.reported(now())).collect();
        keep(&|kept| {
            kept.ring.extend(found.iter().cloned());
            let over = kept.ring.len().saturating_sub(MOST);
            kept.ring.drain(..over);
        });
        if !matches!(asked.recv_timeout(INTERVAL), Err(RecvTimeoutError::Timeout)) {
            let reported = gpus.reported(now());
            return keep(&|kept| kept.ring.extend(reported.iter().cloned()));
        }
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Writes the records of a run that has any.
pub fn write(run: &Path, records: &[Record]) -> io::Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
    let text = lines.map_err(io::Error::other)?.join("\n") + "\n";
    let aside = run.join(format!(".{TELEMETRY}.{}", std::process::id()));
    fs::write(&aside, text)?;
    fs::rename(aside, run.join(TELEMETRY))
}

/// The records of a run folder. A damaged line is left out: it is of a sample among many.
pub fn read(run: &Path) -> Vec<Record> {
    const LARGEST: u64 = 16 << 20;
    let text = files::read_beneath(run, &[TELEMETRY], LARGEST).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
