//! What is written of each call: before the driver is called, and after it came back.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};

use cublame_journal::layout::flags;
use cublame_journal::write::{Call, Writer, pack_block, pack_grid};
use cublame_journal::{GraphKind, Kind, MarkState};

use crate::marks::Marks;
use crate::python::{self, StackCache};
use crate::{driver, memory, system};

/// A stream as it was passed, and whether the entry point takes 0 for the thread's own default stream.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    pub handle: u64,
    pub per_thread: bool,
}

/// What an entry point asks for.
#[derive(Debug, Clone, Copy)]
pub enum What {
    Launch {
        function: u64,
        grid: [u32; 3],
        block: [u32; 3],
        stream: Stream,
        kind: Kind,
        overlaps: bool,
    },
    /// Other work on a stream.
    Work {
        kind: Kind,
        stream: Stream,
        handle: u64,
    },
    SyncStream(Stream),
    /// 0: the current context.
    SyncContext(u64),
    SyncEvent(u64),
    /// A question whose success says as much as a synchronisation.
    AskStream(Stream),
    AskEvent(u64),
    RecordEvent {
        event: u64,
        stream: Stream,
        external: bool,
    },
    WaitEvent {
        event: u64,
        stream: Stream,
    },
    BeginCapture,
    EndCapture {
        stream: Stream,
        graph: *const u64,
    },
    /// A graph of which something became known once the call succeeded. `second` may point to what the call returns.
    Graph {
        kind: GraphKind,
        first: u64,
        second: u64,
        second_at: *const u64,
    },
    AddKernel {
        graph: u64,
        function: u64,
        grid: [u32; 3],
        block: [u32; 3],
    },
    DestroyStream(u64),
    /// A context goes, and with it what was registered in it.
    DestroyContext,
    /// A module goes: handles of its kernels may be given to others.
    Unload,
    /// Work that is not written down.
    Unseen,
    /// Only a sticky error is of interest.
    Watch,
}

impl What {
    /// Does it put work on the GPU?
    fn is_work(&self) -> bool {
        match self {
            What::Launch { .. } => true,
            What::Work { kind, .. } => kind.is_work(),
            _ => false,
        }
    }

    /// Is it worth a journal? A process that only asks the driver for its version gets none.
    fn begins(&self) -> bool {
        matches!(
            self,
            What::Launch { .. }
                | What::Work { .. }
                | What::RecordEvent { .. }
                | What::BeginCapture
                | What::Graph { .. }
                | What::AddKernel { .. }
        )
    }
}

/// What is remembered of a call while the driver runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ticket {
    number: u64,
    thread: u16,
    kernel: u32,
    stack: u32,
    reach: u32,
    /// The call went into the graph of this capture and not to the GPU.
    capture: Option<u64>,
}

/// Codes of CUresult after which every call of the context fails (cuda.h: "any further CUDA work will return the same
/// error"; the process must be ended).
const STICKY: [u32; 13] = [214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721];

const UNSTARTED: u8 = 0;
const STARTING: u8 = 1;
const ON: u8 = 2;
const OFF: u8 = 3;

static STATE: AtomicU8 = AtomicU8::new(UNSTARTED);
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(std::ptr::null_mut());
/// Raised in a forked child, whose threads must not write as the parent's.
static PROCESS: AtomicU32 = AtomicU32::new(0);

struct Recorder {
    writer: Writer,
    driver: driver::Helpers,
    marks: Marks,
    /// Captures under way. While there are none no stream is asked whether it captures.
    captures: AtomicUsize,
    /// Raised whenever a module is unloaded.
    generation: AtomicU64,
}

struct Thread {
    process: u32,
    /// Row of the thread table; None when it was full.
    row: Option<u16>,
    /// Inside the driver: what it calls back is not the program's.
    inside: bool,
    stacks: StackCache,
    /// Kernels launched lately, by handle and generation, with their rows; one that has a name is known to have it.
    kernels: [(u64, u64, u32); KERNELS_KEPT],
    /// The stream of the last call, by context and handle, with its row.
    stream: (u64, u64, u16),
}

const KERNELS_KEPT: usize = 64;

thread_local! {
    static THREAD: RefCell<Option<Box<Thread>>> = const { RefCell::new(None) };
}

/// Is there anything to record into? Asked once.
pub fn wanted() -> bool {
    static WANTED: AtomicU8 = AtomicU8::new(0);
    match WANTED.load(Relaxed) {
        0 => {
            let wanted = std::env::var_os(memory::VARIABLE).is_some_and(|value| !value.is_empty());
            WANTED.store(if wanted { 1 } else { 2 }, Relaxed);
            wanted
        }
        known => known == 1 && STATE.load(Relaxed) != OFF,
    }
}

/// Off for good.
pub fn stop() {
    STATE.store(OFF, Release);
    // SAFETY: it came from a box that is never freed.
    if let Some(recorder) = unsafe { RECORDER.load(Acquire).as_ref() } {
        recorder.writer.stop();
    }
}

/// Notes a call that is about to be made. None when it needs no second note.
pub fn before(what: &What) -> Option<Ticket> {
    guarded(what, |recorder| match with_thread(recorder, |thread| recorder.before(what, thread)) {
        Some(ticket) => ticket,
        // The thread is at its end, or the driver called us from within: the call goes by, and that is said.
        None => {
            if what.is_work() {
                recorder.writer.lose();
            }
            None
        }
    })
}

/// Notes the outcome of a call.
pub fn after(entry: &CStr, what: &What, ticket: Option<Ticket>, code: u32) {
    guarded(what, |recorder| with_thread(recorder, |thread| recorder.after(entry, what, ticket, code, thread)));
}

/// At the first look-up of the driver: the calling thread may hold the interpreter's lock here, and later ones may not.
pub fn meet_interpreter() {
    if let Some(interpreter) = python::interpreter() {
        interpreter.verify_if_locked(None);
    }
}

/// Runs `note` with the recorder. A panic ends the recording, not the program.
fn guarded<T>(what: &What, note: impl FnOnce(&'static Recorder) -> Option<T>) -> Option<T> {
    if STATE.load(Acquire) != ON && !(what.begins() && (start() || wait_for_start())) {
        return None;
    }
    // SAFETY: it came from a box that is never freed, and is there when the state is ON.
    let recorder = unsafe { RECORDER.load(Acquire).as_ref() }?;
    if MISSED.load(Relaxed) != 0 {
        (0..MISSED.swap(0, AcqRel)).for_each(|_| recorder.writer.lose());
    }
    catch_unwind(AssertUnwindSafe(|| note(recorder))).unwrap_or_else(|_| {
        stop();
        None
    })
}

/// The calling thread's own state. None while it is in use (the driver called us from within) or gone (the thread ends).
fn with_thread<T>(recorder: &Recorder, use_it: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    THREAD
        .try_with(|cell| {
            let mut slot = cell.try_borrow_mut().ok()?;
            let process = PROCESS.load(Relaxed);
            if slot.as_ref().is_none_or(|thread| thread.process != process) {
                let row = recorder.writer.thread(system::thread_number());
                *slot = Some(Box::new(Thread {
                    process,
                    row,
                    inside: false,
                    stacks: StackCache::new(),
                    kernels: [(0, 0, 0); KERNELS_KEPT],
                    stream: (0, 0, 0),
                }));
            }
            slot.as_deref_mut().map(use_it)
        })
        .ok()?
}

#[cold]
fn start() -> bool {
    if !wanted() || STATE.compare_exchange(UNSTARTED, STARTING, AcqRel, Acquire).is_err() {
        return false;
    }
    STARTER.store(system::thread_number(), Release);
    // A panic of ours is nobody's business: this library has a standard library of its own, so the hook is its own too.
    std::panic::set_hook(Box::new(|_| {}));
    let started = catch_unwind(|| {
        let writer = memory::claim()?;
        if let Some(interpreter) = python::interpreter() {
            writer.interpreter(interpreter.version(), interpreter.state());
        }
        let recorder = Recorder {
            writer,
            driver: driver::Helpers::find(),
            marks: Marks::new(),
            captures: AtomicUsize::new(0),
            generation: AtomicU64::new(0),
        };
        RECORDER.store(Box::into_raw(Box::new(recorder)), Release);
        Some(())
    });
    let started = matches!(started, Ok(Some(())));
    STARTER.store(0, Release);
    if started && PROCESS.load(Relaxed) == 0 {
        PROCESS.store(1, Relaxed);
        // SAFETY: registers a function that stays.
        unsafe { system::pthread_atfork(None, None, Some(forked)) };
    }
    STATE.store(if started { ON } else { OFF }, Release);
    started
}

/// Another thread lays the journal out, which takes some milliseconds: a launch that went by meanwhile would be missing.
/// The wait has an end, because that thread may need a lock of the loader's that this one holds.
#[cold]
fn wait_for_start() -> bool {
    let begin = system::nanoseconds(system::MONOTONIC);
    while STATE.load(Acquire) == STARTING && STARTER.load(Acquire) != system::thread_number() {
        if system::nanoseconds(system::MONOTONIC) - begin > LONGEST_START {
            MISSED.fetch_add(1, AcqRel);
            return false;
        }
        std::thread::yield_now();
    }
    STATE.load(Acquire) == ON
}

/// Nanoseconds.
const LONGEST_START: u64 = 2_000_000_000;
/// The thread that lays the journal out.
static STARTER: AtomicU32 = AtomicU32::new(0);
/// Calls that did not wait until the journal was there.
static MISSED: AtomicU32 = AtomicU32::new(0);

/// In a forked child: the journal is the parent's. The child claims its own if it uses the driver.
unsafe extern "C" fn forked() {
    RECORDER.store(std::ptr::null_mut(), Release);
    PROCESS.fetch_add(1, Relaxed);
    // The thread that was starting is not here, if one was.
    if matches!(STATE.load(Acquire), ON | STARTING) {
        STATE.store(UNSTARTED, Release);
    }
}

impl Recorder {
    fn before(&self, what: &What, thread: &mut Thread) -> Option<Ticket> {
        let writer = &self.writer;
        let (kind, stream, handle) = match *what {
            What::Launch { kind, stream, .. } => (kind, Some(stream), 0),
            What::Work { kind, stream, handle } => (kind, Some(stream), handle),
            What::SyncStream(stream) => (Kind::StreamSync, Some(stream), 0),
            What::SyncContext(context) => {
                (Kind::ContextSync, None, if context == 0 { self.driver.current_context() } else { context })
            }
            What::SyncEvent(event) => (Kind::EventSync, None, event),
            What::RecordEvent { event, stream, .. } => (Kind::EventRecord, Some(stream), event),
            What::WaitEvent { event, stream } => (Kind::StreamWait, Some(stream), event),
            // The order number is all that is needed: what was launched before the question.
            What::AskStream(stream) => (Kind::StreamSync, Some(stream), 0),
            What::AskEvent(event) => (Kind::EventSync, None, event),
            What::DestroyContext => {
                self.marks.stop();
                // Its streams go with it, and what they had not come to then is no sign of a fault later. After a fault
                // the markers have told what they can.
                if !writer.failed() {
                    writer.mark_state(MarkState::None);
                }
                return None;
            }
            What::EndCapture { stream, .. } => {
                return Some(Ticket { capture: self.capture_of(stream), ..Ticket::default() });
            }
            _ => return None,
        };
        let Some(row) = thread.row.filter(|_| !thread.inside) else {
            if kind.is_work() {
                writer.lose();
            }
            return None;
        };
        let question = matches!(what, What::AskStream(_) | What::AskEvent(_));
        let mut ticket = Ticket { thread: row, ..Ticket::default() };
        if !question {
            ticket.stack = python::interpreter().map_or(0, |python| python.stack(writer, &mut thread.stacks));
        }
        if let What::Launch { function, .. } = *what {
            ticket.kernel = self.kernel_row(function, thread);
        }
        thread.inside = true;
        if let Some(stream) = stream
            && let Some(capture) = self.capture_of(stream)
        {
            ticket.capture = Some(capture);
            return Some(ticket);
        }
        let adds = !kind.is_sync() || kind.is_work();
        let stream_row = stream.map_or(0, |stream| self.stream_row(stream, thread, adds));
        let time = system::nanoseconds(system::MONOTONIC);
        if let (Some(stream), true) = (stream, kind.is_work()) {
            let overlaps = matches!(*what, What::Launch { overlaps: true, .. });
            // A marker would end the overlap that the program asked for.
            let allowed = !overlaps && self.marks.may_precede(kind);
            self.mark(stream, stream_row, row, ticket.stack, time, allowed);
        }
        ticket.number = writer.enter(row);
        if kind.reaches() {
            ticket.reach = writer.reach(ticket.number, row);
        }
        // A question that is answered "not yet" leaves no trace: programs ask in loops.
        if !question {
            let (grid, block, overlaps) = match *what {
                What::Launch { grid: [x, y, z], block: [a, b, c], overlaps, .. } => {
                    (pack_grid(x, y, z), pack_block(a, b, c), overlaps)
                }
                _ => (handle, 0, false),
            };
            writer.record(
                ticket.number,
                &Call {
                    kind,
                    flags: if overlaps { flags::OVERLAPS } else { 0 },
                    time,
                    kernel: if kind.reaches() { ticket.reach } else { ticket.kernel },
                    stack: ticket.stack,
                    stream: stream_row,
                    thread: row,
                    grid,
                    block,
                },
            );
        }
        Some(ticket)
    }

    /// Separates the work that comes now from what another line or thread put into its stream before.
    fn mark(&self, stream: Stream, stream_row: u16, thread: u16, stack: u32, time: u64, allowed: bool) {
        let writer = &self.writer;
        let Some((last_thread, _)) = self.marks.step(stream_row, thread, stack) else { return };
        if writer.failed() {
            return;
        }
        // Nothing foreign goes into a stream while any capture is under way.
        let allowed = allowed && self.captures.load(Acquire) == 0;
        let row = if allowed { writer.mark_row(stream_row, thread) } else { 0 };
        let place = self.marks.place(row, time, writer, &self.driver);
        // Where none can be had, a change of thread is noted all the same: what the other thread had put into the queue.
        if place.is_none() && last_thread == thread {
            return;
        }
        let number = writer.enter(thread);
        let call = Call {
            kind: Kind::Mark,
            flags: 0,
            time,
            kernel: writer.reach(number, thread),
            stack: 0,
            stream: stream_row,
            thread,
            grid: if place.is_some() { row.into() } else { 0 },
            block: 0,
        };
        writer.record(number, &call);
        if let Some(place) = place {
            let handle = if stream.per_thread && stream.handle == 0 { PER_THREAD } else { stream.handle };
            let code = self.driver.write_value(handle, place, number);
            if code != 0 {
                writer.returned(number, code);
                self.marks.stop();
            }
        }
        writer.leave(thread);
    }

    fn after(&self, entry: &CStr, what: &What, ticket: Option<Ticket>, code: u32, thread: &mut Thread) -> Option<()> {
        let writer = &self.writer;
        if let Some(ticket) = ticket {
            thread.inside = false;
            if ticket.number != 0 {
                writer.leave(ticket.thread);
                self.note_result(what, ticket, code, thread);
            }
        }
        if code == 0 {
            self.note_success(what, ticket.unwrap_or_default(), thread);
        } else if STICKY.contains(&code) && !writer.failed() {
            // The newest call of any thread: the fault was there before this call came back.
            let newest = writer.newest();
            let stack = match ticket {
                Some(ticket) if ticket.stack != 0 => ticket.stack,
                _ => python::interpreter().map_or(0, |python| python.stack(writer, &mut thread.stacks)),
            };
            let time = system::nanoseconds(system::MONOTONIC);
            self.marks.keep(writer);
            writer.fail(code, newest, thread.row.unwrap_or(0), stack, entry.to_bytes(), time);
        }
        if matches!(what, What::EndCapture { .. }) {
            // The capture is over, whether it made a graph or not.
            let _ = self.captures.fetch_update(AcqRel, Acquire, |count| count.checked_sub(1));
        }
        Some(())
    }

    fn note_result(&self, what: &What, ticket: Ticket, code: u32, thread: &mut Thread) {
        let writer = &self.writer;
        let asked = match *what {
            What::AskStream(stream) => (Kind::StreamSync, self.stream_row(stream, thread, false), 0),
            What::AskEvent(event) => (Kind::EventSync, 0, event),
            What::Launch { .. } | What::Work { .. } if code == 0 => {
                if matches!(*what, What::Work { kind: Kind::BlockingCopy, .. }) {
                    writer.returned(ticket.number, code);
                }
                return;
            }
            _ => return writer.returned(ticket.number, code),
        };
        if code == 0 {
            let (kind, stream, grid) = asked;
            writer.record(
                ticket.number,
                &Call {
                    kind,
                    flags: 0,
                    time: system::nanoseconds(system::MONOTONIC),
                    kernel: ticket.reach,
                    stack: 0,
                    stream,
                    thread: ticket.thread,
                    grid,
                    block: 0,
                },
            );
            writer.returned(ticket.number, 0);
        }
    }

    fn note_success(&self, what: &What, ticket: Ticket, thread: &mut Thread) {
        let writer = &self.writer;
        match *what {
            What::Launch { function, grid: [x, y, z], block: [a, b, c], .. } => {
                if writer.is_unnamed(ticket.kernel) {
                    writer.name_kernel(ticket.kernel, self.driver.name_of(function));
                }
                if let Some(capture) = ticket.capture {
                    let (grid, block) = (pack_grid(x, y, z), pack_block(a, b, c));
                    writer.graph(GraphKind::CapturedKernel, capture, 0, ticket.kernel, ticket.stack, grid, block);
                }
            }
            What::Work { kind, .. } => {
                if let Some(capture) = ticket.capture {
                    writer.graph(GraphKind::CapturedOther, capture, kind as u64, 0, ticket.stack, 0, 0);
                }
            }
            What::RecordEvent { event, external: true, .. } => self.note_graph(GraphKind::Event, event, 0),
            What::BeginCapture => {
                self.captures.fetch_add(1, AcqRel);
            }
            What::EndCapture { graph, .. } => {
                // SAFETY: the call succeeded, so it wrote the graph.
                let graph = unsafe { graph.as_ref() }.copied().unwrap_or(0);
                if let (Some(capture), true) = (ticket.capture, graph != 0) {
                    self.note_graph(GraphKind::Captured, capture, graph);
                    self.count_nodes(graph);
                }
            }
            What::Graph { kind, first, second, second_at } => {
                // SAFETY: null, or where the call that succeeded wrote its result.
                let second = unsafe { second_at.as_ref() }.copied().unwrap_or(second);
                self.note_graph(kind, first, second);
                if kind == GraphKind::Instantiated {
                    self.count_nodes(first);
                }
            }
            What::AddKernel { graph, function, grid: [x, y, z], block: [a, b, c] } => {
                let kernel = writer.kernel(function, self.generation.load(Relaxed));
                if writer.is_unnamed(kernel) {
                    writer.name_kernel(kernel, self.driver.name_of(function));
                }
                let stack = python::interpreter().map_or(0, |python| python.stack(writer, &mut thread.stacks));
                let (grid, block) = (pack_grid(x, y, z), pack_block(a, b, c));
                writer.graph(GraphKind::AddedKernel, graph, 0, kernel, stack, grid, block);
            }
            What::Unseen => writer.lose(),
            What::DestroyStream(handle) => writer.retire_stream(handle),
            What::Unload => {
                self.generation.fetch_add(1, Relaxed);
            }
            _ => {}
        }
    }

    fn note_graph(&self, kind: GraphKind, first: u64, second: u64) {
        self.writer.graph(kind, first, second, 0, 0, 0, 0);
    }

    fn count_nodes(&self, graph: u64) {
        if let Some(count) = self.driver.count_nodes(graph) {
            self.note_graph(GraphKind::Nodes, graph, count);
        }
    }

    /// The capture that a stream takes part in. The streams that cannot capture are not asked: that would be an error.
    fn capture_of(&self, stream: Stream) -> Option<u64> {
        let handle = if stream.per_thread && stream.handle == 0 { PER_THREAD } else { stream.handle };
        if self.captures.load(Acquire) == 0 || handle == 0 || handle == LEGACY {
            return None;
        }
        self.driver.capture_of(handle)
    }

    fn kernel_row(&self, function: u64, thread: &mut Thread) -> u32 {
        let generation = self.generation.load(Relaxed);
        // Handles are addresses of objects of some hundred bytes.
        let kept = &mut thread.kernels[(function >> 6) as usize % KERNELS_KEPT];
        if (kept.0, kept.1) != (function, generation) || kept.2 == 0 {
            *kept = (function, generation, self.writer.kernel(function, generation));
        }
        kept.2
    }

    /// The row of a stream; without `adds`, 0 for one that was never given work.
    fn stream_row(&self, stream: Stream, thread: &mut Thread, adds: bool) -> u16 {
        let handle = match stream.handle {
            0 if stream.per_thread => PER_THREAD,
            LEGACY => 0,
            handle => handle,
        };
        // Each thread has its own of these.
        let handle = if handle == PER_THREAD { PER_THREAD | u64::from(thread.row.unwrap_or(0)) << 32 } else { handle };
        let context = self.driver.current_context();
        let retired = self.writer.is_retired(thread.stream.2);
        if (thread.stream.0, thread.stream.1) != (context, handle) || thread.stream.2 == 0 || retired {
            thread.stream = (context, handle, self.writer.stream(context, handle, adds));
        }
        thread.stream.2
    }
}

/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD of cuda.h.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// A text of the driver's, as bytes.
///
/// # Safety
/// Null or a text that lives on.
pub unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if text.is_null() { b"" } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}
