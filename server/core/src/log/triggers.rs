//! What the lines of a failure look like, as literals that a vector search finds at memory speed.
//!
//! A log is mostly not about its failure. Between failures only these words are looked for;
//! each is rare in the output of a healthy training run and at least one stands in or near every line that a parser reads.

use std::sync::OnceLock;

use aho_corasick::packed;

const TRIGGERS: [&str; 44] = [
    // Python, IPython, rich, faulthandler
    "Traceback",
    "Error",
    "Exception",
    "File \"",
    "most recent call",
    "Cell In",
    // device code
    "Assertion",
    "CUDA error",
    "CUDA_ERROR",
    "HIP error",
    "cuda runtime error",
    "Cuda failure",
    "CUDA failure",
    "THCudaCheck",
    "========= ",
    "_STATUS_",
    "no kernel image",
    "not compatible",
    "ptxas",
    // memory
    "out of memory",
    "Out of memory",
    "OOM",
    "oom-kill",
    "RESOURCE_EXHAUSTED",
    "shared memory",
    // the process and its host
    "Killed",
    "core dumped",
    "egmentation fault",
    "Bus error",
    "Fatal",
    "Signal",
    "SIG",
    "terminate called",
    "what():",
    "undefined symbol",
    "cannot open shared",
    "NVRM: Xid",
    "fabric",
    // several processes
    "ERROR",
    "FAILED",
    "Watchdog",
    "WARN",
    "Warning",
    "exitcode",
];

/// The first place at or after `from` where a failure may be told of.
pub(super) fn find(haystack: &[u8], from: usize) -> Option<usize> {
    static SEARCHER: OnceLock<Option<packed::Searcher>> = OnceLock::new();
    let searcher = SEARCHER
        .get_or_init(|| packed::Config::new().builder().extend(TRIGGERS.iter().map(|word| word.as_bytes())).build());
    match searcher {
        Some(searcher) => searcher
            .find_in(haystack, aho_corasick::Span { start: from, end: haystack.len() })
            .map(|found| found.start()),
        // A processor without the vector instructions: slower, the same answer.
        None => TRIGGERS
            .iter()
            .filter_map(|word| memchr::memmem::find(&haystack[from..], word.as_bytes()))
            .min()
            .map(|offset| from + offset),
    }
}
