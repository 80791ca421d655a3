//! What can be done about run configurations where the user stands: at a script's main, at an entry of a launch.json,
//! in a run configuration of PyCharm's, in a notebook. Each is a call of `cublame.configure`, which reads the files.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use cublame_core::catalog::Texts;
use cublame_core::config::launch_json::{self, Entry};
use cublame_core::config::{Place, notebook, run_xml};
use cublame_core::mode::Mode;
use serde_json::{Value, json};
use tower_lsp::ls_types::{self as lsp, Command as LspCommand, Uri};

use super::super::commands::Command;
use super::super::documents::Document;
use super::code_lens::main_line;
use crate::configure::USUAL_MODES;

/// `lines` are those of the user's selection, from 0. The document is read as it is in the editor.
///
/// A text that cannot be read has no offers; the command itself says where it is broken.
pub fn offers(document: &Document, lines: lsp::Range, texts: &Texts) -> Vec<LspCommand> {
    let Some(path) = &document.path else { return Vec::new() };
    let text = document.text.text();
    let lines = lines.start.line..lines.end.line + 1;
    match Kind::of(path, &document.language) {
        Some(Kind::Script) => of_script(document, &lines, texts),
        Some(Kind::Launches { place, workspace }) => {
            let entries = launch_json::list(text, place).unwrap_or_default();
            let touched = |entry: &&Entry| {
                let (first, last) = (document.text.line_of(entry.start), document.text.line_of(entry.end));
                (first - 1..last).any(|line| lines.contains(&line))
            };
            let wanted = entries.iter().filter(touched).filter(|entry| entry.is_python() && !entry.ours);
            wanted.flat_map(|entry| of_launch(entry, &entries, text, &workspace, texts)).collect()
        }
        Some(Kind::RunXml { project }) => of_run_xml(text, &project, texts),
        Some(Kind::Notebook) => of_notebook(text, path, texts),
        None => Vec::new(),
    }
}

enum Kind {
    Script,
    /// A launch.json, or the workspace file that holds one.
    Launches {
        place: Place,
        workspace: PathBuf,
    },
    RunXml {
        project: PathBuf,
    },
    Notebook,
}

impl Kind {
    fn of(path: &Path, language: &str) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let folder = path.parent()?;
        let folder_name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let of_pycharm = folder_name == "runConfigurations" && name.ends_with(".xml");
        match () {
            () if name == "launch.json" && folder_name == ".vscode" => {
                Some(Kind::Launches { place: Place::OwnFile, workspace: folder.parent()?.to_owned() })
            }
            () if name.ends_with(".code-workspace") => {
                Some(Kind::Launches { place: Place::Section, workspace: path.to_owned() })
            }
            () if of_pycharm && folder.ends_with(".idea/runConfigurations") => {
                Some(Kind::RunXml { project: folder.parent()?.parent()?.to_owned() })
            }
            () if name.ends_with(".run.xml") => {
                let project = if folder_name == ".run" { folder.parent()? } else { folder };
                Some(Kind::RunXml { project: project.to_owned() })
            }
            () if name.ends_with(".ipynb") => Some(Kind::Notebook),
            () => (language == "python").then_some(Kind::Script),
        }
    }
}

fn of_script(document: &Document, lines: &Range<u32>, texts: &Texts) -> Vec<LspCommand> {
    let Some(main) = main_line(document.text.text()) else { return Vec::new() };
    if !lines.contains(&main) && !lines.contains(&0) {
        return Vec::new();
    }
    let write = |name: &str, tool: &str| {
        let title = texts.line("editor.action.write-configurations", &[("name", name)]);
        configure(title, json!({ "tool": tool, "program": document.uri }))
    };
    vec![write("VS Code", "vscode"), write("PyCharm", "pycharm")]
}

/// A configuration without a mode can get one, in place or as a copy; one that was switched can be switched back.
fn of_launch(entry: &Entry, all: &[Entry], text: &str, workspace: &Path, texts: &Texts) -> Vec<LspCommand> {
    let name = &entry.name;
    if entry.mode.is_some() {
        let switched = text[entry.start..entry.end].contains("\"CUBLAME_MODE\"");
        return switched.then(|| back("vscode", name, workspace, texts)).into_iter().flatten().collect();
    }
    let has_twin = |mode: Mode| all.iter().any(|other| other.name == format!("{name} (cublame: {mode})"));
    USUAL_MODES
        .into_iter()
        .flat_map(|mode| {
            let twin = (!has_twin(mode)).then(|| twin("vscode", name, mode, workspace, texts)).flatten();
            switch("vscode", name, mode, workspace, texts).into_iter().chain(twin)
        })
        .collect()
}

fn of_run_xml(text: &str, project: &Path, texts: &Texts) -> Vec<LspCommand> {
    let Ok(configuration) = run_xml::read(text) else { return Vec::new() };
    if !configuration.is_python() || configuration.is_ours() {
        return Vec::new();
    }
    let name = &configuration.name;
    if configuration.mode().is_some() {
        let switched = configuration.env("CUBLAME_MODE").is_some();
        return switched.then(|| back("pycharm", name, project, texts)).into_iter().flatten().collect();
    }
    USUAL_MODES
        .into_iter()
        .flat_map(|mode| {
            switch("pycharm", name, mode, project, texts).into_iter().chain(twin("pycharm", name, mode, project, texts))
        })
        .collect()
}

fn of_notebook(text: &str, path: &Path, texts: &Texts) -> Vec<LspCommand> {
    let uri = Uri::from_file_path(path);
    if notebook::add(text, Mode::Blocking).is_ok_and(|edits| !edits.is_empty()) {
        return vec![configure(
            texts.line("editor.action.add-snippet", &[]),
            json!({ "tool": "notebook", "uri": uri }),
        )];
    }
    if notebook::remove(text).is_ok_and(|edits| !edits.is_empty()) {
        let arguments = json!({ "tool": "notebook", "uri": uri, "action": "remove" });
        return vec![configure(texts.line("editor.action.remove-snippet", &[]), arguments)];
    }
    Vec::new()
}

fn switch(tool: &str, name: &str, mode: Mode, place: &Path, texts: &Texts) -> Option<LspCommand> {
    let title = texts.line("editor.action.switch", &[("name", name), ("mode", mode.name())]);
    theirs(title, tool, "switch", name, &[mode], place)
}

fn twin(tool: &str, name: &str, mode: Mode, place: &Path, texts: &Texts) -> Option<LspCommand> {
    let title = texts.line("editor.action.twin", &[("name", name), ("mode", mode.name())]);
    theirs(title, tool, "twin", name, &[mode], place)
}

fn back(tool: &str, name: &str, place: &Path, texts: &Texts) -> Option<LspCommand> {
    let title = texts.line("editor.action.switch-back", &[("name", name)]);
    theirs(title, tool, "switchBack", name, &[], place)
}

fn theirs(title: String, tool: &str, action: &str, name: &str, modes: &[Mode], place: &Path) -> Option<LspCommand> {
    let uri = Uri::from_file_path(place)?;
    let modes: Vec<String> = modes.iter().map(Mode::to_string).collect();
    let arguments = json!({ "tool": tool, "uri": uri, "action": action, "name": name, "modes": modes });
    Some(configure(title, arguments))
}

fn configure(title: String, arguments: Value) -> LspCommand {
    LspCommand { title, command: Command::Configure.name().to_owned(), arguments: Some(vec![arguments]) }
}
