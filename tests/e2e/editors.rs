//! `docs/editors.md`: what it says is tested has a test of that name, and its configurations can be read.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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
