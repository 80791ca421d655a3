//! The list of entries that launch.json and tasks.json hold, and which of them are ours.

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged;

use super::edit::{Edit, Refused};
use super::jsonc::{Document, Members, last, quote, set_properties, string};

/// The version that our entries carry. A later one changes only what is ours in them.
pub const ENTRY_VERSION: u32 = 1;

/// Our entries' names begin so.
pub const NAME_PREFIX: &str = "cublame: ";

/// Which list of which file.
pub struct List {
    /// The list's own file has it at the top.
    pub key: &'static str,
    /// What the property that names an entry is called.
    pub name: &'static str,
    /// The `version` that the file's format wants.
    pub format_version: &'static str,
    /// The property that holds the list's file in a `.code-workspace` or in settings.json.
    pub section: &'static str,
}

/// Where the list stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a file of its own, under `.vscode`.
    OwnFile,
    /// In a section of a `.code-workspace` file or of settings.json.
    Section,
}

/// An entry to be written, in the order of its fields.
pub trait NewEntry: serde::Serialize {
    fn name(&self) -> &str;
}

/// The edits that add those of `entries` whose names are not in the list yet.
pub fn add(text: &str, list: &List, place: Place, entries: &[impl NewEntry]) -> Result<Vec<Edit>, Refused> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let document = Document::parse(text)?;
    let Some(root) = &document.root else {
        let layout = document.layout();
        let skeleton = layout.pretty(&skeleton_file(list, place), "") + layout.newline;
        let filled = super::apply(&skeleton, &add(&skeleton, list, place, entries)?);
        return Ok(vec![Edit::insert(text.len(), start_of_line(text, layout.newline) + &filled)]);
    };
    let holder = holder(&document, root, list, place)?;
    let Some(holder) = holder else {
        return Ok(document.finish(missing_section(&document, root, list, entries)));
    };
    let Some(array) = array(&document, holder, list)? else {
        let json = filled_array(&document, &indent_inside(&document, holder), entries);
        return Ok(document.finish(set_properties(&document, holder, &[(list.key, &json)], true)));
    };
    let members = Members::of_array(&document, array);
    let layout = document.layout();
    let indent = members.indent(&layout);
    let new = entries.iter().filter(|entry| named(array, list).all(|(_, name, _)| name != entry.name()));
    let texts: Vec<String> = new.map(|entry| layout.pretty(entry, &indent)).collect();
    Ok(document.finish(members.append(&texts, true, &layout)))
}

/// The edits that take away the entries for which `is_ours` holds.
pub fn remove(
    text: &str,
    list: &List,
    place: Place,
    is_ours: impl Fn(&str, &Object) -> bool,
) -> Result<Vec<Edit>, Refused> {
    let document = Document::parse(text)?;
    let Some(array) = find(&document, list, place)? else { return Ok(Vec::new()) };
    let ours = named(array, list).filter(|(_, name, object)| is_ours(name, object));
    let indices: Vec<usize> = ours.map(|(index, _, _)| index).collect();
    let members = Members::of_array(&document, array);
    let mut edits = members.remove(&indices);
    if !indices.is_empty() && indices.len() == array.elements.len() {
        edits.extend(members.closing_line());
    }
    Ok(document.finish(edits))
}

/// The list, if the file has it.
pub fn find<'d>(document: &'d Document, list: &List, place: Place) -> Result<Option<&'d Array<'d>>, Refused> {
    let Some(root) = &document.root else { return Ok(None) };
    let Some(holder) = holder(document, root, list, place)? else { return Ok(None) };
    array(document, holder, list)
}

/// The entries that are objects with a name: index in the list, name, object.
pub fn named<'d>(array: &'d Array<'d>, list: &List) -> impl Iterator<Item = (usize, &'d str, &'d Object<'d>)> {
    let key = list.name;
    array.elements.iter().enumerate().filter_map(move |(index, element)| {
        let object = element.as_object()?;
        Some((index, string(object, key)?, object))
    })
}

fn holder<'d>(
    document: &Document,
    root: &'d Value<'d>,
    list: &List,
    place: Place,
) -> Result<Option<&'d Object<'d>>, Refused> {
    let top = root.as_object().ok_or_else(|| document.refuse(root.range(), "the file's top is not an object"))?;
    match place {
        Place::OwnFile => Ok(Some(top)),
        Place::Section => match last(top, list.section).map(|property| &property.value) {
            None => Ok(None),
            Some(Value::Object(section)) => Ok(Some(section)),
            Some(other) => Err(document.refuse(other.range(), format!("`{}` is not an object", list.section))),
        },
    }
}

fn array<'d>(document: &Document, holder: &'d Object<'d>, list: &List) -> Result<Option<&'d Array<'d>>, Refused> {
    match last(holder, list.key).map(|property| &property.value) {
        None => Ok(None),
        Some(Value::Array(array)) => Ok(Some(array)),
        Some(other) => Err(document.refuse(other.range(), format!("`{}` is not a list", list.key))),
    }
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Skeleton {
    OwnFile(std::collections::BTreeMap<&'static str, &'static str>),
    Section(std::collections::BTreeMap<&'static str, std::collections::BTreeMap<&'static str, &'static str>>),
}

fn skeleton_file(list: &List, place: Place) -> Skeleton {
    let own = [("version", list.format_version)].into();
    match place {
        Place::OwnFile => Skeleton::OwnFile(own),
        Place::Section => Skeleton::Section([(list.section, own)].into()),
    }
}

fn missing_section(document: &Document, root: &Value, list: &List, entries: &[impl NewEntry]) -> Vec<Edit> {
    let Some(top) = root.as_object() else { return Vec::new() };
    let layout = document.layout();
    let indent = indent_inside(document, top);
    let inner = format!("{indent}{}", layout.unit);
    let json = format!(
        "{{{newline}{inner}\"version\": {version},{newline}{inner}{key}: {array}{newline}{indent}}}",
        newline = layout.newline,
        version = quote(list.format_version),
        key = quote(list.key),
        array = filled_array(document, &inner, entries),
    );
    set_properties(document, top, &[(list.section, &json)], true)
}

fn indent_inside(document: &Document, object: &Object) -> String {
    Members::of_object(document, object).indent(&document.layout())
}

/// A new list whose closing bracket is indented by `indent`.
fn filled_array(document: &Document, indent: &str, entries: &[impl NewEntry]) -> String {
    let layout = document.layout();
    let inner = format!("{indent}{}", layout.unit);
    let line = format!("{}{inner}", layout.newline);
    let texts: Vec<String> = entries.iter().map(|entry| line.clone() + &layout.pretty(entry, &inner)).collect();
    format!("[{}{}{indent}]", texts.join(","), layout.newline)
}

/// What brings the end of `text` to the start of a line.
fn start_of_line(text: &str, newline: &str) -> String {
    let is_at_start = text.trim_start_matches('\u{feff}').is_empty() || text.ends_with(['\n', '\r']);
    if is_at_start { String::new() } else { newline.to_owned() }
}
