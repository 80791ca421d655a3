//! Whose code a frame is, and where it lies on this machine.

use crate::catalog::facts;
use crate::event::{Cell, EventFrame, HeldSite, Local};
use crate::parse;
use crate::source::{Source, Sources};
use crate::verdict::{Frame, Place};

/// A frame with what the hook knows beyond the text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spot {
    pub file: String,
    path: Option<String>,
    pub line: u32,
    pub function: Option<String>,
    /// The line's text without its indentation.
    pub source: Option<String>,
    /// 1-based code points, the end excluded.
    columns: Option<(u32, u32)>,
    /// Code points from the start of `source`: how far the line is indented, only the file tells.
    carets: Option<(u32, u32)>,
    /// UTF-8 bytes from the start of the line, as CPython counts them: code points need the line's text.
    bytes: Option<(u32, u32)>,
    /// What the hook told of its local variables.
    pub locals: Vec<Local>,
}

impl Spot {
    pub fn of_text(frame: &parse::Frame) -> Self {
        Self {
            file: frame.file.clone(),
            line: frame.line,
            function: frame.function.clone(),
            source: frame.source.clone(),
            carets: frame.carets,
            ..Self::default()
        }
    }

    /// A frame in a notebook's cell is named as IPython names it, by the lines of the cell as its author sees it.
    pub fn of_event(frame: &EventFrame, cell: Option<&Cell>) -> Self {
        let ends_here = frame.end_line.is_none_or(|end| end == frame.line);
        Self {
            file: cell.map_or_else(|| frame.file.clone(), Cell::name),
            path: frame.path.clone().filter(|_| cell.is_none()),
            line: frame.line.saturating_add(shift(cell)),
            // The file of a SyntaxError was never run: no function of it is on the stack.
            function: Some(frame.function.clone()).filter(|function| !function.is_empty()),
            source: frame.source.as_deref().map(|source| source.trim().to_owned()),
            columns: frame.column.zip(frame.end_column.filter(|_| ends_here)),
            carets: None,
            bytes: None,
            locals: frame.locals.clone(),
        }
    }

    pub fn of_site(site: &HeldSite) -> Self {
        Self {
            file: site.file.clone(),
            path: site.path.clone(),
            line: site.line,
            function: Some(site.function.clone()),
            ..Self::default()
        }
    }

    /// None for a frame whose line is not known.
    pub fn of_journal(frame: &cublame_journal::read::Frame, cell: Option<&Cell>) -> Option<Self> {
        let location = frame.location?;
        let ends_here = location.end_line.is_none_or(|end| end == location.line);
        Some(Self {
            file: cell.map_or_else(|| frame.file.clone(), Cell::name),
            line: location.line.saturating_add(shift(cell)),
            function: Some(frame.function.clone()),
            bytes: location.column.zip(location.end_column.filter(|_| ends_here)),
            ..Self::default()
        })
    }

    /// The user's own code, as against a library's or the interpreter's.
    ///
    /// What lies under a folder that the user named is the user's, unless an installer put it there: a virtual
    /// environment inside the workspace holds libraries. A frame without a line (CPython says 0) is no place in any.
    pub fn is_user(&self, sources: &Sources) -> bool {
        if self.line == 0 {
            return false;
        }
        let found = sources.get(&self.file).and_then(Source::path);
        for name in [found, self.path.as_deref(), Some(self.file.as_str())].into_iter().flatten() {
            let name = name.replace('\\', "/");
            if let Some(rest) = sources.roots().iter().find_map(|root| below(&name, &root.replace('\\', "/"))) {
                return !facts().is_installed(&rest);
            }
        }
        !facts().is_library(&self.file.replace('\\', "/"))
    }

    pub fn frame(&self, sources: &Sources) -> Frame {
        let columns = self.columns(sources);
        Frame {
            file: self.file.clone(),
            path: sources.get(&self.file).and_then(Source::path).map(str::to_owned).or_else(|| self.path.clone()),
            line: self.line,
            column: columns.map(|(start, _)| start),
            end_column: columns.map(|(_, end)| end),
            function: self.function.clone(),
            user: self.is_user(sources),
        }
    }

    pub fn place(&self, sources: &Sources) -> Place {
        let Frame { file, path, line, column, end_column, function, .. } = self.frame(sources);
        Place { file, path, line, column, end_column, function }
    }

    /// Has the file on this machine another line there than the evidence quotes?
    pub fn has_changed(&self, sources: &Sources) -> bool {
        let (Some(quoted), Some(source)) = (self.source.as_deref(), sources.get(&self.file)) else { return false };
        // The text quotes the first line of a statement; an older Python, or rich, may have cut it.
        line_of(&source.text, self.line).is_none_or(|now| !now.trim().starts_with(quoted.trim_end_matches('…')))
    }

    fn columns(&self, sources: &Sources) -> Option<(u32, u32)> {
        if self.columns.is_some() {
            return self.columns;
        }
        if let Some((start, end)) = self.bytes {
            let line = line_of(&sources.get(&self.file)?.text, self.line)?;
            let column = |byte: u32| Some(line.get(..byte as usize)?.chars().count() as u32 + 1);
            return column(start).zip(column(end));
        }
        let (start, end) = self.carets?;
        let now = line_of(&sources.get(&self.file)?.text, self.line)?;
        let indent = now.chars().take_while(|character| character.is_whitespace()).count() as u32;
        (self.source.as_deref() == Some(now.trim())).then(|| (indent + start + 1, indent + end + 1))
    }
}

/// The innermost frame of the user's, else the innermost that has a line.
pub fn user_frame(frames: &[cublame_journal::read::Frame], sources: &Sources) -> Option<Place> {
    let spots: Vec<Spot> = frames.iter().filter_map(|frame| Spot::of_journal(frame, None)).collect();
    let users = spots.iter().rev().find(|spot| spot.is_user(sources));
    users.or(spots.last()).map(|spot| spot.place(sources))
}

/// How many lines of a cell are above the interpreter's first one.
fn shift(cell: Option<&Cell>) -> u32 {
    cell.map_or(0, |cell| cell.first_line.saturating_sub(1))
}

/// The path below a folder, with its leading slash.
fn below(path: &str, root: &str) -> Option<String> {
    let root = root.trim_end_matches('/');
    let rest = path.strip_prefix(root)?;
    (!root.is_empty() && rest.starts_with('/')).then(|| rest.to_owned())
}

fn line_of(text: &str, line: u32) -> Option<&str> {
    text.lines().nth(line.checked_sub(1)? as usize)
}
