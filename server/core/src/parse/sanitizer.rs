//! compute-sanitizer's report: the kernel's line, and the Python frames of the launch (docs.nvidia.com/compute-sanitizer).

use std::sync::LazyLock;

use regex::Regex;

use super::traceback::Frame;
use super::{Clean, Taken, What};

/// One fault. Equal faults of other threads follow in their hundreds; the first tells all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fault {
    /// `Invalid __global__ write of size 8 bytes`
    pub what: String,
    pub misaligned: bool,
    pub kernel: Option<String>,
    /// The kernel's own line, known with `-lineinfo`.
    pub kernel_file: Option<String>,
    pub kernel_line: Option<u32>,
    /// The Python frames of the launch, outermost first.
    pub frames: Vec<Frame>,
}

pub(super) fn take(lines: &[&Clean]) -> Option<Taken> {
    let what = WHAT.captures(&lines.first()?.text)?.get(1)?.as_str().to_owned();
    let mut fault = Fault { what, ..Fault::default() };
    let mut used = 1;
    for line in lines[1..].iter().take(BLOCK_LINES) {
        let Some(text) = line.text.strip_prefix("=========") else { break };
        let text = text.trim();
        used += 1;
        if text.is_empty() {
            break;
        }
        if let Some(at) = KERNEL.captures(text) {
            fault.kernel = at.get(1).map(|name| name.as_str().to_owned());
            fault.kernel_file = at.get(2).map(|file| file.as_str().to_owned());
            fault.kernel_line = at.get(3).and_then(|line| line.as_str().parse().ok());
        } else if text.contains("is misaligned") {
            fault.misaligned = true;
        } else if let Some(frame) = HOST.captures(text) {
            fault.frames.push(Frame {
                file: frame.get(2)?.as_str().to_owned(),
                line: frame.get(3)?.as_str().parse().ok()?,
                function: frame.get(1).map(|name| name.as_str().to_owned()),
                ..Frame::default()
            });
        }
    }
    fault.frames.reverse();
    Taken::one(used, What::Sanitizer(fault))
}

const BLOCK_LINES: usize = 400;

static WHAT: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"^========= (Invalid __\w+__ \w+ of size .*|(?:Misaligned|Out-of-range) .*)$"));
static KERNEL: LazyLock<Regex> = LazyLock::new(|| super::regex(r"^at ([\w:~]+).*?(?: in (\S+):(\d+))?$"));
static HOST: LazyLock<Regex> = LazyLock::new(|| super::regex(r"^Host Frame: ?(\S+) in ([^\n]*\.py):(\d+)$"));
