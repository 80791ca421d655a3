//! Lines that lost their line ends: a traceback pasted into one line, or escaped inside a string of JSON or a repr.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// The lines that a line was made of; the line itself where it is one.
pub fn separate(text: &str) -> Vec<Cow<'_, str>> {
    // Docker's json-file driver keeps each line as `{"log":"..\\n","stream":"stderr","time":".."}`.
    if text.starts_with("{\"log\":\"")
        && let Ok(serde_json::Value::Object(record)) = serde_json::from_str(text)
        && let Some(serde_json::Value::String(line)) = record.get("log")
    {
        return vec![Cow::Owned(line.trim_end_matches(['\r', '\n']).to_owned())];
    }
    if text.contains(r"Traceback (most recent call last):\n") {
        let text = text.replace(r"\n", "\n").replace("\\\"", "\"");
        return text.split('\n').map(|line| Cow::Owned(line.to_owned())).collect();
    }
    let glued = text.contains("Traceback (most recent call last):File \"");
    if !glued && text.matches("File \"").nth(1).is_none() {
        return vec![Cow::Borrowed(text)];
    }
    let mut lines = Vec::new();
    let mut from = 0;
    for start in STARTS.find_iter(text).map(|found| found.start()).chain([text.len()]) {
        if start > from {
            lines.push(Cow::Borrowed(without_glued_function(&text[from..start])));
            from = start;
        }
    }
    lines
}

/// The name of the function and the line of source ran into one word, so neither can be told.
fn without_glued_function(line: &str) -> &str {
    FRAME.find(line).map_or(line, |frame| frame.as_str())
}

static STARTS: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r#"(?:\w+ )?Traceback \(most recent call last\)|File "|Search for `|(?:CUDA|HIP) kernel errors might|For debugging consider|Compile with `TORCH|terminate called|what\(\):|"#,
        r"During handling of the above|The above exception was|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ",
    ))
});

static FRAME: LazyLock<Regex> = LazyLock::new(|| super::regex(r#"^File "[^"]+", line \d+"#));
