//! The shapes that tracebacks come in, and what launchers, loggers, terminals and people put round them.

use cublame_core::blame::blame;
use cublame_core::catalog::{Language, Texts};
use cublame_core::log::Log;
use cublame_core::{Evidence, Sources, Verdict};

/// The root cause's verdict on a text.
fn explain(text: &str) -> Option<Verdict> {
    let evidence = Evidence { log: Some(Log::from_text(text)), ..Evidence::default() };
    blame(&evidence, &Sources::default(), Texts::get(Language::English)).into_iter().next()
}

/// A traceback as Python prints it, in the shape that each prefix leaves it.
const TRACEBACK: &str = r#"Traceback (most recent call last):
  File "/home/dev/proj/train.py", line 88, in <module>
    main()
  File "/home/dev/proj/train.py", line 51, in main
    out = model(x)
          ^^^^^^^^
  File "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py", line 1511, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
RuntimeError: CUDA error: invalid configuration argument
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."#;

#[test]
fn prefixes_of_launchers_loggers_and_people() {
    for (prefix, rank) in [
        ("", None),
        ("[rank3]: ", Some(3)),
        ("[rank3]:[rank3]: ", Some(3)),
        ("[default3]:", Some(3)),
        ("[1,3]<stderr>:", Some(3)),
        ("3: ", Some(3)),
        (" 3: ", Some(3)),
        ("(Worker_TP3 pid=812) ", Some(3)),
        ("(EngineCore pid=306) ", None),
        ("(VllmWorker rank=3 pid=226) ERROR 06-26 23:10:17 [multiproc_executor.py:527] ", Some(3)),
        ("1;36m(VllmWorker rank=3 pid=226)[0;0m ERROR 06-26 23:10:17 [multiproc_executor.py:527] ", Some(3)),
        ("[2024-10-16 07:40:30 TP3] ", Some(3)),
        ("[80746] [rank3]: ", Some(3)),
        ("Rank 3: ", Some(3)),
        ("worker-1: [rank3]: ", Some(3)),
        ("10.0.0.1: ", None),
        ("[2024-07-22 10:38:57,218][root][ERROR] - ", None),
        ("[ERROR|trainer.py:2134] 2024-07-22 10:38:57,218 >> ", None),
        ("10:38:57 ERROR ", None),
        ("[0;31m", None),
        ("\\u001b[31m", None),
        ("(EngineCore_0 pid=306) ERROR 02-28 08:53:58 [core.py:880] ", None),
        ("(RayTrainWorker pid=123, ip=10.0.0.1) ", None),
        ("ERROR 09-27 06:46:46 engine.py:157] ", None),
        ("2024-07-22T10:38:57.218681532+08:00 ", None),
        ("2024-07-22T10:38:57.2186815Z ", None),
        ("2024-07-22T10:38:57Z stderr F ", None),
        ("Oct 04 15:02:41 host1 app-start[394]: ", None),
        ("2019-06-29 14:47:24,761 - trainLog - ERROR - ", None),
        ("2024-02-29 03:40:55.235 | ERROR    | nndet.planning.estimator:measure:242 - ", None),
        ("[2023-08-12 10:11:12,345] [ERROR] [engine.py:12:step] ", None),
        ("ERROR:root:", None),
        ("[ERROR] ", None),
        ("trainer-1  | ", None),
        ("[pod/train-0/main] ", None),
        ("E1120 10:59:55.894873   35984 file.cc:3067] ", None),
        ("[rank3]:[E1206 18:44:16.990000000 ProcessGroupNCCL.cpp:621] [Rank 3] ", Some(3)),
        ("E   ", None),
        ("> ", None),
        ("# ", None),
        ("│ ERROR 09-27 06:46:46 engine.py:157] ", None),
        ("\u{1b}[31m", None),
        ("  0%|          | 0/70 [00:00<?, ?it/s]\r", None),
    ] {
        let text: String = TRACEBACK.lines().map(|line| format!("{prefix}{line}\n")).collect();
        let verdict = explain(&text).unwrap_or_else(|| panic!("no verdict after {prefix:?}"));
        assert_eq!(verdict.kind, "invalid-configuration", "{prefix:?}");
        let reported = verdict.reported.unwrap_or_else(|| panic!("no place after {prefix:?}"));
        assert_eq!((reported.file.as_str(), reported.line), ("/home/dev/proj/train.py", 51), "{prefix:?}");
        assert_eq!(reported.function.as_deref(), Some("main"), "{prefix:?}");
        assert_eq!(verdict.rank, rank, "{prefix:?}");
        assert_eq!(verdict.frames.len(), 3, "{prefix:?}");
    }
}

#[test]
fn interleaved_ranks_are_told_apart() {
    let ranks = [2, 0].map(|rank| TRACEBACK.lines().map(move |line| format!("[rank{rank}]: {line}")));
    let [first, second] = ranks;
    let text: String = first.zip(second).flat_map(|(one, other)| [one + "\n", other + "\n"]).collect();
    let verdict = explain(&text).unwrap();
    assert_eq!((verdict.rank, verdict.frames.len()), (Some(2), 3));
    assert_eq!(verdict.reported.unwrap().line, 51);
}

#[test]
fn shapes_of_tracebacks() {
    for (name, text, file, line) in [
        ("carets", TRACEBACK.to_owned(), "/home/dev/proj/train.py", 51),
        ("collapsed", TRACEBACK.replace('\n', ""), "/home/dev/proj/train.py", 51),
        ("escaped in JSON", format!("{{\"exc_info\": \"{}\"}}", TRACEBACK.replace('"', "\\\"").replace('\n', "\\n")), "/home/dev/proj/train.py", 51),
        ("indentation lost", TRACEBACK.lines().map(|line| format!("{}\n", line.trim_start())).collect(), "/home/dev/proj/train.py", 51),
        ("blank lines between", TRACEBACK.replace('\n', "\n\n"), "/home/dev/proj/train.py", 51),
        ("carriage returns", TRACEBACK.replace('\n', "\r\n"), "/home/dev/proj/train.py", 51),
        (
            "a cause of which the header alone is left",
            format!("Traceback (most recent call last):\n\nDuring handling of the above exception, another exception occurred:\n\n{TRACEBACK}"),
            "/home/dev/proj/train.py",
            51,
        ),
        (
            "worker of a data loader",
            "Traceback (most recent call last):\n  File \"/p/train.py\", line 9, in <module>\n    for b in loader:\n  File \"/v/site-packages/torch/_utils.py\", line 700, in reraise\n    raise exception\nRuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n  File \"/v/site-packages/torch/utils/data/_utils/worker.py\", line 3, in _worker_loop\n    data = fetcher.fetch(index)\n  File \"/p/data.py\", line 6, in __getitem__\n    return x.cuda()\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/p/data.py",
            6,
        ),
        (
            "spawned process",
            "Traceback (most recent call last):\n  File \"/p/main.py\", line 30, in <module>\n    mp.spawn(f, nprocs=2)\n  File \"/v/site-packages/torch/multiprocessing/spawn.py\", line 160, in join\n    raise ProcessRaisedException(msg, error_index, failed_process.pid)\ntorch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n  File \"/v/site-packages/torch/multiprocessing/spawn.py\", line 69, in _wrap\n    fn(i, *args)\n  File \"/p/work.py\", line 12, in f\n    y = g(x)\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/p/work.py",
            12,
        ),
        (
            "remote traceback of multiprocessing",
            "multiprocessing.pool.RemoteTraceback: \n\"\"\"\nTraceback (most recent call last):\n  File \"/usr/lib/python3.10/multiprocessing/pool.py\", line 125, in worker\n    result = (True, func(*args, **kwds))\n  File \"/p/work.py\", line 12, in f\n    y = g(x)\nRuntimeError: CUDA error: invalid configuration argument\n\"\"\"\n\nThe above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"/p/main.py\", line 30, in <module>\n    pool.map(f, xs)\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/p/work.py",
            12,
        ),
        (
            "ray",
            "ray.exceptions.RayTaskError(RuntimeError): \u{1b}[36mray::train()\u{1b}[39m (pid=12, ip=10.0.0.1)\n  File \"/p/work.py\", line 12, in train\n    y = g(x)\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/p/work.py",
            12,
        ),
        (
            "loguru",
            "2024-02-29 03:40:55.235 | ERROR    | __main__:main:7 - failed\nTraceback (most recent call last):\n\n  File \"/p/a.py\", line 9, in <module>\n    main()\n    └ <function main at 0x7f>\n\n> File \"/p/a.py\", line 5, in main\n    y = g(x)\n        │ └ tensor\n        └ <function g at 0x7f>\n\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/p/a.py",
            5,
        ),
        (
            "exception group",
            "  + Exception Group Traceback (most recent call last):\n  |   File \"/p/main.py\", line 3, in <module>\n  |     asyncio.run(main())\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"/p/work.py\", line 12, in f\n    |     y = g(x)\n    | RuntimeError: CUDA error: invalid configuration argument\n    +------------------------------------\n".to_owned(),
            "/p/work.py",
            12,
        ),
        (
            "torch.compile",
            "Traceback (most recent call last):\n  File \"/p/main.py\", line 3, in <module>\n    f(x)\n  File \"/v/site-packages/torch/_dynamo/utils.py\", line 9, in run_node\n    return node()\ntorch._dynamo.exc.TorchRuntimeError: Failed running call_function <built-in>:\nCUDA error: invalid configuration argument\n\nfrom user code:\n   File \"/p/model.py\", line 12, in forward\n    y = g(x)\n\nSet TORCH_LOGS=\"+dynamo\" for more information\n".to_owned(),
            "/p/model.py",
            12,
        ),
        (
            "IPython of today",
            "---------------------------------------------------------------------------\nRuntimeError                              Traceback (most recent call last)\nCell In[5], line 3\n      1 import x\n----> 3 train()\n\nFile ~/proj/work.py:12, in train(a, b)\n     11 x = 1\n---> 12 y = g(x)\n\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "~/proj/work.py",
            12,
        ),
        (
            "IPython 8.0",
            "RuntimeError                              Traceback (most recent call last)\nInput In [5], in <cell line: 3>()\n      1 import x\n----> 3 train()\n\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "Input In [5]",
            3,
        ),
        (
            "IPython of old",
            "RuntimeError                              Traceback (most recent call last)\n<ipython-input-15-0312a913726b> in <module>()\n      1 import x\n----> 2 train()\n\n/home/dev/proj/work.py in train(a)\n     11 x = 1\n---> 12 y = g(x)\n     13 \n\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/home/dev/proj/work.py",
            12,
        ),
        (
            "notebook kernel's file",
            "RuntimeError                              Traceback (most recent call last)\n/tmp/ipykernel_19/3010846500.py in <cell line: 0>()\n      4 lora = 32\n----> 6 train()\n\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/tmp/ipykernel_19/3010846500.py",
            6,
        ),
        (
            "rich, with a path that wraps and locals",
            "╭───────────── Traceback (most recent call last) ──────────────╮\n│ /home/dev/a/very/long/path/to/the/project/of/some/rese        │\n│ arch/group/train.py:61 in main                                │\n│                                                               │\n│   60 │   x = 1                                                │\n│ ❱ 61 │   y = g(x)                                             │\n│   62                                                          │\n│                                                               │\n│ ╭──────── locals ─────────╮                                   │\n│ │ x = 'a.py:3 in b'       │                                   │\n│ ╰─────────────────────────╯                                   │\n╰───────────────────────────────────────────────────────────────╯\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/home/dev/a/very/long/path/to/the/project/of/some/research/group/train.py",
            61,
        ),
        (
            "pytest, long",
            "    def test_forward():\n>       y = g(x)\n\ntests/test_a.py:7: \n_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _\n\nx = 1\n\n    def g(x):\n>       return h(x)\nE       RuntimeError: CUDA error: invalid configuration argument\nE       CUDA kernel errors might be asynchronously reported at some other API call\n\nsrc/model.py:12: RuntimeError\n".to_owned(),
            "src/model.py",
            12,
        ),
        (
            "pytest, short",
            "tests/test_a.py:7: in test_forward\n    y = g(x)\nsrc/model.py:12: in g\n    return h(x)\nE   RuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "src/model.py",
            12,
        ),
        (
            "Windows",
            "Traceback (most recent call last):\n  File \"D:\\my work\\proj\\main.py\", line 51, in main\n    y = g(x)\n  File \"C:\\Python310\\lib\\site-packages\\torch\\nn\\functional.py\", line 3, in f\n    return h(x)\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "D:\\my work\\proj\\main.py",
            51,
        ),
        (
            "recursion",
            "Traceback (most recent call last):\n  File \"/p/a.py\", line 5, in f\n    f()\n  File \"/p/a.py\", line 5, in f\n    f()\n  [Previous line repeated 996 more times]\n  File \"/p/a.py\", line 6, in f\n    g()\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/p/a.py",
            6,
        ),
        (
            "Docker's json-file",
            TRACEBACK.lines().map(|line| format!("{{\"log\":{},\"stream\":\"stderr\",\"time\":\"2024-07-22T10:38:57Z\"}}\n", serde_json::to_string(&format!("{line}\n")).unwrap())).collect(),
            "/home/dev/proj/train.py",
            51,
        ),
        (
            "notebook in VS Code",
            "RuntimeError                              Traceback (most recent call last)\n/home/dev/proj/nb.ipynb Cell 5 line 3\n      <a>1</a> import x\n----> 3 train()\n\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/home/dev/proj/nb.ipynb Cell 5",
            3,
        ),
        (
            "spawned child of Windows",
            "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n  File \"C:\\Python310\\lib\\multiprocessing\\spawn.py\", line 116, in spawn_main\n    exitcode = _main(fd)\n  File \"C:\\p\\a.py\", line 6, in work\n    g()\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "C:\\p\\a.py",
            6,
        ),
        (
            "thread",
            "Exception in thread Thread-3 (work):\nTraceback (most recent call last):\n  File \"/usr/lib/python3.12/threading.py\", line 1073, in _bootstrap_inner\n    self.run()\n  File \"/p/a.py\", line 6, in work\n    g()\nRuntimeError: CUDA error: invalid configuration argument\n".to_owned(),
            "/p/a.py",
            6,
        ),
    ] {
        let verdict = explain(&text).unwrap_or_else(|| panic!("no verdict: {name}"));
        assert_eq!(verdict.kind, "invalid-configuration", "{name}");
        let reported = verdict.reported.unwrap_or_else(|| panic!("no place: {name}"));
        assert_eq!((reported.file.as_str(), reported.line), (file, line), "{name}");
    }
}

#[test]
fn tracebacks_nested_without_end_do_not_exhaust_the_stack() {
    for nested in [
        "RuntimeError: Caught\nOriginal Traceback (most recent call last):\n",
        "  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: x\n",
        "ValueError: x\n\nDuring handling of the above exception, another exception occurred:\n\n",
        "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n",
    ] {
        let text = format!("{}RuntimeError: CUDA error: invalid configuration argument\n", nested.repeat(4_000));
        assert!(explain(&text).is_some(), "{nested}");
    }
}

/// Frames that come to nothing take no more than some lines with them.
#[test]
fn frames_without_their_lines_do_not_hide_what_follows() {
    let text = "/tmp/ipykernel_19/30.py in <cell line: 0>()\n      4 rank = 32\n".repeat(500);
    let verdict = explain(&format!("{text}\n{TRACEBACK}")).unwrap();
    assert_eq!((verdict.kind.as_str(), verdict.reported.unwrap().line), ("invalid-configuration", 51));
}
