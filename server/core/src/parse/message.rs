//! The last line of a traceback without the traceback, lines that tell of a failure, and what continues a message.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::{Clean, Level, Taken, What, assert_line, cuda_error, traceback};
use crate::catalog::facts;
use crate::pattern::patterns;

/// A line outside of any traceback that tells of a failure.
pub(super) fn take(lines: &[&Clean]) -> Option<Taken> {
    let first = lines.first()?;
    let text = first.text.trim_end();
    if text.len() < 6 || NOISE.is_match(text) {
        return None;
    }
    if let Some(kind) = WARNING.captures(text) {
        return take_warning(lines, kind.get(1).map_or("", |rest| rest.as_str()));
    }
    if !tells_of_failure(text) {
        return None;
    }
    let (message, used) = rest(text.trim_start().to_owned(), "", &lines[1..]);
    let what = if first.level.is_some_and(|level| level < Level::Error) {
        What::Warning(message)
    } else {
        What::Message(message)
    };
    Taken::one(1 + used, what)
}

/// Python's `file.py:12: UserWarning: text`, whose text may begin on the next line and go over several.
fn take_warning(lines: &[&Clean], first: &str) -> Option<Taken> {
    let more = lines[1..].iter().take(WARNING_LINES).map(|line| line.text.as_str());
    let more: Vec<&str> = more.take_while(|line| !line.starts_with("  ") && !line.trim().is_empty()).collect();
    let text = std::iter::once(first).chain(more.iter().copied()).collect::<Vec<_>>().join("\n");
    if tells_of_failure(&text) { Taken::one(1, What::Warning(text.trim().to_owned())) } else { None }
}

const WARNING_LINES: usize = 4;

fn tells_of_failure(text: &str) -> bool {
    facts().kind_worded(text).is_some() || cuda_error::find(text).is_some()
}

/// An exception's last line where no traceback stands before it: `Type: message`, the type by its usual endings.
pub(super) fn head(line: &str) -> Option<(String, String)> {
    let (type_name, message) = split(&HEAD, line)?;
    Some((type_name.to_owned(), message.to_owned()))
}

/// The question alone is cheaper than its answer, and every line is asked.
pub(super) fn is_head(line: &str) -> bool {
    HEAD.is_match(line)
}

/// The type that a pattern of heads finds, and the message after the match: a pattern that took the message in would
/// have to run over all of a long line with its slowest engine.
pub(super) fn split<'l>(head: &Regex, line: &'l str) -> Option<(&'l str, &'l str)> {
    let found = head.captures(line)?;
    let type_name = found.name("type")?.as_str();
    Some((type_name, &line[found.get(0)?.end()..]))
}

/// A message from its first line, and how many of the lines after it belong to it.
pub(super) fn rest(first: String, type_name: &str, lines: &[&Clean]) -> (String, usize) {
    let verbose = VERBOSE.is_match(&first) || VERBOSE.is_match(type_name);
    let mut message = first;
    let (mut used, mut blanks) = (0, 0);
    for line in lines.iter().take(MESSAGE_LINES) {
        let text = line.text.trim_end();
        if text.trim().is_empty() {
            blanks += 1;
            if blanks > 2 {
                break;
            }
            continue;
        }
        let tail = TAILS.is_match(text);
        if !tail && (begins_something_else(text) || !verbose || blanks > 0) {
            // A hint in the user's language may stand inside torch's message (a launcher's own words).
            let hint = blanks == 0 && used == 0 && !begins_something_else(text) && next_is_tail(&lines[used + 1..]);
            if !hint {
                break;
            }
        }
        used += blanks + 1;
        blanks = 0;
        message.push('\n');
        message.push_str(text);
    }
    (message, used)
}

/// A compiler's dump or a table of buffers can be this long; what comes after is read on its own.
const MESSAGE_LINES: usize = 400;

fn next_is_tail(lines: &[&Clean]) -> bool {
    lines.first().is_some_and(|line| TAILS.is_match(&line.text))
}

fn begins_something_else(text: &str) -> bool {
    traceback::is_header(text)
        || traceback::frame_of(text).is_some()
        || text.contains("During handling of the above exception")
        || text.contains("The above exception was the direct cause")
        || text.starts_with("terminate called")
        || text.starts_with("Fatal Python error")
        || text.starts_with('╭')
        || text.trim_start().starts_with("from user code:")
        || assert_line::is_assert(text)
        || is_head(text)
        || WARNING.is_match(text)
}

/// What torch, HIP and their C++ side print below the first line of an error.
static TAILS: LazyLock<RegexSet> = LazyLock::new(|| {
    patterns([
        r"^\s*Search for `\w+' in https?://",
        r"^\s*(CUDA|HIP) kernel errors might be asynchronously reported",
        r"^\s*For debugging consider passing",
        r"^\s*For more detailed error information, run with",
        r"^\s*GPU device may be out of range",
        r"^\s*Compile with `TORCH_USE_(CUDA|HIP)_DSA`",
        r"^\s*Device-side assert",
        r"^\s*Exception raised from .+ \(most recent call first\)",
        r"^\s*frame #\d+: ",
        r"^\s*<omitting python frames>",
        r"^\s*what\(\):",
        r"^\s*If (reserved memory is >>|reserved but unallocated memory is large)",
        r"^\s*(Last error:|nccl\w+: |Cuda failure|socket\w+: )",
        r"^\s*You can try to repro this exception",
        r"^\s*Set TORCH(DYNAMO_VERBOSE|_LOGS)",
        r"^\s*(Currently allocated|Requested|Device limit|Free \(according to CUDA\)|PyTorch limit|: )\b.*",
        r"^\s*\[operation:|^\s*in function \w|^\s*current device: \d",
    ])
});

/// Types and beginnings whose message goes on over lines of its own until a blank line.
static VERBOSE: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"CompilationError|XlaRuntimeError|JaxRuntimeError|DistBackendError|NCCL error|OutOfResources|",
        r"cuDNN error|CUDNN_STATUS|InternalTorchDynamo|BackendCompilerFailed|InductorError|TypingError|NvvmError|PTXASError|",
        r"_dynamo\.exc|TorchRuntimeError|:$|ImportError|OSError|errors_impl\.|CompileException|NoTritonConfig|Size mismatch|ptxas",
    ))
});

static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"^\s{0,8}(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*",
        r"(?:Error|Exception|Interrupt|Exhausted|OutOfResources|OOM|Exit|ProcessExitedException)(?:\([A-Za-z_.]+\))?)(?:$|:$|:\s)",
    ))
});

static WARNING: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"^(?:.*:\d+: |\s*)(?:[A-Za-z_]\w*\.)*[A-Z]\w*Warning: ?(.*)$"));

/// Lines that hold an error's words and tell of none: code, help, settings, libraries that are registered twice.
static NOISE: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"Unable to register \w+ factory|^\s*(raise|except|if|return|print|assert|try|def|class|import|from|with|for|while)\b|",
        r"^\s*Search for `|^\s*[\w.]+ ?= ?|^\s*#|^\s*(//|\*|/\*)",
    ))
});
