//! pytest's own tracebacks: `tests/test_a.py:7: in test_forward` and code (short), or code and then
//! `src/model.py:12: RuntimeError` (long). The exception's line stands before the last place.

use std::sync::LazyLock;

use regex::Regex;

use super::traceback::{Chain, Frame, Link};
use super::{Clean, Taken, What, message};

pub(super) fn take(lines: &[&Clean]) -> Option<Taken> {
    location(&lines.first()?.text)?;
    let mut link = Link::default();
    let mut used = 0;
    let mut end = 0;
    while let Some(line) = lines.get(used).filter(|_| used < end + CODE_LINES) {
        let text = line.text.as_str();
        if let Some((frame, named)) = location(text) {
            link.frames.push(frame);
            used += 1;
            end = used;
            if named || !link.type_name.is_empty() {
                break;
            }
        } else if let Some((type_name, first)) = message::head(text).filter(|_| link.type_name.is_empty()) {
            let (whole, more) = message::rest(first, &type_name, &lines[used + 1..]);
            link.type_name = type_name;
            link.message = whole;
            used += 1 + more;
            end = used;
        } else {
            used += 1;
        }
    }
    Taken::one(end, What::Exception(Chain { links: vec![link], ..Chain::default() }))
}

/// The code of a function and a rule between the functions.
const CODE_LINES: usize = 120;

/// A place, and whether the exception's type stands after it, which ends the traceback.
pub(super) fn location(line: &str) -> Option<(Frame, bool)> {
    let found = LOCATION.captures(line)?;
    let frame = Frame {
        file: found.name("file")?.as_str().to_owned(),
        line: found.name("line")?.as_str().parse().ok()?,
        function: found.name("function").map(|name| name.as_str().to_owned()),
        ..Frame::default()
    };
    Some((frame, found.name("type").is_some()))
}

static LOCATION: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"^(?P<file>(?:[A-Za-z]:)?[^\s:][^:\n]*\.py):(?P<line>\d+): ?",
        r"(?:in (?P<function>\S+)|(?P<type>(?:[a-z_]\w*\.)*[A-Z]\w*))?$"
    ))
});
