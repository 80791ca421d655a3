//! Tracebacks that rich draws in a box: paths that wrap, `❱` before the failing line, guides in the code, panels of locals.

use std::sync::LazyLock;

use regex::Regex;

use super::traceback::{Chain, Frame, Link, Reader};
use super::{Clean, Taken, What, message};

pub(super) fn take(lines: &[&Clean]) -> Option<Taken> {
    let (mut chain_links, used) = links(lines)?;
    let mut reader = Reader::new(lines, used);
    while reader.connected(&mut chain_links) {}
    let (used, rank) = (reader.at, reader.rank);
    Some(Taken { lines: used, what: vec![(rank, What::Exception(Chain { links: chain_links, ..Chain::default() }))] })
}

/// One box and the exception's line below it.
pub(super) fn links(lines: &[&Clean]) -> Option<(Vec<Link>, usize)> {
    let first = lines.first()?.text.trim();
    if !first.starts_with(['╭', '┌']) || !first.contains("Traceback (most recent call last)") {
        return None;
    }
    let mut frames: Vec<Frame> = Vec::new();
    let mut location = String::new();
    let mut used = 1;
    let mut locals = false;
    while let Some(line) = lines.get(used) {
        let text = line.text.trim();
        if text.starts_with(['╰', '└']) {
            used += 1;
            break;
        }
        let Some(content) = content(text) else { break };
        used += 1;
        if content.trim_start().starts_with(['╭', '┌']) {
            locals = true;
        } else if content.trim_start().starts_with(['╰', '└']) {
            locals = false;
        } else if locals || content.trim().is_empty() {
            location.clear();
        } else if let Some(code) = CODE.captures(content) {
            location.clear();
            if code.name("mark").is_some()
                && let Some(frame) = frames.last_mut()
                && code.name("number").is_some_and(|number| number.as_str().parse() == Ok(frame.line))
            {
                frame.source = code.name("code").map(|code| without_guides(code.as_str()));
            }
        } else if location.len() < LONGEST_PATH {
            // A path wider than the box goes on in the next line, cut anywhere.
            location.push_str(content.trim_end());
            if let Some(found) = LOCATION.captures(&location) {
                frames.push(Frame {
                    file: found.name("file")?.as_str().trim().to_owned(),
                    line: found.name("line")?.as_str().parse().ok()?,
                    function: found.name("function").map(|name| name.as_str().trim().to_owned()),
                    ..Frame::default()
                });
                location.clear();
            }
        }
    }
    let mut links = Vec::new();
    let mut reader = Reader::new(lines, used);
    let link = Link { frames, ..Link::default() };
    match lines.get(used).and_then(|line| message::head(&line.text)) {
        Some((type_name, first)) => {
            reader.at += 1;
            reader.finish(Link { type_name, ..link }, first, &mut links);
        }
        None => links.push(link),
    }
    Some((links, reader.at))
}

const LONGEST_PATH: usize = 4096;

/// What stands between the borders.
fn content(text: &str) -> Option<&str> {
    let inner = text.strip_prefix(['│', '┃', '|'])?;
    let inner = inner.strip_suffix(['│', '┃', '|']).unwrap_or(inner);
    Some(inner.strip_prefix(' ').unwrap_or(inner))
}

/// rich draws a guide for each level of indentation.
fn without_guides(code: &str) -> String {
    code.trim_start_matches([' ', '│']).trim_end().to_owned()
}

static CODE: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"^\s*(?P<mark>❱ *)?(?P<number>\d+) (?:│|\|)?(?P<code>.*)$"));

static LOCATION: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(r"^(?:in )?(?P<file>(?:[A-Za-z]:)?[^:\n]+):(?P<line>\d+)(?: in (?P<function>\S.*)|$)")
});
