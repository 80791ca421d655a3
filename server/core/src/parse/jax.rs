//! What JAX says inside a message: the source of the operation that an XLA error is about.

use std::sync::LazyLock;

use regex::Regex;

use super::traceback::Frame;

/// The line of the first operation in the message: `source_file="models.py" source_line=689`.
pub fn operation(message: &str) -> Option<Frame> {
    let found = SOURCE.captures(message)?;
    Some(Frame {
        file: found.get(1)?.as_str().to_owned(),
        line: found.get(2)?.as_str().parse().ok()?,
        ..Frame::default()
    })
}

/// A buffer that the dump of an out-of-memory lists, with the line of its operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer {
    pub bytes: u64,
    pub frame: Frame,
}

/// The buffers of the dump, in its order, which is by size:
/// `Buffer 1:`, `Size: 1.00GiB`, `Operator: op_name="..." source_file="a.py" source_line=7`.
pub fn buffers(message: &str) -> Vec<Buffer> {
    let parts = BUFFER.split(message).skip(1);
    let buffers = parts.filter_map(|part| {
        let bytes = super::oom::bytes(SIZE.captures(part)?.get(1)?.as_str())?;
        Some(Buffer { bytes, frame: operation(part)? })
    });
    buffers.take(MOST_BUFFERS).collect()
}

const MOST_BUFFERS: usize = 10;

static BUFFER: LazyLock<Regex> = LazyLock::new(|| super::regex(r"(?m)^\s*Buffer \d+:"));
static SIZE: LazyLock<Regex> = LazyLock::new(|| super::regex(r"Size: ([\d.]+ ?[KMGT]?i?B?)"));
static SOURCE: LazyLock<Regex> = LazyLock::new(|| super::regex(r#"source_file="([^"\n]+)" source_line=(\d+)"#));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_with_its_line_is_read_and_one_without_is_passed_over() {
        let dump = "Largest program allocations in hbm:\n\n  Buffer 1:\n\tSize: 37.25GiB\n\tOperator: op_name=\"jit(f)/dot\" \
            source_file=\"a.py\" source_line=7\n\tXLA Label: fusion\n\tShape: f32[8]\n\t===\n\n  Buffer 2:\n\tSize: 512B\n\tEntry \
            Parameter Subshape: f32[8]\n\t===\n";
        let read: Vec<(u64, String, u32)> =
            buffers(dump).into_iter().map(|buffer| (buffer.bytes, buffer.frame.file, buffer.frame.line)).collect();
        assert_eq!(read, [(39_996_882_944, "a.py".to_owned(), 7)]);
        assert_eq!(buffers("RESOURCE_EXHAUSTED: Out of memory allocating 160000000000 bytes."), []);
    }
}
