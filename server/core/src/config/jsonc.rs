//! JSON with comments, edited in place.
//!
//! jsonc-parser reads the text and gives the byte range of every value; the edits are made here.
//! Its own editable tree is not used: it rebuilds what it touches,
//! while edits leave every other byte alone and are what a language server has to send.

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::edit::{Edit, Refused};

/// A text that is JSON with comments and trailing commas, as VS Code reads it.
pub struct Document<'a> {
    /// The whole text, with its byte order mark.
    text: &'a str,
    /// The text behind the byte order mark; all ranges are of this.
    pub body: &'a str,
    /// None: nothing but blanks and comments.
    pub root: Option<Value<'a>>,
}

impl<'a> Document<'a> {
    pub fn parse(text: &'a str) -> Result<Self, Refused> {
        Self::parse_with(text, true)
    }

    /// Plain JSON: neither comments nor trailing commas.
    pub fn parse_json(text: &'a str) -> Result<Self, Refused> {
        Self::parse_with(text, false)
    }

    fn parse_with(text: &'a str, comments_and_trailing_commas: bool) -> Result<Self, Refused> {
        let body = text.strip_prefix('\u{feff}').unwrap_or(text);
        let options = ParseOptions {
            allow_comments: comments_and_trailing_commas,
            allow_trailing_commas: comments_and_trailing_commas,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(body, &CollectOptions::default(), &options).map_err(|error| {
            let what = error.kind().to_string();
            Refused::at(body, error.range().start, format!("this is not valid JSON: {}", lower_first(&what)))
        })?;
        Ok(Self { text, body, root: parsed.value })
    }

    pub fn refuse(&self, range: Range, what: impl Into<String>) -> Refused {
        Refused::at(self.body, range.start, what)
    }

    /// Edits of the body as edits of the whole text.
    pub fn finish(&self, edits: Vec<Edit>) -> Vec<Edit> {
        let mark = self.text.len() - self.body.len();
        edits.into_iter().map(|edit| Edit { start: edit.start + mark, end: edit.end + mark, ..edit }).collect()
    }

    pub fn source(&self, range: Range) -> &'a str {
        &self.body[range.start..range.end]
    }

    pub fn is_on_one_line(&self) -> bool {
        !self.body.trim_end().contains('\n')
    }

    pub fn layout(&self) -> Layout {
        Layout::of(self.body, self.root.as_ref())
    }
}

/// How the file is laid out, so that what is added looks like the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub newline: &'static str,
    /// One step of indentation.
    pub unit: String,
}

impl Layout {
    fn of(body: &str, root: Option<&Value>) -> Self {
        let newline = match body.find('\n') {
            Some(at) if body[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        };
        let first = root.and_then(Value::as_object).and_then(|object| object.properties.first());
        let unit =
            first.and_then(|property| own_line_indent(body, property.range.start)).filter(|unit| !unit.is_empty());
        Self { newline, unit: unit.unwrap_or("    ").to_owned() }
    }

    /// `value` as JSON over several lines, of which all but the first begin with `indent`.
    pub fn pretty(&self, value: &impl serde::Serialize, indent: &str) -> String {
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        // Writing plain strings, lists and maps into memory cannot fail.
        let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter));
        let flat = String::from_utf8(bytes).unwrap_or_default();
        flat.replace('\n', &format!("{}{indent}", self.newline))
    }
}

/// The last property of that name: of two, VS Code takes the last.
pub fn last<'o, 'a>(object: &'o Object<'a>, name: &str) -> Option<&'o ObjectProp<'a>> {
    object.properties.iter().rev().find(|property| property.name.as_str() == name)
}

pub fn string<'o>(object: &'o Object<'_>, name: &str) -> Option<&'o str> {
    last(object, name)?.value.as_string_lit().map(|literal| literal.value.as_ref())
}

/// The members of an object or an array, as ranges between two brackets.
pub struct Members<'a> {
    body: &'a str,
    /// Of the whole container, brackets included.
    range: Range,
    items: Vec<Range>,
}

impl<'a> Members<'a> {
    pub fn of_array(document: &Document<'a>, array: &Array) -> Self {
        let items = array.elements.iter().map(Ranged::range).collect();
        Self { body: document.body, range: array.range, items }
    }

    pub fn of_object(document: &Document<'a>, object: &Object) -> Self {
        let items = object.properties.iter().map(|property| property.range).collect();
        Self { body: document.body, range: object.range, items }
    }

    /// Do the members stand on lines of their own?
    pub fn over_lines(&self) -> bool {
        let first = self.items.first().map_or(self.range.end - 1, |item| item.start);
        self.body[self.range.start..first].contains(['\n', '\r'])
    }

    /// The indentation of a member on a line of its own.
    pub fn indent(&self, layout: &Layout) -> String {
        let theirs = self.items.iter().find_map(|item| own_line_indent(self.body, item.start));
        theirs.map_or_else(|| self.line_indent().to_owned() + &layout.unit, str::to_owned)
    }

    /// Adds members after the last one, behind every comment that follows it.
    /// `texts` are laid out for [`Members::indent`]; `own_lines` puts each on a line of its own.
    pub fn append(&self, texts: &[String], own_lines: bool, layout: &Layout) -> Vec<Edit> {
        if texts.is_empty() {
            return Vec::new();
        }
        let mut edits = Vec::new();
        let tail = self.tail();
        if let (Some(last), None) = (self.items.last(), tail.comma) {
            edits.push(Edit::insert(last.end, ","));
        }
        let own_lines = own_lines || tail.in_line_comment;
        let before_each = if own_lines { format!("{}{}", layout.newline, self.indent(layout)) } else { " ".to_owned() };
        let mut added = String::new();
        for (nth, text) in texts.iter().enumerate() {
            let is_first_of_all = nth == 0 && self.items.is_empty() && !own_lines;
            added.push_str(if is_first_of_all { "" } else { &before_each });
            added.push_str(text);
            if nth + 1 < texts.len() || tail.comma.is_some() {
                added.push(',');
            }
        }
        if own_lines && self.body[self.range.start + 1..self.range.end - 1].trim_matches([' ', '\t']).is_empty() {
            added.push_str(layout.newline);
            added.push_str(self.line_indent());
        }
        edits.push(Edit::insert(tail.end, added));
        edits
    }

    /// Adds a member before the first one.
    pub fn prepend(&self, text: &str, own_line: bool, layout: &Layout) -> Vec<Edit> {
        if self.items.is_empty() {
            return self.append(&[text.to_owned()], own_line, layout);
        }
        let before = if own_line { format!("{}{}", layout.newline, self.indent(layout)) } else { String::new() };
        vec![Edit::insert(self.range.start + 1, format!("{before}{text},"))]
    }

    /// Takes members away, with their commas and the blanks before them; comments stay.
    pub fn remove(&self, indices: &[usize]) -> Vec<Edit> {
        let mut edits = Vec::new();
        for &index in indices {
            let last_of_run = (index..).take_while(|index| indices.contains(index)).last().unwrap_or(index);
            let run_end = self.comma_after(last_of_run).map_or(self.items[last_of_run].end, |comma| comma + 1);
            edits.push(Edit::delete(self.start_with_blanks(index, run_end), self.items[index].end));
            edits.extend(self.comma_after(index).map(|comma| Edit::delete(comma, comma + 1)));
        }
        let removed_to_the_end = self.items.len().checked_sub(1).is_some_and(|last| indices.contains(&last));
        let last_kept = (0..self.items.len()).rev().find(|index| !indices.contains(index));
        if removed_to_the_end
            && self.tail().comma.is_none()
            && let Some(kept) = last_kept
        {
            edits
                .extend(skip_trivia(self.body, self.items[kept].end).comma.map(|comma| Edit::delete(comma, comma + 1)));
        }
        edits
    }

    /// The newline that [`Members::append`] puts before the closing bracket of a list that was `[]`,
    /// to be deleted with the last member.
    pub fn closing_line(&self) -> Option<Edit> {
        let starts = std::iter::once(self.range.start + 1).chain(self.items.iter().map(|item| item.end));
        if starts.into_iter().any(|start| !skip_trivia(self.body, start).comments.is_empty()) {
            return None;
        }
        let tail = self.tail();
        let gap = &self.body[tail.end..self.range.end - 1];
        let closing_line = gap.strip_prefix("\r\n").or_else(|| gap.strip_prefix('\n'))?;
        (closing_line == self.line_indent()).then(|| Edit::delete(tail.end, self.range.end - 1))
    }

    fn comma_after(&self, index: usize) -> Option<usize> {
        skip_trivia(self.body, self.items[index].end).comma
    }

    /// Where the deletion of a member begins. `run_end`: the end of what is deleted in one go.
    /// The newline before the member stays where a line comment would otherwise swallow what follows.
    fn start_with_blanks(&self, index: usize, run_end: usize) -> usize {
        let start = self.items[index].start;
        let from = index.checked_sub(1).map_or(self.range.start + 1, |previous| self.items[previous].end);
        let trivia = skip_trivia(self.body, from);
        let comment = trivia.comments.iter().rev().find(|comment| comment.end <= start);
        let with_blanks = self.body[..start].trim_end().len().max(comment.map_or(0, |comment| comment.end));
        let line_ends_after = self.body[run_end..].trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
        let behind_line_comment = comment.is_some_and(|comment| comment.to_end_of_line && comment.end == with_blanks);
        if behind_line_comment && !line_ends_after { start } else { with_blanks }
    }

    fn line_indent(&self) -> &'a str {
        let line_start = self.body[..self.range.start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let line = &self.body[line_start..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    /// What stands between the last member and the closing bracket.
    fn tail(&self) -> Tail {
        let from = self.items.last().map_or(self.range.start + 1, |item| item.end);
        let trivia = skip_trivia(self.body, from);
        let last_comment = trivia.comments.last();
        let end = last_comment.map_or(from, |comment| comment.end).max(trivia.comma.map_or(from, |comma| comma + 1));
        Tail { comma: trivia.comma, end, in_line_comment: last_comment.is_some_and(|comment| comment.to_end_of_line) }
    }
}

struct Tail {
    comma: Option<usize>,
    /// The end of the last thing that is not a blank.
    end: usize,
    in_line_comment: bool,
}

/// Gives properties of an object the values `pairs` (name and JSON), adding those that are not there.
pub fn set_properties(document: &Document, object: &Object, pairs: &[(&str, &str)], own_lines: bool) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut added = Vec::new();
    for &(name, json) in pairs {
        match last(object, name).map(|property| property.value.range()) {
            Some(range) if document.source(range) == json => {}
            Some(range) => edits.push(Edit::replace(range.start, range.end, json)),
            None => added.push(format!("{}: {json}", quote(name))),
        }
    }
    let members = Members::of_object(document, object);
    edits.extend(members.append(&added, own_lines || members.over_lines(), &document.layout()));
    edits
}

pub fn remove_properties(document: &Document, object: &Object, names: &[&str]) -> Vec<Edit> {
    let named = object.properties.iter().enumerate().filter(|(_, property)| names.contains(&property.name.as_str()));
    let indices: Vec<usize> = named.map(|(index, _)| index).collect();
    Members::of_object(document, object).remove(&indices)
}

pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The blanks before `at`, if nothing else stands before it on its line.
fn own_line_indent(body: &str, at: usize) -> Option<&str> {
    let line_start = body[..at].rfind(['\n', '\r'])? + 1;
    let before = &body[line_start..at];
    before.bytes().all(|byte| byte == b' ' || byte == b'\t').then_some(before)
}

/// Blanks, comments and at most one comma.
#[derive(Default)]
struct Trivia {
    comma: Option<usize>,
    comments: Vec<Comment>,
}

struct Comment {
    end: usize,
    to_end_of_line: bool,
}

/// Reads from between two values of a text that has been parsed, so every comment has its end.
fn skip_trivia(body: &str, from: usize) -> Trivia {
    let mut trivia = Trivia::default();
    let mut at = from;
    loop {
        let rest = &body[at..];
        let blanks = rest.len() - rest.trim_start().len();
        at += blanks;
        let rest = &rest[blanks..];
        if rest.starts_with(',') && trivia.comma.is_none() {
            trivia.comma = Some(at);
            at += 1;
        } else if rest.starts_with("//") {
            let comment = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
            at += comment.len();
            trivia.comments.push(Comment { end: at, to_end_of_line: true });
        } else if let Some(comment) = rest.strip_prefix("/*") {
            at += comment.find("*/").map_or(rest.len(), |length| length + 4);
            trivia.comments.push(Comment { end: at, to_end_of_line: false });
        } else {
            return trivia;
        }
    }
}

fn lower_first(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map(|first| first.to_lowercase().chain(characters).collect()).unwrap_or_default()
}
