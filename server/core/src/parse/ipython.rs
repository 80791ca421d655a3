//! Tracebacks of IPython and notebooks, in the shapes it had over the years: `Cell In[5], line 3`,
//! `File PATH:674, in Class.method(args)`, `PATH in function(args)`, `<ipython-input-15-hash> in <module>`.

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

/// `RuntimeError                              Traceback (most recent call last)`
pub(super) fn is_header(line: &str) -> bool {
    HEADER.is_match(line)
}

/// One traceback of IPython's, with or without its header, and the exception's line below it.
pub(super) fn links(lines: &[&Clean]) -> Option<(Vec<Link>, usize)> {
    let first = lines.first()?.text.as_str();
    let mut used = 0;
    let named = HEADER.captures(first).and_then(|found| Some(found.get(1)?.as_str().to_owned()));
    if named.is_some() {
        used += 1;
    } else {
        location(first)?;
        let code_follows = lines.get(1).is_some_and(|line| CODE.is_match(&line.text));
        if !code_follows {
            return None;
        }
    }
    let mut frames: Vec<Frame> = Vec::new();
    while let Some(line) = lines.get(used) {
        let text = line.text.as_str();
        if used > FRUITLESS && frames.iter().all(|frame| frame.line == 0) {
            break;
        }
        if text.trim().is_empty() {
            used += 1;
        } else if let Some(frame) = location(text) {
            frames.push(frame);
            used += 1;
        } else if let (Some(code), Some(frame)) = (CODE.captures(text), frames.last_mut()) {
            if code.name("mark").is_some()
                && let Some(number) = code.name("number").and_then(|number| number.as_str().parse().ok())
            {
                // In the older shape only the arrow tells the line.
                frame.line = number;
                frame.source = code.name("code").map(|code| code.as_str().trim().to_owned());
            }
            used += 1;
        } else if message::head(text).is_none() && !text.starts_with(char::is_alphabetic) && !frames.is_empty() {
            // A line of code without a number, of a statement over several.
            used += 1;
        } else {
            break;
        }
    }
    frames.retain(|frame| frame.line > 0);
    let mut links = Vec::new();
    let mut reader = Reader::new(lines, used);
    let link = Link { frames, ..Link::default() };
    match lines.get(used).and_then(|line| head(&line.text, named.as_deref())) {
        Some((type_name, first)) => {
            reader.at += 1;
            reader.finish(Link { type_name, ..link }, first, &mut links);
        }
        None if link.frames.is_empty() => return None,
        None => links.push(Link { type_name: named.unwrap_or_default(), ..link }),
    }
    Some((links, reader.at))
}

/// Lines that are read without a frame that has its line: what then comes to nothing is read again from its next line on.
const FRUITLESS: usize = 40;

/// The exception's line: the header names its type, which may end in any way.
fn head(line: &str, named: Option<&str>) -> Option<(String, String)> {
    if let Some(named) = named
        && let Some(rest) = line.strip_prefix(named)
    {
        return Some((named.to_owned(), rest.trim_start_matches(':').trim_start().to_owned()));
    }
    message::head(line)
}

fn location(line: &str) -> Option<Frame> {
    let found = CELL.captures(line).or_else(|| FILE.captures(line)).or_else(|| OLD.captures(line))?;
    let function = found.name("function").map(|name| name.as_str().split('(').next().unwrap_or("").trim().to_owned());
    Some(Frame {
        file: found.name("file")?.as_str().trim().to_owned(),
        line: found.name("line").and_then(|line| line.as_str().parse().ok()).unwrap_or(0),
        function: function.filter(|name| !name.is_empty()),
        ..Frame::default()
    })
}

static HEADER: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"^([A-Za-z_][\w.]*) {2,}Traceback \(most recent call last\)\s*$"));

static CELL: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(
        r"^(?P<file>(?:Cell|Input) In ?\[\d+\]|[^\n]+\.ipynb Cell \d+)(?:,? line (?P<line>\d+))?(?:,? in (?P<function>.+?))?:?$",
    )
});

static FILE: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"^File (?P<file>(?:[A-Za-z]:)?[^:\n]+):(?P<line>\d+)(?:, in (?P<function>.+))?$"));

static OLD: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(
        r"^(?P<file><ipython-input-[^>]*>|[^\s:]*[/\\~][^:\n]*?\.(?:py|pyx|ipynb)|[\w./\\-]+\.pyx?|[A-Za-z]:[^:\n]+?\.py) in (?P<function>\S.*)$",
    )
});

static CODE: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"^\s*(?P<mark>-+> ?)?(?P<number>\d+)(?: (?P<code>.*))?$"));
