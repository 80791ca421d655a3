//! The tensors of the failing frames, at the ends of their lines and over them.

use std::path::Path;

use cublame_core::Place;
use cublame_core::verdict::{Frame, Memory, MemorySite, Object, Tensor};
use cublame_tests::client::{able, uri};
use cublame_tests::project::Written;
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::DidChangeConfiguration;
use tower_lsp::ls_types::request::{InlayHintRefreshRequest, InlayHintRequest};
use tower_lsp::ls_types::{DiagnosticSeverity, HoverContents, InlayHintLabel, InlayHintTooltip, Position};

const TRAIN: &str = "import net\nmodel = net.Net()\nöut = model(tok, 1)  # @fault\nprint(öut)\n";
const NET: &str = "class Net:\n    def forward(self, tok, n):\n        return self.emb(tok)\n";

fn project() -> Project {
    Project::new(&[("train.py", TRAIN), ("net.py", NET)])
}

/// A run that failed in `net.py`, called from the marked line of `train.py`.
fn failure(project: &Project) -> Written {
    let frame = |name: &str, line, function: &str| Frame {
        file: name.to_owned(),
        path: Some(project.path(name).display().to_string()),
        line,
        column: None,
        end_column: None,
        function: Some(function.to_owned()),
        user: true,
    };
    let tensor = |name: &str, shape: &[u64], frame| Tensor {
        name: name.to_owned(),
        shape: shape.to_vec(),
        dtype: "int64".to_owned(),
        device: "cuda:0".to_owned(),
        frame,
        bytes: Some(64),
        ..Tensor::default()
    };
    let mut failure = project.failure("train.py");
    let verdict = &mut failure.verdicts[0];
    verdict.frames = vec![frame("train.py", 3, "<module>"), frame("net.py", 3, "Net.forward")];
    verdict.tensors = vec![
        tensor("tok", &[2, 3], 0),
        tensor("unused", &[9], 0),
        tensor("tok", &[3, 2], 1),
        tensor("self.emb.weight", &[5, 8], 1),
    ];
    verdict.tensors[2].strides = Some(vec![1, 3]);
    verdict.objects = vec![Object {
        name: "model".to_owned(),
        class: "net.Net".to_owned(),
        kind: "module".to_owned(),
        frame: 0,
        length: None,
    }];
    failure
}

/// A client that can be told to ask for hints again.
fn with_refresh(project: &Project) -> Value {
    let mut initialize = able(project);
    initialize["capabilities"]["workspace"] = json!({ "inlayHint": { "refreshSupport": true } });
    initialize
}

fn hints(server: &mut TestServer, path: &Path) -> Vec<(Position, String)> {
    let everything = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 100, "character": 0 } });
    let params = json!({ "textDocument": { "uri": uri(path) }, "range": everything });
    let params = serde_json::from_value(params).expect("parameters");
    let hints = server.request::<InlayHintRequest>(params).expect("an answer").unwrap_or_default();
    let said = hints.into_iter().map(|hint| {
        let InlayHintLabel::String(label) = hint.label else { panic!("{:?}", hint.label) };
        let Some(InlayHintTooltip::String(tooltip)) = hint.tooltip else { panic!("{:?}", hint.tooltip) };
        assert!(tooltip.starts_with("When the error surfaced:\n"), "{tooltip}");
        (hint.position, label)
    });
    said.collect()
}

fn refreshed(server: &mut TestServer) {
    let (id, ()) = server.server_request::<InlayHintRefreshRequest>();
    server.respond(id, json!(null));
}

#[test]
fn each_failing_line_ends_with_the_tensors_that_it_names() {
    let project = project();
    let (train, net) = (project.path("train.py"), project.path("net.py"));
    let mut server = TestServer::start(&project, with_refresh(&project));
    server.open(&train, 1, TRAIN);
    server.open(&net, 1, NET);
    assert_eq!(hints(&mut server, &train), []);
    project.ran(&failure(&project));
    refreshed(&mut server);
    server.diagnostics(&train);
    // The client counts in UTF-16.
    assert_eq!(hints(&mut server, &train), [(Position::new(2, 29), "tok: int64[2, 3] cuda:0".to_owned())]);
    let both = "self.emb.weight: int64[5, 8] cuda:0; tok: int64[3, 2] cuda:0".to_owned();
    assert_eq!(hints(&mut server, &net), [(Position::new(2, 28), both.clone())]);
    // They move with their line, and an edited line has none.
    server.insert(&net, 2, Position::new(0, 0), "# new\n");
    assert_eq!(hints(&mut server, &net), [(Position::new(3, 28), both)]);
    server.rewrite(&net, 3, &NET.replace("self.emb(tok)", "self.emb(tok % 5)"));
    assert_eq!(hints(&mut server, &net), []);
    // A run that does well takes them away.
    project.ran(&project.success("train.py"));
    refreshed(&mut server);
    server.diagnostics(&train);
    assert_eq!(hints(&mut server, &train), []);
}

#[test]
fn hints_can_be_turned_off() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, with_refresh(&project));
    server.open(&train, 1, TRAIN);
    project.ran(&failure(&project));
    refreshed(&mut server);
    server.diagnostics(&train);
    let settings = |on: bool| json!({ "settings": { "cublame": { "inlayHints": on } } });
    for (on, count) in [(false, 0), (true, 1)] {
        server.notify::<DidChangeConfiguration>(serde_json::from_value(settings(on)).expect("parameters"));
        refreshed(&mut server);
        assert_eq!(hints(&mut server, &train).len(), count);
    }
}

#[test]
fn a_client_that_cannot_ask_again_is_not_told_to() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, TRAIN);
    project.ran(&failure(&project));
    server.diagnostics(&train);
    assert_eq!(hints(&mut server, &train).len(), 1);
}

#[test]
fn every_frame_has_its_tensors_over_its_line() {
    let project = project();
    let (train, net) = (project.path("train.py"), project.path("net.py"));
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, TRAIN);
    server.open(&net, 1, NET);
    project.ran(&failure(&project));
    server.diagnostics(&train);
    let mut hover = |path: &Path, line| {
        let sent = server.hover(path, Position::new(line, 3));
        let HoverContents::Markup(contents) = server.answer(sent).expect("an answer").expect("a hover").contents else {
            panic!("no markup");
        };
        contents.value
    };
    insta::assert_snapshot!(hover(&net, 2));
    let culprit = hover(&train, 2);
    assert!(culprit.contains("| `unused` | `int64[9]` | `cuda:0` | 64 bytes |"), "{culprit}");
    assert!(culprit.contains("`model` is `net.Net`"), "{culprit}");
}

/// Lines that hold memory are spoken of as information; they go with the failure, and when they are edited.
#[test]
fn what_holds_the_memory_is_information_on_its_line() {
    let project = project();
    let (train, net) = (project.path("train.py"), project.path("net.py"));
    let mut server = TestServer::start(&project, able(&project));
    let mut failure = project.failure("train.py");
    let place = failure.verdicts[0].place.clone().expect("a place");
    let place = Place { file: "net.py".to_owned(), path: Some(net.display().to_string()), line: 3, ..place };
    failure.verdicts[0].memory = Some(Memory {
        allocated: Some(8 << 30),
        sites: vec![MemorySite { place, bytes: 6 << 30, blocks: 12 }],
        ..Memory::default()
    });
    project.ran(&failure);
    let shown = server.diagnostics(&net);
    assert_eq!(shown[0].severity, Some(DiagnosticSeverity::INFORMATION));
    assert_eq!(
        shown[0].message,
        "What this line allocated holds 6.00 GiB in 12 blocks, 75% of all, when memory ran out."
    );
    assert_eq!((shown[0].range.start, shown[0].range.end), (Position::new(2, 8), Position::new(2, 28)));
    server.diagnostics(&train);
    server.open(&net, 1, &NET.replace("self.emb(tok)", "self.small(tok)"));
    assert_eq!(server.diagnostics(&net), []);
    server.rewrite(&net, 2, NET);
    assert_eq!(server.diagnostics(&net).len(), 1);
    project.ran(&project.success("train.py"));
    assert_eq!(server.diagnostics(&net), []);
    server.diagnostics(&train);
}
