//! The failures in some evidence: tracebacks of the text and events of the hook, brought to one shape, each with its kind.

use super::user_code::Spot;
use crate::catalog::facts;
use crate::catalog::facts::{Kind, Reporting, UNRECOGNISED};
use crate::event::{self, HeldMemory, What as EventWhat};
use crate::evidence::{Crash, Evidence, ProcessEvents, TracedProcess};
use crate::hang::{self, Hang, Standing};
use crate::log::Log;
use crate::parse::{self, Chain, Findings, Level, Relation, Summary, What, cuda_error};
use crate::run::Exit;
use crate::source::Sources;
use crate::verdict::CudaError;

/// One failure as one source of evidence tells it.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: &'static Kind,
    pub error: Option<CudaError>,
    /// Innermost cause first; a line outside of any traceback is one link without frames.
    pub links: Vec<Link>,
    /// The link that the kind was read from.
    pub root: usize,
    pub rank: Option<u32>,
    /// Index into `Log::lines`, where the text tells of it.
    pub line: Option<usize>,
    /// The thread that raised it, None for the main one as far as is known.
    pub thread: Option<String>,
    /// When it was raised, in Unix seconds, where the hook told.
    pub time: Option<f64>,
    /// TORCHELASTIC_RESTART_COUNT of its process.
    pub restart: u32,
    pub told: Told,
    /// The program said itself that it goes on, or only warned.
    pub survived: bool,
    /// The Python hook recorded it: with columns and absolute paths.
    pub hook: bool,
    /// CUDA_LAUNCH_BLOCKING as its process had it at the start, where the hook told.
    pub launch_blocking: Option<String>,
    /// What held the memory when it ran out, where the hook recorded it.
    pub held: Option<HeldMemory>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Link {
    pub type_name: String,
    pub message: String,
    pub spots: Vec<Spot>,
    pub relation: Option<Relation>,
}

/// How the evidence tells of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A traceback, or its last line.
    Exception,
    /// The same from an object that was torn down, after the end.
    Finalizer,
    /// A line, without a traceback.
    Line,
    /// A GPU core dump, or an error that a call returned to the program and that the program did not print.
    Driver,
    /// The stack of a process that died by a signal.
    Stack,
    /// A launcher's account of its children.
    Launcher,
    Sanitizer,
    /// Nothing but the exit status.
    Exit,
    /// Where a process stood when its run was silent.
    Hang,
}

impl Default for Failure {
    fn default() -> Self {
        of_links(Vec::new(), Told::Line)
    }
}

impl Failure {
    /// The deepest frame of the user's own code.
    pub fn reported(&self, sources: &Sources) -> Option<&Spot> {
        self.spots(sources).iter().rev().find(|spot| spot.is_user(sources))
    }

    /// The frames of the link that the kind was read from, or of the nearest other that has one of the user's.
    pub fn spots(&self, sources: &Sources) -> &[Spot] {
        self.telling(sources).map_or(&[], |link| &link.spots)
    }

    /// Is the reported place in a trace that did not itself run into the failure? A parent shows where its worker's
    /// exception arrived. A cause's own trace begins where it was caught, so the trace of the exception that followed
    /// is the same stack when it holds that function too.
    pub fn is_told_by_another(&self, sources: &Sources) -> bool {
        let (Some(root), Some(telling)) = (self.link(), self.telling(sources)) else { return false };
        let caught_in = root.spots.first().map(|spot| (&spot.file, &spot.function));
        let same_stack = telling.spots.iter().any(|spot| Some((&spot.file, &spot.function)) == caught_in);
        !std::ptr::eq(root, telling) && (root.relation == Some(Relation::Carried) || !same_stack)
    }

    fn telling(&self, sources: &Sources) -> Option<&Link> {
        let after = self.links.get(self.root..).unwrap_or_default();
        let before = self.links.get(..self.root).unwrap_or_default();
        let with_user = after.iter().chain(before).find(|link| link.spots.iter().any(|spot| spot.is_user(sources)));
        with_user.or(self.link())
    }

    pub fn link(&self) -> Option<&Link> {
        self.links.get(self.root)
    }

    /// `Type: message`
    pub fn headline(&self) -> String {
        self.link().map(Link::headline).unwrap_or_default()
    }

    /// How far from a root cause: 0 a failure that the catalogue knows, 1 any other, 2 one that the program survived,
    /// 3 what usually only follows from another.
    pub fn weight(&self) -> u8 {
        let follows = self.kind.follows
            || matches!(self.told, Told::Finalizer | Told::Launcher)
            || self.is_interruption()
            || self.is_stack_alone();
        match self {
            // Who waits has not failed, and what ends a run that hangs only follows.
            _ if self.told == Told::Hang => 2,
            _ if follows => 3,
            _ if self.survived => 2,
            _ if self.kind.id == UNRECOGNISED && self.error.is_none() => 1,
            _ if self.told == Told::Line && self.kind.reporting == Reporting::Synchronous => 1,
            _ => 0,
        }
    }

    /// Frames whose exception was cut off, or stands elsewhere in a report: they tell a place and no failure.
    pub fn is_stack_alone(&self) -> bool {
        let aborted = self.told == Told::Stack && self.kind.id == UNRECOGNISED;
        aborted || (self.told == Told::Exception && self.headline().is_empty())
    }

    /// An exception that says that somebody else ended this process, or a peer is gone.
    fn is_interruption(&self) -> bool {
        let name = self.link().map_or("", |link| link.type_name.as_str());
        let name = name.rsplit('.').next().unwrap_or(name);
        matches!(
            name,
            "KeyboardInterrupt"
                | "BrokenPipeError"
                | "ConnectionResetError"
                | "EOFError"
                | "SystemExit"
                | "CancelledError"
                // torchrun was asked to end (torch/distributed/elastic/multiprocessing/api.py).
                | "SignalException"
        )
    }
}

impl Link {
    pub fn headline(&self) -> String {
        match (self.type_name.is_empty(), self.message.is_empty()) {
            (true, _) => self.message.clone(),
            (false, true) => self.type_name.clone(),
            (false, false) => format!("{}: {}", self.type_name, self.message),
        }
    }
}

/// All failures, in the order in which they happened as far as the evidence tells.
pub fn failures(evidence: &Evidence, findings: &Findings) -> Vec<Failure> {
    let mut failures: Vec<Failure> = findings.found.iter().filter_map(of_finding).collect();
    for process in &evidence.processes {
        for failure in of_process(process) {
            merge(&mut failures, failure);
        }
    }
    failures.extend(evidence.crashes.iter().flat_map(|crash| of_crash(crash, &evidence.processes)));
    if let Some(failure) = evidence.elastic.as_deref().and_then(of_elastic) {
        let account = failures.iter().find(|failure| failure.told == Told::Launcher && failure.rank.is_some());
        let rank = account.and_then(|account| account.rank);
        match failures.iter_mut().find(|known| same_exception(known, &failure)) {
            Some(known) => known.rank = known.rank.or(rank),
            None => failures.push(Failure { rank, ..failure }),
        }
    }
    failures.sort_by_key(|failure| failure.restart);
    order_by_time(&mut failures);
    // A dump ends the process before any exception, and a program may swallow an error: then only the driver tells.
    if failures.iter().all(|failure| failure.weight() > 0) {
        failures.extend(evidence.traced.iter().filter_map(of_traced));
    }
    if let Some(hang) = &evidence.hang {
        failures.extend(of_hang(hang, evidence));
    }
    if failures.iter().all(|failure| failure.weight() == 3)
        && let Some(failure) = evidence.exit.and_then(of_exit)
    {
        failures.insert(0, failure);
    }
    failures
}

fn of_finding(finding: &parse::Finding) -> Option<Failure> {
    let noted = finding.level.is_some_and(|level| level < Level::Error);
    let mut failure = match &finding.what {
        What::Exception(chain) => of_chain(chain),
        What::Message(text) => of_line(text, false),
        What::Warning(text) => of_line(text, true),
        What::Stack { reason, frames } => of_stack(reason, frames),
        What::Summary(summary) => of_summary(summary)?,
        What::Sanitizer(fault) => of_fault(fault),
        What::Assert(_) | What::ForwardTrace { .. } => return None,
    };
    failure.line = Some(finding.line);
    failure.rank = finding.rank.or(failure.rank);
    failure.survived |= noted;
    Some(failure)
}

fn of_chain(chain: &Chain) -> Failure {
    let links = chain.links.iter().map(|link| Link {
        type_name: link.type_name.clone(),
        message: link.message.clone(),
        spots: link.frames.iter().map(Spot::of_text).collect(),
        relation: link.relation,
    });
    let told = if chain.finalizer { Told::Finalizer } else { Told::Exception };
    Failure { thread: chain.thread.clone(), ..of_links(links.collect(), told) }
}

/// The first link that the catalogue knows is the root; of unknown ones the last, which the interpreter shows last,
/// but for one that was carried from another process.
fn of_links(links: Vec<Link>, told: Told) -> Failure {
    let known: Vec<Option<(&'static Kind, Option<CudaError>)>> =
        links.iter().map(|link| classify(&link.headline())).collect();
    let first =
        |follows: bool| known.iter().position(|known| known.as_ref().is_some_and(|(kind, _)| kind.follows == follows));
    let carried = links.iter().position(|link| matches!(link.relation, Some(Relation::Carried | Relation::Group)));
    let root = first(false).or_else(|| first(true)).or(carried).unwrap_or(links.len().saturating_sub(1));
    let (kind, error) = known.into_iter().nth(root).flatten().unwrap_or_else(|| (facts().kind(UNRECOGNISED), None));
    Failure {
        kind,
        error,
        links,
        root,
        line: None,
        rank: None,
        thread: None,
        time: None,
        restart: 0,
        told,
        survived: false,
        hook: false,
        launch_blocking: None,
        held: None,
    }
}

fn of_line(text: &str, survived: bool) -> Failure {
    let link = Link { message: text.to_owned(), ..Link::default() };
    let caught = text.to_ascii_lowercase().contains("caught error");
    let mut failure = Failure { survived: survived || caught, ..of_links(vec![link], Told::Line) };
    // torchrun's own line: `failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: python`
    let ended = text.split_once("failed (exitcode: ").and_then(|(_, rest)| rest.split(')').next()?.trim().parse().ok());
    if let Some(exit_code) = ended {
        failure.told = Told::Launcher;
        failure.kind = facts().kind(kind_of_exit(exit_code));
    }
    failure
}

fn of_stack(reason: &str, frames: &[parse::Frame]) -> Failure {
    let link = Link {
        type_name: "Fatal Python error".to_owned(),
        message: reason.to_owned(),
        spots: frames.iter().map(Spot::of_text).collect(),
        relation: None,
    };
    of_links(vec![link], Told::Stack)
}

/// A forked child writes into the file of its parent, so one file may tell of several processes.
fn of_crash(crash: &Crash, processes: &[ProcessEvents]) -> Vec<Failure> {
    let process = processes.iter().find(|process| process.pid == crash.pid);
    let rank = process.and_then(ProcessEvents::rank);
    let restart = process.map_or(0, ProcessEvents::restart);
    let stacks =
        parse::parse(&Log::from_text(&crash.text)).found.into_iter().filter_map(|finding| match finding.what {
            What::Stack { reason, frames } => Some(Failure { rank, restart, ..of_stack(&reason, &frames) }),
            _ => None,
        });
    stacks.collect()
}

/// Those whose moment is known, in the places that they have among the others. Ranks write into one stream in any order.
fn order_by_time(failures: &mut [Failure]) {
    let timed = |failure: &Failure| failure.time.is_some();
    let mut ordered: Vec<Failure> = failures.iter().filter(|failure| timed(failure)).cloned().collect();
    ordered.sort_by(|a, b| {
        a.restart.cmp(&b.restart).then(a.time.unwrap_or_default().total_cmp(&b.time.unwrap_or_default()))
    });
    for (place, failure) in failures.iter_mut().filter(|failure| timed(failure)).zip(ordered) {
        *place = failure;
    }
}

/// The exception in torch elastic's error file, with its traceback as text (torch/distributed/elastic/multiprocessing/errors).
fn of_elastic(text: &str) -> Option<Failure> {
    let file: serde_json::Value = serde_json::from_str(text).ok()?;
    let stack = file.pointer("/message/extraInfo/py_callstack")?.as_str()?;
    parse::parse(&Log::from_text(stack)).found.iter().rev().find_map(|finding| match &finding.what {
        What::Exception(chain) => Some(of_chain(chain)),
        _ => None,
    })
}

fn of_summary(summary: &Summary) -> Option<Failure> {
    let root = summary.failures.first()?;
    let message = root.traceback.clone().unwrap_or_default();
    let link = Link { type_name: "ChildFailedError".to_owned(), message, ..Link::default() };
    let mut failure = of_links(vec![link], Told::Launcher);
    failure.kind = facts().kind(root.exit_code.map_or("child-failed", kind_of_exit));
    failure.rank = root.rank;
    Some(failure)
}

/// What a launcher tells of a worker by its exit code: a worker that got SIGKILL was killed by the host, nearly always
/// for its memory.
fn kind_of_exit(exit_code: i32) -> &'static str {
    match exit_code {
        -9 | 137 => "oom-host",
        -11 | 139 => "segfault",
        -7 | 135 => "shm-exhausted",
        _ => "child-failed",
    }
}

fn of_fault(fault: &parse::Fault) -> Failure {
    let link = Link {
        message: fault.what.clone(),
        spots: fault.frames.iter().map(Spot::of_text).collect(),
        ..Link::default()
    };
    let mut failure = of_links(vec![link], Told::Sanitizer);
    failure.kind = facts().kind(if fault.misaligned { "misaligned-address" } else { "illegal-address" });
    failure.error = failure.kind.errors.first().map(|error| error.named(&error.name));
    failure
}

/// What an exit status alone tells: signals that a host sends.
fn of_exit(exit: Exit) -> Option<Failure> {
    let signal = exit.signal.or_else(|| exit.code.filter(|code| (129..160).contains(code)).map(|code| code - 128))?;
    let kind = match signal {
        9 => "oom-host",
        11 => "segfault",
        7 => "shm-exhausted",
        _ => return None,
    };
    let mut failure = of_links(vec![Link::default()], Told::Exit);
    failure.kind = facts().kind(kind);
    Some(failure)
}

/// What the driver said of a process: in its core dump, or as the first error that any call returned.
fn of_traced(process: &TracedProcess) -> Option<Failure> {
    let kind = match process.cores.first() {
        Some(core) => facts().kind(core.kind()),
        None => facts().error_coded(process.journal.first_error.as_ref()?.code)?.kind,
    };
    let error = kind.errors.first()?;
    let link = Link { message: format!("CUDA error: {}", error.text), ..Link::default() };
    let named = Some(error.named(&error.name));
    Some(Failure { kind, error: named, ..of_links(vec![link], Told::Driver) })
}

/// Where each rank stood, the one that the others wait for first. Without ranks the processes that stand in the user's code.
fn of_hang(hang: &Hang, evidence: &Evidence) -> Vec<Failure> {
    let process = |pid: u32| evidence.processes.iter().find(|process| process.pid == pid);
    let rank = |standing: &Standing| process(standing.pid).and_then(ProcessEvents::rank);
    let any_rank = hang.processes.iter().any(|standing| rank(standing).is_some());
    let mut standing: Vec<(Option<u32>, Vec<parse::Frame>)> = hang
        .processes
        .iter()
        .filter(|standing| !any_rank || rank(standing).is_some())
        .map(|standing| (rank(standing), standing.frames()))
        .filter(|(_, frames)| !frames.is_empty())
        .collect();
    standing.sort_by_key(|(rank, _)| *rank);
    let collectives: Vec<Option<String>> =
        standing.iter().map(|(_, frames)| hang::collective(frames).map(str::to_owned)).collect();
    if let Some(odd) = hang::odd_one_out(&collectives) {
        standing[..=odd].rotate_right(1);
    }
    let blocking = evidence.run.as_ref().is_some_and(|run| run.blocking);
    let kind = match () {
        () if collectives.iter().any(Option::is_some) => "nccl-timeout",
        () if blocking => "blocking-hang",
        () => "hang",
    };
    let failure = |(rank, frames): (Option<u32>, Vec<parse::Frame>)| {
        let link = Link { spots: frames.iter().map(Spot::of_text).collect(), ..Link::default() };
        Failure { kind: facts().kind(kind), rank, ..of_links(vec![link], Told::Hang) }
    };
    standing.into_iter().map(failure).collect()
}

fn of_process(process: &ProcessEvents) -> Vec<Failure> {
    let mut start = event::Start::default();
    let mut failures = Vec::new();
    for (index, event) in process.events.iter().enumerate() {
        match &event.what {
            EventWhat::Start(found) => start = found.clone(),
            EventWhat::Exception(exception) => {
                let links = exception.chain.iter().map(|link| Link {
                    type_name: link.type_name.clone(),
                    message: link.message.clone(),
                    spots: link
                        .frames
                        .iter()
                        .map(|frame| Spot::of_event(frame, exception.cells.get(&frame.file)))
                        .collect(),
                    relation: match link.relation.as_deref() {
                        Some("cause") => Some(Relation::Cause),
                        Some("context") => Some(Relation::Context),
                        Some("group") => Some(Relation::Group),
                        _ => None,
                    },
                });
                let told = if exception.hook == "unraisable" { Told::Finalizer } else { Told::Exception };
                let mut failure = of_links(carried(links.collect()), told);
                failure.hook = true;
                failure.time = Some(event.time);
                failure.thread = Some(exception.thread.clone()).filter(|_| !exception.main_thread);
                failure.rank = exception.rank.or(start.rank);
                failure.restart = start.restart.unwrap_or(0);
                failure.launch_blocking.clone_from(&start.launch_blocking);
                failure.held.clone_from(&exception.memory);
                // In a notebook people see their everyday mistakes, and mend them, at once.
                let everyday = failure.kind.id == UNRECOGNISED && failure.error.is_none();
                if exception.hook != "ipython" || !(everyday || ran_well_later(exception, &process.events[index..])) {
                    failures.push(failure);
                }
            }
            EventWhat::Cell(_) | EventWhat::Exit(_) => {}
        }
    }
    failures
}

fn ran_well_later(exception: &event::Exception, later: &[event::Event]) -> bool {
    let Some(id) = exception.running_cell().and_then(|cell| cell.id.as_ref()) else { return false };
    later.iter().any(|event| matches!(&event.what, EventWhat::Cell(cell) if cell.id.as_ref() == Some(id)))
}

/// A worker's traceback rides in its parent's message; the hook sees only the message, so it is read like a text.
fn carried(links: Vec<Link>) -> Vec<Link> {
    let mut all = Vec::with_capacity(links.len());
    for mut link in links {
        let nested = link.message.find("Traceback (most recent call last)");
        let line = nested.map(|at| link.message[..at].rfind('\n').map_or(0, |end| end + 1));
        if let Some(line) = line.filter(|line| *line > 0) {
            let log = Log::from_text(&link.message[line..]);
            for finding in parse::parse(&log).found {
                if let What::Exception(chain) = finding.what {
                    let mut inner = of_chain(&chain).links;
                    if let Some(last) = inner.last_mut() {
                        last.relation = Some(Relation::Carried);
                    }
                    all.append(&mut inner);
                }
            }
            link.message.truncate(line);
            link.message.truncate(link.message.trim_end().len());
        }
        all.push(link);
    }
    all
}

/// The same failure in the text and in the hook's events is one: the hook's places, the text's position and rank.
fn merge(failures: &mut Vec<Failure>, mut event: Failure) {
    let twin = failures.iter_mut().find(|text| {
        text.told == Told::Exception
            && !text.hook
            && (text.rank == event.rank || text.rank.is_none() || event.rank.is_none())
            && same_exception(text, &event)
    });
    match twin {
        Some(text) => {
            event.rank = event.rank.or(text.rank);
            event.survived = text.survived;
            event.line = text.line;
            *text = event;
        }
        None => failures.push(event),
    }
}

fn same_exception(text: &Failure, event: &Failure) -> bool {
    let (Some(left), Some(right)) = (text.link(), event.link()) else { return false };
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let first = |message: &str| message.lines().next().unwrap_or("").trim().to_owned();
    let spot = |link: &Link| link.spots.last().map(|spot| spot.line);
    last(&left.type_name) == last(&right.type_name)
        && first(&left.message) == first(&right.message)
        && (left.spots.is_empty() || right.spots.is_empty() || spot(left) == spot(right))
}

/// The kind of an exception or a line by its words, and the CUDA error that it spells.
fn classify(text: &str) -> Option<(&'static Kind, Option<CudaError>)> {
    let error = cuda_error::find(text);
    if let Some(kind) = facts().kind_worded(text) {
        return Some((kind, error.map(|found| found.error)));
    }
    error.map(|found| (facts().kind(found.kind), Some(found.error)))
}
