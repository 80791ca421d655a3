//! Hover, code actions and code lenses, for clients of every kind, and what the server says of itself.

use std::path::Path;

use cublame_core::text::Encoding;
use cublame_tests::client::{able, uri};
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::DidChangeConfiguration;
use tower_lsp::ls_types::request::{CodeLensRequest, WorkspaceConfiguration};
use tower_lsp::ls_types::{HoverContents, MarkupKind, Position};

const TRAIN: &str = "import torch\nz = emb(tök)  # @fault\nprint(z)\nif __name__ == \"__main__\":\n    main()\n";

fn project() -> Project {
    Project::new(&[("train.py", TRAIN)])
}

fn titles(actions: &[Value]) -> Vec<&str> {
    actions.iter().map(|action| action["title"].as_str().expect("a title")).collect()
}

const ALL: [&str; 6] = [
    "Rerun with blocking launches",
    "Rerun under the guard",
    "Open the report",
    "Make a program of the failing call alone",
    "Dismiss",
    "Copy the report",
];

#[test]
fn actions_need_nothing_but_the_diagnostic() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    let folder = project.ran(&project.failure("train.py"));
    let diagnostics = server.diagnostics(&train);
    // The file was never opened.
    let actions = server.code_actions(&train, &diagnostics);
    assert_eq!(titles(&actions), ALL);
    for action in &actions {
        assert_eq!(action["kind"], "quickfix");
        assert_eq!(action["diagnostics"], json!(diagnostics));
        assert_eq!(action["command"]["arguments"][0]["run"], folder.id());
    }
    let foreign = json!([{ "source": "pyright", "message": "x", "range": diagnostics[0].range }]);
    let foreign: Vec<_> = serde_json::from_value(foreign).expect("a diagnostic");
    assert_eq!(server.code_actions(&train, &foreign), Vec::<Value>::new());
}

#[test]
fn a_blocking_run_is_not_offered_to_be_rerun_blocking() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    project.ran(&project.failure("train.py").mode(cublame_core::mode::Mode::Blocking));
    let diagnostics = server.diagnostics(&train);
    assert_eq!(titles(&server.code_actions(&train, &diagnostics)), ALL[1..]);
}

/// eglot 1.9 and Neovim 0.7 keep no `data`, and the oldest clients know commands only.
#[test]
fn a_client_that_keeps_no_data_has_the_same_actions() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, json!({ "capabilities": {}, "rootUri": uri(project.root()) }));
    project.ran(&project.failure("train.py"));
    let diagnostics = server.diagnostics(&train);
    assert_eq!(
        (&diagnostics[0].data, &diagnostics[0].related_information, &diagnostics[0].code_description),
        (&None, &None, &None)
    );
    server.open(&train, 1, TRAIN);
    let again = server.diagnostics(&train);
    assert_eq!(again, diagnostics, "a client that forgets what came before the file was opened gets it again");
    let actions = server.code_actions(&train, &diagnostics);
    assert_eq!(titles(&actions), ALL);
    assert!(actions.iter().all(|action| action["command"].is_string()), "commands, not literals: {actions:#?}");
}

#[test]
fn hover_tells_the_verdict_with_its_reasons_in_the_format_that_the_client_has() {
    for (initialize, kind) in [
        (able as fn(&Project) -> Value, MarkupKind::Markdown),
        (|project| json!({ "capabilities": {}, "rootUri": uri(project.root()) }), MarkupKind::PlainText),
    ] {
        let project = project();
        let train = project.path("train.py");
        let mut server = TestServer::start(&project, initialize(&project));
        server.open(&train, 1, TRAIN);
        project.ran(&project.failure("train.py"));
        server.diagnostics(&train);
        let sent = server.hover(&train, Position::new(1, 3));
        let hover = server.answer(sent).expect("an answer").expect("a hover");
        let HoverContents::Markup(contents) = hover.contents else { panic!("{:?}", hover.contents) };
        assert_eq!(contents.kind, kind);
        for words in [
            "ndex out of range in an embedding lookup",
            "launch 2 never finished",
            "xact",
            "the failing lines on the CPU",
        ] {
            assert!(contents.value.contains(words), "{words} is not in {}", contents.value);
        }
        // What to do comes from the catalogue, whatever the report on disk says.
        assert!(!contents.value.contains("Check the range of the indices"), "{}", contents.value);
        let sent = server.hover(&train, Position::new(0, 0));
        assert_eq!(server.answer(sent), Ok(None));
    }
}

#[test]
fn lenses_run_the_program_and_tell_its_last_verdict() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, TRAIN);
    project.ran(&project.failure("train.py"));
    server.diagnostics(&train);
    let params = serde_json::from_value(json!({ "textDocument": { "uri": uri(&train) } })).expect("parameters");
    let lenses = server.request::<CodeLensRequest>(params).expect("an answer").expect("lenses");
    let said: Vec<_> = lenses
        .iter()
        .map(|lens| {
            let command = lens.command.as_ref().expect("a command");
            (lens.range.start.line, command.title.as_str(), command.command.as_str())
        })
        .collect();
    assert_eq!(
        said,
        [
            (3, "Run with cublame", "cublame.run"),
            (1, "index out of range in an embedding lookup (exact, mode off)", "cublame.openReport"),
        ]
    );
}

/// Whatever an editor shows of a failure is in the client's language, and in that of the setting once it is set.
#[test]
fn an_editor_reads_its_own_language() {
    let project = project();
    let train = project.path("train.py");
    let mut initialize = able(&project);
    initialize["locale"] = json!("zh-cn");
    let mut server = TestServer::start(&project, initialize);
    server.open(&train, 1, TRAIN);
    project.ran(&project.failure("train.py"));
    let diagnostics = server.diagnostics(&train);
    let hover = server.hover(&train, Position::new(1, 6));
    let hover = server.answer(hover).expect("an answer");
    let params = serde_json::from_value(json!({ "textDocument": { "uri": uri(&train) } })).expect("parameters");
    let lenses = server.request::<CodeLensRequest>(params).expect("an answer");
    let actions = server.code_actions(&train, &diagnostics);
    let shown = [json!(diagnostics), json!(hover), json!(lenses), json!(actions)];
    let shown = shown.map(|shown| shown.to_string()).join("\n");
    for text in english_texts() {
        assert!(!shown.contains(&text), "`{text}` in {shown}");
    }
    for part in ["确定：这一行出了错", "怎么办", "用 cublame 运行", "打开报告"] {
        assert!(shown.contains(part), "`{part}` is not in {shown}");
    }
    server.notify::<DidChangeConfiguration>(
        serde_json::from_value(json!({ "settings": { "cublame": { "locale": "en" } } })).expect("parameters"),
    );
    let diagnostics = server.diagnostics(&train);
    assert!(diagnostics[0].message.contains("Exact: this line failed"), "{diagnostics:?}");
}

/// The texts of the catalogue that an editor shows, as far as they stand as they are and are no single words.
fn english_texts() -> Vec<String> {
    let files = ["../server/core/src/catalog/editor.en.toml", "../server/core/src/catalog/report.en.toml"];
    let files =
        files.map(|file| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("texts"));
    let texts =
        files.iter().flat_map(|file| file.lines()).filter_map(|line| line.split_once(" = \"")?.1.strip_suffix('"'));
    texts.filter(|text| text.contains(' ') && !text.contains('{')).map(str::to_owned).collect()
}

#[test]
fn columns_are_counted_as_agreed() {
    for (offer, encoding, expected) in [
        (json!(null), None, 11),
        (json!(["utf-16"]), Some("utf-16"), 11),
        (json!(["utf-16", "utf-8"]), Some("utf-8"), 12),
        (json!(["utf-32"]), Some("utf-32"), 11),
    ] {
        let project = project();
        let train = project.path("train.py");
        let mut initialize = able(&project);
        initialize["capabilities"]["general"] = json!({ "positionEncodings": offer });
        let mut server = TestServer::start_silent(&project);
        let result = server.initialize(initialize);
        assert_eq!(result.capabilities.position_encoding.as_ref().map(|kind| kind.as_str()), encoding);
        let mut failure = project.failure("train.py");
        let place = failure.verdicts[0].place.as_mut().expect("a place");
        // `emb(tök)`, in code points.
        (place.column, place.end_column) = (Some(5), Some(12));
        project.ran(&failure);
        let diagnostics = server.diagnostics(&train);
        assert_eq!((diagnostics[0].range.start.character, diagnostics[0].range.end.character), (4, expected));
    }
    assert_eq!(Encoding::default(), Encoding::Utf16);
}

/// What is advertised is dispatched, and what is dispatched is advertised.
#[test]
fn the_server_says_what_it_can_do_and_nothing_else() {
    let project = project();
    let mut server = TestServer::start_silent(&project);
    let result = json!(server.initialize(able(&project)).capabilities);
    let methods: [(&str, &str); 28] = [
        ("hoverProvider", "textDocument/hover"),
        ("codeActionProvider", "textDocument/codeAction"),
        ("codeLensProvider", "textDocument/codeLens"),
        ("executeCommandProvider", "workspace/executeCommand"),
        ("completionProvider", "textDocument/completion"),
        ("signatureHelpProvider", "textDocument/signatureHelp"),
        ("declarationProvider", "textDocument/declaration"),
        ("definitionProvider", "textDocument/definition"),
        ("typeDefinitionProvider", "textDocument/typeDefinition"),
        ("implementationProvider", "textDocument/implementation"),
        ("referencesProvider", "textDocument/references"),
        ("documentHighlightProvider", "textDocument/documentHighlight"),
        ("documentSymbolProvider", "textDocument/documentSymbol"),
        ("workspaceSymbolProvider", "workspace/symbol"),
        ("documentFormattingProvider", "textDocument/formatting"),
        ("documentRangeFormattingProvider", "textDocument/rangeFormatting"),
        ("documentOnTypeFormattingProvider", "textDocument/onTypeFormatting"),
        ("renameProvider", "textDocument/rename"),
        ("documentLinkProvider", "textDocument/documentLink"),
        ("colorProvider", "textDocument/documentColor"),
        ("foldingRangeProvider", "textDocument/foldingRange"),
        ("selectionRangeProvider", "textDocument/selectionRange"),
        ("callHierarchyProvider", "textDocument/prepareCallHierarchy"),
        ("semanticTokensProvider", "textDocument/semanticTokens/full"),
        ("linkedEditingRangeProvider", "textDocument/linkedEditingRange"),
        ("inlayHintProvider", "textDocument/inlayHint"),
        ("inlineValueProvider", "textDocument/inlineValue"),
        ("diagnosticProvider", "textDocument/diagnostic"),
    ];
    for (number, (capability, method)) in (1000..).zip(methods) {
        server.send_raw(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": sample_params() }));
        let refused = server.answer_to(&json!(number))["error"]["code"] == json!(-32601);
        let advertised = result.get(capability).is_some();
        assert_eq!(
            !refused, advertised,
            "{capability} is {advertised} in the capabilities, and {method} says otherwise"
        );
    }
    let others = ["textDocumentSync", "notebookDocumentSync", "workspace"];
    for (capability, _) in result.as_object().expect("an object") {
        let known = methods.iter().any(|(name, _)| name == capability) || others.contains(&capability.as_str());
        assert!(known, "{capability} is advertised and not looked at here");
    }
    for command in result["executeCommandProvider"]["commands"].as_array().expect("commands") {
        let answer = server.command(command.as_str().expect("a name"), json!("no arguments"));
        let message = answer.err().map(|error| error.message.to_string()).unwrap_or_default();
        assert!(!message.contains("is no command"), "{message}");
    }
    let unknown = server.command("cublame.format", json!(null)).expect_err("an unknown command");
    assert!(unknown.message.contains("is no command"), "{}", unknown.message);
}

/// Parameters that any of the methods can read.
fn sample_params() -> Value {
    let position = json!({ "line": 0, "character": 0 });
    let range = json!({ "start": position, "end": position });
    json!({
        "textDocument": { "uri": "file:///home/dev/proj/a.py" }, "position": position, "positions": [position],
        "range": range, "context": {
            "diagnostics": [], "triggerKind": 1, "isRetrigger": false, "includeDeclaration": false, "frameId": 1, "stoppedLocation": range },
        "query": "", "options": { "tabSize": 4, "insertSpaces": true }, "ch": "x", "newName": "y",
        "command": "cublame.copyReport", "arguments": []
    })
}

#[test]
fn settings_are_asked_for_and_asked_for_again_when_they_change() {
    let project = project();
    let mut initialize = able(&project);
    initialize["capabilities"]["workspace"] =
        json!({ "configuration": true, "didChangeConfiguration": { "dynamicRegistration": true } });
    let mut server = TestServer::start(&project, initialize);
    let (registration, registered) = server.server_request::<tower_lsp::ls_types::request::RegisterCapability>();
    assert_eq!(registered.registrations[0].method, "workspace/didChangeConfiguration");
    server.respond(registration, json!(null));
    let (id, asked) = server.server_request::<WorkspaceConfiguration>();
    assert_eq!(asked.items[0].section.as_deref(), Some("cublame"));
    server.respond(id, json!([{ "mode": "fast" }]));
    let complaint = server.notification::<tower_lsp::ls_types::notification::ShowMessage>();
    assert!(complaint.message.contains("`fast` is not a mode"), "{}", complaint.message);
    server.send_raw(
        &json!({ "jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": { "settings": null } }),
    );
    let (id, _) = server.server_request::<WorkspaceConfiguration>();
    server.respond(id, json!([null]));
}

#[test]
fn settings_that_are_pushed_are_taken() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    let params = json!({ "settings": { "cublame": { "mode": 7 } } });
    server.send_raw(&json!({ "jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": params }));
    let complaint = server.notification::<tower_lsp::ls_types::notification::ShowMessage>();
    assert!(complaint.message.contains("cublame.mode is not a text"), "{}", complaint.message);
}
