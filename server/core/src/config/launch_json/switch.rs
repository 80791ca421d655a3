//! The user's own configurations: switched in place, switched back, or twinned.

use std::collections::BTreeMap;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use serde::{Deserialize, Serialize};

use super::super::edit::{Edit, Refused, apply, between};
use super::super::entries::{self, Place};
use super::super::jsonc::{Document, Members, last, quote, remove_properties, set_properties, string};
use super::{LIST, with_entry};
use crate::mode::{Machine, Mode, OUR_SHARED_VARIABLES, Os, env_block};

/// `.cublame/switched.json`: which configurations are switched, and what stood there before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedFile {
    pub schema: u32,
    pub switched: Vec<Switched>,
}

impl SwitchedFile {
    pub fn find(&self, file: &str, name: &str) -> Option<&Switched> {
        self.switched.iter().find(|switched| switched.file == file && switched.name == name)
    }

    /// The record after a switch, or after a switch back (`now` is None).
    pub fn with(mut self, file: &str, name: &str, now: Option<Switched>) -> Self {
        self.schema = 1;
        self.switched.retain(|switched| switched.file != file || switched.name != name);
        self.switched.extend(now);
        self
    }
}

/// One configuration that the user switched in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// Relative to the workspace folder.
    pub file: String,
    /// The configuration's name.
    pub name: String,
    pub mode: Mode,
    /// The JSON that our variables had before, by `env.NAME` or `linux.env.NAME`; null where there was none.
    pub before: BTreeMap<String, Option<String>>,
    /// The env blocks that were not there before, as `env`.
    pub added: Vec<String>,
}

/// The parts of a configuration that may have an env block. On its system, a part's block stands instead of the first.
const PARTS: [&str; 4] = ["", "linux", "osx", "windows"];

/// The edits that make the configuration at `index` run in `mode`, and the record that undoes them.
///
/// `earlier` is the record of a switch that is still in force: its `before` is kept, whatever the file holds now.
pub fn switch(
    text: &str,
    place: Place,
    file: &str,
    index: usize,
    mode: Mode,
    earlier: Option<&Switched>,
) -> Result<(Vec<Edit>, Switched), Refused> {
    earlier.map_or(Ok(()), |earlier| require_plain_values(text, earlier))?;
    with_entry(text, place, index, |document, object| {
        let name = string(object, "name").unwrap_or_default().to_owned();
        let mut record = Switched { file: file.to_owned(), name, mode, before: BTreeMap::new(), added: Vec::new() };
        let mut changes = Vec::new();
        for part in PARTS {
            let Some(owner) = owner(object, part) else { continue };
            let env = env_of(document, owner)?;
            if env.is_none() && !part.is_empty() {
                continue;
            }
            let before = before(document, part, env, earlier);
            let was_added = earlier.is_some_and(|earlier| earlier.added.contains(&key(part, None)));
            if env.is_none() || was_added {
                record.added.push(key(part, None));
            }
            let target = target(mode, part, &before);
            record.before.extend(before);
            changes.push((part, target));
        }
        require_plain_values(text, &record)?;
        Ok((change_env(document, object, &changes, &[])?, record))
    })
}

/// The edits that undo a switch. What the user changed in other variables since then stays.
pub fn switch_back(text: &str, place: Place, index: usize, record: &Switched) -> Result<Vec<Edit>, Refused> {
    require_plain_values(text, record)?;
    with_entry(text, place, index, |document, object| {
        let changes: Vec<(&str, Target)> = PARTS
            .into_iter()
            .map(|part| {
                let old =
                    |name: &'static str| record.before.get(&key(part, Some(name))).map(|json| (name, json.clone()));
                (part, OUR_SHARED_VARIABLES.into_iter().filter_map(old).collect())
            })
            .collect();
        change_env(document, object, &changes, &record.added)
    })
}

/// The edits that give the configuration at `index` a variable of the user's choice, wherever it has an env block.
pub fn set_variable(
    text: &str,
    place: Place,
    index: usize,
    name: &'static str,
    value: &str,
) -> Result<Vec<Edit>, Refused> {
    with_entry(text, place, index, |document, object| {
        let mut changes = Vec::new();
        for part in PARTS {
            let Some(owner) = owner(object, part) else { continue };
            if part.is_empty() || env_of(document, owner)?.is_some() {
                changes.push((part, vec![(name, Some(quote(value)))]));
            }
        }
        change_env(document, object, &changes, &[])
    })
}

/// The edits that add a copy of the configuration at `index` in `mode`, named `train (cublame: blocking)`.
pub fn twin(text: &str, place: Place, index: usize, mode: Mode) -> Result<Vec<Edit>, Refused> {
    let document = Document::parse(text)?;
    let Some(array) = entries::find(&document, &LIST, place)? else { return Ok(Vec::new()) };
    let Some((_, name, object)) = entries::named(array, &LIST).find(|&(at, _, _)| at == index) else {
        return Err(Refused::at(text, 0, format!("there is no configuration number {} with a name", index + 1)));
    };
    let twin_name = format!("{name} (cublame: {mode})");
    if entries::named(array, &LIST).any(|(_, name, _)| name == twin_name) {
        return Ok(Vec::new());
    }
    let copy = copy_with(&document, object, &twin_name, mode)?;
    let members = Members::of_array(&document, array);
    Ok(document.finish(members.append(&[copy], members.over_lines(), &document.layout())))
}

/// The variables of a mode for a file under version control, as JSON strings, beside the user's own.
pub fn shared(mode: Mode, current: &BTreeMap<String, String>) -> Vec<(&'static str, String)> {
    let block = env_block(mode, Os::HERE, &Machine::default(), current);
    block.shared().map(|variable| (variable.name, quote(&variable.value))).collect()
}

/// A record comes from the workspace, which nobody has to trust: it may put a value back, and no more than a value.
fn require_plain_values(text: &str, record: &Switched) -> Result<(), Refused> {
    let is_plain = |json: &String| {
        serde_json::from_str::<serde_json::Value>(json).is_ok_and(|value| !value.is_object() && !value.is_array())
    };
    match record.before.iter().find(|(_, json)| json.as_ref().is_some_and(|json| !is_plain(json))) {
        None => Ok(()),
        Some((key, _)) => {
            Err(Refused::at(text, 0, format!("the value of `{key}` before the switch is not a plain one")))
        }
    }
}

/// What each of our variables is to be: JSON, or None for "not there".
type Target = Vec<(&'static str, Option<String>)>;

fn target(mode: Mode, part: &str, before: &BTreeMap<String, Option<String>>) -> Target {
    let old = |name: &str| before.get(&key(part, Some(name))).cloned().flatten();
    let text = |json: String| serde_json::from_str::<String>(&json).unwrap_or(json);
    let current = OUR_SHARED_VARIABLES.iter().filter_map(|&name| Some((name.to_owned(), text(old(name)?)))).collect();
    let wanted = shared(mode, &current);
    let value = |name: &str| wanted.iter().find(|(wanted, _)| *wanted == name).map(|(_, json)| json.clone());
    OUR_SHARED_VARIABLES.into_iter().map(|name| (name, value(name).or_else(|| old(name)))).collect()
}

fn before(
    document: &Document,
    part: &str,
    env: Option<&Object>,
    earlier: Option<&Switched>,
) -> BTreeMap<String, Option<String>> {
    let now = |name: &str| {
        let property = env.and_then(|env| last(env, name));
        property.map(|property| document.source(property.value.range()).to_owned())
    };
    let old = |key: &str| earlier.and_then(|earlier| earlier.before.get(key)).cloned();
    OUR_SHARED_VARIABLES
        .into_iter()
        .map(|name| {
            let key = key(part, Some(name));
            let value = old(&key).unwrap_or_else(|| now(name));
            (key, value)
        })
        .collect()
}

/// `removable`: env blocks that go when nothing is left in them.
fn change_env(
    document: &Document,
    object: &Object,
    changes: &[(&str, Target)],
    removable: &[String],
) -> Result<Vec<Edit>, Refused> {
    let mut edits = Vec::new();
    for (part, target) in changes {
        let Some(owner) = owner(object, part) else { continue };
        let Some(env) = env_of(document, owner)? else {
            edits.extend(new_env(document, owner, target));
            continue;
        };
        let gone: Vec<&str> = target.iter().filter(|(_, json)| json.is_none()).map(|(name, _)| *name).collect();
        let nothing_left = env.properties.iter().all(|property| gone.contains(&property.name.as_str()));
        if nothing_left && removable.contains(&key(part, None)) {
            edits.extend(remove_properties(document, owner, &["env"]));
            continue;
        }
        edits.extend(changed_properties(document, env, target, &gone)?);
    }
    Ok(document.finish(edits))
}

/// Properties that go and properties that come can share a comma, so the second step reads the result of the first.
fn changed_properties(document: &Document, env: &Object, target: &Target, gone: &[&str]) -> Result<Vec<Edit>, Refused> {
    let pairs: Vec<(&str, &str)> = target.iter().filter_map(|(name, json)| Some((*name, json.as_deref()?))).collect();
    let removals = remove_properties(document, env, gone);
    if removals.is_empty() {
        return Ok(set_properties(document, env, &pairs, false));
    }
    let before = document.source(env.range);
    let local = |edits: Vec<Edit>| -> Vec<Edit> {
        let start = env.range.start;
        edits.into_iter().map(|edit| Edit { start: edit.start - start, end: edit.end - start, ..edit }).collect()
    };
    let without = apply(before, &local(removals));
    let reread = Document::parse(&without)?;
    let Some(Value::Object(smaller)) = &reread.root else { return Ok(Vec::new()) };
    let after = apply(&without, &set_properties(&reread, smaller, &pairs, false));
    let edit = between(before, &after).map(|edit| Edit {
        start: edit.start + env.range.start,
        end: edit.end + env.range.start,
        ..edit
    });
    Ok(edit.into_iter().collect())
}

fn new_env(document: &Document, owner: &Object, target: &Target) -> Vec<Edit> {
    let pairs: Vec<String> =
        target.iter().filter_map(|(name, json)| Some(format!("{}: {}", quote(name), json.as_deref()?))).collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let layout = document.layout();
    let members = Members::of_object(document, owner);
    let json = if members.over_lines() {
        let indent = members.indent(&layout);
        let line = format!("{}{indent}{}", layout.newline, layout.unit);
        let lines: Vec<String> = pairs.iter().map(|pair| format!("{line}{pair}")).collect();
        format!("{{{}{}{indent}}}", lines.join(","), layout.newline)
    } else {
        format!("{{ {} }}", pairs.join(", "))
    };
    set_properties(document, owner, &[("env", &json)], false)
}

/// The source of a configuration with another name and the variables of a mode.
fn copy_with(document: &Document, object: &Object, name: &str, mode: Mode) -> Result<String, Refused> {
    let source = document.source(object.range);
    let mut changes = Vec::new();
    for part in PARTS {
        let Some(owner) = owner(object, part) else { continue };
        let env = env_of(document, owner)?;
        if env.is_some() || part.is_empty() {
            changes.push((part, target(mode, part, &before(document, part, env, None))));
        }
    }
    let mark = document.finish(vec![Edit::insert(0, "")])[0].start;
    let mut edits = change_env(document, object, &changes, &[])?;
    if let Some(property) = last(object, "name") {
        let range = property.value.range();
        edits.push(Edit::replace(range.start + mark, range.end + mark, quote(name)));
    }
    let start = object.range.start + mark;
    let local: Vec<Edit> =
        edits.into_iter().map(|edit| Edit { start: edit.start - start, end: edit.end - start, ..edit }).collect();
    Ok(apply(source, &local))
}

fn owner<'o>(object: &'o Object<'o>, part: &str) -> Option<&'o Object<'o>> {
    if part.is_empty() { Some(object) } else { last(object, part)?.value.as_object() }
}

fn env_of<'o>(document: &Document, owner: &'o Object<'o>) -> Result<Option<&'o Object<'o>>, Refused> {
    match last(owner, "env").map(|property| &property.value) {
        None => Ok(None),
        Some(Value::Object(env)) => Ok(Some(env)),
        Some(other) => Err(document.refuse(other.range(), "`env` is not an object of variables")),
    }
}

/// `env`, `linux.env`, `env.CUBLAME_MODE`, `linux.env.CUBLAME_MODE`.
fn key(part: &str, name: Option<&str>) -> String {
    let parts = [part, "env", name.unwrap_or_default()];
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(".")
}
