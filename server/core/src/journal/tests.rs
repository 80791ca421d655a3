use std::sync::atomic::AtomicU64;

use cublame_journal::layout::flags;
use cublame_journal::write::{CodeKey, CodeText, pack_block, pack_grid};
use cublame_journal::{MarkState, Shape, Writer, write};

use super::*;
use crate::gpu_core::{Exception, Fault};

/// A journal in the making. Streams are `0x50`, `0x60`, ... of one context; lines are line numbers of `model.py`.
pub(crate) struct Story {
    words: &'static [AtomicU64],
    writer: Writer,
    main: u16,
    other: u16,
}

const CONTEXT: u64 = 0xc0;
pub(crate) const A: u64 = 0x50;
const B: u64 = 0x60;

impl Story {
    pub(crate) fn new() -> Story {
        Story::of(Shape { rows: [256, 256, 256, 4096, 256, 64, 64, 256, 64] })
    }

    fn of(shape: Shape) -> Story {
        let words: &'static [AtomicU64] = Box::leak((0..shape.words()).map(|_| AtomicU64::new(0)).collect());
        let writer = Writer::on(words, shape, 77, 1, 2).unwrap();
        writer.interpreter(0x30c, FrameState::Verified);
        let (main, other) = (writer.thread(77).unwrap(), writer.thread(78).unwrap());
        Story { words, writer, main, other }
    }

    /// A stack of one frame at a line of `model.py`.
    fn at(&self, line: u32) -> u32 {
        let table = [0x80 | 13 << 3, 0];
        let text =
            CodeText { file: b"/home/dev/proj/model.py", name: b"forward", line_table: &table, first_line: line };
        let code = self.writer.code(CodeKey { address: u64::from(line), identity: 0 }, || text);
        self.writer.stack(0, code, 0)
    }

    /// A launch from a stack of `FILE`, first line and line, outermost first.
    pub(crate) fn launch_from(&self, frames: &[(&str, u32, u32)], kernel: &str) -> u64 {
        let stack = frames.iter().fold(0, |parent, (file, first_line, line)| {
            // A location without columns, so many lines after the first.
            let table = [0x80 | 13 << 3, ((line - first_line) << 1) as u8];
            let text = CodeText { file: file.as_bytes(), name: b"net", line_table: &table, first_line: *first_line };
            let key = CodeKey { address: u64::from(first_line * 1000 + line), identity: file.len() as u64 };
            let code = self.writer.code(key, || text);
            self.writer.stack(parent, code, 0)
        });
        let number = self.writer.enter(self.main);
        self.writer.record(
            number,
            &write::Call {
                kind: Kind::Kernel,
                flags: 0,
                time: number,
                kernel: self.kernel(kernel),
                stack,
                stream: self.writer.stream(CONTEXT, A, true),
                thread: self.main,
                grid: pack_grid(4, 1, 1),
                block: pack_block(64, 1, 1),
            },
        );
        self.writer.leave(self.main);
        number
    }

    fn kernel(&self, name: &str) -> u32 {
        let handle = name.bytes().fold(7u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        let kernel = self.writer.kernel(handle, 0);
        self.writer.name_kernel(kernel, name.as_bytes());
        kernel
    }

    fn call(&self, kind: Kind, thread: u16, stream: u64, line: u32, kernel: u32, handle: u64) -> u64 {
        let number = self.writer.enter(thread);
        let launch = matches!(kind, Kind::Kernel | Kind::Cooperative);
        self.writer.record(
            number,
            &write::Call {
                kind,
                flags: 0,
                time: number,
                kernel: if kind.reaches() { self.writer.reach(number, thread) } else { kernel },
                stack: self.at(line),
                stream: if stream == 0 { 0 } else { self.writer.stream(CONTEXT, stream, true) },
                thread,
                grid: if launch { pack_grid(4, 1, 1) } else { handle },
                block: if launch { pack_block(64, 1, 1) } else { 0 },
            },
        );
        self.writer.leave(thread);
        if kind.is_sync() {
            self.writer.returned(number, 0);
        }
        number
    }

    pub(crate) fn launch(&self, stream: u64, line: u32, kernel: &str) -> u64 {
        self.call(Kind::Kernel, self.main, stream, line, self.kernel(kernel), 0)
    }

    /// A completion marker that arrived or not, as the tracer puts it before the next work of the stream.
    fn mark(&self, thread: u16, stream: u64, arrived: bool) {
        let row = self.writer.mark_row(self.writer.stream(CONTEXT, stream, true), thread);
        self.writer.mark_state(MarkState::Direct);
        let number = self.call(Kind::Mark, thread, stream, 98, 0, row.into());
        if arrived {
            self.writer.mark_words()[row as usize * 8].store(number, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// As [`Story::mark`], by the main thread.
    pub(crate) fn marked(&self, stream: u64, arrived: bool) {
        self.mark(self.main, stream, arrived);
    }

    pub(crate) fn synchronized(&self, stream: u64) {
        self.sync(stream);
    }

    fn sync(&self, stream: u64) {
        self.call(Kind::StreamSync, self.main, stream, 99, 0, 0);
    }

    pub(crate) fn fails(&self, code: u32) {
        self.writer.fail(code, self.writer.newest(), self.main, self.at(100), b"cuStreamSynchronize", 0);
    }

    pub(crate) fn journal(&self) -> Journal {
        let bytes: Vec<u8> =
            self.words.iter().flat_map(|word| word.load(std::sync::atomic::Ordering::Relaxed).to_ne_bytes()).collect();
        cublame_journal::read(&bytes).unwrap()
    }
}

/// The line of each candidate, and the certainty of the first.
fn told(story: &Story, question: &Question<'_>) -> (Vec<u32>, Option<Certainty>) {
    let narrowed = narrow(&story.journal(), question);
    let line = |candidate: &Candidate| {
        candidate.frames.last().and_then(|frame| frame.location).map_or(0, |location| location.line)
    };
    (narrowed.candidates.iter().map(line).collect(), narrowed.certainty)
}

fn illegal() -> Question<'static> {
    Question { kind: "illegal-address", ..Question::default() }
}

fn assertion(kernel: &str, file: &str, condition: &str) -> Vec<AssertLine> {
    vec![AssertLine {
        file: file.into(),
        line: 16,
        kernel: Some(kernel.into()),
        condition: condition.into(),
        count: 1,
        ..AssertLine::default()
    }]
}

#[test]
fn what_was_synchronised_cannot_have_failed() {
    let story = Story::new();
    story.launch(A, 1, "_Z4goodv");
    story.sync(A);
    story.launch(A, 2, "_Z3badv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![2], Some(Certainty::Exact)));
}

#[test]
fn several_lines_that_are_left_are_never_exact() {
    let story = Story::new();
    story.launch(A, 1, "_Z4goodv");
    story.launch(A, 2, "_Z3badv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1, 2], Some(Certainty::Likely)));
}

#[test]
fn markers_prove_a_line_from_both_sides() {
    let story = Story::new();
    story.launch(A, 1, "_Z4goodv");
    story.mark(story.main, A, true);
    story.launch(A, 2, "_Z3badv");
    story.mark(story.main, A, false);
    story.launch(A, 3, "_Z5laterv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![2], Some(Certainty::Exact)));
    let narrowed = narrow(&story.journal(), &illegal());
    assert_eq!(narrowed.because[1], ("journal-marks", vec![]));
}

#[test]
fn markers_that_are_not_told_prove_nothing() {
    let story = Story::new();
    story.launch(A, 1, "_Z4goodv");
    story.mark(story.main, A, false);
    story.launch(A, 2, "_Z3badv");
    story.fails(700);
    for state in [MarkState::None, MarkState::Aside] {
        story.writer.mark_state(state);
        assert_eq!(told(&story, &illegal()).0, [1, 2]);
    }
    story.writer.mark_state(MarkState::Copied);
    assert_eq!(told(&story, &illegal()), (vec![1], Some(Certainty::Exact)));
}

#[test]
fn a_marker_that_the_driver_refused_proves_nothing() {
    let story = Story::new();
    story.launch(A, 1, "_Z4goodv");
    story.mark(story.main, A, false);
    story.writer.returned(story.writer.newest(), 801);
    story.launch(A, 2, "_Z3badv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1, 2], Some(Certainty::Likely)));
}

#[test]
fn what_another_thread_launches_behind_a_marker_may_have_been_there_before_it() {
    let story = Story::new();
    story.launch(A, 1, "_Z3badv");
    story.mark(story.main, A, false);
    story.launch(A, 2, "_Z5laterv");
    // The other thread says nothing of what was in the queue before its launch.
    story.call(Kind::Kernel, story.other, A, 3, story.kernel("_Z5otherv"), 0);
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1, 3], Some(Certainty::Likely)));
    // With a marker of its own it does, whether that was written or only noted.
    let story = Story::new();
    story.launch(A, 1, "_Z3badv");
    story.mark(story.main, A, false);
    story.launch(A, 2, "_Z5laterv");
    story.call(Kind::Mark, story.other, A, 98, 0, 0);
    story.call(Kind::Kernel, story.other, A, 3, story.kernel("_Z5otherv"), 0);
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1], Some(Certainty::Exact)));
}

#[test]
fn what_waits_for_an_event_behind_a_marker_has_not_begun() {
    let story = Story::new();
    story.launch(A, 1, "_Z3badv");
    story.mark(story.main, A, false);
    story.launch(A, 2, "_Z5laterv");
    story.call(Kind::EventRecord, story.main, A, 98, 0, 0xe1);
    story.launch(B, 3, "_Z6beforev");
    story.call(Kind::StreamWait, story.main, B, 98, 0, 0xe1);
    story.launch(B, 4, "_Z5afterv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1, 3], Some(Certainty::Likely)));
}

#[test]
fn a_synchronisation_that_succeeded_outweighs_a_marker() {
    let story = Story::new();
    story.launch(A, 1, "_Z4goodv");
    story.mark(story.main, A, false);
    story.launch(A, 2, "_Z4goodv");
    story.sync(A);
    story.launch(A, 3, "_Z3badv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![3], Some(Certainty::Exact)));
}

#[test]
fn many_launches_from_one_line_prove_the_line() {
    let story = Story::new();
    for _ in 0..50 {
        story.launch(A, 3, "_Z3badv");
    }
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![3], Some(Certainty::Exact)));
}

#[test]
fn another_stream_stays_suspect() {
    let story = Story::new();
    story.launch(B, 1, "_Z3onBv");
    story.launch(A, 2, "_Z3onAv");
    story.sync(A);
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1], Some(Certainty::Exact)));
}

#[test]
fn a_failed_synchronisation_proves_nothing() {
    let story = Story::new();
    story.launch(A, 1, "_Z3badv");
    let number = story.writer.enter(story.main);
    story.writer.record(
        number,
        &write::Call {
            kind: Kind::StreamSync,
            flags: 0,
            time: 0,
            kernel: 0,
            stack: story.at(99),
            stream: story.writer.stream(CONTEXT, A, true),
            thread: story.main,
            grid: 0,
            block: 0,
        },
    );
    story.writer.leave(story.main);
    story.writer.returned(number, 700);
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1], Some(Certainty::Exact)));
}

#[test]
fn a_launch_still_in_the_driver_is_not_covered() {
    let story = Story::new();
    // The other thread has its number but has not come back when the first one begins to wait.
    let number = story.writer.enter(story.other);
    story.writer.record(
        number,
        &write::Call {
            kind: Kind::Kernel,
            flags: 0,
            time: 0,
            kernel: story.kernel("_Z4latev"),
            stack: story.at(7),
            stream: story.writer.stream(CONTEXT, A, true),
            thread: story.other,
            grid: pack_grid(4, 1, 1),
            block: pack_block(64, 1, 1),
        },
    );
    story.sync(A);
    story.writer.leave(story.other);
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![7], Some(Certainty::Exact)));
}

#[test]
fn an_event_covers_what_its_stream_had_and_no_more() {
    let story = Story::new();
    story.launch(A, 1, "_Z4donev");
    story.call(Kind::EventRecord, story.main, A, 90, 0, 0xe1);
    story.launch(A, 2, "_Z4leftv");
    story.call(Kind::EventSync, story.main, 0, 91, 0, 0xe1);
    story.fails(700);
    assert_eq!(told(&story, &illegal()).0, [2]);
}

#[test]
fn waiting_for_an_event_carries_the_proof_to_another_stream() {
    let story = Story::new();
    story.launch(A, 1, "_Z4donev");
    story.call(Kind::EventRecord, story.main, A, 90, 0, 0xe1);
    story.call(Kind::StreamWait, story.main, B, 91, 0, 0xe1);
    story.launch(B, 2, "_Z4donev");
    story.sync(B);
    story.launch(A, 3, "_Z3badv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![3], Some(Certainty::Exact)));
}

#[test]
fn an_event_that_a_graph_records_proves_nothing() {
    let story = Story::new();
    story.writer.graph(GraphKind::Event, 0xe1, 0, 0, 0, 0, 0);
    story.launch(A, 1, "_Z4donev");
    story.call(Kind::EventRecord, story.main, A, 90, 0, 0xe1);
    story.call(Kind::EventSync, story.main, 0, 91, 0, 0xe1);
    story.launch(A, 2, "_Z3badv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1, 2], Some(Certainty::Likely)));
}

#[test]
fn the_context_covers_its_own_streams_only() {
    let story = Story::new();
    story.launch(A, 1, "_Z1av");
    story.launch(B, 2, "_Z1bv");
    story.call(Kind::ContextSync, story.main, 0, 90, 0, CONTEXT + 1);
    assert_eq!(told(&story, &illegal()).0, [1, 2]);
    story.call(Kind::ContextSync, story.main, 0, 90, 0, CONTEXT);
    assert_eq!(told(&story, &illegal()), (vec![], None));
}

#[test]
fn the_assertion_names_its_kernel() {
    let story = Story::new();
    story.launch(A, 1, "_Z5otherv");
    story.launch(A, 2, "_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_");
    story.launch(A, 3, "_Z5thirdv");
    story.fails(710);
    let asserts = assertion("vectorized_gather_kernel", "IndexKernelUtils.cu", "ind >=0");
    let question = Question { kind: "device-assert", asserts: &asserts, ..Question::default() };
    assert_eq!(told(&story, &question), (vec![2], Some(Certainty::Exact)));
}

#[test]
fn the_assertion_of_a_kernel_launched_from_two_lines_is_not_exact() {
    let story = Story::new();
    for line in [1, 2] {
        story.launch(A, line, "_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_");
    }
    story.fails(710);
    let asserts = assertion("vectorized_gather_kernel", "IndexKernelUtils.cu", "ind >=0");
    let question = Question { kind: "device-assert", asserts: &asserts, ..Question::default() };
    assert_eq!(told(&story, &question), (vec![1, 2], Some(Certainty::Likely)));
}

#[test]
fn a_lambda_is_known_by_the_functions_around_it() {
    let story = Story::new();
    story.launch(A, 1, "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocastEUliE_EEviT1_");
    story.launch(A, 2, "_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_16gpu_index_kernelEUliE_EEvlT1_");
    story.fails(710);
    let known = assertion(
        "operator()",
        "/pytorch/IndexKernel.cu",
        "-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"",
    );
    let question = Question { kind: "device-assert", asserts: &known, ..Question::default() };
    assert_eq!(told(&story, &question), (vec![2], Some(Certainty::Exact)));

    // Of an assertion that is not known the file's name is a guess.
    let unknown = assertion("operator()", "/home/dev/proj/IndexKernel.cu", "x > 0");
    let question = Question { kind: "device-assert", asserts: &unknown, ..Question::default() };
    assert_eq!(told(&story, &question), (vec![2], Some(Certainty::Likely)));
}

#[test]
fn a_node_of_a_graph_is_blamed_on_the_line_that_captured_it() {
    let story = Story::new();
    let gather = story.kernel("_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_");
    let (grid, block) = (pack_grid(2, 1, 1), pack_block(32, 1, 1));
    story.writer.graph(GraphKind::CapturedKernel, 5, 0, story.kernel("_Z4reluv"), story.at(4), grid, block);
    story.writer.graph(GraphKind::CapturedKernel, 5, 0, gather, story.at(5), grid, block);
    story.writer.graph(GraphKind::Captured, 5, 0x1000, 0, 0, 0, 0);
    story.writer.graph(GraphKind::Instantiated, 0x1000, 0x2000, 0, 0, 0, 0);
    story.writer.graph(GraphKind::Nodes, 0x1000, 2, 0, 0, 0, 0);
    story.sync(A);
    for _ in 0..3 {
        story.call(Kind::Graph, story.main, A, 20, 0, 0x2000);
    }
    story.fails(710);
    let asserts = assertion("vectorized_gather_kernel", "IndexKernelUtils.cu", "ind >=0");
    let question = Question { kind: "device-assert", asserts: &asserts, ..Question::default() };
    assert_eq!(told(&story, &question), (vec![5], Some(Certainty::Exact)));
    let narrowed = narrow(&story.journal(), &question);
    assert!(narrowed.because.iter().any(|(key, _)| *key == "journal-replay"), "{:?}", narrowed.because);

    // A third node that nobody saw captured could carry the assertion as well.
    story.writer.graph(GraphKind::Instantiated, 0x1000, 0x2000, 0, 0, 0, 0);
    story.writer.graph(GraphKind::Nodes, 0x1000, 3, 0, 0, 0, 0);
    let number = story.call(Kind::Graph, story.main, A, 20, 0, 0x2000);
    assert!(number > 0);
    story.writer.returned(number, 0);
    let mut journal = story.journal();
    if let Some(error) = &mut journal.first_error {
        error.number = number;
    }
    assert_eq!(narrow(&journal, &question).certainty, Some(Certainty::Likely));
}

#[test]
fn the_core_dump_chooses_among_unfinished_launches() {
    let story = Story::new();
    story.launch(A, 1, "_Z4fillv");
    story.launch(A, 2, "_Z9k_illegalPfm");
    story.launch(A, 3, "_Z3sumv");
    let journal = story.journal();
    let handle = (1..9)
        .filter_map(|kernel| journal.kernel(kernel))
        .find(|kernel| kernel.name.as_deref() == Some("_Z9k_illegalPfm"));
    let grid = Grid {
        id: 2,
        function: handle.unwrap().handle,
        grid: [4, 1, 1],
        block: [64, 1, 1],
        host_thread: 77,
        faults: vec![Fault { exception: Exception(14), ..Fault::default() }],
        ..Grid::default()
    };
    let ask = |grid: Grid| {
        let cores = [GpuCore { grids: vec![grid], ..GpuCore::default() }];
        told(&story, &Question { kind: "illegal-address", cores: &cores, ..Question::default() })
    };
    assert_eq!(ask(grid.clone()), (vec![2], Some(Certainty::Exact)));
    // A thread that made no call is one of the driver's own, and says nothing.
    assert_eq!(ask(Grid { host_thread: 4711, ..grid.clone() }), (vec![2], Some(Certainty::Exact)));
    // Another shape or thread is another launch: the dump then chooses nothing, and all three lines stay.
    assert_eq!(ask(Grid { host_thread: 78, ..grid.clone() }).1, Some(Certainty::Likely));
    assert_eq!(ask(Grid { grid: [5, 1, 1], ..grid }).0, [1, 2, 3]);
}

#[test]
fn of_equal_launches_the_nearest_number_is_likely() {
    let story = Story::new();
    for line in [1, 2, 3] {
        story.launch(A, line, "_Z3badv");
    }
    let function = story.journal().kernel(1).unwrap().handle;
    let faults = vec![Fault { exception: Exception(14), ..Fault::default() }];
    let grid = Grid { id: 2, function, grid: [4, 1, 1], block: [64, 1, 1], host_thread: 77, faults, ..Grid::default() };
    let cores = [GpuCore { grids: vec![grid], ..GpuCore::default() }];
    let question = Question { kind: "illegal-address", cores: &cores, ..Question::default() };
    assert_eq!(told(&story, &question), (vec![2, 1, 3], Some(Certainty::Likely)));
}

#[test]
fn a_lost_call_takes_the_proof_away() {
    let story = Story::new();
    story.launch(A, 1, "_Z3badv");
    story.writer.lose();
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1], Some(Certainty::Likely)));
}

#[test]
fn an_overwritten_stream_takes_the_proof_away() {
    let story = Story::of(Shape { rows: [4, 64, 64, 1024, 64, 16, 16, 16, 64] });
    for _ in 0..6 {
        story.launch(A, 1, "_Z3badv");
    }
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![1], Some(Certainty::Likely)));

    let synchronised = Story::of(Shape { rows: [4, 64, 64, 1024, 64, 16, 16, 16, 64] });
    for _ in 0..6 {
        synchronised.launch(A, 1, "_Z3badv");
    }
    synchronised.sync(A);
    synchronised.launch(A, 2, "_Z3badv");
    synchronised.fails(700);
    assert_eq!(told(&synchronised, &illegal()), (vec![2], Some(Certainty::Exact)));
}

#[test]
fn a_launch_that_was_refused_did_not_run() {
    let story = Story::new();
    let refused = story.launch(A, 1, "_Z7refusedv");
    story.writer.returned(refused, 701);
    story.launch(A, 2, "_Z3badv");
    story.fails(700);
    assert_eq!(told(&story, &illegal()), (vec![2], Some(Certainty::Exact)));
    assert_eq!(flags::RETURNED, 1);
}

#[test]
fn names_are_demangled() {
    assert_eq!(demangle("_Z9k_illegalPfm"), "k_illegal");
    assert_eq!(demangle("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
    assert_eq!(short("at::native::kernel<4, (anonymous namespace)::f<int>>::run"), "at::native::kernel::run");
    assert_eq!(snake_case("ScatterGather"), "scatter_gather");
}
