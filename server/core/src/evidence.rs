//! Everything that was observed of a failure, whatever it came from. A new source is one field here and one parser.

use std::collections::BTreeSet;

use cublame_journal::Journal;

use crate::event::{Cell, DEBUGGER, Event, What};
use crate::gpu_core::GpuCore;
use crate::hang::Hang;
use crate::run::{Exit, Run};

/// What `blame` reads. Every field may be empty: a verdict says what was missing.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What the child printed, or a log of any origin.
    pub log: Option<crate::log::Log>,
    /// The hook's events, one entry a process, in the order of their first event.
    pub processes: Vec<ProcessEvents>,
    /// What Python's faulthandler wrote as a process died by a signal, one entry a process.
    pub crashes: Vec<Crash>,
    /// The run, when there was one; None for a pasted log.
    pub run: Option<Run>,
    pub exit: Option<Exit>,
    /// The log is of a run with CUDA_LAUNCH_BLOCKING=1 in force: said by the user, or put there by the runner itself.
    pub blocking: bool,
    /// What torchrun wrote of the worker that failed first, as it is (TORCHELASTIC_ERROR_FILE).
    pub elastic: Option<String>,
    /// The run was silent, and its processes were asked where they stand.
    pub hang: Option<Hang>,
    /// What the tracer saw, one entry a process that used the GPU.
    pub traced: Vec<TracedProcess>,
    /// What the GPUs did, as the supervisor sampled it.
    pub telemetry: Vec<crate::telemetry::Record>,
    /// What could not be read, as whole sentences, such as "2 damaged lines in events/12.jsonl were left out".
    pub unread: Vec<String>,
}

/// A larger number is damage.
const LARGEST_WORLD: u32 = 1 << 20;

/// The launches of one process, and the core dumps of its GPUs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TracedProcess {
    pub journal: Journal,
    pub cores: Vec<GpuCore>,
}

/// The stacks of one process at the signal that ended it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crash {
    pub pid: u32,
    /// `Fatal Python error: Segmentation fault` and the stack of each thread, most recent call first.
    pub text: String,
}

/// The events of one process, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessEvents {
    pub pid: u32,
    pub events: Vec<Event>,
}

impl Evidence {
    /// The cells of notebooks that ran, or that exceptions came through.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.processes.iter().flat_map(ProcessEvents::cells).map(|(_, cell)| cell)
    }

    /// The ranks that should have written events and did not; none where it is not known how many there are.
    pub fn silent_ranks(&self) -> Vec<u32> {
        let starts = self.processes.iter().flat_map(|process| &process.events).filter_map(|event| match &event.what {
            What::Start(start) => start.world_size,
            What::Exception(_) | What::Cell(_) | What::Exit(_) => None,
        });
        let told: BTreeSet<u32> = self.processes.iter().filter_map(ProcessEvents::rank).collect();
        let world = starts.max().unwrap_or(0).min(LARGEST_WORLD);
        if told.is_empty() { Vec::new() } else { (0..world).filter(|rank| !told.contains(rank)).collect() }
    }

    /// The cell whose code goes by this name; of one that ran more than once the last time.
    pub fn cell_in(&self, file: &str) -> Option<&Cell> {
        let cells = self.processes.iter().flat_map(ProcessEvents::cells);
        cells.filter(|(name, _)| *name == file).last().map(|(_, cell)| cell)
    }
}

impl ProcessEvents {
    /// The cells that ran, or that exceptions came through, each with the name of its code.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &Cell)> {
        self.events.iter().flat_map(|event| {
            let (failed, ran) = match &event.what {
                What::Exception(exception) => (Some(&exception.cells), None),
                What::Cell(cell) => (None, cell.file.as_deref().map(|file| (file, cell))),
                What::Start(_) | What::Exit(_) => (None, None),
            };
            failed.into_iter().flatten().map(|(file, cell)| (file.as_str(), cell)).chain(ran)
        })
    }

    /// Does it run a notebook?
    pub fn is_notebook(&self) -> bool {
        self.events.iter().any(|event| match &event.what {
            What::Exception(exception) => exception.hook == "ipython",
            What::Cell(_) => true,
            What::Start(_) | What::Exit(_) => false,
        })
    }

    /// The rank that any of the events tells.
    pub fn rank(&self) -> Option<u32> {
        self.events.iter().find_map(|event| match &event.what {
            What::Start(start) => start.rank,
            What::Exception(exception) => exception.rank,
            What::Cell(_) | What::Exit(_) => None,
        })
    }

    /// Does a debugger hold it at an exception?
    pub fn is_held(&self) -> bool {
        let held = |event: &Event| matches!(&event.what, What::Exception(exception) if exception.hook == DEBUGGER);
        self.events.iter().any(held)
    }

    /// TORCHELASTIC_RESTART_COUNT as the process had it at its start.
    pub fn restart(&self) -> u32 {
        self.events
            .iter()
            .find_map(|event| match &event.what {
                What::Start(start) => start.restart,
                _ => None,
            })
            .unwrap_or(0)
    }
}
