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

static SOURCE: LazyLock<Regex> = LazyLock::new(|| super::regex(r#"source_file="([^"\n]+)" source_line=(\d+)"#));
