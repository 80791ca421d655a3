//! Run configurations: offered where the user stands, changed in the editor where it can, else written.

use std::path::Path;

use cublame_core::config::launch_json::{self, Place};
use cublame_core::config::run_xml;
use cublame_core::mode::Mode;
use cublame_tests::client::{able, uri};
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::ShowMessage;
use tower_lsp::ls_types::request::ApplyWorkspaceEdit;

const SCRIPT: &str = "import torch\n\n\ndef main(): ...\n\n\nif __name__ == \"__main__\":\n    main()\n";

const LAUNCH: &str = r#"{
    // mine
    "version": "0.2.0",
    "configurations": [
        { "name": "tests", "type": "debugpy", "request": "launch", "module": "pytest" },
        {
            "name": "train é",
            "type": "debugpy",
            "request": "launch",
            "program": "${workspaceFolder}/train.py", // é
        },
        { "name": "native", "type": "cppdbg", "request": "launch" },
    ]
}
"#;

const RUN_XML: &str = r#"<component name="ProjectRunConfigurationManager">
  <configuration default="false" name="train" type="PythonConfigurationType" factoryName="Python">
    <module name="proj" />
    <option name="SCRIPT_NAME" value="$PROJECT_DIR$/train.py" />
    <method v="2" />
  </configuration>
</component>
"#;

const NOTEBOOK: &str = r#"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "a",
   "metadata": {},
   "outputs": [],
   "source": ["import torch"]
  }
 ],
 "metadata": {},
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;

/// A client that makes edits, and can do with them what is named.
fn editing(project: &Project, workspace_edit: Value) -> TestServer {
    let mut initialize = able(project);
    initialize["capabilities"]["workspace"] = json!({ "applyEdit": true, "workspaceEdit": workspace_edit });
    TestServer::start(project, initialize)
}

fn everything() -> Value {
    json!({ "documentChanges": true, "resourceOperations": ["create"] })
}

/// One that makes none.
fn without_edits(project: &Project) -> TestServer {
    TestServer::start(project, able(project))
}

/// The commands that are offered at a line (from 0), by title.
fn offered(server: &mut TestServer, path: &Path, line: u32) -> Vec<(String, Value)> {
    let actions = server.code_actions_at(path, line);
    let offered = actions.iter().map(|action| {
        assert_eq!((&action["kind"], &action["command"]["command"]), (&json!("refactor"), &json!("cublame.configure")));
        (action["title"].as_str().expect("a title").to_owned(), action["command"]["arguments"][0].clone())
    });
    offered.collect()
}

fn titles(server: &mut TestServer, path: &Path, line: u32) -> Vec<String> {
    offered(server, path, line).into_iter().map(|(title, _)| title).collect()
}

fn argument(server: &mut TestServer, path: &Path, line: u32, title: &str) -> Value {
    let offered = offered(server, path, line);
    let found = offered.iter().find(|(name, _)| name == title);
    found.unwrap_or_else(|| panic!("`{title}` is not offered: {offered:#?}")).1.clone()
}

fn configure(server: &mut TestServer, argument: &Value) -> Value {
    server.command("cublame.configure", argument.clone()).expect("an answer").expect("what was changed")
}

fn refused(server: &mut TestServer, argument: &Value) -> String {
    server.command("cublame.configure", argument.clone()).expect_err("a refusal").message.into_owned()
}

fn said(server: &mut TestServer) -> String {
    server.notification::<ShowMessage>().message
}

/// Takes the edit that the server asks for, and answers that it is made.
fn edit(server: &mut TestServer) -> Value {
    let (id, asked) = server.server_request::<ApplyWorkspaceEdit>();
    server.respond(id, json!({ "applied": true }));
    assert!(said(server).starts_with("Changed in the editor"));
    json!(asked.edit)
}

/// The text after one edit of a protocol whose columns are UTF-16.
fn edited(text: &str, edit: &Value) -> String {
    let offset = |at: &Value| {
        let line = at["line"].as_u64().expect("a line") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let mut units = at["character"].as_u64().expect("a column") as usize;
        let before = text[start..].chars().take_while(|character| {
            let goes = units > 0;
            units = units.saturating_sub(character.len_utf16());
            goes
        });
        start + before.map(char::len_utf8).sum::<usize>()
    };
    let (start, end) = (offset(&edit["range"]["start"]), offset(&edit["range"]["end"]));
    format!("{}{}{}", &text[..start], edit["newText"].as_str().expect("text"), &text[end..])
}

fn entry_names(text: &str) -> Vec<String> {
    let entries = launch_json::list(text, Place::OwnFile).expect("a launch.json");
    entries.into_iter().map(|entry| entry.name).collect()
}

fn mode_of(text: &str, name: &str) -> Option<Mode> {
    let entries = launch_json::list(text, Place::OwnFile).expect("a launch.json");
    entries.into_iter().find(|entry| entry.name == name).expect("the entry").mode
}

#[test]
fn a_script_gets_configurations_at_its_main_and_at_its_first_line() {
    let project = Project::new(&[("train.py", SCRIPT)]);
    let train = project.path("train.py");
    let mut server = without_edits(&project);
    server.open(&train, 1, SCRIPT);
    let both = ["Write VS Code run configurations", "Write PyCharm run configurations"];
    assert_eq!(titles(&mut server, &train, 0), both);
    assert_eq!(titles(&mut server, &train, 6), both);
    assert_eq!(titles(&mut server, &train, 3), [""; 0]);

    let vscode = argument(&mut server, &train, 6, both[0]);
    let changed = configure(&mut server, &vscode);
    let files = [".vscode/launch.json", ".vscode/tasks.json"].map(|name| project.path(name));
    assert_eq!(changed, json!({ "changed": files, "inEditor": [] }));
    assert!(said(&mut server).starts_with("Changed: "));
    let launch = project.read(".vscode/launch.json");
    assert_eq!(entry_names(&launch), ["cublame: train.py (blocking)", "cublame: train.py (trace)"]);
    assert_eq!(configure(&mut server, &vscode), json!({ "changed": [], "inEditor": [] }));
    assert!(said(&mut server).contains("nothing was changed"));
    assert_eq!(project.read(".vscode/launch.json"), launch);

    let pycharm = argument(&mut server, &train, 0, both[1]);
    configure(&mut server, &pycharm);
    said(&mut server);
    let written = project.read(".run/cublame_ train.py (trace).run.xml");
    assert_eq!(run_xml::strictly(&written).expect("PyCharm's shape").mode(), Some(Mode::Trace));
    assert_eq!(configure(&mut server, &pycharm), json!({ "changed": [], "inEditor": [] }));
    said(&mut server);
    // What was written is taken away again.
    for tool in ["vscode", "pycharm"] {
        configure(&mut server, &json!({ "tool": tool, "action": "remove" }));
        said(&mut server);
    }
    assert!(!project.path(".run/cublame_ train.py (trace).run.xml").exists());
    assert_eq!(entry_names(&project.read(".vscode/launch.json")), [""; 0]);
}

#[test]
fn every_kind_of_launch_is_written() {
    let project = Project::new(&[("train.py", SCRIPT), ("tests/test_a.py", "")]);
    let mut server = without_edits(&project);
    let address = |name: &str| json!(uri(&project.path(name)));
    for (argument, name) in [
        (json!({ "tool": "vscode" }), "cublame: current file (core)"),
        (json!({ "tool": "vscode", "program": address("train.py") }), "cublame: train.py (core)"),
        (json!({ "tool": "vscode", "module": "pkg.train" }), "cublame: module pkg.train (core)"),
        (json!({ "tool": "vscode", "pytest": "" }), "cublame: pytest (core)"),
        (json!({ "tool": "vscode", "pytest": address("tests/test_a.py") }), "cublame: pytest tests/test_a.py (core)"),
        (json!({ "tool": "vscode", "torchrun": address("train.py") }), "cublame: torchrun train.py (core)"),
        (json!({ "tool": "vscode", "accelerate": address("train.py") }), "cublame: accelerate train.py (core)"),
    ] {
        let mut argument = argument;
        argument["modes"] = json!(["core"]);
        configure(&mut server, &argument);
        said(&mut server);
        let names = entry_names(&project.read(".vscode/launch.json"));
        assert!(names.iter().any(|written| written == name), "{name} is not in {names:?}");
    }
}

#[test]
fn a_dry_run_answers_the_diff_and_changes_nothing() {
    let project = Project::new(&[("train.py", SCRIPT), (".vscode/launch.json", LAUNCH)]);
    let mut server = editing(&project, everything());
    for (argument, added) in [
        (json!({ "tool": "vscode", "program": uri(&project.path("train.py")) }), "+            \"name\": \"cublame: "),
        (json!({ "tool": "vscode", "action": "switch", "name": "train é" }), "+                \"CUBLAME_MODE\""),
        (json!({ "tool": "pycharm", "module": "pkg" }), "+++ b/"),
    ] {
        let mut argument = argument;
        argument["dryRun"] = json!(true);
        let diff = configure(&mut server, &argument);
        let diff = diff.as_str().expect("a diff");
        assert!(diff.starts_with("--- ") && diff.contains("\n@@ ") && diff.contains(added), "{diff}");
    }
    assert_eq!(project.read(".vscode/launch.json"), LAUNCH);
    assert!(!project.path(".vscode/tasks.json").exists() && !project.path(".run").exists());
    assert!(!project.path(".cublame/switched.json").exists());
}

#[test]
fn an_entry_is_switched_twinned_and_switched_back_in_the_open_text() {
    let project = Project::new(&[(".vscode/launch.json", "{ \"configurations\": [] }")]);
    let launch = project.path(".vscode/launch.json");
    let mut server = editing(&project, everything());
    // The open text counts; what is on disk has no such entry.
    server.open(&launch, 7, LAUNCH);
    let all = [
        "Make `train é` run in mode blocking",
        "Add a copy of `train é` in mode blocking",
        "Make `train é` run in mode trace",
        "Add a copy of `train é` in mode trace",
    ];
    assert_eq!(titles(&mut server, &launch, 7), all);
    assert_eq!(titles(&mut server, &launch, 5), all, "its first line belongs to it");
    assert_eq!(titles(&mut server, &launch, 11), [""; 0], "another debugger's entry");
    assert_eq!(titles(&mut server, &launch, 1), [""; 0]);

    let switch = argument(&mut server, &launch, 7, all[2]);
    assert_eq!(configure(&mut server, &switch), json!({ "changed": [], "inEditor": [launch] }));
    let asked = edit(&mut server);
    assert_eq!(asked["documentChanges"][0]["textDocument"], json!({ "uri": uri(&launch), "version": 7 }));
    let switched = edited(LAUNCH, &asked["documentChanges"][0]["edits"][0]);
    assert_eq!(mode_of(&switched, "train é"), Some(Mode::Trace));
    assert!(project.read(".cublame/switched.json").contains("train é"), "the lint and the way back know of it");
    assert_eq!(project.read(".vscode/launch.json"), "{ \"configurations\": [] }", "the file is the editor's to save");

    server.rewrite(&launch, 8, &switched);
    configure(&mut server, &switch);
    assert!(said(&mut server).contains("nothing was changed"), "twice is once");
    let back = argument(&mut server, &launch, 7, "Switch `train é` back");
    configure(&mut server, &back);
    let asked = edit(&mut server);
    assert_eq!(edited(&switched, &asked["documentChanges"][0]["edits"][0]), LAUNCH);
    server.rewrite(&launch, 9, LAUNCH);
    assert!(refused(&mut server, &back).contains("`train é` is not switched"));

    let twin = argument(&mut server, &launch, 7, all[1]);
    configure(&mut server, &twin);
    let asked = edit(&mut server);
    let twinned = edited(LAUNCH, &asked["documentChanges"][0]["edits"][0]);
    assert_eq!(entry_names(&twinned), ["tests", "train é", "native", "train é (cublame: blocking)"]);
    server.rewrite(&launch, 10, &twinned);
    assert!(!titles(&mut server, &launch, 7).contains(&all[1].to_owned()), "the copy is there");
    configure(&mut server, &twin);
    assert!(said(&mut server).contains("nothing was changed"));
}

#[test]
fn a_client_that_knows_no_versions_gets_plain_changes() {
    let project = Project::new(&[(".vscode/launch.json", LAUNCH)]);
    let launch = project.path(".vscode/launch.json");
    let mut server = editing(&project, json!({}));
    server.open(&launch, 1, LAUNCH);
    let twin = argument(&mut server, &launch, 4, "Add a copy of `tests` in mode trace");
    configure(&mut server, &twin);
    let asked = edit(&mut server);
    assert_eq!(asked.get("documentChanges"), None);
    let changes = &asked["changes"][uri(&launch).as_str()];
    let twinned = edited(LAUNCH, &changes[0]);
    assert!(entry_names(&twinned).contains(&"tests (cublame: trace)".to_owned()));
    // It cannot create files, so these are written.
    configure(&mut server, &json!({ "tool": "pycharm", "module": "pkg" }));
    assert!(said(&mut server).starts_with("Changed: "));
    assert!(project.path(".run/cublame_ module pkg (blocking).run.xml").exists());
}

#[test]
fn files_are_created_in_an_editor_that_creates_files() {
    let project = Project::new(&[]);
    let mut server = editing(&project, everything());
    let argument = json!({ "tool": "vscode", "module": "pkg" });
    let launch = project.path(".vscode/launch.json");
    let answer = configure(&mut server, &argument);
    assert_eq!(answer, json!({ "changed": [], "inEditor": [launch, project.path(".vscode/tasks.json")] }));
    let changes = edit(&mut server)["documentChanges"].clone();
    assert_eq!((&changes[0]["kind"], &changes[0]["uri"]), (&json!("create"), &json!(uri(&launch))));
    assert_eq!(changes[1]["textDocument"], json!({ "uri": uri(&launch), "version": null }));
    let text = edited("", &changes[1]["edits"][0]);
    assert_eq!(entry_names(&text).len(), 2);
    assert!(!launch.exists());
    // The editor has created the file, and its text is not saved: a second edit would be made on top of it.
    project.write(".vscode/launch.json", "");
    assert!(refused(&mut server, &argument).contains("not saved: save it first"));
    project.write(".vscode/launch.json", &text);
    assert_eq!(configure(&mut server, &argument)["inEditor"], json!([project.path(".vscode/tasks.json")]));
    edit(&mut server);
}

#[test]
fn a_switch_that_the_editor_does_not_take_leaves_no_record() {
    let project = Project::new(&[(".vscode/launch.json", LAUNCH)]);
    let launch = project.path(".vscode/launch.json");
    let mut server = editing(&project, everything());
    server.open(&launch, 1, LAUNCH);
    let switch = json!({ "tool": "vscode", "action": "switch", "name": "tests" });
    configure(&mut server, &switch);
    let (id, _) = server.server_request::<ApplyWorkspaceEdit>();
    assert!(project.path(".cublame/switched.json").exists());
    server.respond(id, json!({ "applied": false, "failureReason": "the document has changed" }));
    assert!(said(&mut server).contains("did not take the change: the document has changed"));
    crate::orders::eventually("the end of the record", || {
        (!project.path(".cublame/switched.json").exists()).then_some(())
    });
}

#[test]
fn an_open_text_that_is_not_saved_is_not_written_over() {
    let project = Project::new(&[(".vscode/launch.json", LAUNCH)]);
    let launch = project.path(".vscode/launch.json");
    let mut server = without_edits(&project);
    server.open(&launch, 1, &LAUNCH.replace("tests", "all tests"));
    let twin = json!({ "tool": "vscode", "action": "twin", "name": "all tests" });
    let message = refused(&mut server, &twin);
    assert!(message.contains("is open and has changes that are not saved"), "{message}");
    assert_eq!(project.read(".vscode/launch.json"), LAUNCH);
    server.rewrite(&launch, 2, LAUNCH);
    configure(&mut server, &json!({ "tool": "vscode", "action": "twin", "name": "tests" }));
    said(&mut server);
    assert!(entry_names(&project.read(".vscode/launch.json")).contains(&"tests (cublame: blocking)".to_owned()));
}

#[test]
fn a_configuration_of_pycharms_is_switched_copied_and_switched_back() {
    for folder in [".run", ".idea/runConfigurations"] {
        let name = if folder == ".run" { ".run/train.run.xml" } else { ".idea/runConfigurations/train.xml" };
        let project = Project::new(&[(name, RUN_XML)]);
        let file = project.path(name);
        let mut server = editing(&project, everything());
        server.open(&file, 3, RUN_XML);
        let all = [
            "Make `train` run in mode blocking",
            "Add a copy of `train` in mode blocking",
            "Make `train` run in mode trace",
            "Add a copy of `train` in mode trace",
        ];
        assert_eq!(titles(&mut server, &file, 2), all);
        let switch = argument(&mut server, &file, 2, all[0]);
        configure(&mut server, &switch);
        let asked = edit(&mut server);
        let switched = edited(RUN_XML, &asked["documentChanges"][0]["edits"][0]);
        assert_eq!(run_xml::read(&switched).expect("a configuration").mode(), Some(Mode::Blocking));
        server.rewrite(&file, 4, &switched);
        configure(&mut server, &switch);
        assert!(said(&mut server).contains("nothing was changed"));
        let back = argument(&mut server, &file, 2, "Switch `train` back");
        configure(&mut server, &back);
        let asked = edit(&mut server);
        assert_eq!(edited(&switched, &asked["documentChanges"][0]["edits"][0]), RUN_XML);
        server.rewrite(&file, 5, RUN_XML);
        let twin = argument(&mut server, &file, 2, all[3]);
        configure(&mut server, &twin);
        let created = edit(&mut server)["documentChanges"].clone();
        let copy = edited("", &created[1]["edits"][0]);
        assert_eq!(run_xml::read(&copy).expect("a configuration").name, "cublame: train (trace)");
        let suffix = if folder == ".run" { "run.xml" } else { "xml" };
        let copy_name = format!("{folder}/cublame_ train (trace).{suffix}");
        assert_eq!(created[0]["uri"], json!(uri(&project.path(&copy_name))));
        project.write(&copy_name, &copy);
        configure(&mut server, &twin);
        assert!(said(&mut server).contains("nothing was changed"));
    }
}

#[test]
fn a_notebook_gets_its_first_cell_and_loses_it_again() {
    let project = Project::new(&[("a.ipynb", NOTEBOOK)]);
    let notebook = project.path("a.ipynb");
    let mut server = editing(&project, everything());
    server.open(&notebook, 1, NOTEBOOK);
    let add = argument(&mut server, &notebook, 0, "Add the first-cell snippet of cublame");
    configure(&mut server, &add);
    let asked = edit(&mut server);
    let with = edited(NOTEBOOK, &asked["documentChanges"][0]["edits"][0]);
    let cells = serde_json::from_str::<Value>(&with).expect("a notebook")["cells"].clone();
    assert_eq!(cells[0]["metadata"]["tags"], json!(["cublame"]));
    assert_eq!(cells.as_array().map(Vec::len), Some(2));
    server.rewrite(&notebook, 2, &with);
    configure(&mut server, &add);
    assert!(said(&mut server).contains("nothing was changed"));
    let remove = argument(&mut server, &notebook, 0, "Remove the first-cell snippet of cublame");
    configure(&mut server, &remove);
    let asked = edit(&mut server);
    assert_eq!(edited(&with, &asked["documentChanges"][0]["edits"][0]), NOTEBOOK);
    // One that is not open as text is written: an editor may show its cells.
    server.close(&notebook);
    configure(&mut server, &add);
    assert!(said(&mut server).starts_with("Changed: "));
    assert_eq!(project.read("a.ipynb"), with);
}

#[test]
fn broken_files_are_refused_with_the_place_and_nothing_is_written() {
    let broken = "{\n  \"configurations\": [\n    { \"name\": }\n  ]\n}\n";
    let project = Project::new(&[
        (".vscode/launch.json", broken),
        (".run/train.run.xml", "<component>\n  <configuration\n</component>\n"),
        ("a.ipynb", "{\n \"cells\": [\n"),
    ]);
    for open in [false, true] {
        let mut server = editing(&project, everything());
        if open {
            for name in [".vscode/launch.json", ".run/train.run.xml", "a.ipynb"] {
                server.open(&project.path(name), 1, &project.read(name));
                assert_eq!(titles(&mut server, &project.path(name), 1), [""; 0]);
            }
        }
        for (argument, place) in [
            (json!({ "tool": "vscode", "module": "pkg" }), "launch.json:3:15: "),
            (json!({ "tool": "vscode", "action": "switch", "name": "train" }), "launch.json:3:15: "),
            (json!({ "tool": "vscode", "module": "pkg", "dryRun": true }), "launch.json:3:15: "),
            (json!({ "tool": "pycharm", "module": "pkg" }), "train.run.xml:3:1: "),
            (json!({ "tool": "notebook", "uri": uri(&project.path("a.ipynb")) }), "a.ipynb:"),
        ] {
            let message = refused(&mut server, &argument);
            assert!(message.contains(place) && message.contains("nothing was written"), "{message}");
        }
    }
    assert_eq!(project.read(".vscode/launch.json"), broken);
    assert!(!project.path(".vscode/tasks.json").exists() && !project.path(".cublame/switched.json").exists());
}

#[test]
fn a_workspace_file_is_configured_in_its_section() {
    let text = format!("{{\n  \"folders\": [{{ \"path\": \".\" }}],\n  \"launch\": {}}}\n", LAUNCH.trim_start());
    let project = Project::new(&[("all.code-workspace", &text)]);
    let file = project.path("all.code-workspace");
    let mut server = editing(&project, everything());
    server.open(&file, 1, &text);
    let line =
        u32::try_from(text.lines().position(|line| line.contains("train é")).expect("the entry")).expect("a line");
    let twin = argument(&mut server, &file, line, "Add a copy of `train é` in mode blocking");
    configure(&mut server, &twin);
    let asked = edit(&mut server);
    let twinned = edited(&text, &asked["documentChanges"][0]["edits"][0]);
    let entries = launch_json::list(&twinned, Place::Section).expect("a section");
    assert_eq!(entries.last().map(|entry| entry.mode), Some(Some(Mode::Blocking)));
}
