//! `docs/editors.md`: what it says is tested has a test of that name, and its configurations can be read.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cublame::lsp::settings::{self, Settings};
use cublame_core::lint::RULES;
use cublame_core::mode::Mode;
use serde_json::{Value, json};

#[test]
fn every_cell_of_the_table_names_a_test_that_exists_or_says_that_there_is_none() {
    let page = read("docs/editors.md");
    let (_, table) = page.split_once("## What is tested").unwrap();
    let rows: Vec<Vec<&str>> = table.lines().filter_map(cells).collect();
    let (head, rows) = rows.split_first().unwrap();
    assert_eq!(head[1..], ["VS Code", "PyCharm", "Neovim 0.11", "Emacs 28"]);
    // The second line is the rule below the head.
    for row in &rows[1..] {
        assert_eq!(row.len(), head.len(), "{row:?}");
        for (editor, cell) in head.iter().zip(row).skip(1) {
            if let Err(wrong) = check(cell) {
                panic!("{} in {editor}: {wrong}", row[0]);
            }
        }
    }
    assert!(rows.len() > 15, "the table was not found");
}

#[test]
fn a_cell_is_wrong_that_names_no_test() {
    let file = "../tests/clients/neovim.lua";
    check(&format!("[yes]({file} \"hover has the verdict\")")).unwrap();
    check(&format!("[yes]({file} \"hover has\")")).unwrap_err();
    check("[yes](../tests/clients/none.lua \"hover has the verdict\")").unwrap_err();
    check("[yes](../tests/clients/neovim.lua)").unwrap_err();
    check("yes").unwrap_err();
}

#[test]
fn its_configurations_can_be_read() {
    let page = read("docs/editors.md");
    let json = snippets(&page, "json");
    assert!(json.len() > 2, "{json:?}");
    for snippet in json {
        serde_json::from_str::<serde_json::Value>(snippet).unwrap_or_else(|wrong| panic!("{wrong}:\n{snippet}"));
    }
    let toml = snippets(&page, "toml");
    assert!(!toml.is_empty());
    for snippet in toml {
        toml::from_str::<toml::Table>(snippet).unwrap_or_else(|wrong| panic!("{wrong}:\n{snippet}"));
    }
}

#[test]
fn every_editor_offers_the_same_modes() {
    let package: serde_json::Value = serde_json::from_str(&read("vscode-extension/package.json")).unwrap();
    let modes = &package["contributes"]["configuration"]["properties"]["cublame.mode"]["enum"];
    let offered: BTreeSet<&str> = modes.as_array().unwrap().iter().filter_map(|mode| mode.as_str()).collect();
    assert!(offered.contains("trace"), "{offered:?}");
    let neovim = read("server/editors/nvim/lua/cublame/mode.lua");
    assert_eq!(between(&neovim, "{ name = '", "'"), offered);
    let emacs = read("server/editors/emacs/cublame.el");
    let (_, list) = emacs.split_once("(defconst cublame--offered-modes").unwrap();
    assert_eq!(between(list.split_once("\n\n").unwrap().0, "(\"", "\" . "), offered);
}

/// The extension's own, which the server never looks at.
const OF_THE_EXTENSION: [&str; 6] =
    ["server.path", "runIn", "debug.applyMode", "debug.liveBlame", "gutter", "trace.server"];

#[test]
fn the_settings_of_the_extension_are_those_of_the_server() {
    let offered = settings_of_the_extension();
    let names: BTreeSet<&str> = offered.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, settings::NAMES.into_iter().chain(OF_THE_EXTENSION).collect());
    for (name, setting) in offered.iter().filter(|(name, _)| settings::NAMES.contains(&name.as_str())) {
        let default = read_by_the_server(name, &setting["default"]);
        assert_eq!(default, Settings::default(), "the default of {name}");
        for word in setting["enum"].as_array().into_iter().flatten() {
            let found = read_by_the_server(name, word);
            assert_eq!(found.complaints, [""; 0], "{name}");
        }
        let wrong = read_by_the_server(name, &json!({ "no": "such value" }));
        assert_eq!(wrong.complaints.len(), 1, "the server does not read {name}: {:?}", wrong.complaints);
        assert!(wrong.complaints[0].contains(&format!("cublame.{name}")), "{:?}", wrong.complaints);
    }
}

#[test]
fn the_extension_offers_every_word_that_the_server_knows() {
    let offered: BTreeMap<String, Value> = settings_of_the_extension().into_iter().collect();
    let words = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    assert_eq!(words(&offered["mode"]["enum"]), Mode::ALL.iter().map(|mode| mode.name().to_owned()).collect());
    for list in ["lint.select", "lint.ignore"] {
        let rules: BTreeSet<String> = RULES.iter().map(|rule| rule.name.to_owned()).collect();
        assert_eq!(words(&offered[list]["items"]["enum"]), rules, "{list}");
    }
    let keys = offered["pathMappings"]["items"]["properties"].as_object().unwrap().keys();
    let mapping: Value = keys.map(|key| (key.clone(), json!("/srv"))).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(read_by_the_server("pathMappings", &json!([mapping])).path_mappings.len(), 1);
    assert_eq!(
        read_by_the_server("inlayHints", &json!(false)),
        Settings { no_inlay_hints: true, ..Settings::default() }
    );
}

/// Each by its name below `cublame.`.
fn settings_of_the_extension() -> Vec<(String, Value)> {
    let package: Value = serde_json::from_str(&read("vscode-extension/package.json")).unwrap();
    let properties = package["contributes"]["configuration"]["properties"].as_object().unwrap();
    properties.iter().map(|(name, it)| (name.strip_prefix("cublame.").unwrap().to_owned(), it.clone())).collect()
}

/// As the editor sends it: a dot in the name is an object within.
fn read_by_the_server(name: &str, value: &Value) -> Settings {
    let section = name.rsplit('.').fold(value.clone(), |inner, part| json!({ part: inner }));
    settings::of_section(Some(&section), None)
}

/// `[yes](../tests/clients/neovim.lua "a run is stopped")`, or a word for that there is no such thing.
fn check(cell: &str) -> Result<(), String> {
    if ["not tested", "none"].contains(&cell) {
        return Ok(());
    }
    let link =
        cell.strip_prefix('[').and_then(|rest| rest.split_once("](")).and_then(|(_, rest)| rest.strip_suffix("\")"));
    let (file, name) =
        link.and_then(|link| link.split_once(" \"")).ok_or_else(|| format!("`{cell}` is no link to a test"))?;
    let path = root().join("docs").join(file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let defined = definitions(&path, name).iter().any(|definition| text.contains(definition));
    if defined { Ok(()) } else { Err(format!("{file} has no test \"{name}\"")) }
}

/// How a test of this name begins in a file of this language.
fn definitions(file: &Path, name: &str) -> Vec<String> {
    let escaped = name.replace('\'', "\\'");
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("lua") => vec![format!("test('{escaped}', "), format!("test(\"{name}\", ")],
        Some("el") => vec![format!("(test \"{name}\"")],
        Some("ts" | "mjs") => vec![format!("test('{escaped}', "), format!("check('{escaped}', ")],
        Some("kt") => vec![format!("fun `{name}`(")],
        Some("py") => vec![format!("def {}(", name.replace(' ', "_"))],
        _ => Vec::new(),
    }
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn snippets<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    page.split(&begin).skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

/// What stands between two marks, wherever both are on one line.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> BTreeSet<&'a str> {
    text.lines().filter_map(|line| Some(line.split_once(begin)?.1.split_once(end)?.0)).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
