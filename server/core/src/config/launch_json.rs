//! VS Code's launch.json: profiles added, upgraded and removed, the user's own entries switched.
//!
//! Our entries are known by their name (`cublame: ...`) and by a version.
//! VS Code's schema allows no key of ours inside a configuration (`additionalProperties: false`, debugger.ts),
//! but takes any `presentation.group`, which also keeps our entries together in the menu: the version stands there.

mod profile;
mod switch;

use std::str::FromStr;

use jsonc_parser::ast::Object;
use jsonc_parser::common::Ranged;

use super::edit::{Edit, Refused};
use super::entries::{self, ENTRY_VERSION, List, NAME_PREFIX};
use super::jsonc::{Document, last, quote, set_properties, string};
use crate::mode::Mode;

pub use super::entries::Place;
pub use profile::{Launch, Profile};
pub use switch::{Switched, SwitchedFile, set_variable, switch, switch_back, twin};

const LIST: List = List { key: "configurations", name: "name", format_version: "0.2.0", section: "launch" };

/// The `presentation.group` of our entries.
pub const GROUP: &str = "cublame-1";

/// The edits that put `profiles` into the text of a launch.json; an empty text becomes a whole file.
///
/// An entry of the same name stays as the user has changed it.
/// One of an earlier version gets the variables of its mode and the new version, and nothing else.
pub fn configure(text: &str, place: Place, profiles: &[Profile]) -> Result<Vec<Edit>, Refused> {
    let new = profiles.iter().map(Profile::configuration).collect::<Vec<_>>();
    let mut edits = outdated(text, place)?;
    edits.extend(entries::add(text, &LIST, place, &new)?);
    Ok(edits)
}

/// The edits that take our entries away: the profiles, and the twins of the user's entries.
pub fn remove(text: &str, place: Place) -> Result<Vec<Edit>, Refused> {
    entries::remove(text, &LIST, place, |name, object| version(name, object).is_some() || twin_mode(name).is_some())
}

/// One configuration of a launch.json, as a menu or a code action needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the list.
    pub index: usize,
    pub name: String,
    /// `debugpy`, `python`, `cppdbg`...
    pub kind: String,
    /// As it is written: `${file}`, `${workspaceFolder}/train.py`.
    pub program: Option<String>,
    /// Byte range in the whole text.
    pub start: usize,
    pub end: usize,
    /// Written by us: a profile, or the twin of a user's entry.
    pub ours: bool,
    /// The mode that its env block asks for.
    pub mode: Option<Mode>,
}

impl Entry {
    /// Does this configuration run Python?
    pub fn is_python(&self) -> bool {
        self.kind == "debugpy" || self.has_old_type()
    }

    /// `python` was the type's name until the Python extension gave the debugger to an extension of its own.
    pub fn has_old_type(&self) -> bool {
        self.kind == "python"
    }
}

/// The configurations that have a name.
pub fn list(text: &str, place: Place) -> Result<Vec<Entry>, Refused> {
    let document = Document::parse(text)?;
    let Some(array) = entries::find(&document, &LIST, place)? else { return Ok(Vec::new()) };
    let mark = text.len() - document.body.len();
    let entry = |(index, name, object): (usize, &str, &Object)| Entry {
        index,
        name: name.to_owned(),
        kind: string(object, "type").unwrap_or_default().to_owned(),
        program: string(object, "program").map(str::to_owned),
        start: object.range.start + mark,
        end: object.range.end + mark,
        ours: version(name, object).is_some() || twin_mode(name).is_some(),
        mode: mode(object),
    };
    Ok(entries::named(array, &LIST).map(entry).collect())
}

/// A folder of a `.code-workspace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFolder {
    /// As in `${workspaceFolder:NAME}`: the name given, else the last part of the path.
    pub name: String,
    /// As written: absolute, or relative to the workspace file.
    pub path: String,
}

/// The folders of a `.code-workspace` file. Those without a path (on another machine) are left out.
pub fn workspace_folders(text: &str) -> Result<Vec<WorkspaceFolder>, Refused> {
    let document = Document::parse(text)?;
    let top = document.root.as_ref().and_then(|root| root.as_object());
    let folders = top.and_then(|top| last(top, "folders")).and_then(|property| property.value.as_array());
    let folder = |element: &jsonc_parser::ast::Value| {
        let object = element.as_object()?;
        let path = string(object, "path")?.to_owned();
        let last_part = path.trim_end_matches('/').rsplit('/').next().unwrap_or(&path).to_owned();
        Some(WorkspaceFolder { name: string(object, "name").map_or(last_part, str::to_owned), path })
    };
    Ok(folders.into_iter().flat_map(|folders| folders.elements.iter().filter_map(folder)).collect())
}

/// The edit that turns the type `python` of an entry into `debugpy`; none where it is another type.
pub fn upgrade_type(text: &str, place: Place, index: usize) -> Result<Vec<Edit>, Refused> {
    with_entry(text, place, index, |document, object| {
        let old = last(object, "type").filter(|_| string(object, "type") == Some("python"));
        let range = old.map(|property| property.value.range());
        Ok(document
            .finish(range.map(|range| Edit::replace(range.start, range.end, quote("debugpy"))).into_iter().collect()))
    })
}

/// The entries of earlier versions, brought to this one.
fn outdated(text: &str, place: Place) -> Result<Vec<Edit>, Refused> {
    let document = Document::parse(text)?;
    let Some(array) = entries::find(&document, &LIST, place)? else { return Ok(Vec::new()) };
    let mut edits = Vec::new();
    for (_, name, object) in entries::named(array, &LIST) {
        if version(name, object).is_none_or(|version| version >= ENTRY_VERSION) {
            continue;
        }
        if let Some(presentation) = last(object, "presentation").and_then(|property| property.value.as_object()) {
            edits.extend(set_properties(&document, presentation, &[("group", &quote(GROUP))], false));
        }
        if let (Some(mode), Some(env)) = (mode(object), last(object, "env").and_then(|env| env.value.as_object())) {
            let wanted = switch::shared(mode, &Default::default());
            let pairs: Vec<(&str, &str)> = wanted.iter().map(|(name, json)| (*name, json.as_str())).collect();
            edits.extend(set_properties(&document, env, &pairs, false));
        }
    }
    Ok(document.finish(edits))
}

fn with_entry<T>(
    text: &str,
    place: Place,
    index: usize,
    change: impl FnOnce(&Document, &Object) -> Result<T, Refused>,
) -> Result<T, Refused> {
    let document = Document::parse(text)?;
    let array = entries::find(&document, &LIST, place)?;
    let object = array.and_then(|array| array.elements.get(index)).and_then(|element| element.as_object());
    let object =
        object.ok_or_else(|| Refused::at(text, 0, format!("there is no configuration number {}", index + 1)))?;
    change(&document, object)
}

/// The version of one of our profiles. None: the entry is the user's.
fn version(name: &str, object: &Object) -> Option<u32> {
    let presentation = last(object, "presentation")?.value.as_object()?;
    let group = string(presentation, "group")?;
    name.strip_prefix(NAME_PREFIX).and_then(|_| group.strip_prefix("cublame-")?.parse().ok())
}

/// The mode in `train (cublame: blocking)`.
fn twin_mode(name: &str) -> Option<Mode> {
    let (_, mode) = name.strip_suffix(')')?.rsplit_once(" (cublame: ")?;
    Mode::from_str(mode).ok()
}

fn mode(object: &Object) -> Option<Mode> {
    let env = last(object, "env")?.value.as_object()?;
    let named = string(env, "CUBLAME_MODE").and_then(|word| Mode::from_str(word).ok());
    named.or_else(|| (string(env, "CUDA_LAUNCH_BLOCKING") == Some("1")).then_some(Mode::Blocking))
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
