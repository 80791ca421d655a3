//! Cells of notebooks: what a kernel left is shown in the cell, or in the `.ipynb` file where no notebook is open.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cublame::os::processes;
use cublame::session::folder::RunFolder;
use cublame_core::mode::Mode;
use cublame_core::run::{Run, Watch};
use cublame_tests::client::{able, uri};
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::ls_types::{Diagnostic, Uri};

const FIRST: &str = "import torch\n\ndef look_up(index):\n    return emb(index)  # @fault\n";
const SECOND: &str = "\nlook_up(7)\n";

fn notebook() -> String {
    let lines = |source: &str| source.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let cell = |id: &str, source: &str| json!({ "cell_type": "code", "execution_count": null, "id": id, "metadata": {}, "outputs": [], "source": lines(source) });
    let whole = json!({ "cells": [cell("aaa", FIRST), cell("bbb", SECOND)], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    serde_json::to_string_pretty(&whole).expect("JSON")
}

fn project() -> Project {
    Project::new(&[("train.ipynb", &notebook())])
}

fn address(project: &Project, cell: usize) -> Uri {
    let file = uri(&project.path("train.ipynb"));
    format!("vscode-notebook-cell:{}#W{cell}sZmlsZQ%3D%3D", file.path()).parse().expect("an address")
}

/// A kernel that lives, in which the second cell ran into a device assertion in the first one. `names` are the cells' names.
fn failed_kernel(project: &Project, names: [&str; 2]) -> RunFolder {
    let folder = RunFolder::create(&project.surroundings(), SystemTime::now()).expect("a run folder").folder;
    let run = Run {
        schema: 1,
        id: folder.id().to_owned(),
        watch: Watch::Adopted,
        mode: Mode::Off,
        argv: ["python3", "-m", "ipykernel_launcher"].map(str::to_owned).to_vec(),
        cwd: project.root().display().to_string(),
        entry: None,
        started: now(),
        host: processes::host_name(),
        runner: None,
        child: Some(processes::this_process()),
        blocking: false,
        env: Default::default(),
    };
    folder.write_run(&run).expect("run.json");
    let cell = |count: u32, name: &str, source: &str| {
        let first_line = if source.starts_with('\n') { 2 } else { 1 };
        json!({ "id": name, "count": count, "notebook": project.path("train.ipynb"), "first_line": first_line, "source": source })
    };
    let frame = |file: &str, line: u32, function: &str| json!({ "file": file, "line": line, "function": function });
    let message = "CUDA error: device-side assert triggered";
    event(
        &folder,
        json!({
            "event": "exception", "hook": "ipython", "thread": "MainThread", "main_thread": true,
            "chain": [{ "type": "torch.AcceleratorError", "message": message,
                        "frames": [frame("/tmp/ipykernel_7/2.py", 1, "<module>"), frame("/tmp/ipykernel_7/1.py", 4, "look_up")] }],
            "cells": { "/tmp/ipykernel_7/1.py": cell(1, names[0], FIRST), "/tmp/ipykernel_7/2.py": cell(2, names[1], SECOND) } }),
    );
    folder
}

fn event(folder: &RunFolder, fields: Value) {
    let mut line = json!({ "v": 1, "time": now(), "pid": 7 });
    line.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    let path = folder.path().join("events/7-a.jsonl");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
    file.write_all(format!("{line}\n").as_bytes()).expect("an event");
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

fn notify(server: &mut TestServer, method: &str, params: Value) {
    server.send_raw(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
}

/// As VS Code opens it; `metadata` is that of the cells.
fn open(server: &mut TestServer, project: &Project, metadata: [Value; 2]) {
    let cells: Vec<Value> = metadata
        .into_iter()
        .enumerate()
        .map(|(at, metadata)| json!({ "kind": 2, "document": address(project, at), "metadata": metadata }))
        .collect();
    let texts = [FIRST, SECOND].iter().enumerate().map(|(at, text)| document(project, at, text)).collect::<Vec<_>>();
    let identity = json!({ "uri": uri(&project.path("train.ipynb")), "notebookType": "jupyter-notebook", "version": 1, "cells": cells });
    notify(server, "notebookDocument/didOpen", json!({ "notebookDocument": identity, "cellTextDocuments": texts }));
}

fn document(project: &Project, cell: usize, text: &str) -> Value {
    json!({ "uri": address(project, cell), "languageId": "python", "version": 1, "text": text })
}

fn change(server: &mut TestServer, project: &Project, cells: Value) {
    let identity = json!({ "uri": uri(&project.path("train.ipynb")), "version": 2 });
    notify(server, "notebookDocument/didChange", json!({ "notebookDocument": identity, "change": { "cells": cells } }));
}

fn close(server: &mut TestServer, project: &Project) {
    let documents = [json!({ "uri": address(project, 0) }), json!({ "uri": address(project, 1) })];
    let identity = json!({ "uri": uri(&project.path("train.ipynb")) });
    notify(
        server,
        "notebookDocument/didClose",
        json!({ "notebookDocument": identity, "cellTextDocuments": documents }),
    );
}

/// The one failure at the marked line of a cell or a file.
#[track_caller]
fn check_fault(found: &[Diagnostic], text: &str) {
    let at = text.lines().position(|line| line.contains("# @fault")).expect("a marked line");
    let shown: Vec<(u32, &str)> =
        found.iter().map(|it| (it.range.start.line, it.source.as_deref().unwrap_or_default())).collect();
    assert_eq!(shown, [(at as u32, "cublame")]);
}

#[test]
fn a_failure_is_shown_in_its_cell_and_in_the_file_without_one() {
    for names in [["aaa", "bbb"], ["vscode", "vscode"]] {
        let project = project();
        let mut server = TestServer::start(&project, able(&project));
        let addresses = [address(&project, 0), address(&project, 1)];
        // Jupyter's kernels are given the cell's id, VS Code's the address of its document.
        let names = if names[0] == "vscode" { [addresses[0].as_str(), addresses[1].as_str()] } else { names };
        open(&mut server, &project, [json!({ "id": "aaa" }), json!({ "custom": { "id": "bbb" } })]);
        failed_kernel(&project, names);
        check_fault(&server.diagnostics_of(&addresses[0]).0, FIRST);
        close(&mut server, &project);
        assert_eq!(server.diagnostics_of(&addresses[0]).0, []);
        check_fault(&server.diagnostics(&project.path("train.ipynb")), &notebook());
        open(&mut server, &project, [json!({ "id": "aaa" }), json!({ "id": "bbb" })]);
        assert_eq!(server.diagnostics(&project.path("train.ipynb")), []);
        check_fault(&server.diagnostics_of(&addresses[0]).0, FIRST);
    }
}

#[test]
fn cells_with_broken_metadata_cost_nothing() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    // Without any id the cell is found by its text.
    open(&mut server, &project, [json!(7), json!(["no", "metadata"])]);
    failed_kernel(&project, ["xxx", "yyy"]);
    check_fault(&server.diagnostics_of(&address(&project, 0)).0, FIRST);
    change(
        &mut server,
        &project,
        json!({ "data": [null, { "kind": "code" }, { "document": 3, "kind": 2, "metadata": false }] }),
    );
    let text = format!("# above\n{FIRST}");
    let changes = json!([{ "document": { "uri": address(&project, 0), "version": 2 }, "changes": [{ "text": text }] }]);
    change(&mut server, &project, json!({ "textContent": changes }));
    check_fault(&server.diagnostics_of(&address(&project, 0)).0, &text);
}

#[test]
fn a_cell_that_is_taken_away_takes_its_failure_along() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    open(&mut server, &project, [json!({ "id": "aaa" }), json!({ "id": "bbb" })]);
    failed_kernel(&project, ["aaa", "bbb"]);
    check_fault(&server.diagnostics_of(&address(&project, 0)).0, FIRST);
    let gone = json!({ "array": { "start": 0, "deleteCount": 1 }, "didClose": [{ "uri": address(&project, 0) }] });
    change(&mut server, &project, json!({ "structure": gone }));
    assert_eq!(server.diagnostics_of(&address(&project, 0)).0, []);
    let back = json!({
        "array": { "start": 1, "deleteCount": 0, "cells": [{ "kind": 2, "document": address(&project, 0), "metadata": { "id": "aaa" } }] },
        "didOpen": [document(&project, 0, FIRST)] });
    change(&mut server, &project, json!({ "structure": back }));
    check_fault(&server.diagnostics_of(&address(&project, 0)).0, FIRST);
}

#[test]
fn a_cell_that_runs_well_again_has_nothing_to_say() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    open(&mut server, &project, [json!({ "id": "aaa" }), json!({ "id": "bbb" })]);
    failed_kernel(&project, ["aaa", "bbb"]);
    check_fault(&server.diagnostics_of(&address(&project, 0)).0, FIRST);
    // In a kernel of its own, after a restart.
    let next = RunFolder::create(&project.surroundings(), SystemTime::now()).expect("a run folder").folder;
    let run = Run { id: next.id().to_owned(), ..RunFolder::list(next.siblings())[1].run().whole().expect("run.json") };
    event(&next, json!({ "event": "cell", "id": "bbb", "count": 1, "notebook": project.path("train.ipynb") }));
    next.write_run(&run).expect("run.json");
    assert_eq!(server.diagnostics_of(&address(&project, 0)).0, []);
}

#[test]
fn the_lint_reads_all_cells_as_one_module() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    open(&mut server, &project, [json!({ "id": "aaa" }), json!({ "id": "bbb" })]);
    let texts =
        ["import os\nimport torch\nx = torch.zeros(3).cuda()\n", "\nos.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"1\"\n"];
    let changes: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| json!({ "document": { "uri": address(&project, at), "version": 2 }, "changes": [{ "text": text }] }))
        .collect();
    change(&mut server, &project, json!({ "textContent": changes }));
    let (found, version) = server.diagnostics_of(&address(&project, 1));
    assert_eq!((found.len(), version), (1, Some(2)));
    assert_eq!((found[0].range.start.line, found[0].source.as_deref()), (1, Some("cublame lint")));
    assert!(Path::new(&project.path("train.ipynb")).exists());
}
