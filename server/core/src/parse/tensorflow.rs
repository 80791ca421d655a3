//! What TensorFlow says inside a message: the line that added the failed operation to the graph.

use std::sync::LazyLock;

use regex::Regex;

use super::traceback::Frame;

/// The lines of the failed node, which the message names first: `[[node model/embed (defined at train.py:12) ]]`. A node
/// that a library's layer added has the library's line. Nodes that only feed it stand further down, by other words.
pub fn definition(message: &str) -> Option<Frame> {
    let found = NODE.captures(message)?;
    Some(Frame {
        file: found.get(1)?.as_str().trim().to_owned(),
        line: found.get(2)?.as_str().parse().ok()?,
        ..Frame::default()
    })
}

static NODE: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"\[\[(?:\{\{)?node [^\n\]]{0,400}?\(defined at ([^\n()]+):(\d{1,9})\)"));
