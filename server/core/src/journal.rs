//! The launch journal read for blame: which of the launches can have failed.
//!
//! A successful synchronisation proves that what was launched before it is done, and completion markers that what
//! follows had not begun ([`unfinished`]). Of what is left, the assertion's kernel or the GPU core dump chooses. When every launch that is left was made from one line, that line is
//! proved; otherwise the lines are ranked and none is.

mod graphs;
pub mod live;
mod unfinished;

use std::collections::BTreeSet;

use cublame_journal::read::Frame;
use cublame_journal::{FrameState, GraphKind, Journal, Kind};

use crate::catalog::facts;
use crate::gpu_core::{GpuCore, Grid};
use crate::parse::AssertLine;
use crate::verdict::Certainty;
use graphs::Graphs;
use unfinished::{Window, unfinished};

/// What is known of the failure from elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'a> {
    /// A kind of the catalogue, such as `illegal-address`.
    pub kind: &'a str,
    pub asserts: &'a [AssertLine],
    /// The core dumps of this process.
    pub cores: &'a [GpuCore],
}

/// What the journal says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Narrowed {
    /// The launches that can have failed, one a line, best first. Empty when the journal has none.
    pub candidates: Vec<Candidate>,
    /// Of the first candidate.
    pub certainty: Option<Certainty>,
    pub because: Vec<Reason>,
    pub missing: Vec<Reason>,
    /// The Python stack of the call that returned the error first, outermost first.
    pub reported: Vec<Frame>,
    /// The grid of the core dump, where one was matched.
    pub grid: Option<Grid>,
}

/// A key of the catalogue's `because` texts, with its values.
pub type Reason = (&'static str, Vec<(&'static str, String)>);

#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Number of the call in the journal.
    pub number: u64,
    /// The Python stack that launched it, outermost first; for a node of a graph the stack that captured it.
    pub frames: Vec<Frame>,
    /// The demangled name; None for a copy, a memset, or a kernel whose name is not known.
    pub kernel: Option<String>,
    /// For a node of a graph: the stack of the replay.
    pub replay: Option<Vec<Frame>>,
    /// How many launches from this line can have failed.
    pub launches: usize,
}

/// How many candidates are worth showing.
pub const MOST: usize = 5;

/// Narrows the failure down. Pure, and linear in the calls of the journal.
pub fn narrow(journal: &Journal, question: &Question<'_>) -> Narrowed {
    let mut window = unfinished(journal);
    let graphs = Graphs::of(journal);
    let units = expand(journal, &mut window, &graphs);
    let mut narrowed = match question.cores.iter().find_map(GpuCore::faulted) {
        Some(grid) => by_core(journal, &window, &units, &graphs, grid),
        None => None,
    }
    .unwrap_or_else(|| by_elimination(journal, &window, &units, question));
    if !window.waiting.is_empty() && !narrowed.candidates.is_empty() {
        narrowed.because.push(("journal-marks", vec![]));
    }
    narrowed.reported = journal.first_error.as_ref().map(|error| journal.frames(error.stack)).unwrap_or_default();
    say_what_is_missing(journal, &window, &mut narrowed);
    narrowed
}

/// Something that may have run on the GPU: a kernel, a copy, or a node of a replayed graph.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unit {
    number: u64,
    /// 0 for what is no kernel, or not known.
    kernel: u32,
    stack: u32,
    replay: Option<u32>,
    grid: [u32; 3],
    block: [u32; 3],
    thread: u16,
    /// Known to be no kernel.
    copy: bool,
}

/// The unfinished calls with their graphs taken apart. A graph that was replayed many times from one place counts once.
fn expand(journal: &Journal, window: &mut Window, graphs: &Graphs<'_>) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut replayed = BTreeSet::new();
    for call in window.calls.iter().map(|index| &journal.calls[*index]) {
        let unit = Unit {
            number: call.number,
            kernel: call.kernel,
            stack: call.stack,
            replay: None,
            grid: call.grid,
            block: call.block,
            thread: call.thread,
            copy: !matches!(call.kind, Kind::Kernel | Kind::Cooperative | Kind::Graph),
        };
        match graphs.made(call) {
            Some(made) if replayed.insert((made, call.stack)) => {
                let nodes = graphs.nodes(made);
                window.whole &= nodes.complete;
                units.extend(nodes.rows.iter().map(|row| Unit {
                    kernel: row.kernel,
                    stack: row.stack,
                    replay: Some(call.stack),
                    grid: row.grid,
                    block: row.block,
                    copy: matches!(row.kind, GraphKind::CapturedOther | GraphKind::AddedOther),
                    ..unit
                }));
            }
            Some(_) => {}
            None => {
                // A graph that was made before the journal began, or by calls that are not known.
                window.whole &= call.kind != Kind::Graph;
                units.push(unit);
            }
        }
    }
    units
}

/// The launch that a core dump's grid is. None when the journal has no such launch.
fn by_core(journal: &Journal, window: &Window, units: &[Unit], graphs: &Graphs<'_>, grid: &Grid) -> Option<Narrowed> {
    // Newer drivers give the number of a thread of their own here; then it says nothing.
    let thread_known = journal.threads().any(|thread| thread.system_number == grid.host_thread);
    let of_grid = |unit: &&Unit| {
        let kernel = journal.kernel(unit.kernel);
        let same_function = kernel.is_some_and(|kernel| {
            kernel.handle == grid.function || (kernel.name.is_some() && kernel.name == grid.kernel)
        });
        let thread = journal.thread(unit.thread).map(|thread| thread.system_number);
        same_function
            && unit.grid == grid.grid
            && unit.block == grid.block
            && (unit.replay.is_some() || !thread_known || thread == Some(grid.host_thread))
    };
    let mut matching: Vec<Unit> = units.iter().filter(of_grid).copied().collect();
    let mut proved = window.whole && !grid.faults.is_empty();
    if matching.is_empty() {
        // The journal believes that it was done, or does not have it: never proof.
        proved = false;
        matching = all_kernels(journal, graphs).iter().filter(of_grid).copied().collect();
    }
    let ordinals = ordinals(journal);
    let distance = |unit: &Unit| {
        let ordinal = ordinals.binary_search(&unit.number).unwrap_or_else(|place| place) as u64 + 1;
        ordinal.abs_diff(grid.id)
    };
    matching.sort_by_key(|unit| (distance(unit), unit.number));
    let candidates = candidates(journal, &matching);
    let best = candidates.first()?;
    let exact = proved && candidates.len() == 1;
    let mut because = vec![(
        if exact { "core" } else { "core-nearest" },
        vec![
            ("number", best.number.to_string()),
            ("kernel", short(best.kernel.as_deref().or(grid.kernel.as_deref()).unwrap_or_default())),
            ("grid", dimensions(grid.grid)),
            ("block", dimensions(grid.block)),
            ("count", candidates.len().to_string()),
        ],
    )];
    if let Some(fault) = grid.faults.first() {
        let place = match fault.thread {
            Some(thread) => ("core-thread", vec![("block", dimensions(fault.block)), ("thread", dimensions(thread))]),
            None => ("core-block", vec![("block", dimensions(fault.block))]),
        };
        because.push(place);
        if let Some((file, line)) = &fault.source {
            because.push(("core-source", vec![("file", file.clone()), ("line", line.to_string())]));
        }
    }
    because.extend(replay_reason(best));
    let certainty = Some(if exact { Certainty::Exact } else { Certainty::Likely });
    Some(Narrowed { candidates, certainty, because, grid: Some(grid.clone()), ..Narrowed::default() })
}

/// Every kernel of the journal, finished or not.
fn all_kernels(journal: &Journal, graphs: &Graphs<'_>) -> Vec<Unit> {
    let indices = (0..journal.calls.len()).filter(|index| journal.calls[*index].kind.is_work()).collect();
    expand(journal, &mut Window { calls: indices, ..Window::default() }, graphs)
}

/// Numbers of the calls that launch a kernel, ascending: the place in it is near the driver's own number of the grid.
fn ordinals(journal: &Journal) -> Vec<u64> {
    journal
        .calls
        .iter()
        .filter(|call| matches!(call.kind, Kind::Kernel | Kind::Cooperative))
        .map(|call| call.number)
        .collect()
}

/// Without a core dump: what is left, and what the assertion chooses of it.
fn by_elimination(journal: &Journal, window: &Window, units: &[Unit], question: &Question<'_>) -> Narrowed {
    let carrier = question.asserts.first().filter(|_| question.kind == "device-assert").map(Carrier::of);
    let fit = |unit: &Unit| match &carrier {
        Some(_) if unit.copy => Fit::No,
        Some(carrier) => carrier.fit(journal.kernel(unit.kernel).and_then(|kernel| kernel.name.as_deref())),
        None => Fit::Maybe,
    };
    let mut chosen: Vec<Unit> = units.iter().filter(|unit| fit(unit) == Fit::Yes).copied().collect();
    let named = !chosen.is_empty();
    if chosen.is_empty() {
        chosen = units.iter().filter(|unit| fit(unit) == Fit::Maybe).copied().collect();
    }
    // A kernel without a name may be the one as well.
    let doubt = named
        && units.iter().any(|unit| {
            fit(unit) == Fit::Maybe && journal.kernel(unit.kernel).is_none_or(|kernel| kernel.name.is_none())
        });
    let sure = carrier.as_ref().is_none_or(|carrier| named && carrier.sure) && !doubt;
    rank(journal, &mut chosen);
    let candidates = candidates(journal, &chosen);
    let Some(best) = candidates.first() else {
        return Narrowed { because: vec![("journal-nothing-left", vec![])], ..Narrowed::default() };
    };
    let exact = window.whole && sure && candidates.len() == 1 && !best.frames.is_empty();
    let values = vec![
        ("number", best.number.to_string()),
        ("kernel", best.kernel.as_deref().map_or_else(|| "a copy or a memset".to_owned(), short)),
        ("count", units.len().to_string()),
        ("lines", candidates.len().to_string()),
    ];
    let key = match (candidates.len(), named, best.launches) {
        (1, true, _) => "journal-kernel",
        (1, false, 1) => "journal-only",
        (1, false, _) => "journal-one-line",
        (_, true, _) => "journal-kernel-lines",
        (_, false, _) => "journal-lines",
    };
    let mut because = vec![(key, values)];
    because.extend(replay_reason(best));
    let certainty = Some(if exact { Certainty::Exact } else { Certainty::Likely });
    Narrowed { candidates, certainty, because, ..Narrowed::default() }
}

/// Can a kernel carry the assertion that failed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Yes,
    Maybe,
    No,
}

/// What is known of the kernel that holds an assertion.
struct Carrier {
    /// Names of functions, one of which is in the mangled name of every kernel that holds the assertion.
    functions: Vec<String>,
    /// The functions are proof; otherwise they were guessed from the name of the file.
    sure: bool,
}

impl Carrier {
    fn of(line: &AssertLine) -> Carrier {
        let kernel = line.kernel.as_deref().unwrap_or("");
        if !kernel.is_empty() && !kernel.starts_with("operator()") {
            return Carrier { functions: vec![kernel.to_owned()], sure: true };
        }
        // A lambda has no name of its own; which functions enclose it is known of some assertions.
        let known = facts().assert(&line.condition, kernel).map(|known| known.functions.clone()).unwrap_or_default();
        if !known.is_empty() {
            return Carrier { functions: known, sure: true };
        }
        let stem = line.file.rsplit(['/', '\\']).next().unwrap_or("").split('.').next().unwrap_or("");
        Carrier { functions: vec![snake_case(stem.trim_end_matches("Kernel"))], sure: false }
    }

    fn fit(&self, name: Option<&str>) -> Fit {
        let Some(name) = name else { return Fit::Maybe };
        let carries = |function: &String| {
            // In a mangled name an identifier stands after its length.
            name == function
                || name.contains(&format!("{}{function}", function.len()))
                || (!self.sure && !function.is_empty() && name.contains(function.as_str()))
        };
        if self.functions.iter().any(carries) {
            Fit::Yes
        } else if self.sure {
            Fit::No
        } else {
            Fit::Maybe
        }
    }
}

/// `ScatterGather` is `scatter_gather`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Likely ones first: kernels that the user wrote before those of libraries, kernels before copies, then what the thread
/// that reported the error launched, then the order of the launches.
fn rank(journal: &Journal, units: &mut [Unit]) {
    let reporter = journal.first_error.as_ref().map(|error| error.thread);
    units.sort_by_key(|unit| {
        let name = journal.kernel(unit.kernel).and_then(|kernel| kernel.name.as_deref());
        (unit.copy, name.is_some_and(is_library), reporter.is_some_and(|thread| thread != unit.thread), unit.number)
    });
}

/// Kernels of PyTorch, of NVIDIA's libraries and of XLA: well tested, and called with whatever the user passes.
fn is_library(name: &str) -> bool {
    const MARKS: [&str; 14] = [
        "2at6native",
        "cutlass",
        "cudnn",
        "cublas",
        "gemm",
        "3cub",
        "6thrust",
        "nccl",
        "cufft",
        "cusparse",
        "cusolver",
        "at_cuda_detail",
        "loop_",
        "wgrad",
    ];
    MARKS.iter().any(|mark| name.contains(mark))
}

/// One entry for each line that launched any of them, in the order given. Two stacks are one line when every frame of
/// theirs is at the same line of the same file.
fn candidates(journal: &Journal, units: &[Unit]) -> Vec<Candidate> {
    let mut seen: Vec<(u32, Option<u32>, usize)> = Vec::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    for unit in units {
        if let Some((_, _, index)) = seen.iter().find(|(stack, _, _)| *stack == unit.stack) {
            if let Some(candidate) = candidates.get_mut(*index) {
                candidate.launches += 1;
            }
            continue;
        }
        let frames = journal.frames(unit.stack);
        let same = candidates.iter().position(|candidate| lines(&candidate.frames) == lines(&frames));
        seen.push((unit.stack, unit.replay, same.unwrap_or(candidates.len())));
        match same {
            Some(index) => candidates[index].launches += 1,
            None => candidates.push(Candidate {
                number: unit.number,
                frames,
                kernel: journal.kernel(unit.kernel).and_then(|kernel| kernel.name.as_deref()).map(demangle),
                replay: unit.replay.map(|stack| journal.frames(stack)),
                launches: 1,
            }),
        }
    }
    candidates
}

fn lines(frames: &[Frame]) -> Vec<(&str, u32)> {
    frames.iter().map(|frame| (frame.file.as_str(), frame.location.map_or(0, |location| location.line))).collect()
}

/// The C++ name without its parameters, or the name as it is.
pub fn demangle(name: &str) -> String {
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

/// A demangled name without its template arguments: `at::native::index_elementwise_kernel`.
pub fn short(name: &str) -> String {
    let mut depth = 0u32;
    name.chars()
        .filter(|character| {
            depth += u32::from(*character == '<');
            let outside = depth == 0;
            depth -= u32::from(*character == '>' && depth > 0);
            outside
        })
        .collect()
}

fn replay_reason(candidate: &Candidate) -> Option<Reason> {
    let frame = candidate.replay.as_ref()?.last()?;
    let line = frame.location.map_or(0, |location| location.line);
    Some(("journal-replay", vec![("file", frame.file.clone()), ("line", line.to_string())]))
}

fn say_what_is_missing(journal: &Journal, window: &Window, narrowed: &mut Narrowed) {
    match journal.frame_state {
        FrameState::Refused => narrowed.missing.push(("journal-frames-refused", vec![])),
        FrameState::Unsupported => {
            let version = format!("{}.{}", journal.python >> 8, journal.python & 0xff);
            narrowed.missing.push(("journal-frames-unsupported", vec![("version", version)]));
        }
        FrameState::None | FrameState::Plausible | FrameState::Verified => {}
    }
    if !window.whole {
        narrowed.missing.push(("journal-not-whole", vec![]));
    }
}

fn dimensions([x, y, z]: [u32; 3]) -> String {
    format!("{x},{y},{z}")
}

#[cfg(test)]
pub(crate) mod tests;
