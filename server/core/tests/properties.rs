//! Any text gives verdicts or none, never a panic, and what they promise holds.

#![expect(clippy::unwrap_used, reason = "the helpers of a test may fail it")]

use cublame_core::blame::{blame, wanted};
use cublame_core::catalog::{Language, Texts};
use cublame_core::log::{Line, Log, Stream};
use cublame_core::source::Source;
use cublame_core::{Certainty, Evidence, Sources};
use proptest::prelude::*;

/// Lines and parts of lines that grammars look for, to be cut and mixed.
const PIECES: [&str; 44] = [
    "Traceback (most recent call last):",
    "  + Exception Group Traceback (most recent call last):",
    "Original Traceback (most recent call last):",
    "RuntimeError                              Traceback (most recent call last)",
    "╭───── Traceback (most recent call last) ─────╮",
    "│ /p/a.py:3 in f                              │",
    "│ ❱ 3 │   y = g(x)                            │",
    "╰─────────────────────────────────────────────╯",
    "  File \"/p/a.py\", line 3, in f",
    "  File \"<string>\", line 99999999999, in <module>",
    "    y = g(x)",
    "        ~^~~",
    "  [Previous line repeated 996 more times]",
    "Cell In[5], line 3",
    "----> 3 train()",
    "<ipython-input-15-ab> in <module>()",
    "/p/a.py in f(x)",
    "tests/test_a.py:7: in test_f",
    "src/a.py:12: RuntimeError",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: Caught RuntimeError in DataLoader worker process 0.",
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
    "from user code:",
    "-- Process 1 terminated with the following error:",
    "\"\"\"",
    "/a/b.cu:16: kernel: block: [0,0,0], thread: [0,0,0] Assertion `i < n` failed.",
    "[CUDA_KERNEL_ASSERT] /a/b.cu:16: k: block: [0,0,0], thread: [0,0,0]: Assertion failed: `i < n`: got 3",
    "Assertion failure 0",
    "  GPU assertion failure message = i < n",
    "========= Invalid __global__ write of size 8 bytes",
    "=========     at k(float *)+0x70 in ext.cu:6",
    "=========         Host Frame: f in a.py:3",
    "Fatal Python error: Segmentation fault",
    "Current thread 0x7f (most recent call first):",
    "Failures:",
    "Root Cause (first observed failure):",
    "[0]:",
    "  rank      : 1 (local_rank: 1)",
    "  exitcode  : -9 (pid: 78971)",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9999999999999999999.99 TiB (GPU 0; 1 GiB total capacity)",
    "[rank3]:[E1206 18:44:16.99 ProcessGroupNCCL.cpp:621] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=99999999999999999999)",
    "a.py:3: UserWarning: Error detected in MulBackward0. Traceback of forward call that caused the error:",
    "{\"log\":\"Traceback (most recent call last):\\n\"}",
];

fn line() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(&PIECES[..]).prop_map(str::to_owned);
    let prefix = prop::sample::select(vec![
        "",
        "[rank1]: ",
        "  | ",
        "E   ",
        "> ",
        "│ ERROR 09-27 06:46:46 a.py:1] ",
        "  0%|  | 0/7 [00:00<?, ?it/s]",
    ]);
    let cut = (piece.clone(), any::<prop::sample::Index>()).prop_map(|(piece, at)| {
        let ends: Vec<usize> = piece.char_indices().map(|(at, _)| at).collect();
        piece[at.get(&ends).to_owned()..].to_owned()
    });
    prop_oneof![
        6 => (prefix, piece).prop_map(|(prefix, piece)| format!("{prefix}{piece}")),
        2 => cut,
        1 => "[ -~│❱\t\\u{1b}]{0,60}",
        1 => any::<String>(),
        1 => Just(String::new()),
    ]
}

fn check(log: Log, blocking: bool, source: &str) {
    let evidence = Evidence { log: Some(log), blocking, ..Evidence::default() };
    let mut sources = Sources::new(vec!["/p".to_owned()]);
    for _ in 0..4 {
        for name in wanted(&evidence, &sources) {
            assert!(!sources.asked(&name), "{name} is wanted again");
            let found = Source { path: name.clone(), text: source.into() };
            sources.insert(name.clone(), name.starts_with('/').then_some(found));
        }
    }
    for verdict in blame(&evidence, &sources, Texts::get(Language::SimplifiedChinese)) {
        assert_eq!(verdict.place.is_none(), verdict.certainty == Certainty::Unknown);
        assert!(!verdict.trace_trusted || verdict.reported.is_some());
        for place in verdict.place.iter().chain(&verdict.reported).chain(&verdict.candidates) {
            assert!(place.column.is_none() || place.column <= place.end_column);
        }
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<cublame_core::Verdict>(&text).unwrap(), verdict);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_give_sound_verdicts(
        lines in prop::collection::vec((line(), 0u8..3, 0u64..3), 0..40),
        blocking: bool,
        source in "([ a-z=().]{0,20}\n){0,8}",
    ) {
        let stream = |number| [Stream::Stdout, Stream::Stderr, Stream::Mixed][usize::from(number)];
        let lines = lines.into_iter().enumerate().map(|(index, (text, number, repeats))| Line {
            stream: stream(number),
            number: index as u64 + 1,
            text,
            repeats,
        });
        check(Log { lines: lines.collect(), ..Log::default() }, blocking, &source);
    }

    #[test]
    fn any_text_gives_sound_verdicts(text: String, blocking: bool) {
        check(Log::from_text(&text), blocking, "");
    }
}
