//! The first cell of a Jupyter notebook: written in, brought to another mode, removed.
//!
//! The file's formatting stays as it is; the new cell has Jupyter's key order and the file's own indentation.

use std::collections::BTreeMap;

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged;
use serde::Serialize;

use super::edit::{Edit, Refused};
use super::jsonc::{Document, Members, last, quote, set_properties, string};
use super::shell::notebook_cell;
use crate::event::Cell;
use crate::mode::{Machine, Mode, Os, env_block};

/// The tag by which our cell is found again.
pub const TAG: &str = "cublame";

/// The edits that put the snippet of `mode` into the notebook's first cell.
/// A cell of ours that already asks for this mode stays as the user has changed it.
pub fn add(text: &str, mode: Mode) -> Result<Vec<Edit>, Refused> {
    let document = Document::parse_json(text)?;
    let (top, cells) = cells(&document)?;
    let source = source(mode);
    if let Some((_, cell)) = ours(cells) {
        if mode_of(cell) == Some(mode) {
            return Ok(Vec::new());
        }
        let layout = document.layout();
        let indent = Members::of_object(&document, cell).indent(&layout);
        let json = if document.is_on_one_line() { compact(&source) } else { layout.pretty(&source, &indent) };
        return Ok(document.finish(set_properties(&document, cell, &[("source", &json)], false)));
    }
    let cell = FirstCell {
        cell_type: "code",
        execution_count: (),
        // Cell ids came with nbformat 4.5; before that they are not allowed (nbformat, "Changelog").
        id: (minor_version(top) >= 5).then_some("cublame-first-cell"),
        metadata: Metadata { tags: [TAG] },
        outputs: [],
        source,
    };
    let layout = document.layout();
    let members = Members::of_array(&document, cells);
    let json = if document.is_on_one_line() { compact(&cell) } else { layout.pretty(&cell, &members.indent(&layout)) };
    Ok(document.finish(members.prepend(&json, !document.is_on_one_line(), &layout)))
}

/// The edits that take our cell away.
pub fn remove(text: &str) -> Result<Vec<Edit>, Refused> {
    let document = Document::parse_json(text)?;
    let (_, cells) = cells(&document)?;
    let members = Members::of_array(&document, cells);
    let index = ours(cells).map(|(index, _)| index);
    let mut edits = members.remove(&index.into_iter().collect::<Vec<_>>());
    if index.is_some() && cells.elements.len() == 1 {
        edits.extend(members.closing_line());
    }
    Ok(document.finish(edits))
}

/// The line of the file, from 1, that holds a line of a cell: found by the cell's id, else by its source.
pub fn line_of_cell(text: &str, cell: &Cell, line: u32) -> Option<u32> {
    let document = Document::parse_json(text).ok()?;
    let (_, cells) = cells(&document).ok()?;
    let all = || cells.elements.iter().filter_map(Value::as_object);
    let named = |found: &&Object| cell.id.is_some() && string(found, "id") == cell.id.as_deref();
    let same = |found: &&Object| cell.source.is_some() && text_of(found) == cell.source;
    let found = all().find(named).or_else(|| all().find(same))?;
    let source = &last(found, "source")?.value;
    let line = match source {
        Value::Array(lines) => lines.elements.get(line.checked_sub(1)? as usize)?,
        // All on one line, as nobody writes it but the format allows it.
        other => other,
    };
    let before = document.body.get(..line.range().start)?;
    u32::try_from(before.matches('\n').count() + 1).ok()
}

/// In the order in which Jupyter writes (sorted keys).
#[derive(Serialize)]
struct FirstCell {
    cell_type: &'static str,
    execution_count: (),
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'static str>,
    metadata: Metadata,
    outputs: [(); 0],
    source: Vec<String>,
}

#[derive(Serialize)]
struct Metadata {
    tags: [&'static str; 1],
}

/// nbformat's "multi-line string": each line with its newline, the last without.
fn source(mode: Mode) -> Vec<String> {
    let block = env_block(mode, Os::HERE, &Machine::default(), &BTreeMap::new());
    let pairs: Vec<(&str, &str)> = block.shared().map(|variable| (variable.name, variable.value.as_str())).collect();
    notebook_cell(mode, &pairs).trim_end().split_inclusive('\n').map(str::to_owned).collect()
}

fn compact(value: &impl Serialize) -> String {
    // Plain strings and lists always have a JSON form.
    serde_json::to_string(value).unwrap_or_default()
}

fn cells<'d>(document: &'d Document) -> Result<(&'d Object<'d>, &'d Array<'d>), Refused> {
    let refuse_at_start = |what: &str| Refused::at(document.body, 0, what);
    let top =
        document.root.as_ref().and_then(Value::as_object).ok_or_else(|| refuse_at_start("this is not a notebook"))?;
    let major = last(top, "nbformat").and_then(|property| property.value.as_number_lit()).map(|number| number.value);
    if major != Some("4") {
        return Err(refuse_at_start("only notebooks of format 4 can be edited (`nbformat`)"));
    }
    match last(top, "cells").map(|property| &property.value) {
        Some(Value::Array(cells)) => Ok((top, cells)),
        Some(other) => Err(document.refuse(other.range(), "`cells` is not a list")),
        None => Err(refuse_at_start("the notebook has no `cells`")),
    }
}

fn minor_version(top: &Object) -> u32 {
    let minor = last(top, "nbformat_minor").and_then(|property| property.value.as_number_lit());
    minor.and_then(|number| number.value.parse().ok()).unwrap_or(0)
}

fn ours<'d>(cells: &'d Array<'d>) -> Option<(usize, &'d Object<'d>)> {
    cells.elements.iter().enumerate().find_map(|(index, cell)| {
        let cell = cell.as_object()?;
        let metadata = last(cell, "metadata")?.value.as_object()?;
        let tags = last(metadata, "tags")?.value.as_array()?;
        let tagged = tags.elements.iter().any(|tag| tag.as_string_lit().is_some_and(|tag| tag.value == TAG));
        (tagged && string(cell, "cell_type") == Some("code")).then_some((index, cell))
    })
}

fn text_of(cell: &Object) -> Option<String> {
    match &last(cell, "source")?.value {
        Value::StringLit(text) => Some(text.value.clone().into_owned()),
        Value::Array(lines) => {
            Some(lines.elements.iter().filter_map(|line| Some(line.as_string_lit()?.value.as_ref())).collect())
        }
        _ => None,
    }
}

fn mode_of(cell: &Object) -> Option<Mode> {
    let text = text_of(cell)?;
    Mode::ALL.into_iter().find(|mode| text.contains(&format!("\"CUBLAME_MODE\": {}", quote(mode.name()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::apply;

    fn notebook(cells: &str, minor: u32) -> String {
        format!(
            "{{\n \"cells\": [{cells}],\n \"metadata\": {{}},\n \"nbformat\": 4,\n \"nbformat_minor\": {minor}\n}}\n"
        )
    }

    const THEIRS: &str =
        "\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\"# Title\"]\n  }\n ";

    #[track_caller]
    fn check(text: &str) -> serde_json::Value {
        let once = apply(text, &add(text, Mode::Blocking).unwrap());
        assert_eq!(add(&once, Mode::Blocking).unwrap(), []);
        assert_eq!(apply(&once, &remove(&once).unwrap()), text);
        let trace = apply(&once, &add(&once, Mode::Trace).unwrap());
        assert_eq!(apply(&trace, &remove(&trace).unwrap()), text);
        serde_json::from_str(&once).unwrap()
    }

    #[test]
    fn the_first_cell_is_ours_and_can_be_removed() {
        let value = check(&notebook(THEIRS, 5));
        assert_eq!(value["cells"].as_array().unwrap().len(), 2);
        assert_eq!(value["cells"][0]["id"], "cublame-first-cell");
        assert_eq!(value["cells"][0]["metadata"]["tags"][0], "cublame");
        assert_eq!(check(&notebook(THEIRS, 4))["cells"][0].get("id"), None);
        assert_eq!(check(&notebook("", 5))["cells"].as_array().unwrap().len(), 1);
        check("{\"cells\": [], \"nbformat\": 4}");
        check("{\"cells\":[{\"cell_type\":\"code\",\"metadata\":{\"tags\":[\"x\"]},\"source\":\"1\"}],\"nbformat\":4}");
    }

    #[test]
    fn the_files_formatting_is_kept() {
        let text = notebook(THEIRS, 5);
        let once = apply(&text, &add(&text, Mode::Blocking).unwrap());
        let head = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"cublame-first-cell\",\n   \"metadata\": {\n    \"tags\": [\n     \"cublame\"\n    ]\n   },\n   \"outputs\": [],\n   \"source\": [\n    \"# cublame, mode blocking:";
        assert!(once.starts_with(head), "{once}");
        assert!(once.ends_with(&text[text.find("\n  {\n   \"cell_type\": \"markdown\"").unwrap()..]));
    }

    #[test]
    fn what_the_user_changed_stays_in_the_same_mode() {
        let text = notebook(THEIRS, 5);
        let mine = apply(&text, &add(&text, Mode::Blocking).unwrap()).replace("import os, sys", "import os, sys, math");
        assert_eq!(add(&mine, Mode::Blocking).unwrap(), []);
        assert!(apply(&mine, &add(&mine, Mode::Trace).unwrap()).contains("\\\"CUBLAME_MODE\\\": \\\"trace\\\""));
    }

    #[test]
    fn what_is_no_notebook_is_refused() {
        let refused = |text: &str| add(text, Mode::Off).unwrap_err().to_string();
        assert_eq!(
            refused("{\"worksheets\": [], \"nbformat\": 3}"),
            "line 1, column 1: only notebooks of format 4 can be edited (`nbformat`)"
        );
        assert_eq!(refused("{\"nbformat\": 4, \"cells\": 1}"), "line 1, column 26: `cells` is not a list");
        assert_eq!(
            refused("{\"nbformat\": 4,}"),
            "line 1, column 15: this is not valid JSON: trailing commas are not allowed"
        );
        assert_eq!(refused("{ // a\n}"), "line 1, column 3: this is not valid JSON: comments are not allowed");
    }
}
