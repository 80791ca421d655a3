//! Device-side assertions: the line that CUDA prints for each thread, the verbose one of newer torch, and the report of
//! torch's own device-side assertion handler (c10/cuda/CUDADeviceAssertionHost.cpp).

use std::sync::LazyLock;

use regex::Regex;

use super::{Clean, Taken, What};

/// One assertion that a kernel fired, with how many lines said it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AssertLine {
    pub file: String,
    pub line: u32,
    /// None where the text has none (Windows), or calls it unknown.
    pub kernel: Option<String>,
    pub condition: String,
    pub count: u64,
    /// The verbose line's own words: `Expected 0 <= index < ind_dim_size(10), but got index = 12`.
    pub values: Option<String>,
    pub device: Option<u32>,
}

pub(super) fn is_assert(text: &str) -> bool {
    text.contains("Assertion `") && text.contains("` failed") || text.contains("Assertion failed: `")
}

/// `FILE:LINE: [FUNCTION: ]block: [x,y,z], thread: [x,y,z] Assertion `CONDITION` failed.`
pub(super) fn take(lines: &[&Clean]) -> Option<Taken> {
    let line = lines.first()?;
    if !is_assert(&line.text) {
        return None;
    }
    let found = VERBOSE.captures(&line.text).or_else(|| PLAIN.captures(&line.text))?;
    let kernel = found.name("function").map(|function| kernel_name(function.as_str()));
    Taken::one(
        1,
        What::Assert(AssertLine {
            file: found.name("file")?.as_str().trim().to_owned(),
            line: found.name("line")?.as_str().parse().ok()?,
            kernel: kernel.filter(|kernel| !kernel.is_empty() && kernel != "unknown"),
            condition: found.name("condition")?.as_str().to_owned(),
            count: line.repeats.max(1),
            values: found.name("values").map(|values| values.as_str().trim().to_owned()),
            device: None,
        }),
    )
}

/// The name in an old signature: `void cunn_X_kernel(Dtype *, ..) [with Dtype = float]` is `cunn_X_kernel`.
fn kernel_name(function: &str) -> String {
    let function = function.split(" [with ").next().unwrap_or(function).trim();
    if function.starts_with("operator()") {
        return function.to_owned();
    }
    let head = function.split(['(', '<']).next().unwrap_or(function).trim();
    head.rsplit([' ', '*', '&']).next().unwrap_or(head).to_owned()
}

/// The report of `TORCH_USE_CUDA_DSA` builds: `Assertion failure 0` and a line for each fact.
pub(super) fn take_report(lines: &[&Clean]) -> Option<Taken> {
    REPORT.captures(&lines.first()?.text)?;
    let mut assert = AssertLine { count: 1, ..AssertLine::default() };
    let mut used = 1;
    for line in lines[1..].iter().take(REPORT_LINES) {
        let Some((name, value)) = line.text.split_once(" = ") else { break };
        used += 1;
        match name.trim() {
            "GPU assertion failure message" => assert.condition = value.to_owned(),
            "File containing assertion" => {
                if let Some((file, number)) = value.rsplit_once(':') {
                    assert.file = file.to_owned();
                    assert.line = number.parse().unwrap_or_default();
                }
            }
            "Device function containing assertion" => assert.kernel = Some(value.to_owned()),
            "Device that launched kernel" => assert.device = value.trim().parse().ok(),
            _ => {}
        }
    }
    if assert.condition.is_empty() { None } else { Taken::one(used, What::Assert(assert)) }
}

const REPORT_LINES: usize = 16;

static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"(?P<file>(?:[A-Za-z]:[\\/]|/|\.{1,2}/|<|unknown|[\w.-]+/)?[^\n|:]*?):(?P<line>\d+): (?:(?P<function>.*?): )?",
        r"block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\]:? Assertion `(?P<condition>.*)` failed"
    ))
});

static VERBOSE: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"\[CUDA_KERNEL_ASSERT\] (?P<file>[^\n]*?):(?P<line>\d+): (?:(?P<function>.*?): )?block: .*?",
        r"Assertion failed: `(?P<condition>.*)`(?:: (?P<values>.*))?$"
    ))
});

static REPORT: LazyLock<Regex> = LazyLock::new(|| super::regex(r"^\s*Assertion failure \d+\s*$"));
