//! Every kind of call is written down as it was made, and the program notices nothing.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use std::process::Command;

use common::{interpreters, libraries, python, trace};
use cublame_journal::{GraphKind, Journal, Kind};

const SCRIPT: &str = "cuStreamQuery:1=600,cuStreamSynchronize:2=710";

fn any_python() -> std::path::PathBuf {
    interpreters().pop().unwrap()
}

fn kernel(journal: &Journal, kernel: u32) -> &str {
    journal.kernel(kernel).and_then(|kernel| kernel.name.as_deref()).unwrap_or("-")
}

#[test]
fn each_kind_of_call_is_recorded() {
    let traced = trace(python(&any_python(), "calls.py").env("STANDIN", SCRIPT));
    let [journal, child] = &traced.journals[..] else { panic!("{:?}", traced.output) };
    let calls: Vec<(Kind, &str, Option<u16>)> =
        journal.calls.iter().map(|call| (call.kind, kernel(journal, call.kernel), call.result)).collect();
    assert_eq!(
        calls,
        [
            (Kind::Kernel, "kernel_10", None),
            (Kind::Kernel, "kernel_11", None),
            (Kind::Mark, "-", None),
            (Kind::Memset, "-", None),
            (Kind::EventRecord, "-", Some(0)),
            (Kind::StreamWait, "-", Some(0)),
            (Kind::EventSync, "-", Some(0)),
            (Kind::StreamSync, "-", Some(0)),
            // The question that was answered with "not yet" took a number and left no row.
            (Kind::StreamSync, "-", Some(0)),
            (Kind::Mark, "-", None),
            (Kind::Graph, "-", None),
            (Kind::Kernel, "kernel_10", None),
            // Another thread comes to the stream.
            (Kind::Mark, "-", None),
            (Kind::Kernel, "kernel_40", None),
            (Kind::StreamSync, "-", Some(710)),
            (Kind::Kernel, "-", Some(710)),
        ]
    );
    let handles: Vec<u64> =
        journal.calls.iter().map(|call| journal.stream(call.stream).map_or(0, |stream| stream.handle)).collect();
    // The thread's own default stream has the thread's row in its upper half.
    assert_eq!(handles[..6], [0x500, 2 | 1 << 32, 0x500, 0x500, 0x500, 0x600]);
    assert_eq!((journal.calls[4].handle, journal.calls[6].handle), (0xe1, 0xe1));
    // A destroyed stream's handle names a new stream.
    assert_ne!(journal.calls[0].stream, journal.calls[11].stream);
    assert_eq!(journal.calls[11].stream, journal.calls[13].stream);
    assert_ne!(journal.calls[11].thread, journal.calls[13].thread);

    let graphs: Vec<(GraphKind, u64, u64)> =
        journal.graphs.iter().map(|row| (row.kind, row.first, row.second)).collect();
    assert_eq!(
        graphs,
        [
            (GraphKind::CapturedKernel, 1, 0),
            (GraphKind::Captured, 1, 0x1001),
            (GraphKind::Nodes, 0x1001, 2),
            (GraphKind::Instantiated, 0x1001, 0x2001),
            (GraphKind::Nodes, 0x1001, 2),
        ]
    );
    assert_eq!((kernel(journal, journal.graphs[0].kernel), journal.graphs[0].grid), ("kernel_20", [7, 1, 1]));
    assert_eq!(journal.calls[10].handle, 0x2001);

    let error = journal.first_error.as_ref().unwrap();
    assert_eq!((error.code, error.call.as_str(), error.number), (710, "cuStreamSynchronize", journal.calls[14].number));
    assert_eq!(journal.frames(error.stack).last().unwrap().function, "<module>");

    // The forked child has a journal of its own, and left the parent's alone.
    assert_eq!(child.calls.len(), 1);
    assert_eq!(kernel(child, child.calls[0].kernel), "kernel_30");
}

/// Which launches follow a completion marker, and whether it arrived.
fn marked(journal: &Journal) -> Vec<(String, Option<bool>)> {
    let pairs = journal.calls.windows(2).filter(|pair| pair[0].kind == Kind::Mark);
    pairs.map(|pair| (kernel(journal, pair[1].kernel).to_owned(), journal.arrived(&pair[0]))).collect()
}

#[test]
fn a_marker_stands_where_the_line_changes() {
    let run = |script: &str, variables: &[(&str, &str)]| {
        let mut command = python(&any_python(), "marks.py");
        let traced = trace(command.env("STANDIN", script).envs(variables.iter().copied()));
        assert!(traced.output.status.success(), "{:?}", traced.output);
        marked(traced.journal())
    };
    let told = |arrived: [Option<bool>; 4]| {
        ["kernel_20", "kernel_40", "-", "kernel_50"].map(str::to_owned).into_iter().zip(arrived).collect::<Vec<_>>()
    };
    assert_eq!(run("", &[]), told([Some(true); 4]));
    assert_eq!(run("arrive:2=1", &[]), told([Some(true), Some(false), Some(false), Some(false)]));
    // The context goes, and its streams with it: nothing is told any more, unless it was told after a fault.
    assert_eq!(run("arrive:2=1", &[("RESET", "1")]), told([None; 4])[..3]);
    assert_eq!(run("arrive:2=1,cuStreamSynchronize:1=700", &[("RESET", "1")])[1].1, Some(false));
    // Before a copy only where enough queues lead to the GPU.
    assert_eq!(
        run("", &[("CUDA_DEVICE_MAX_CONNECTIONS", "1")]),
        [&told([Some(true); 4])[..2], &told([Some(true); 4])[3..]].concat()
    );
    assert_eq!(run("", &[("CUBLAME_MARKS", "0")]), []);
    // A driver that refuses them is asked once.
    assert_eq!(run("cuStreamWriteValue64_v2:1=1", &[]), told([None; 4])[..1]);
    // Memory of the journal that cannot be given to the GPU: another page is, and it is told only after an error.
    assert_eq!(run("cuMemHostRegister_v2:1=1", &[]), told([None; 4]));
    assert_eq!(run("cuMemHostRegister_v2:1=1,cuStreamSynchronize:1=700", &[]), told([Some(true); 4])[..3]);
    assert_eq!(run("cuMemHostRegister_v2:1=1,cuMemHostRegister_v2:2=1", &[]), []);
}

#[test]
fn no_launch_goes_by_while_the_journal_is_laid_out() {
    for _ in 0..5 {
        let traced = trace(&mut python(&any_python(), "first.py"));
        let journal = traced.journal();
        let launches = journal.calls.iter().filter(|call| call.kind == Kind::Kernel).count();
        assert_eq!((launches, journal.lost), (24, 0), "{:?}", traced.output);
    }
}

#[test]
fn the_program_notices_nothing() {
    for interpreter in interpreters() {
        let traced = trace(python(&interpreter, "calls.py").env("STANDIN", SCRIPT)).output;
        let bare = python(&interpreter, "calls.py")
            .env("STANDIN", SCRIPT)
            .env("STANDIN_LIBRARY", &libraries().driver)
            .output()
            .unwrap();
        let without_pid = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes)
                .lines()
                .filter(|line| !line.contains("pid="))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(traced.status.code(), Some(3));
        assert_eq!((traced.status, &traced.stdout), (bare.status, &bare.stdout));
        assert_eq!(without_pid(&traced.stderr), without_pid(&bare.stderr));
    }
}

#[test]
fn programs_without_a_driver_get_no_journal() {
    let shell = trace(Command::new("/bin/sh").args(["-c", "echo $((6 * 7)); ls / > /dev/null; exit 5"]));
    assert_eq!((shell.stdout().as_str(), shell.output.status.code(), shell.journals.len()), ("42\n", Some(5), 0));
    assert!(shell.output.stderr.is_empty(), "{:?}", shell.output);

    let python = any_python();
    // Loading extension modules goes through dlsym; RTLD_DEFAULT does not find an entry point that is not there.
    let script = "import ctypes, ssl, sqlite3, json\n\
        print(hasattr(ctypes.CDLL(None), 'cuLaunchKernel'), hasattr(ctypes.CDLL(None), 'strlen'))\n\
        try: ctypes.CDLL(None).cuStreamSynchronize\n\
        except AttributeError as error: print('cuStreamSynchronize' in str(error))";
    let plain = trace(Command::new(python).args(["-c", script]));
    assert_eq!((plain.stdout().as_str(), plain.journals.len()), ("False True\nTrue\n", 0), "{:?}", plain.output);
}

#[test]
fn a_journal_outlives_sigkill() {
    let script = "import os, signal, sys; sys.path.insert(0, sys.argv[1]); import driver\n\
        for turn in range(1000): driver.launch(0x10 + turn)\n\
        os.kill(os.getpid(), signal.SIGKILL)";
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");
    let traced = trace(Command::new(any_python()).args(["-c", script, programs]));
    assert!(!traced.output.status.success());
    let journal = traced.journal();
    assert_eq!((journal.newest, journal.calls.len()), (1000, 1000));
    assert_eq!(kernel(journal, journal.calls[999].kernel), format!("kernel_{:x}", 0x10 + 999));
}

#[test]
fn without_the_variable_nothing_is_recorded() {
    let bare = python(&any_python(), "calls.py")
        .env("LD_PRELOAD", &libraries().tracer)
        .env("STANDIN", SCRIPT)
        .env("STANDIN_LIBRARY", &libraries().driver)
        .env_remove("CUBLAME_JOURNAL")
        .output()
        .unwrap();
    assert_eq!(bare.status.code(), Some(3), "{bare:?}");
    // Nor where the folder cannot be written.
    let nowhere = python(&any_python(), "calls.py")
        .env("LD_PRELOAD", &libraries().tracer)
        .env("STANDIN", SCRIPT)
        .env("STANDIN_LIBRARY", &libraries().driver)
        .env("CUBLAME_JOURNAL", "dir:/nowhere/at/all")
        .output()
        .unwrap();
    assert_eq!((nowhere.status.code(), nowhere.stdout), (Some(3), bare.stdout));
}
