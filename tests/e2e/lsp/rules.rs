//! The rules that keep a server of this framework alive and in order, each on the real transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cublame_tests::client::{able, uri};
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{ErrorCode, Result};
use tower_lsp::ls_types::request::{CodeLensRequest, HoverRequest, Request, ShowMessageRequest};
use tower_lsp::ls_types::{
    DidChangeTextDocumentParams, Hover, HoverContents, HoverParams, InitializeParams, InitializeResult, Position,
};
use tower_lsp::{LanguageServer, LspService};

const TRAIN: &str = "import torch\nz = emb(tok)  # @fault\nprint(z)\n";

fn project() -> Project {
    Project::new(&[("train.py", TRAIN)])
}

/// Rule 1: a notification has acted before anything that was sent after it is answered.
#[test]
fn two_thousand_edits_with_hovers_are_none_stale_and_none_out_of_order() {
    const EDITS: u32 = 2000;
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.ignore("textDocument/publishDiagnostics");
    server.open(&train, 0, TRAIN);
    project.ran(&project.failure("train.py"));
    let first = server.diagnostics(&train);
    assert_eq!(first[0].range.start.line, 1);
    let mut hovers = Vec::new();
    for edit in 1..=EDITS {
        let version = i32::try_from(edit).expect("a small number");
        server.insert(&train, version, Position::new(0, 0), "# above\n");
        // Only the server that has seen this very edit has the verdict on this line.
        hovers.push(server.hover(&train, Position::new(1 + edit, 0)));
    }
    for (edit, hover) in (1..=EDITS).zip(hovers) {
        let hover = server.answer(hover).expect("a hover").unwrap_or_else(|| panic!("edit {edit} was not seen"));
        assert_eq!(hover.range.map(|range| range.start.line), Some(1 + edit));
    }
}

/// Rule 2: a client that answers none of our requests is served all the same.
#[test]
fn a_burst_of_requests_from_a_client_that_never_answers_ours() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, TRAIN);
    let folder = project.ran(&project.failure("train.py"));
    server.diagnostics(&train);
    let mut lenses = Vec::new();
    for _ in 0..200 {
        // Each of these has the server ask the user, who says nothing.
        let asked = server.command("cublame.rerun", json!({ "run": folder.id(), "mode": "blocking" }));
        assert_eq!(asked.expect("an answer at once"), Some(json!({ "asked": true })));
        lenses.push(server.send::<CodeLensRequest>(lens_params(&train)));
    }
    for lens in lenses {
        assert!(server.answer(lens).expect("a lens").is_some_and(|lenses| !lenses.is_empty()));
    }
    for _ in 0..200 {
        server.server_request::<ShowMessageRequest>();
    }
}

/// Rule 4: more than the framework's own four handlers run at a time.
#[test]
fn thirty_one_handlers_that_never_end_leave_room_for_one() {
    let (service, socket) = LspService::build(|_| Misbehaving::default()).finish();
    let mut server = TestServer::of_service(service, socket);
    server.initialize(json!({ "capabilities": {} }));
    let stuck: Vec<_> = (0..31).map(|_| server.send::<CodeLensRequest>(lens_params("/home/dev/proj/a.py"))).collect();
    assert!(hovered(&mut server).is_ok());
    // Cancelled requests are answered as such, and leave their places.
    for sent in &stuck {
        server.cancel(sent);
    }
    for sent in stuck {
        assert_eq!(server.answer(sent).expect_err("a cancelled request").code, ErrorCode::RequestCancelled);
    }
}

/// Rule 5: a handler that panics costs its own answer.
#[test]
fn a_panic_in_a_handler_is_an_answer_and_the_server_lives() {
    let changes = Arc::<AtomicUsize>::default();
    let server = Misbehaving { changes: Arc::clone(&changes) };
    let (service, socket) = LspService::build(|_| server).finish();
    let mut server = TestServer::of_service(service, socket);
    server.initialize(json!({ "capabilities": {} }));
    let params = json!({ "command": "panic", "arguments": [] });
    let panicked = server.request::<tower_lsp::ls_types::request::ExecuteCommand>(of(params)).expect_err("a panic");
    assert_eq!(panicked.code, ErrorCode::InternalError);
    assert!(panicked.message.contains("`workspace/executeCommand`: asked to"), "{}", panicked.message);
    for version in 1..=3 {
        server.rewrite("/home/dev/proj/a.py".as_ref(), version, "x");
    }
    assert!(hovered(&mut server).is_ok());
    assert_eq!(changes.load(Ordering::Relaxed), 3, "all three notifications panicked, each in its own handler");
}

/// A server on the same transport whose handlers do what no handler of the product does.
#[derive(Default)]
struct Misbehaving {
    changes: Arc<AtomicUsize>,
}

impl LanguageServer for Misbehaving {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(InitializeResult::default())
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_change(&self, _: DidChangeTextDocumentParams) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        panic!("asked to")
    }

    async fn execute_command(&self, _: tower_lsp::ls_types::ExecuteCommandParams) -> Result<Option<Value>> {
        panic!("asked to")
    }

    async fn code_lens(
        &self,
        _: tower_lsp::ls_types::CodeLensParams,
    ) -> Result<Option<Vec<tower_lsp::ls_types::CodeLens>>> {
        std::future::pending().await
    }

    async fn hover(&self, _: HoverParams) -> Result<Option<Hover>> {
        let contents = HoverContents::Array(Vec::new());
        Ok(Some(Hover { contents, range: None }))
    }
}

fn hovered(server: &mut TestServer) -> Result<Option<Hover>> {
    let sent = server.hover("/home/dev/proj/a.py".as_ref(), Position::new(0, 0));
    server.answer::<HoverRequest>(sent)
}

fn lens_params(path: impl AsRef<std::path::Path>) -> <CodeLensRequest as Request>::Params {
    of(json!({ "textDocument": { "uri": uri(path.as_ref()) } }))
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("parameters")
}

/// Rule 7, on the real binary: it leaves by itself in each case, or the test gives up waiting.
mod leaving {
    use super::*;
    use std::path::Path;

    const BINARY: &str = env!("CARGO_BIN_EXE_cublame-under-test");

    fn started(project: &Project) -> TestServer {
        TestServer::binary(project, Path::new(BINARY), &["lsp"])
    }

    #[test]
    fn on_shutdown_and_exit_while_its_input_stays_open() {
        let project = project();
        let mut server = started(&project);
        server.initialize(able(&project));
        assert!(server.shut_down());
    }

    #[test]
    fn on_exit_alone_with_the_exit_code_of_the_specification() {
        let project = project();
        let mut server = started(&project);
        server.initialize(able(&project));
        server.send_raw(&json!({ "jsonrpc": "2.0", "method": "exit" }));
        assert!(!server.wait_for_end());
    }

    #[test]
    fn on_the_end_of_its_input() {
        let project = project();
        let mut server = started(&project);
        server.initialize(able(&project));
        server.close_input();
        assert!(server.wait_for_end());
    }

    #[test]
    fn on_the_end_of_its_input_before_anything_was_said() {
        let mut server = started(&project());
        server.close_input();
        assert!(server.wait_for_end());
    }

    #[test]
    fn when_the_editor_is_gone_though_its_input_is_held_open() {
        let project = project();
        let mut editor = std::process::Command::new("sleep").arg("300").spawn().expect("sleep");
        let mut server = started(&project);
        let mut initialize = able(&project);
        initialize["processId"] = json!(editor.id());
        server.initialize(initialize);
        editor.kill().expect("to end our own child");
        editor.wait().expect("to wait for our own child");
        assert!(server.wait_for_end());
    }

    #[test]
    fn not_because_the_editors_number_means_nothing_here() {
        let project = project();
        let mut server = started(&project);
        let mut initialize = able(&project);
        // Above the largest that Linux gives (2^22, proc(5)).
        initialize["processId"] = json!(1 << 23);
        server.initialize(initialize);
        project.ran(&project.failure("train.py"));
        assert_eq!(server.diagnostics(&project.path("train.py")).len(), 1);
    }
}
