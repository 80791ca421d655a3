//! The `initialize` requests that four real clients send, word for word.

use cublame_tests::client::uri;
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};

/// The request of a real client, in this project.
fn request(name: &str, project: &Project) -> Value {
    let path = format!("{}/fixtures/initialize/initialize-{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a recorded request");
    let root = uri(project.root());
    let text = text.replace("file:///home/dev/proj", root.as_str());
    let mut request: Value = serde_json::from_str(&text).expect("JSON");
    // The recorded process is not the one that runs this test.
    request["processId"] = json!(std::process::id());
    request
}

#[track_caller]
fn check(name: &str, encoding: Option<&str>, related: bool, code_description: bool, data: bool) {
    let text = "import torch\nz = emb(tok)  # @fault\nprint(z)\n";
    let project = Project::new(&[("train.py", text)]);
    let train = project.path("train.py");
    let mut server = TestServer::start_silent(&project);
    server.ignore("client/registerCapability");
    server.ignore("workspace/configuration");
    server.ignore("workspace/codeLens/refresh");
    let result = server.initialize(request(name, &project));
    assert_eq!(result.capabilities.position_encoding.map(|kind| kind.as_str().to_owned()).as_deref(), encoding);
    let mut failure = project.failure("train.py");
    let place = failure.verdicts[0].place.clone().map(|place| cublame_core::Place { line: 3, ..place });
    failure.verdicts[0].reported = place;
    project.ran(&failure);
    server.open(&train, 1, text);
    let diagnostics = server.diagnostics(&train);
    let diagnostic = &diagnostics[0];
    assert_eq!(diagnostic.range.start.line, 1);
    assert_eq!(diagnostic.related_information.is_some(), related);
    assert_eq!(diagnostic.message.contains("the error surfaced here"), !related, "{}", diagnostic.message);
    assert_eq!(diagnostic.code_description.is_some(), code_description);
    assert_eq!(diagnostic.data.is_some(), data);
    assert_eq!(server.code_actions(&train, &diagnostics).len(), 6);
    // Published before or after the file was opened: in either case the client ends up with the same.
    server.ignore("textDocument/publishDiagnostics");
}

#[test]
fn vscode() {
    check("vscode-1.139-languageclient11", Some("utf-16"), true, true, true);
}

#[test]
fn neovim() {
    check("nvim-0.11.4", Some("utf-8"), true, false, true);
}

#[test]
fn old_neovim() {
    check("nvim-0.7.2", None, true, false, false);
}

#[test]
fn emacs() {
    check("emacs28-eglot1.9", None, false, false, false);
}
