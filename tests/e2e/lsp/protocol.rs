//! Bad and odd input: each gets the answer that the protocol asks for, and the server lives.

use cublame_tests::client::{able, uri};
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::ErrorCode;
use tower_lsp::ls_types::Position;
use tower_lsp::ls_types::notification::Initialized;
use tower_lsp::ls_types::request::{HoverRequest, Shutdown};

fn project() -> Project {
    Project::new(&[("train.py", "import torch\nz = emb(tok)  # @fault\n")])
}

/// The server answers a hover, so it is well.
fn assert_well(server: &mut TestServer, project: &Project) {
    let sent = server.hover(&project.path("train.py"), Position::new(0, 0));
    assert_eq!(server.answer::<HoverRequest>(sent), Ok(None));
}

fn refused(server: &mut TestServer, bytes: &str, id: Value) -> i64 {
    server.send_bytes(bytes.as_bytes());
    server.answer_to(&id)["error"]["code"].as_i64().expect("a code")
}

fn framed(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn malformed_messages_are_refused_one_by_one() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    assert_eq!(refused(&mut server, &framed("{\"jsonrpc\":"), json!(null)), -32700);
    assert_eq!(refused(&mut server, &framed("[1, 2]"), json!(null)), -32600);
    assert_eq!(refused(&mut server, &framed("\"hello\""), json!(null)), -32600);
    assert_eq!(refused(&mut server, "Content-Length: many\r\n\r\n", json!(null)), -32700);
    assert_eq!(refused(&mut server, "GET / HTTP/1.1\r\n\r\n", json!(null)), -32700);
    assert_eq!(refused(&mut server, "Content-Length: 123456789012\r\n\r\n", json!(null)), -32700);
    let wrong_version = r#"{"jsonrpc":"1.0","id":"seven","method":"textDocument/hover"}"#;
    assert_eq!(refused(&mut server, &framed(wrong_version), json!("seven")), -32600);
    let odd_id = r#"{"jsonrpc":"2.0","id":{"a":1},"method":"textDocument/hover"}"#;
    assert_eq!(refused(&mut server, &framed(odd_id), json!(null)), -32600);
    assert_well(&mut server, &project);
}

#[test]
fn unknown_methods_and_wrong_parameters() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    let mut code = |message: Value| {
        server.send_raw(&message);
        server.answer_to(&message["id"])["error"]["code"].as_i64().expect("a code")
    };
    assert_eq!(code(json!({ "jsonrpc": "2.0", "id": 900, "method": "no/such" })), -32601);
    assert_eq!(code(json!({ "jsonrpc": "2.0", "id": 901, "method": "textDocument/hover" })), -32602);
    assert_eq!(
        code(json!({ "jsonrpc": "2.0", "id": 902, "method": "textDocument/hover", "params": { "x": 1 } })),
        -32602
    );
    assert_eq!(
        code(json!({ "jsonrpc": "2.0", "id": 903, "method": "initialize", "params": { "capabilities": {} } })),
        -32600
    );
    // Notifications that nobody knows, or that are wrong, are passed over in silence.
    server.send_raw(&json!({ "jsonrpc": "2.0", "method": "no/such" }));
    server.send_raw(&json!({ "jsonrpc": "2.0", "method": "$/setTrace", "params": { "value": "verbose" } }));
    server.send_raw(&json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": 3 }));
    server.send_raw(&json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen" }));
    server.rewrite(&project.path("train.py"), 4, "it is not open");
    server.save(&project.path("train.py"));
    server.close(&project.path("train.py"));
    assert_well(&mut server, &project);
}

#[test]
fn answers_to_questions_that_nobody_asked() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    server.respond(json!(12345), json!(null));
    server.respond(json!("what"), json!({ "a": 1 }));
    server.send_raw(&json!({ "jsonrpc": "2.0", "id": 3 }));
    server.send_raw(&json!({ "jsonrpc": "2.0", "id": 3, "error": "no object" }));
    assert_well(&mut server, &project);
}

#[test]
fn requests_before_initialize_are_refused_and_notifications_are_dropped() {
    let project = project();
    let mut server = TestServer::start_silent(&project);
    server.open(&project.path("train.py"), 1, "x = 1\n");
    let sent = server.hover(&project.path("train.py"), Position::new(0, 0));
    assert_eq!(server.answer::<HoverRequest>(sent).expect_err("too early").code, ErrorCode::ServerError(-32002));
    server.initialize(able(&project));
    assert_well(&mut server, &project);
}

#[test]
fn requests_after_shutdown_are_refused() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    server.request::<Shutdown>(()).expect("shutdown");
    let sent = server.hover(&project.path("train.py"), Position::new(0, 0));
    assert_eq!(server.answer::<HoverRequest>(sent).expect_err("too late").code, ErrorCode::InvalidRequest);
    server.send_raw(&json!({ "jsonrpc": "2.0", "method": "exit" }));
    assert!(server.wait_for_end());
}

#[test]
fn a_huge_document_is_opened_and_edited() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    let text = "x = 1  # a line of a large file\n".repeat(600_000);
    server.open(&train, 1, &text);
    server.insert(&train, 2, Position::new(599_999, 0), "# edited\n");
    assert_well(&mut server, &project);
    // More than the server reads is refused, and what follows is read.
    let too_large = format!("Content-Length: {}\r\n\r\n", 65 << 20);
    assert_eq!(refused(&mut server, &too_large, json!(null)), -32700);
    assert_well(&mut server, &project);
}

#[test]
fn documents_that_are_no_files_are_served() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    let open =
        json!({ "textDocument": { "uri": "untitled:Untitled-1", "languageId": "python", "version": 1, "text": "x" } });
    server.send_raw(&json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": open }));
    let hover = json!({ "textDocument": { "uri": "untitled:Untitled-1" }, "position": { "line": 9, "character": 9 } });
    server.send_raw(&json!({ "jsonrpc": "2.0", "id": 77, "method": "textDocument/hover", "params": hover }));
    assert_eq!(server.answer_to(&json!(77))["result"], json!(null));
}

#[test]
fn a_client_that_waits_for_no_answer_is_served_in_order() {
    let project = project();
    let mut server = TestServer::start_silent(&project);
    let message = |message: Value| framed(&message.to_string());
    let position =
        json!({ "textDocument": { "uri": uri(&project.path("train.py")) }, "position": { "line": 0, "character": 0 } });
    let session = [
        message(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": able(&project) })),
        message(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} })),
        message(json!({ "jsonrpc": "2.0", "id": 2, "method": "textDocument/hover", "params": position })),
        message(json!({ "jsonrpc": "2.0", "id": 3, "method": "shutdown" })),
        message(json!({ "jsonrpc": "2.0", "method": "exit" })),
    ];
    server.send_bytes(session.concat().as_bytes());
    assert!(server.answer_to(&json!(1))["result"]["capabilities"].is_object());
    assert_eq!(server.answer_to(&json!(2)), json!({ "jsonrpc": "2.0", "id": 2, "result": null }));
    assert_eq!(server.answer_to(&json!(3)), json!({ "jsonrpc": "2.0", "id": 3, "result": null }));
    assert!(server.wait_for_end());
}

#[test]
fn initialized_may_be_said_twice() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    server.notify::<Initialized>(tower_lsp::ls_types::InitializedParams {});
    assert_well(&mut server, &project);
}

#[test]
fn what_is_recorded_can_be_replayed() {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_cublame-under-test"));
    let project = project();
    let recording = project.path("session");
    let mirror = recording.to_str().expect("text").to_owned();
    let mut server = TestServer::binary(&project, binary, &["lsp", "--mirror", &mirror]);
    let first = server.initialize(able(&project));
    server.send_bytes(framed("not json").as_bytes());
    server.answer_to(&json!(null));
    assert!(server.shut_down());
    let mut replayed = TestServer::binary(&project, binary, &["lsp", "--replay", &mirror]);
    let again = replayed.answer_to(&json!(1));
    assert_eq!(again["result"], json!(first));
    assert_eq!(replayed.answer_to(&json!(null))["error"]["code"], json!(-32700));
    assert_eq!(replayed.answer_to(&json!(2))["result"], json!(null));
    assert!(replayed.wait_for_end());
    assert!(uri(&recording).as_str().contains("%20"), "the project's path has a space, as intended");
}
