//! A verdict goes in, the ids of its advice come out; a dozen are read in full, in both languages.

mod data_files;

use super::*;
use crate::catalog::Language;
use crate::event::{Event, Start, What};
use crate::evidence::ProcessEvents;
use crate::log::{Line, Log, Stream};
use crate::mode::Mode;
use crate::run::{Run, Watch};
use crate::verdict::{Certainty, CudaError, DeviceAssert, ExceptionText, Frame, Memory, OtherProcess, Place};

const GIB: u64 = 1 << 30;

/// Checks the ids of the advice, in order, joined by spaces.
#[track_caller]
fn check(verdict: &Verdict, evidence: &Evidence, ids: &str) {
    let advice = advise(verdict, evidence, Texts::get(Language::English));
    let found: Vec<&str> = advice.iter().map(|advice| advice.id.as_str()).collect();
    assert_eq!(found.join(" "), ids.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn verdict(kind: &str) -> Verdict {
    Verdict {
        kind: kind.to_owned(),
        summary: String::new(),
        error: None,
        exception: Some(ExceptionText { type_name: "RuntimeError".to_owned(), message: String::new() }),
        place: None,
        reported: None,
        certainty: Certainty::Suspect,
        trace_trusted: false,
        because: Vec::new(),
        missing: Vec::new(),
        phase: None,
        asserts: Vec::new(),
        memory: None,
        frames: Vec::new(),
        tensors: Vec::new(),
        objects: Vec::new(),
        rank: None,
        device: None,
        collateral: Vec::new(),
        advice: Vec::new(),
        fatal: true,
        candidates: Vec::new(),
    }
}

fn exact(mut verdict: Verdict) -> Verdict {
    verdict.certainty = Certainty::Exact;
    verdict.place = Some(Place {
        file: "/home/dev/proj/train.py".to_owned(),
        path: None,
        line: 8,
        column: None,
        end_column: None,
        function: None,
    });
    verdict
}

fn saying(mut verdict: Verdict, type_name: &str, message: &str) -> Verdict {
    verdict.exception = Some(ExceptionText { type_name: type_name.to_owned(), message: message.to_owned() });
    verdict
}

fn asserting(kernel: &str, condition: &str) -> Verdict {
    let assertion = DeviceAssert {
        file: "/pytorch/aten/src/ATen/native/cuda/Indexing.cu".to_owned(),
        line: 1,
        kernel: Some(kernel.to_owned()),
        condition: condition.to_owned(),
        count: 32,
    };
    let mut verdict = exact(verdict("device-assert"));
    verdict.asserts = vec![assertion];
    verdict
}

fn with_code(mut verdict: Verdict, name: &str, code: u32) -> Verdict {
    verdict.error = Some(CudaError { name: name.to_owned(), code: Some(code), legacy_code: None, text: String::new() });
    verdict
}

fn with_frame(mut verdict: Verdict, file: &str, user: bool) -> Verdict {
    let file = file.to_owned();
    verdict.frames.push(Frame { file, path: None, line: 3, column: None, end_column: None, function: None, user });
    verdict
}

fn out_of_memory(message: &str, memory: Memory) -> Verdict {
    let mut verdict = saying(verdict("oom"), "torch.OutOfMemoryError", message);
    verdict.memory = Some(memory);
    verdict
}

fn log(text: &str) -> Evidence {
    let lines: Vec<Line> = (1..)
        .zip(text.lines())
        .map(|(number, text)| Line { stream: Stream::Mixed, number, text: text.to_owned(), repeats: 1 })
        .collect();
    Evidence { log: Some(Log { lines, ..Log::default() }), ..Evidence::default() }
}

fn run(mode: Mode, argv: &[&str]) -> Evidence {
    let run = Run {
        schema: 1,
        id: "20260101-000000-abcd".to_owned(),
        watch: Watch::Supervised,
        mode,
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        cwd: "/home/dev/proj".to_owned(),
        entry: None,
        started: 0.0,
        host: "box".to_owned(),
        runner: None,
        child: None,
        blocking: mode == Mode::Blocking,
        env: Default::default(),
    };
    Evidence { blocking: run.blocking, run: Some(run), ..Evidence::default() }
}

fn started_by(mut evidence: Evidence, executable: &str, python: &str) -> Evidence {
    let start = Start { executable: executable.to_owned(), python: python.to_owned(), ..Start::default() };
    let event = Event { v: 1, time: 0.0, pid: 7, what: What::Start(start) };
    evidence.processes.push(ProcessEvents { pid: 7, events: vec![event] });
    evidence
}

const SM_120: &str = "\
NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.";

const SM_60: &str = "\
    Found GPU0 Tesla P100-PCIE-16GB which is of cuda capability 6.0.
    Minimum and Maximum cuda capability supported by this version of PyTorch is
    (7.5) - (12.0)";

const DRIVER: &str =
    "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12040).";

const TIMEOUT: &str = "\
[rank0]:[E1206 18:44:16.99 ProcessGroupNCCL.cpp:621] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.
[rank0]:[E1206 18:44:16.99 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 0] Exception (either an error or timeout) detected by watchdog at work: 7, last enqueued NCCL work: 7, last completed NCCL work: 6.
[rank1]:[E1206 18:44:17.01 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 7, last enqueued NCCL work: 7, last completed NCCL work: 6.
[rank2]:[E1206 18:44:17.02 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 2] Exception (either an error or timeout) detected by watchdog at work: 5, last enqueued NCCL work: 5, last completed NCCL work: 5.";

const OTHER_COLLECTIVE: &str = "\
[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600029 milliseconds
[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=BROADCAST, Timeout(ms)=600000) ran for 600030 milliseconds";

#[test]
fn an_unsettled_place_gets_a_rerun_that_settles_it() {
    let embedding =
        Verdict { certainty: Certainty::Likely, ..asserting("indexSelectLargeIndex", "srcIndex < srcSelectDimSize") };
    let plain = run(Mode::Off, &["python", "train.py"]);
    check(&embedding, &plain, "rerun-guard rerun-blocking check-index-range run-on-cpu restart-process");
    let blocking = run(Mode::Blocking, &["python", "train.py"]);
    check(&embedding, &blocking, "rerun-guard rerun-core check-index-range run-on-cpu restart-process");
    let guard = run(Mode::Guard, &["python", "train.py"]);
    check(&embedding, &guard, "rerun-blocking check-index-range run-on-cpu restart-process");
    let replicas =
        with_frame(embedding, "/opt/conda/lib/python3.10/site-packages/torch/nn/parallel/data_parallel.py", false);
    check(
        &replicas,
        &plain,
        "rerun-guard rerun-blocking avoid-blocking-deadlock check-index-range run-on-cpu restart-process",
    );
}

#[test]
fn a_settled_place_gets_a_rerun_for_the_value() {
    let embedding = asserting("indexSelectLargeIndex", "srcIndex < srcSelectDimSize");
    let blocking = run(Mode::Blocking, &["python", "train.py"]);
    check(&embedding, &blocking, "check-index-range rerun-guard run-on-cpu restart-process");
    let topk = asserting("gatherTopK", "writeIndex < outputSliceSize");
    check(&topk, &blocking, "report-framework-fault run-on-cpu restart-process");
}

#[test]
fn what_the_guard_found_is_checked_by_its_argument() {
    for (sentence, id) in [
        ("embedding index: value 1003 at [3, 7] is outside [0, 1000) (1 of 4096)", "check-index-range"),
        ("index for dimension 1: value 16 at [0] is outside [-16, 16) (8 of 8)", "check-index-range"),
        ("nll_loss target label: value 9 at [2] is outside [0, 5) (1 of 3)", "check-labels"),
        ("binary_cross_entropy input probability: value 1.5 at [1] is outside [0, 1] (1 of 2)", "check-loss-inputs"),
        ("binary_cross_entropy target probability: value -1 at [0] is outside [0, 1] (1 of 2)", "check-loss-targets"),
        ("multinomial probability: the row at [1] sums to 0.0", "check-probabilities"),
        ("embedding_bag offset: the offset at [2] is 1 smaller than the one before it", "check-counts"),
        ("masked_scatter source: 4 elements for a mask that selects 15", "check-mask-count"),
        ("_assert_async condition: no token is left", "read-assertion"),
    ] {
        let verdict = saying(exact(verdict("device-assert")), "cublame.GuardIndexError", sentence);
        check(&verdict, &run(Mode::Guard, &["python", "train.py"]), id);
    }
}

#[test]
fn an_assertion_says_what_to_check() {
    for (kernel, condition, ids) in [
        ("indexSelectLargeIndex", "srcIndex < srcSelectDimSize", "check-index-range"),
        (
            "vectorized_gather_kernel",
            r#"ind >=0 && ind < ind_dim_size && "vectorized gather kernel index out of bounds""#,
            "check-index-range",
        ),
        ("operator()", r#"idx_dim >= 0 && idx_dim < index_size && "index out of bounds""#, "check-index-range"),
        ("nll_loss_forward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes", "check-labels"),
        ("operator()", "input_val >= zero && input_val <= one", "check-loss-inputs"),
        ("bce_updateOutput_no_reduce_functor", "*input >= 0. && *input <= 1.", "check-loss-inputs"),
        ("operator()", "target_val >= zero && target_val <= one", "check-loss-targets"),
        ("sampleMultinomialOnce", "!at::_isnan(val)", "check-probabilities"),
        ("renormRowsL1", "!THCNumerics<T>::lt(val, zero)", "check-probabilities"),
        ("my_kernel", "n == 32", "check-values"),
        ("renormRowsL1", "val >= zero", "check-probabilities"),
        (
            "_assert_async_cuda_kernel",
            "probability tensor contains either `inf`, `nan` or element < 0",
            "check-probabilities",
        ),
        ("_assert_async_cuda_kernel", "input[0] != 0", "read-assertion"),
        ("operator()", "0 <= p4 && p4 <= 1", "check-probabilities"),
        ("masked_scatter_size_check", "totalElements <= srcSize", "check-mask-count"),
        ("compute_cuda_kernel", "repeat >= 0", "check-counts"),
        ("triton_poi_fused_embedding_0", "index out of bounds: 0 <= tmp4 < 32000", "compare-with-eager"),
        ("gatherTopK", "writeIndex < outputSliceSize", "report-framework-fault"),
        ("nll_loss2d_forward_kernel", "input_index >= 0", "check-32-bit-sizes"),
    ] {
        let advice = advise(&asserting(kernel, condition), &Evidence::default(), Texts::get(Language::English));
        assert_eq!(advice[0].id, ids, "{condition}");
    }
}

#[test]
fn a_kind_gets_its_advice() {
    for (verdict, evidence, ids) in [
        (
            exact(verdict("illegal-address")),
            Evidence::default(),
            "look-earlier rerun-sanitizer check-bounds check-device-guard check-32-bit-sizes find-stream-race restart-process",
        ),
        (
            with_code(verdict("illegal-address"), "hipErrorIllegalAddress", 700),
            run(Mode::Off, &["python", "train.py"]),
            "serialise-hip check-bounds check-device-guard check-32-bit-sizes restart-process",
        ),
        (
            saying(
                verdict("illegal-address"),
                "jaxlib.xla_extension.XlaRuntimeError",
                "INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS",
            ),
            Evidence::default(),
            "block-until-ready rerun-sanitizer check-bounds check-32-bit-sizes restart-process",
        ),
        (
            saying(
                verdict("illegal-address"),
                "numba.cuda.cudadrv.driver.CudaAPIError",
                "[700] Call to cuMemcpyDtoH results in",
            ),
            Evidence::default(),
            "rerun-blocking rerun-sanitizer check-bounds check-32-bit-sizes simulate-numba restart-process",
        ),
        (
            with_frame(exact(verdict("misaligned-address")), "/tmp/ipykernel_99/123.py", true),
            Evidence::default(),
            "look-earlier clone-views rerun-sanitizer restart-kernel",
        ),
        (
            verdict("launch-failure"),
            log(
                "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.\nNVRM: Xid (PCI:0000:3b:00): 45, pid=7",
            ),
            "rerun-blocking xid-79 xid-45 rerun-sanitizer find-stream-race find-shared-memory-race disable-cudnn restart-process",
        ),
        (
            verdict("invalid-configuration"),
            Evidence::default(),
            "check-empty-tensors check-32-bit-sizes upgrade-framework",
        ),
        (
            saying(verdict("no-kernel-image"), "RuntimeError", SM_120),
            Evidence::default(),
            "install-matching-build reinstall-extensions",
        ),
        (verdict("no-kernel-image"), log(SM_60), "install-matching-build reinstall-extensions"),
        (verdict("no-kernel-image"), log(&SM_120.replace("sm_90.", "sm_90 sm_120.")), "rebuild-extension-for"),
        (
            verdict("no-kernel-image"),
            log("CUDA capability sm_35 is not compatible"),
            "compare-architectures build-from-source",
        ),
        (verdict("no-kernel-image"), Evidence::default(), "compare-architectures rebuild-extension"),
        (
            verdict("no-kernel-image"),
            started_by(log(SM_120), "/usr/bin/python3", "3.8.10"),
            "install-matching-build change-python reinstall-extensions",
        ),
        (
            verdict("no-kernel-image"),
            log(
                r"Error no kernel image is available for execution on the device at line 167 in file D:\ai\tool\bitsandbytes\csrc\ops.cu",
            ),
            "upgrade-bitsandbytes",
        ),
        (
            verdict("driver-too-old"),
            log("torch 2.11.0+cu130\ntoo old (found version 12080)."),
            "install-older-build install-blackwell-build update-driver-to",
        ),
        (
            with_frame(
                verdict("driver-too-old"),
                "/opt/venv/lib/python3.12/site-packages/jax/_src/xla_bridge.py",
                false,
            ),
            log(DRIVER),
            "show-driver update-driver",
        ),
        (
            saying(verdict("no-kernel-image"), "cupy.cuda.CUDADriverError", "cudaErrorNoKernelImageForDevice"),
            Evidence::default(),
            "upgrade-for-gpu",
        ),
        (
            verdict("no-kernel-image"),
            log("Orin with CUDA capability sm_87 is not compatible"),
            "install-embedded-build",
        ),
        (
            verdict("invalid-device-ordinal"),
            Evidence::default(),
            "count-devices check-visible-devices match-process-count",
        ),
        (
            saying(verdict("driver-too-old"), "RuntimeError", DRIVER),
            Evidence::default(),
            "install-older-build update-driver",
        ),
        (
            verdict("driver-too-old"),
            log(&format!("torch 2.11.0+cu130\n{DRIVER}")),
            "install-older-build update-driver-to",
        ),
        (verdict("driver-too-old"), log("found version 10020).\ntoo old (found version 10020)."), "update-driver"),
        (verdict("driver-too-old"), Evidence::default(), "show-driver update-driver"),
        (
            with_code(verdict("driver-mismatch"), "cudaErrorSystemDriverMismatch", 803),
            Evidence::default(),
            "reboot-after-driver-update remove-compat-library",
        ),
        (
            with_code(verdict("driver-mismatch"), "cudaErrorCompatNotSupportedOnDevice", 804),
            Evidence::default(),
            "remove-compat-library update-driver",
        ),
        (verdict("system-not-ready"), Evidence::default(), "start-fabric-manager check-fabric-state"),
        (verdict("oom-host"), Evidence::default(), "confirm-oom-kill raise-memory-limit reduce-workers load-lazily"),
        (verdict("shm-exhausted"), Evidence::default(), "measure-shm raise-shm reduce-workers"),
        (verdict("segfault"), Evidence::default(), "enable-faulthandler check-extension-build check-mixed-libraries"),
        (
            verdict("library-missing"),
            log("ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"),
            "rebuild-against-torch unset-library-path",
        ),
        (
            verdict("library-missing"),
            log("ImportError: libcudart.so.11.0: cannot open shared object file"),
            "install-cuda-runtime",
        ),
        (
            verdict("library-missing"),
            log("undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"),
            "unset-library-path reinstall-cleanly",
        ),
        (verdict("library-missing"), Evidence::default(), "find-missing-library"),
        (
            verdict("ecc"),
            log("NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping"),
            "xid-63 check-ecc reset-gpu",
        ),
        (
            verdict("gpu-lost"),
            log("kernel: NVRM: Xid (PCI:0000:10:1c): 120, pid=1896"),
            "xid-119 check-gpu-answers reset-gpu",
        ),
        (verdict("nvlink"), Evidence::default(), "read-kernel-log check-nvlink start-fabric-manager reset-gpu"),
        (verdict("not-compiled-cuda"), Evidence::default(), "install-cuda-build install-blackwell-build choose-device"),
        (
            with_frame(verdict("not-compiled-cuda"), "/Users/dev/proj/run.py", true),
            Evidence::default(),
            "leave-cuda-on-mac",
        ),
        (
            verdict("nccl-timeout"),
            log(TIMEOUT),
            "look-at-lagging-rank record-collectives check-uneven-data raise-timeout",
        ),
        (
            verdict("nccl-timeout"),
            log(OTHER_COLLECTIVE),
            "align-collectives record-collectives check-uneven-data raise-timeout",
        ),
        (
            verdict("nccl-timeout"),
            Evidence::default(),
            "compare-sequence-numbers record-collectives check-uneven-data raise-timeout",
        ),
        (
            verdict("address-in-use"),
            log("failed to bind to any local network address. port: 29500, useIpv6: false"),
            "find-port-holder use-free-port",
        ),
        (verdict("address-in-use"), Evidence::default(), "use-free-port"),
        (verdict("no-such-kind"), Evidence::default(), "read-first-error run-under-cublame"),
        (verdict("no-such-kind"), run(Mode::Off, &["python", "train.py"]), "read-first-error"),
    ] {
        check(&verdict, &evidence, ids);
    }
}

#[test]
fn the_numbers_of_an_out_of_memory_decide() {
    const SHRINK: &str = "reduce-batch checkpoint-activations lower-precision evaluate-without-grad find-memory-holder";
    let memory = |requested, capacity, free| Memory {
        requested: Some(requested),
        capacity: Some(capacity),
        free: Some(free),
        ..Memory::default()
    };
    let expandable = "Tried to allocate ... try setting PYTORCH_ALLOC_CONF=expandable_segments:True";
    let split = "Tried to allocate ... See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF";
    for (message, memory, ids) in [
        (split, memory(200 * GIB, 24 * GIB, GIB), "check-requested-shape print-shapes".to_owned()),
        (split, memory(2 * GIB, 6 * GIB, 3 * GIB), "find-memory-limit find-gpu-holders".to_owned()),
        (
            expandable,
            Memory { reserved_unallocated: Some(3 * GIB), ..memory(2 * GIB, 24 * GIB, GIB) },
            format!("use-expandable-segments {SHRINK}"),
        ),
        (
            split,
            Memory { reserved: Some(20 * GIB), allocated: Some(17 * GIB), ..memory(2 * GIB, 24 * GIB, GIB) },
            format!("limit-split-size {SHRINK}"),
        ),
        (
            expandable,
            Memory {
                others: vec![OtherProcess { pid: 4242, bytes: 40 * GIB }, OtherProcess { pid: 4243, bytes: 20 * GIB }],
                ..memory(2 * GIB, 80 * GIB, GIB)
            },
            format!("free-other-processes {SHRINK}"),
        ),
        (
            split,
            Memory { reserved: Some(2 * GIB), allocated: Some(2 * GIB), ..memory(2 * GIB, 24 * GIB, GIB) },
            format!("free-memory-outside {SHRINK}"),
        ),
        (
            expandable,
            Memory { private_pools: Some(46 * GIB), process: Some(79 * GIB), ..memory(2 * GIB, 80 * GIB, GIB) },
            format!("share-graph-pools {SHRINK}"),
        ),
        (
            expandable,
            Memory {
                private_pools: Some(46 * GIB),
                process: Some(79 * GIB),
                reserved_unallocated: Some(20 * GIB),
                ..memory(2 * GIB, 80 * GIB, GIB)
            },
            format!("share-graph-pools use-expandable-segments {SHRINK}"),
        ),
        (
            expandable,
            Memory { process: Some(23 * GIB), reserved_unallocated: Some(0), ..memory(2 * GIB, 24 * GIB, GIB) },
            SHRINK.to_owned(),
        ),
    ] {
        check(&out_of_memory(message, memory), &Evidence::default(), &ids);
    }
    let tensorflow = saying(verdict("oom"), "InternalError", "Dst tensor is not initialized.");
    check(&tensorflow, &Evidence::default(), "grow-tensorflow-memory find-gpu-holders reduce-batch");
}

#[test]
fn advice_reads_in_full() {
    let train = ["python", "train.py", "--name", "my run"];
    let fragmented = Memory {
        requested: Some(GIB + GIB / 2),
        capacity: Some(24 * GIB),
        free: Some(GIB / 4),
        reserved_unallocated: Some(2 * GIB),
        ..Memory::default()
    };
    let held = Memory {
        requested: Some(2 * GIB),
        capacity: Some(80 * GIB),
        free: Some(GIB),
        others: vec![OtherProcess { pid: 4242, bytes: 60 * GIB }],
        ..Memory::default()
    };
    let too_large = Memory { requested: Some(372 * GIB), capacity: Some(24 * GIB), ..Memory::default() };
    let expandable =
        "If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True";
    let label = Verdict { certainty: Certainty::Likely, ..asserting("nll_loss_forward", "t >= 0 && t < n_classes") };
    for (name, verdict, evidence) in [
        ("label_unsettled", label, run(Mode::Trace, &train)),
        ("illegal_address_exact", exact(verdict("illegal-address")), run(Mode::Blocking, &train)),
        (
            "no_kernel_image_sm_120",
            verdict("no-kernel-image"),
            started_by(log(SM_120), "/home/dev/.venv/bin/python", "3.12.3"),
        ),
        ("no_kernel_image_sm_60", verdict("no-kernel-image"), log(SM_60)),
        ("driver_too_old", verdict("driver-too-old"), log(&format!("torch 2.11.0+cu130\n{DRIVER}"))),
        ("oom_fragmented", out_of_memory(expandable, fragmented), Evidence::default()),
        ("oom_other_processes", out_of_memory(expandable, held), Evidence::default()),
        ("oom_too_large", out_of_memory(expandable, too_large), Evidence::default()),
        ("nccl_timeout", verdict("nccl-timeout"), log(TIMEOUT)),
        (
            "library_missing",
            verdict("library-missing"),
            log("ImportError: libcudart.so.11.0: cannot open shared object file"),
        ),
        ("gpu_lost", verdict("gpu-lost"), log("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")),
        ("address_in_use", verdict("address-in-use"), log("bind to [::]:29500 (errno: 98 - Address already in use).")),
    ] {
        for language in Language::ALL {
            let suffix = if language == Language::English { "en" } else { "zh" };
            insta::assert_snapshot!(
                format!("{name}.{suffix}"),
                render(&advise(&verdict, &evidence, Texts::get(language)))
            );
        }
    }
}

fn render(advice: &[Advice]) -> String {
    let one = |advice: &Advice| {
        let command = advice.command.iter().flat_map(|command| command.lines()).map(|line| format!("  $ {line}\n"));
        format!("[{}] {}\n  {}\n{}", advice.id, advice.title, advice.detail, command.collect::<String>())
    };
    advice.iter().map(one).collect::<Vec<_>>().join("\n")
}
