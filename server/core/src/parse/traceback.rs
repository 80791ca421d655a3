//! Python's own tracebacks, with all that stands in them: causes, exception groups, the tracebacks that workers carry
//! to their parent inside a message, carets, repeated lines, code of torch.compile.

use std::sync::LazyLock;

use regex::Regex;

use super::{Clean, Taken, What, ipython, message, pytest, rich};

/// An exception and those it came from: innermost cause first, as Python prints them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chain {
    pub links: Vec<Link>,
    /// The thread that `threading` names before the traceback.
    pub thread: Option<String>,
    /// Raised while an object or the interpreter was torn down.
    pub finalizer: bool,
}

/// One exception of a chain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Link {
    /// Empty where the text ends before it.
    pub type_name: String,
    pub message: String,
    /// Outermost first.
    pub frames: Vec<Frame>,
    /// How the next link came from this one.
    pub relation: Option<Relation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `raise .. from ..`
    Cause,
    /// During handling of the one, the other occurred.
    Context,
    /// A leaf of an exception group.
    Group,
    /// Carried inside the message of the next: a worker's traceback in its parent's.
    Carried,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    pub file: String,
    pub line: u32,
    pub function: Option<String>,
    /// The line's text without its indentation.
    pub source: Option<String>,
    /// What the carets below the line mark: code points from the start of `source`, the end excluded.
    pub carets: Option<(u32, u32)>,
}

impl Link {
    /// `Type: message`, as Python prints it.
    pub fn headline(&self) -> String {
        match (self.type_name.is_empty(), self.message.is_empty()) {
            (true, _) => self.message.clone(),
            (false, true) => self.type_name.clone(),
            (false, false) => format!("{}: {}", self.type_name, self.message),
        }
    }
}

/// A traceback at the first of these lines, with or without its header.
pub(super) fn take(lines: &[&Clean]) -> Option<Taken> {
    let first = lines.first()?.text.as_str();
    if let Some(thread) = THREAD.captures(first).filter(|_| lines.get(1).is_some_and(|line| is_header(&line.text))) {
        let mut taken = take(&lines[1..])?;
        taken.lines += 1;
        for (_, what) in &mut taken.what {
            if let What::Exception(chain) = what {
                chain.thread = thread.get(1).map(|name| name.as_str().to_owned());
            }
        }
        return Some(taken);
    }
    if !is_header(first) && frame_of(first).is_none() && !message::is_head(first) {
        return None;
    }
    let mut reader = Reader::new(lines, 0);
    let chain = reader.chain()?;
    let rank = reader.rank;
    Some(Taken { lines: reader.at, what: vec![(rank, What::Exception(chain))] })
}

/// Anomaly mode's warning: `Error detected in XBackward. Traceback of forward call that caused the error:` and frames.
pub(super) fn take_forward(lines: &[&Clean]) -> Option<Taken> {
    let function = FORWARD.captures(&lines.first()?.text)?.get(1)?.as_str().to_owned();
    let mut reader = Reader::new(lines, 1);
    let frames = reader.frames();
    Taken::one(reader.at, What::ForwardTrace { function, frames })
}

/// Reads one chain of tracebacks front to back.
pub(super) struct Reader<'a, 'l> {
    pub(super) lines: &'a [&'l Clean],
    pub(super) at: usize,
    pub(super) rank: Option<u32>,
    /// How many tracebacks this one is carried in.
    depth: usize,
}

/// Chains are as long as Python's recursion allows; nobody reads more than this.
const LINKS: usize = 64;
/// Workers of workers carry tracebacks in tracebacks, but no deeper than this.
const DEPTH: usize = 16;

impl<'a, 'l> Reader<'a, 'l> {
    pub(super) fn new(lines: &'a [&'l Clean], at: usize) -> Self {
        Self { lines, at, rank: None, depth: 0 }
    }

    fn line(&self, ahead: usize) -> Option<&str> {
        self.lines.get(self.at + ahead).map(|line| line.text.as_str())
    }

    fn chain(&mut self) -> Option<Chain> {
        let mut chain = Chain::default();
        let start = self.at;
        self.block(&mut chain.links);
        while chain.links.len() < LINKS && self.connected(&mut chain.links) {}
        chain.finalizer = chain.links.iter().flat_map(|link| &link.frames).any(|frame| {
            frame.function.as_deref().is_some_and(|name| FINALIZERS.iter().any(|known| name.ends_with(known)))
        });
        (self.at > start && !chain.links.is_empty()).then_some(chain)
    }

    /// After a block: a connector and the block that it leads to.
    pub(super) fn connected(&mut self, links: &mut Vec<Link>) -> bool {
        let blanks = (0..4).take_while(|ahead| self.line(*ahead).is_some_and(|line| line.trim().is_empty())).count();
        let Some(line) = self.line(blanks) else { return false };
        let relation = if line.contains("During handling of the above exception") {
            Relation::Context
        } else if line.contains("The above exception was the direct cause") {
            Relation::Cause
        } else {
            return false;
        };
        let before = self.at;
        let known = links.len();
        self.at += blanks + 1;
        while self.line(0).is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
        // A chain may go on in another printer's shape: IPython prints its own header, rich its own box.
        if let Some((more, used)) = ipython::links(&self.lines[self.at..]) {
            links.extend(more);
            self.at += used;
        } else if let Some((more, used)) = rich::links(&self.lines[self.at..]) {
            links.extend(more);
            self.at += used;
        } else {
            self.block(links);
        }
        if links.len() == known {
            self.at = before;
            return false;
        }
        // What stood before the connector may have been a header and nothing else.
        if let Some(before) = known.checked_sub(1).and_then(|last| links.get_mut(last)) {
            before.relation = Some(relation);
        }
        true
    }

    /// One traceback: header, frames, last line, and what its message carries.
    fn block(&mut self, links: &mut Vec<Link>) {
        if self.depth == DEPTH {
            return;
        }
        self.depth += 1;
        self.block_within_depth(links);
        self.depth -= 1;
    }

    fn block_within_depth(&mut self, links: &mut Vec<Link>) {
        if self.line(0).is_some_and(is_header) {
            let group = self.line(0).is_some_and(|line| line.contains("Exception Group Traceback"));
            self.at += 1;
            if group {
                return self.group(links);
            }
        }
        let mut link = Link { frames: self.frames(), ..Link::default() };
        let head = self.line(0).and_then(|line| self.head_after(line, !link.frames.is_empty()));
        if let Some((type_name, first)) = head {
            self.at += 1;
            link.type_name = type_name;
            self.finish(link, first, links);
        } else if !link.frames.is_empty() {
            links.push(link);
        }
    }

    /// After the head line of a link: its message, and the traceback that the message carries, which comes first.
    pub(super) fn finish(&mut self, mut link: Link, first: String, links: &mut Vec<Link>) {
        let (message, used) = message::rest(first, &link.type_name, &self.lines[self.at..]);
        link.message = message;
        self.at += used;
        self.user_code(&mut link);
        self.place_of_pytest(&mut link);
        let carried = links.len();
        self.carried(links);
        if links.len() > carried
            && let Some(inner) = links.last_mut()
        {
            inner.relation = Some(Relation::Carried);
        }
        links.push(link);
    }

    /// Dynamo names the user's lines after its message: `from user code:` and frames.
    fn user_code(&mut self, link: &mut Link) {
        let blanks = (0..3).take_while(|ahead| self.line(*ahead).is_some_and(|line| line.trim().is_empty())).count();
        if self.line(blanks).is_some_and(|line| line.trim_start().starts_with("from user code:")) {
            self.at += blanks + 1;
            link.frames.extend(self.frames());
        }
    }

    /// pytest's long form names the place after the exception.
    fn place_of_pytest(&mut self, link: &mut Link) {
        let blanks = (0..3).take_while(|ahead| self.line(*ahead).is_some_and(|line| line.trim().is_empty())).count();
        let place = self.line(blanks).and_then(pytest::location).filter(|(_, named)| *named && link.frames.is_empty());
        if let Some((frame, _)) = place {
            link.frames.push(frame);
            self.at += blanks + 1;
        }
    }

    /// `Original Traceback`, `-- Process 1 terminated with the following error:`, a remote traceback in triple quotes.
    fn carried(&mut self, links: &mut Vec<Link>) {
        let mut ahead = 0;
        while ahead < 4 {
            let Some(line) = self.line(ahead) else { return };
            let trimmed = line.trim();
            if let Some(process) = SPAWNED.captures(trimmed).and_then(|found| found.get(1)?.as_str().parse().ok()) {
                self.rank = Some(process);
            } else if trimmed.starts_with("Original Traceback") || (ahead > 0 && is_header(trimmed)) {
                self.at += ahead;
                return self.block(links);
            } else if !trimmed.is_empty() && trimmed != "\"\"\"" {
                // Ray puts the frames right under the head line, without a header of their own.
                if ahead == 0 && frame_of(line).is_some() {
                    self.block(links);
                }
                return;
            }
            ahead += 1;
        }
    }

    /// The frames of a group's own traceback, its head line, and its leaves.
    fn group(&mut self, links: &mut Vec<Link>) {
        let mut whole = Link { frames: self.frames(), ..Link::default() };
        if let Some((type_name, first)) = self.line(0).and_then(|line| self.head_after(line, true)) {
            self.at += 1;
            whole.type_name = type_name;
            whole.message = first;
        }
        while self.line(0).is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
        while links.len() < LINKS && self.line(0).is_some_and(is_header) {
            let known = links.len();
            self.block(links);
            while links.len() < LINKS && self.connected(links) {}
            let Some(leaf) = links.last_mut().filter(|_| known < usize::MAX) else { break };
            leaf.relation = Some(Relation::Group);
            if links.len() == known {
                break;
            }
            while self.line(0).is_some_and(|line| line.trim().is_empty()) {
                self.at += 1;
            }
        }
        links.push(whole);
    }

    /// Frames with their source lines and carets. Lines of another process may stand between them.
    fn frames(&mut self) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        while let Some(line) = self.line(0) {
            if let Some((mut frame, indent)) = frame_of(line) {
                self.at += 1;
                self.source(&mut frame, indent);
                frames.push(frame);
            } else if REPEATED.is_match(line) {
                self.at += 1;
            } else if let Some(blanks) = self.blanks_inside(&frames) {
                self.at += blanks;
            } else if let Some(stranger) = self.stranger(!frames.is_empty()) {
                self.at += stranger;
            } else {
                break;
            }
        }
        frames
    }

    /// Blank lines before the next frame or the exception's line: loguru and some pastes have them.
    fn blanks_inside(&self, frames: &[Frame]) -> Option<usize> {
        let blanks = (0..3).take_while(|ahead| self.line(*ahead).is_some_and(|line| line.trim().is_empty())).count();
        let next = self.line(blanks)?;
        let goes_on = frame_of(next).is_some() || (!frames.is_empty() && head_of(next).is_some());
        (blanks > 0 && goes_on).then_some(blanks)
    }

    /// How many lines stand between here and the next frame that are not part of this traceback.
    fn stranger(&self, inside: bool) -> Option<usize> {
        let line = self.line(0)?;
        let allowed = if inside { 1 } else { 3 };
        let is_end = inside && (is_header(line) || head_of(line).is_some() || is_connector(line));
        if is_end {
            return None;
        }
        (1..=allowed).find(|ahead| self.line(*ahead).is_some_and(|line| frame_of(line).is_some()))
    }

    fn source(&mut self, frame: &mut Frame, indent: usize) {
        let mut first_indent = 0;
        for taken in 0..SOURCE_LINES {
            let spaced = self.line(0).is_some_and(|line| line.trim().is_empty())
                && self.line(1).is_some_and(|line| indent_of(line) > indent && frame_of(line).is_none());
            self.at += usize::from(spaced);
            let Some(line) = self.line(0) else { return };
            if line.trim().is_empty() || frame_of(line).is_some() {
                return;
            }
            let own = indent_of(line);
            let deeper = own > indent;
            // A paste may have lost its indentation; then one line of source stands before the next frame or the end.
            let flat = taken == 0
                && indent == 0
                && head_of(line).is_none()
                && self.line(1).is_some_and(|next| frame_of(next).is_some() || head_of(next).is_some());
            if !deeper && !flat {
                return;
            }
            let trimmed = line.trim();
            if frame.source.is_none() {
                first_indent = own;
                frame.source = Some(trimmed.to_owned());
            } else if frame.carets.is_none() && is_carets(trimmed) {
                let start = own.saturating_sub(first_indent);
                let end = start + trimmed.chars().count();
                frame.carets = Some((start as u32, end as u32));
            }
            self.at += 1;
        }
    }

    /// The exception's type and the first line of its message.
    fn head_after(&self, line: &str, in_traceback: bool) -> Option<(String, String)> {
        if in_traceback { head_of(line) } else { message::head(line) }
    }
}

/// A statement over many lines is shown whole since Python 3.13, and loguru adds a line for each value.
const SOURCE_LINES: usize = 24;

const FINALIZERS: [&str; 6] = ["_exitfunc", "__del__", "__dealloc__", "_run_finalizers", "_run_exitfuncs", "finalize"];

pub(super) fn is_header(line: &str) -> bool {
    line.contains("Traceback (most recent call last)") && !ipython::is_header(line)
}

fn is_connector(line: &str) -> bool {
    line.contains("During handling of the above exception") || line.contains("The above exception was the direct cause")
}

/// A frame and the indentation of its line.
pub(super) fn frame_of(line: &str) -> Option<(Frame, usize)> {
    let found = FRAME.captures(line)?;
    let frame = Frame {
        file: found.name("file")?.as_str().to_owned(),
        line: found.name("line")?.as_str().parse().ok()?,
        function: found.name("function").map(|name| name.as_str().trim().to_owned()),
        ..Frame::default()
    };
    Some((frame, indent_of(line)))
}

/// `Type: message` or `Type` under a traceback, where any dotted name is a type.
fn head_of(line: &str) -> Option<(String, String)> {
    let (type_name, message) = message::split(&HEAD, line)?;
    let last = type_name.rsplit('.').next()?;
    let is_type = type_name.contains('.') || last.trim_start_matches('_').starts_with(char::is_uppercase);
    is_type.then(|| (type_name.to_owned(), message.to_owned()))
}

fn indent_of(line: &str) -> usize {
    line.chars().take_while(|character| character.is_whitespace()).count()
}

fn is_carets(trimmed: &str) -> bool {
    trimmed.contains(['^', '~']) && trimmed.chars().all(|character| matches!(character, '^' | '~' | ' '))
}

static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(r#"^\s*(?:> ?)?File ["'](?P<file>[^"'\n]+)["'], line (?P<line>\d{1,9})(?:,? in (?P<function>.+))?"#)
});

static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(r"^\s{0,8}(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:\([A-Za-z_.]+\))?)(?:$|:$|:\s)")
});

static REPEATED: LazyLock<Regex> = LazyLock::new(|| super::regex(r"^\s*\[Previous line repeated \d+ more times?\]"));

static FORWARD: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"Error detected in (\w+)\. Traceback of forward call that caused the error"));

static THREAD: LazyLock<Regex> = LazyLock::new(|| super::regex(r"^Exception in thread (.+):$"));

static SPAWNED: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"^-- Process (\d+) terminated with the following (?:error|exception)"));
