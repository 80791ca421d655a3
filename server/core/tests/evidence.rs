//! Verdicts from more than text: the hook's events, the run's own knowledge, exit statuses, several ranks.

use cublame_core::blame::{blame, wanted};
use cublame_core::catalog::{Language, Texts};
use cublame_core::event::{Event, EventFrame, Exception, HeldMemory, HeldSite, Link, Start, VERSION, What};
use cublame_core::evidence::ProcessEvents;
use cublame_core::log::Log;
use cublame_core::run::Exit;
use cublame_core::source::Source;
use cublame_core::telemetry::{Record, Sample};
use cublame_core::{Certainty, Evidence, Sources, Verdict};

fn verdicts(evidence: &Evidence, sources: &Sources) -> Vec<Verdict> {
    blame(evidence, sources, Texts::get(Language::English))
}

fn of_text(text: &str) -> Evidence {
    Evidence { log: Some(Log::from_text(text)), ..Evidence::default() }
}

fn blocking(text: &str) -> Verdict {
    let evidence = Evidence { blocking: true, ..of_text(text) };
    verdicts(&evidence, &Sources::default()).remove(0)
}

/// A traceback of `/p/a.py` that ends in the frames and the exception given.
fn traceback(frames: &[(&str, u32, &str, &str)], exception: &str) -> String {
    let frames = frames
        .iter()
        .map(|(file, line, function, source)| format!("  File \"{file}\", line {line}, in {function}\n    {source}\n"));
    format!("Traceback (most recent call last):\n{}{exception}\n", frames.collect::<String>())
}

const ILLEGAL: &str = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered";

#[test]
fn an_asynchronous_kind_is_exact_only_under_proved_blocking() {
    let text = traceback(&[("/p/a.py", 5, "<module>", "y = kernel(x)")], ILLEGAL);
    let unproved = verdicts(&of_text(&text), &Sources::default()).remove(0);
    assert_eq!((unproved.certainty, unproved.trace_trusted), (Certainty::Suspect, false));
    let proved = blocking(&text);
    assert_eq!((proved.certainty, proved.trace_trusted), (Certainty::Exact, true));
    assert!(proved.because.iter().any(|reason| reason.contains("may come from earlier")), "{:?}", proved.because);
}

#[test]
fn what_a_text_says_of_blocking_proves_nothing() {
    let text = format!(
        "CUDA_LAUNCH_BLOCKING=1\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n{}",
        traceback(&[("/p/a.py", 5, "<module>", "y = kernel(x)")], ILLEGAL)
    );
    let verdict = verdicts(&of_text(&text), &Sources::default()).remove(0);
    assert_eq!((verdict.certainty, verdict.trace_trusted), (Certainty::Suspect, false));
}

#[test]
fn blocking_does_not_make_these_exact() {
    let engine = "/v/lib/python3.12/site-packages/torch/autograd/graph.py";
    let tensor = "/v/lib/python3.12/site-packages/torch/_tensor.py";
    let graphs = "/v/lib/python3.12/site-packages/torch/cuda/graphs.py";
    for (name, frames, exception, certainty) in [
        (
            "backward",
            vec![
                ("/p/a.py", 5, "step", "loss.backward()"),
                (tensor, 631, "backward", "torch.autograd.backward("),
                (engine, 869, "_engine_run_backward", "return run("),
            ],
            ILLEGAL,
            Certainty::Likely,
        ),
        (
            "replay of a graph",
            vec![("/p/a.py", 5, "step", "g.replay()"), (graphs, 139, "replay", "super().replay()")],
            ILLEGAL,
            Certainty::Likely,
        ),
        (
            "a line that only waits",
            vec![("/p/a.py", 5, "step", "torch.cuda.synchronize()")],
            ILLEGAL,
            Certainty::Suspect,
        ),
        ("a line that only reads", vec![("/p/a.py", 5, "step", "print(loss.item())")], ILLEGAL, Certainty::Suspect),
        (
            "a line that only copies",
            vec![("/p/a.py", 5, "step", "total += loss.item() * n")],
            ILLEGAL,
            Certainty::Suspect,
        ),
        (
            "jax",
            vec![("/p/a.py", 5, "step", "y = f(x)")],
            "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered",
            Certainty::Suspect,
        ),
        (
            "no frame of the user's",
            vec![(engine, 869, "_engine_run_backward", "return run(")],
            ILLEGAL,
            Certainty::Unknown,
        ),
    ] {
        let verdict = blocking(&traceback(&frames, exception));
        assert_eq!((verdict.certainty, verdict.trace_trusted), (certainty, false), "{name}: {:?}", verdict.because);
    }
}

#[test]
fn a_line_that_launches_and_reads_is_exact_under_blocking() {
    for source in ["print((x @ y).sum().item())", "y = model(x).cpu()", "loss = criterion(out, y).item()"] {
        let verdict = blocking(&traceback(&[("/p/a.py", 5, "step", source)], ILLEGAL));
        assert_eq!(verdict.certainty, Certainty::Exact, "{source}");
    }
}

#[test]
fn a_users_own_backward_function_is_exact_under_blocking() {
    let frames = [
        ("/p/a.py", 16, "<module>", "loss.backward()"),
        ("/v/site-packages/torch/autograd/graph.py", 869, "_engine_run_backward", "return run("),
        ("/v/site-packages/torch/autograd/function.py", 307, "apply", "return user_fn(self, *args)"),
        ("/p/a.py", 9, "backward", "extension.scale(g)"),
    ];
    let verdict = blocking(&traceback(&frames, ILLEGAL));
    assert_eq!((verdict.certainty, verdict.place.unwrap().line), (Certainty::Exact, 9));
}

#[test]
fn anomaly_mode_leads_a_backward_failure_to_its_forward_line() {
    let forward = "/v/site-packages/torch/autograd/graph.py:869: UserWarning: Error detected in MulBackward0. Traceback of forward call that caused the error:\n  File \"/p/a.py\", line 7, in <module>\n    f(x)\n  File \"/p/a.py\", line 3, in f\n    return x * y\n (Triggered internally at python_anomaly_mode.cpp:122.)\n";
    let frames = [
        ("/p/a.py", 9, "<module>", "loss.backward()"),
        ("/v/site-packages/torch/autograd/graph.py", 869, "_engine_run_backward", "return run("),
    ];
    let verdict = blocking(&(forward.to_owned() + &traceback(&frames, ILLEGAL)));
    assert_eq!(verdict.place.unwrap().line, 3);
    assert_eq!(verdict.reported.unwrap().line, 9);
    assert!(!verdict.trace_trusted);
}

/// The engine raises at once what an operation of the forward pass has spoilt: `backward()` only ran into it.
#[test]
fn an_error_of_the_engine_is_placed_at_backward_and_likely_at_most() {
    let engine = [
        ("/p/a.py", 9, "<module>", "loss.backward()"),
        ("/v/site-packages/torch/_tensor.py", 631, "backward", "torch.autograd.backward("),
        (
            "/v/site-packages/torch/autograd/graph.py",
            869,
            "_engine_run_backward",
            "return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass",
        ),
    ];
    let inplace =
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation";
    let text = traceback(&engine, inplace);
    let verdict = verdicts(&of_text(&text), &Sources::default()).remove(0);
    assert_eq!((verdict.certainty, verdict.place.unwrap().line), (Certainty::Likely, 9));
    assert!(verdict.missing.iter().any(|missing| missing.contains("forward trace")), "{:?}", verdict.missing);
    let forward = "/v/site-packages/torch/autograd/graph.py:869: UserWarning: Error detected in MulBackward0. Traceback of forward call that caused the error:\n  File \"/p/a.py\", line 3, in f\n    return x * y\n (Triggered internally at python_anomaly_mode.cpp:122.)\n";
    let verdict = verdicts(&of_text(&(forward.to_owned() + &text)), &Sources::default()).remove(0);
    assert_eq!((verdict.certainty, verdict.place.unwrap().line), (Certainty::Likely, 3));
    // What backward() was given wrongly is its own line's fault.
    let twice = "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed).";
    let verdict = verdicts(&of_text(&traceback(&engine, twice)), &Sources::default()).remove(0);
    assert_eq!((verdict.certainty, verdict.place.unwrap().line), (Certainty::Exact, 9));
}

/// An out-of-memory with the memory history that the hook summed up.
fn out_of_memory(history: Vec<(f64, u64)>) -> Evidence {
    let link = Link {
        type_name: "torch.OutOfMemoryError".to_owned(),
        message: "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free.".to_owned(),
        frames: vec![EventFrame { file: "/p/a.py".to_owned(), line: 5, function: "step".to_owned(), ..EventFrame::default() }],
        ..Link::default()
    };
    let site = HeldSite {
        file: "/p/a.py".to_owned(),
        line: 3,
        function: "step".to_owned(),
        bytes: 5 << 30,
        blocks: 50,
        ..HeldSite::default()
    };
    let memory =
        HeldMemory { allocated: 6 << 30, elsewhere: 1 << 30, sites: vec![site], history, ..HeldMemory::default() };
    let exception = Exception { chain: vec![link], memory: Some(memory), main_thread: true, ..Exception::default() };
    let event = Event { v: VERSION, time: 1.0, pid: 7, what: What::Exception(exception) };
    Evidence { processes: vec![ProcessEvents { pid: 7, events: vec![event] }], ..Evidence::default() }
}

#[test]
fn what_holds_the_memory_is_told_by_line_and_a_rise_of_what_is_allocated_is_a_leak() {
    let rising = (0..60).map(|at| (f64::from(at) / 2.0, (1 + at as u64) << 26)).collect();
    let verdict = verdicts(&out_of_memory(rising), &Sources::default()).remove(0);
    let memory = verdict.memory.unwrap();
    assert_eq!(memory.requested, Some(2 << 30));
    assert_eq!((memory.sites[0].place.line, memory.sites[0].bytes, memory.elsewhere), (3, 5 << 30, Some(1 << 30)));
    let rise = memory.rise.unwrap();
    assert!(rise.allocated && (120 << 20..140 << 20).contains(&rise.bytes_per_second), "{rise:?}");
    for words in [" MiB a second", "a leak", "/p/a.py:3 allocated the largest part of what is held: 5.00 GiB"] {
        assert!(verdict.because.iter().any(|reason| reason.contains(words)), "{words}: {:?}", verdict.because);
    }
    let level = (0..60).map(|at| (f64::from(at) / 2.0, 5 << 30)).collect();
    assert_eq!(verdicts(&out_of_memory(level), &Sources::default()).remove(0).memory.unwrap().rise, None);
}

/// What a GPU has in use may only be kept by an allocator.
#[test]
fn a_rise_of_what_is_reserved_is_only_a_suspicion() {
    let text = traceback(
        &[("/p/a.py", 5, "<module>", "x = f()")],
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    );
    let sample = |at: u32| {
        let (time, memory) = (f64::from(at) / 2.0, Some(u64::from(1 + at) << 26));
        Record::Sample(Sample { time, memory, ..Sample::default() })
    };
    let evidence = Evidence { telemetry: (0..60).map(sample).collect(), ..of_text(&text) };
    let verdict = verdicts(&evidence, &Sources::default()).remove(0);
    assert!(!verdict.memory.unwrap().rise.unwrap().allocated);
    assert!(verdict.because.iter().any(|reason| reason.contains("perhaps a leak")), "{:?}", verdict.because);
}

#[test]
fn the_first_error_wins_and_the_rest_is_collateral() {
    let text = format!(
        "{}{}terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: an illegal memory access was encountered\n",
        traceback(&[("/p/a.py", 5, "step", "y = kernel(x)")], ILLEGAL),
        traceback(
            &[("/p/b.py", 9, "close", "torch.cuda.empty_cache()")],
            "RuntimeError: CUDA error: unspecified launch failure"
        ),
    );
    let all = verdicts(&of_text(&text), &Sources::default());
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].kind.as_str(), all[0].reported.as_ref().unwrap().line), ("illegal-address", 5));
    assert_eq!(all[0].collateral.len(), 1);
}

#[test]
fn a_recovered_failure_before_the_fatal_one_is_a_verdict_of_its_own() {
    let text = format!(
        "2024-02-29 03:40:55.235 | WARNING  | probe:measure:242 - {}{}",
        traceback(
            &[("/p/probe.py", 5, "probe", "net(x)")],
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
        ),
        traceback(&[("/p/a.py", 9, "step", "y = kernel(x)")], ILLEGAL),
    );
    let all = verdicts(&of_text(&text), &Sources::default());
    let kinds: Vec<(&str, bool)> = all.iter().map(|verdict| (verdict.kind.as_str(), verdict.fatal)).collect();
    assert_eq!(kinds, [("illegal-address", true), ("oom", false)]);
}

#[test]
fn a_program_that_ends_well_survived_its_failures() {
    let text = traceback(&[("/p/a.py", 5, "step", "y = kernel(x)")], ILLEGAL);
    let evidence = Evidence { exit: Some(Exit { code: Some(0), signal: None }), ..of_text(&text) };
    assert!(!verdicts(&evidence, &Sources::default())[0].fatal);
}

#[test]
fn an_exit_status_alone_tells_of_the_host() {
    for (exit, kind) in [
        (Exit { code: None, signal: Some(9) }, Some("oom-host")),
        (Exit { code: Some(137), signal: None }, Some("oom-host")),
        (Exit { code: None, signal: Some(11) }, Some("segfault")),
        (Exit { code: Some(135), signal: None }, Some("shm-exhausted")),
        (Exit { code: Some(1), signal: None }, None),
        (Exit { code: None, signal: Some(2) }, None),
    ] {
        let evidence = Evidence { exit: Some(exit), ..of_text("step 1\n") };
        let found = verdicts(&evidence, &Sources::default()).into_iter().next().map(|verdict| verdict.kind);
        assert_eq!(found.as_deref(), kind, "{exit:?}");
    }
}

#[test]
fn the_first_failing_rank_is_blamed() {
    let peer = "[rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2395, remote process exited or there was a network error, NCCL version 2.21.5\n[rank0]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n";
    let own: String = traceback(&[("/p/a.py", 5, "step", "x = data['key']")], "KeyError: 'key'")
        .lines()
        .map(|line| format!("[rank3]: {line}\n"))
        .collect();
    for text in [format!("{peer}{own}"), format!("{own}{peer}")] {
        let verdict = verdicts(&of_text(&text), &Sources::default()).remove(0);
        assert_eq!((verdict.kind.as_str(), verdict.rank), ("unrecognised", Some(3)));
        assert_eq!(verdict.collateral[0].rank, Some(0));
    }
}

#[test]
fn an_assertion_is_blamed_on_the_rank_that_fired_it() {
    let assertion = "/a/Indexing.cu:12: indexSelectLargeIndex: block: [0,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n";
    let rank = |rank: u32, line: u32, exception: &str| -> String {
        let text = traceback(&[("/p/a.py", line, "step", "y = f(x)")], exception);
        text.lines().map(|line| format!("[rank{rank}]: {line}\n")).collect()
    };
    let text = format!(
        "{assertion}{}{}",
        rank(0, 3, "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275, unhandled cuda error"),
        rank(1, 5, "torch.AcceleratorError: CUDA error: device-side assert triggered"),
    );
    let verdict = verdicts(&of_text(&text), &Sources::default()).remove(0);
    assert_eq!((verdict.kind.as_str(), verdict.rank, verdict.reported.unwrap().line), ("device-assert", Some(1), 5));
}

#[test]
fn a_failure_of_its_own_before_an_assertion_stays_the_root() {
    let assertion = "/a/Indexing.cu:12: indexSelectLargeIndex: block: [0,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n";
    let failure = traceback(
        &[("/p/a.py", 5, "step", "y = f(x)")],
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    );
    let first = verdicts(&of_text(&format!("{failure}{assertion}")), &Sources::default()).remove(0);
    assert_eq!((first.kind.as_str(), first.asserts.len(), first.collateral.len()), ("oom", 0, 1));
    let after = verdicts(&of_text(&format!("{assertion}{failure}")), &Sources::default()).remove(0);
    assert_eq!((after.kind.as_str(), after.asserts.len()), ("device-assert", 1));
}

#[test]
fn a_collective_that_timed_out_blames_the_rank_that_is_behind() {
    let timeout = |rank: u32, number: u32| {
        format!(
            "[rank{rank}]:[E1206 18:44:16.99 ProcessGroupNCCL.cpp:621] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600042 milliseconds before timing out.\n"
        )
    };
    let behind = format!("{}{}{}", timeout(0, 96120), timeout(7, 64088), timeout(1, 96120));
    assert_eq!(verdicts(&of_text(&behind), &Sources::default())[0].rank, Some(7));
    let level = format!("{}{}", timeout(4, 42), timeout(0, 42));
    assert_eq!(verdicts(&of_text(&level), &Sources::default())[0].rank, Some(4));
}

fn event(what: What) -> Event {
    Event { v: VERSION, time: 1.0, pid: 7, what }
}

fn exception(line: u32, message: &str, rank: Option<u32>) -> What {
    let frame = EventFrame {
        file: "a.py".to_owned(),
        path: Some("/p/a.py".to_owned()),
        line,
        column: Some(9),
        end_column: Some(18),
        function: "step".to_owned(),
        source: Some("    y = kernel(x)".to_owned()),
        ..EventFrame::default()
    };
    let link = Link {
        type_name: "torch.AcceleratorError".to_owned(),
        message: message.to_owned(),
        frames: vec![frame],
        ..Link::default()
    };
    What::Exception(Exception { hook: "excepthook".to_owned(), rank, chain: vec![link], ..Exception::default() })
}

fn process(launch_blocking: Option<&str>, restart: u32, exception: What) -> ProcessEvents {
    let start =
        Start { launch_blocking: launch_blocking.map(str::to_owned), restart: Some(restart), ..Start::default() };
    ProcessEvents { pid: 7, events: vec![event(What::Start(start)), event(exception)] }
}

#[test]
fn the_hooks_columns_and_the_texts_assertion_make_one_verdict() {
    let assertion = "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1292: indexSelectLargeIndex: block: [40,0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n";
    let message = "CUDA error: device-side assert triggered";
    let text = traceback(&[("a.py", 5, "step", "y = kernel(x)")], &format!("torch.AcceleratorError: {message}"));
    let evidence = Evidence {
        processes: vec![process(Some("1"), 0, exception(5, message, None))],
        blocking: true,
        ..of_text(&(assertion.to_owned() + &text))
    };
    let all = verdicts(&evidence, &Sources::default());
    assert_eq!(all.len(), 1);
    let place = all[0].place.clone().unwrap();
    assert_eq!((place.path.as_deref(), place.column, place.end_column), (Some("/p/a.py"), Some(9), Some(18)));
    assert_eq!((all[0].certainty, all[0].asserts.len(), all[0].collateral.len()), (Certainty::Exact, 1, 0));
}

#[test]
fn a_process_that_lost_the_variable_was_not_blocking() {
    let message = "CUDA error: an illegal memory access was encountered";
    for value in ["0", "true"] {
        let evidence = Evidence {
            processes: vec![process(Some(value), 0, exception(5, message, None))],
            blocking: true,
            ..Evidence::default()
        };
        let verdict = verdicts(&evidence, &Sources::default()).remove(0);
        assert_eq!((verdict.certainty, verdict.trace_trusted), (Certainty::Suspect, false), "{value}");
    }
}

#[test]
fn the_first_attempt_is_blamed_after_a_restart() {
    let message = "CUDA error: an illegal memory access was encountered";
    let evidence = Evidence {
        processes: vec![
            process(None, 1, exception(9, message, Some(0))),
            process(None, 0, exception(5, message, Some(2))),
        ],
        ..Evidence::default()
    };
    let verdict = verdicts(&evidence, &Sources::default()).remove(0);
    assert_eq!((verdict.rank, verdict.place.unwrap().line), (Some(2), 5));
}

#[test]
fn a_workers_traceback_rides_in_the_hooks_message() {
    let message = "Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File \"/p/data.py\", line 6, in __getitem__\n    return x.cuda()\nRuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method\n";
    let evidence = Evidence { processes: vec![process(None, 0, exception(5, message, None))], ..Evidence::default() };
    let verdict = verdicts(&evidence, &Sources::default()).remove(0);
    assert_eq!((verdict.kind.as_str(), verdict.place.unwrap().line), ("forked-subprocess", 6));
}

#[test]
fn sources_give_columns_and_show_an_edit() {
    let text = "Traceback (most recent call last):\n  File \"/p/a.py\", line 2, in f\n    y = kernel(x)\n        ^^^^^^^^^\nValueError: no\n";
    let mut sources = Sources::new(vec!["/p".to_owned()]);
    assert_eq!(wanted(&of_text(text), &sources), ["/p/a.py"]);
    let mut with = |source: &str| {
        sources.insert("/p/a.py", Some(Source { path: "/p/a.py".to_owned(), text: source.into() }));
        verdicts(&of_text(text), &sources).remove(0)
    };
    let unchanged = with("def f(x):\n    y = kernel(x)\n");
    let place = unchanged.place.unwrap();
    assert_eq!((unchanged.certainty, place.column, place.end_column), (Certainty::Exact, Some(9), Some(18)));
    let changed = with("def f(x):\n    y = other(x)\n");
    assert_eq!((changed.certainty, changed.place.unwrap().column), (Certainty::Likely, None));
    assert_eq!(wanted(&of_text(text), &sources), [""; 0]);
}

#[test]
fn the_workspace_is_user_code_but_not_what_was_installed_into_it() {
    let frames = [
        ("/p/torch/nn/mine.py", 3, "f", "g()"),
        ("/p/.venv/lib/python3.12/site-packages/torch/nn/functional.py", 9, "g", "raise"),
    ];
    let evidence = of_text(&traceback(&frames, "ValueError: no"));
    let reported = |sources: &Sources| verdicts(&evidence, sources).remove(0).reported.map(|place| place.file);
    assert_eq!(reported(&Sources::new(vec!["/p".to_owned()])).as_deref(), Some("/p/torch/nn/mine.py"));
    assert_eq!(reported(&Sources::default()), None);
}

#[test]
fn a_trace_that_only_passes_an_exception_on_is_not_exact() {
    let worker = "  File \"/v/site-packages/torch/utils/data/_utils/collate.py\", line 9, in collate\n    return f(x)\nRuntimeError: CUDA error: invalid argument\n";
    let parent = traceback(
        &[
            ("/p/train.py", 8, "main", "for batch in loader:"),
            ("/v/site-packages/torch/_utils.py", 7, "reraise", "raise exception"),
        ],
        &format!(
            "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n{worker}"
        ),
    );
    let passed_on = verdicts(&of_text(&parent), &Sources::default()).remove(0);
    assert_eq!((passed_on.certainty, passed_on.trace_trusted), (Certainty::Likely, false));
    assert_eq!(passed_on.reported.unwrap().line, 8);

    // The cause was caught inside the library function that the user's line called: one stack.
    let call = ("/v/site-packages/lib/a.py", 30, "load", "return inner()");
    let cause = traceback(
        &[call, ("/v/site-packages/lib/b.py", 3, "inner", "raise")],
        "RuntimeError: No CUDA GPUs are available",
    );
    let effect = traceback(&[("/p/train.py", 8, "main", "lib.load()"), call], "lib.LoadError: no");
    let text = format!("{cause}\nThe above exception was the direct cause of the following exception:\n\n{effect}");
    let one_stack = verdicts(&of_text(&text), &Sources::default()).remove(0);
    assert_eq!((one_stack.kind.as_str(), one_stack.certainty), ("no-device", Certainty::Exact));
}

#[test]
fn threads_that_share_a_dead_context_are_not_exact() {
    let thread = |number: u32, line: u32, source: &str| {
        let frames = [
            ("/usr/lib/python3.12/threading.py", 1073, "_bootstrap_inner", "self.run()"),
            ("/p/a.py", line, "work", source),
        ];
        format!("Exception in thread Thread-{number} (work):\n{}", traceback(&frames, ILLEGAL))
    };
    let two = blocking(&format!("{}{}", thread(1, 6, "y.add_(1)"), thread(4, 9, "z = kernel(x)")));
    assert_eq!((two.certainty, two.trace_trusted), (Certainty::Likely, false));
    let waiting = traceback(&[("/p/a.py", 13, "<module>", "torch.cuda.synchronize()")], ILLEGAL);
    let one = blocking(&format!("{}{waiting}", thread(4, 9, "z = kernel(x)")));
    assert_eq!((one.certainty, one.place.unwrap().line), (Certainty::Exact, 9));
}

#[test]
fn an_unknown_cuda_error_is_not_trusted() {
    let text =
        traceback(&[("/p/a.py", 5, "step", "y = kernel(x)")], "RuntimeError: CUDA error: a failure of the year 2030");
    let verdict = verdicts(&of_text(&text), &Sources::default()).remove(0);
    assert_eq!(
        (verdict.kind.as_str(), verdict.certainty, verdict.trace_trusted),
        ("unrecognised", Certainty::Likely, false)
    );
    assert_eq!(blocking(&text).certainty, Certainty::Exact);
}

#[test]
fn a_variable_set_too_late_is_found_in_the_source() {
    let text = traceback(
        &[("/p/a.py", 6, "<module>", "x = torch.randn(1).cuda()")],
        "RuntimeError: config[i] == get()->name() INTERNAL ASSERT FAILED at \"CUDACachingAllocator.cpp\":644, please report a bug to PyTorch. Allocator backend parsed at runtime != allocator backend parsed at load time",
    );
    let source = "import os\nimport torch\n\nos.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'backend:cudaMallocAsync'\n\nx = torch.randn(1).cuda()\n";
    let mut sources = Sources::default();
    sources.insert("/p/a.py", Some(Source { path: "/p/a.py".to_owned(), text: source.into() }));
    let verdict = verdicts(&of_text(&text), &sources).remove(0);
    assert_eq!((verdict.certainty, verdict.place.unwrap().line), (Certainty::Likely, 4));
    assert_eq!(verdict.reported.unwrap().line, 6);
}

#[test]
fn the_sanitizer_is_exact() {
    let text = "========= COMPUTE-SANITIZER\n========= Invalid __global__ write of size 8 bytes\n=========     at k_misaligned(float *)+0x70 in ext.cu:6\n=========     by thread (0,0,0) in block (0,0,0)\n=========     Access to 0x7f8232800004 is misaligned\n=========     Saved host backtrace up to driver entry point at kernel launch time\n=========         Host Frame: misaligned(at::Tensor) [0xc39e4] in cbl_ext.so\n=========         Host Frame: run_kernel in ext_misaligned.py:3\n=========         Host Frame: <module> in ext_misaligned.py:5\n========= \n";
    let verdict = verdicts(&of_text(text), &Sources::default()).remove(0);
    assert_eq!((verdict.kind.as_str(), verdict.certainty), ("misaligned-address", Certainty::Exact));
    assert_eq!(verdict.place.unwrap().line, 3);
}
