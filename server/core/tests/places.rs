//! Places that no traceback names: stacks of a crash, and lines that a message names itself.

use cublame_core::blame::blame;
use cublame_core::catalog::{Language, Texts};
use cublame_core::event::{Event, EventFrame, Exception, Link, Start, VERSION, What};
use cublame_core::evidence::{Crash, ProcessEvents};
use cublame_core::log::Log;
use cublame_core::run::Exit;
use cublame_core::source::Source;
use cublame_core::{Certainty, Evidence, Sources, Verdict};

/// The root cause's verdict with these sources.
fn root(evidence: &Evidence, files: &[(&str, &str)]) -> Verdict {
    let mut sources = Sources::new(vec!["/home/dev/proj".to_owned()]);
    for (path, text) in files {
        sources.insert(*path, Some(Source { path: (*path).to_owned(), text: (*text).into() }));
    }
    blame(evidence, &sources, Texts::get(Language::English)).remove(0)
}

fn of_text(text: &str) -> Evidence {
    Evidence { log: Some(Log::from_text(text)), ..Evidence::default() }
}

fn event(what: What) -> Event {
    Event { v: VERSION, time: 0.0, pid: 7, what }
}

const CRASH: &str = "Fatal Python error: Segmentation fault\n\nThread 0x00007f0a (most recent call first):\n  File \"/usr/lib/python3.12/threading.py\", line 359 in wait\n\nCurrent thread 0x00007f0b (most recent call first):\n  Garbage-collecting\n  File \"/v/site-packages/ext/__init__.py\", line 9 in scale\n  File \"/home/dev/proj/train.py\", line 12 in step\n  File \"/home/dev/proj/train.py\", line 30 in <module>\n\nExtension modules: numpy.core (total: 1)\n";

#[test]
fn a_crash_has_the_line_that_the_process_died_in() {
    let exit = Some(Exit { code: None, signal: Some(11) });
    let crashes = vec![Crash { pid: 7, text: CRASH.to_owned() }];
    let start = Start { rank: Some(2), ..Start::default() };
    let processes = vec![ProcessEvents { pid: 7, events: vec![event(What::Start(start))] }];
    let verdict = root(&Evidence { exit, crashes, processes, ..of_text("step 1\n") }, &[]);
    assert_eq!((verdict.kind.as_str(), verdict.certainty, verdict.fatal), ("segfault", Certainty::Likely, true));
    let place = verdict.place.unwrap();
    assert_eq!((place.file.as_str(), place.line), ("/home/dev/proj/train.py", 12));
    assert_eq!((verdict.frames.len(), verdict.rank), (3, Some(2)));
    assert!(verdict.because.iter().any(|reason| reason.contains("may come from earlier")), "{:?}", verdict.because);
}

#[test]
fn a_workers_stack_tells_more_than_its_parents_exception() {
    let parent = "Traceback (most recent call last):\n  File \"/home/dev/proj/train.py\", line 40, in <module>\n    for batch in loader:\nRuntimeError: DataLoader worker (pid 8) is killed by signal: Segmentation fault. \n";
    let crashes = vec![Crash { pid: 8, text: CRASH.to_owned() }];
    let verdict = root(&Evidence { crashes, ..of_text(parent) }, &[]);
    assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("segfault", 12));
}

#[test]
fn an_error_before_the_crash_is_the_root_cause() {
    let before = "Traceback (most recent call last):\n  File \"/home/dev/proj/train.py\", line 5, in <module>\n    y = kernel(x)\nRuntimeError: CUDA error: invalid configuration argument\n";
    let crashes = vec![Crash { pid: 7, text: CRASH.to_owned() }];
    let verdict = root(&Evidence { crashes, ..of_text(before) }, &[]);
    assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("invalid-configuration", 5));
}

#[test]
fn a_node_of_a_tensorflow_graph_has_the_line_that_defined_it() {
    let text = |node: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"/home/dev/proj/train.py\", line 88, in <module>\n    session.run(loss)\ntensorflow.python.framework.errors_impl.InvalidArgumentError: indices[0,3] = 12 is not in [0, 10)\n\t [[{node}]]\n"
        )
    };
    for (node, line, certainty, trusted) in [
        ("node model/lookup (defined at /home/dev/proj/model.py:14) ", 14, Certainty::Likely, false),
        ("{{node model/lookup}} = GatherV2[T=DT_FLOAT]", 88, Certainty::Exact, true),
        ("node model/lookup (defined at /v/site-packages/keras/layers.py:14) ", 88, Certainty::Exact, true),
    ] {
        let verdict = root(&of_text(&text(node)), &[]);
        let found = (verdict.place.unwrap().line, verdict.certainty, verdict.trace_trusted);
        assert_eq!(found, (line, certainty, trusted), "{node}");
        assert_eq!(verdict.reported.unwrap().line, 88, "{node}");
    }
}

#[test]
fn a_kernel_that_does_not_compile_has_its_own_line() {
    const FILE: &str = "/home/dev/proj/train.py";
    let kernel = "def k(x, n):\n    i = tl.arange(0, 4)\n    y = tl.load(x + i) @ n\n    tl.store(x, y)\n";
    let program = format!("import triton\n\n@triton.jit\n{kernel}\nk[(1,)](x, 3)\n");
    let twice = format!("{program}\n@triton.jit\n{kernel}");
    let head = format!(
        "Traceback (most recent call last):\n  File \"{FILE}\", line 9, in <module>\n    k[(1,)](x, 3)\ntriton.compiler.errors.CompilationError: at 3:8:\n"
    );
    let quoted = "def k(x, n):\n    i = tl.arange(0, 4)\n    y = tl.load(x + i) @ n\n        ^\nValueError('no')\n";
    let cut_by_a_blank_line = "def k(x, n):\n    i = tl.arange(0, 4)\n\n";
    for (name, source, quoted, line) in [
        ("quoted", program.as_str(), quoted, 6),
        ("cut short", &program, cut_by_a_blank_line, 6),
        ("two kernels of one text", &twice, quoted, 9),
        ("edited since", "import triton\n", quoted, 9),
    ] {
        let verdict = root(&of_text(&format!("{head}{quoted}")), &[(FILE, source)]);
        assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("triton-compile", line), "{name}");
        assert_eq!((verdict.reported.unwrap().line, verdict.trace_trusted), (9, line == 9), "{name}");
    }
}

#[test]
fn a_syntax_error_is_in_no_function() {
    let frame = EventFrame { file: "/home/dev/proj/bad.py".to_owned(), line: 3, ..EventFrame::default() };
    let link =
        Link { type_name: "SyntaxError".to_owned(), message: "no".to_owned(), frames: vec![frame], ..Link::default() };
    let exception = Exception { chain: vec![link], main_thread: true, ..Exception::default() };
    let processes = vec![ProcessEvents { pid: 7, events: vec![event(What::Exception(exception))] }];
    let verdict = root(&Evidence { processes, ..Evidence::default() }, &[]);
    let place = verdict.place.unwrap();
    assert_eq!((place.line, place.function), (3, None));
    assert_eq!(verdict.frames[0].function, None);
}

#[test]
fn a_frame_without_a_line_is_no_place() {
    let text = "Traceback (most recent call last):\n  File \"/home/dev/proj/train.py\", line 5, in f\n    g()\n  File \"/home/dev/proj/train.py\", line 0, in g\nValueError: no\n";
    let verdict = root(&of_text(text), &[]);
    assert_eq!((verdict.place.unwrap().line, verdict.reported.unwrap().line), (5, 5));
    assert_eq!(verdict.frames.len(), 2);
}
