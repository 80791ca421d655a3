//! The lint in open Python files: shown beside what runs left, and fixed on request.

use std::path::Path;

use cublame_tests::client::{able, uri};
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::ShowMessage;
use tower_lsp::ls_types::request::CodeActionRequest;
use tower_lsp::ls_types::{Diagnostic, DiagnosticSeverity, NumberOrString, Position};

const TOO_LATE: &str = "import os\nimport torch\n\nx = torch.zeros(3).cuda()  # @fault\n\
                        os.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"1\"  # ä\n";

const RULE: &str = "env-too-late";

fn project() -> Project {
    Project::new(&[("train.py", TOO_LATE)])
}

fn rules(diagnostics: &[Diagnostic]) -> Vec<String> {
    let of_lint = diagnostics.iter().filter(|diagnostic| diagnostic.source.as_deref() == Some("cublame lint"));
    let rule = |diagnostic: &Diagnostic| match &diagnostic.code {
        Some(NumberOrString::String(rule)) => rule.clone(),
        other => panic!("{other:?} is no rule"),
    };
    of_lint.map(rule).collect()
}

/// The actions of one kind for the whole of the marked lines.
fn actions(server: &mut TestServer, path: &Path, kind: &str, diagnostics: &[Diagnostic]) -> Vec<Value> {
    let params = json!({
        "textDocument": { "uri": uri(path) },
        "range": { "start": { "line": 4, "character": 0 }, "end": { "line": 4, "character": 0 } },
        "context": { "diagnostics": diagnostics, "only": [kind] } });
    let params = serde_json::from_value(params).expect("parameters");
    let actions = server.request::<CodeActionRequest>(params).expect("code actions");
    actions.unwrap_or_default().iter().map(|action| json!(action)).collect()
}

/// The text after the edits, whose columns are all 0 in these files.
fn edited(text: &str, edits: &Value) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let mut edits = edits.as_array().expect("edits").clone();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit["range"]["start"]["line"].as_u64()));
    for edit in edits {
        let at = |end: &str| {
            assert_eq!(edit["range"][end]["character"], 0);
            edit["range"][end]["line"].as_u64().expect("a line") as usize
        };
        lines.splice(at("start")..at("end"), [edit["newText"].as_str().expect("text").to_owned()]);
    }
    lines.concat()
}

#[test]
fn findings_come_with_the_text_and_go_with_it() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, TOO_LATE);
    let (found, version) = server.diagnostics_of(&uri(&train));
    assert_eq!((rules(&found), version), (vec![RULE.to_owned()], Some(1)));
    assert_eq!(found[0].severity, Some(DiagnosticSeverity::WARNING));
    assert_eq!(found[0].range.start, Position::new(4, 0));
    assert!(found[0].message.contains("after line 4 has used the GPU"), "{}", found[0].message);
    server.rewrite(&train, 2, "import torch\n");
    assert_eq!(server.diagnostics(&train), []);
    server.rewrite(&train, 3, TOO_LATE);
    assert_eq!(rules(&server.diagnostics(&train)), [RULE]);
    server.close(&train);
    assert_eq!(server.diagnostics(&train), []);
}

#[test]
fn findings_stand_beside_those_of_runs() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, TOO_LATE);
    assert_eq!(rules(&server.diagnostics(&train)), [RULE]);
    let run = project.ran(&project.failure("train.py"));
    let both = server.diagnostics(&train);
    assert_eq!((both.len(), rules(&both)), (2, vec![RULE.to_owned()]));
    server.command("cublame.dismiss", json!({ "run": run.id() })).expect("an answer");
    assert_eq!(rules(&server.diagnostics(&train)), [RULE]);
}

#[test]
fn a_fix_is_one_edit_of_the_version_that_it_was_found_in() {
    for versions in [true, false] {
        let project = project();
        let train = project.path("train.py");
        let mut initialize = able(&project);
        initialize["capabilities"]["workspace"] = json!({ "workspaceEdit": { "documentChanges": versions } });
        let mut server = TestServer::start(&project, initialize);
        server.open(&train, 4, TOO_LATE);
        let found = server.diagnostics(&train);
        for (kind, title) in [
            ("quickfix", "Move it above the first use of the GPU"),
            ("source.fixAll.cublame", "Fix everything that cublame lint can fix"),
        ] {
            let offered = actions(&mut server, &train, kind, &found);
            assert_eq!((offered.len(), &offered[0]["title"], &offered[0]["kind"]), (1, &json!(title), &json!(kind)));
            let edit = &offered[0]["edit"];
            let edits = if versions {
                let change = &edit["documentChanges"][0];
                assert_eq!(change["textDocument"], json!({ "uri": uri(&train), "version": 4 }));
                &change["edits"]
            } else {
                &edit["changes"][uri(&train).as_str()]
            };
            let fixed = edited(TOO_LATE, edits);
            assert!(fixed.find("BLOCKING") < fixed.find("zeros") && fixed.ends_with("# @fault\n"), "{fixed}");
        }
        // The finding is of an older text now; all fixes are worked out from the newest.
        server.insert(&train, 5, Position::new(0, 0), "\n");
        assert_eq!(actions(&mut server, &train, "quickfix", &found), [] as [Value; 0]);
        assert_eq!(actions(&mut server, &train, "source.fixAll", &found).len(), 1);
        assert_eq!(server.diagnostics(&train)[0].range.start.line, 5);
        server.rewrite(&train, 6, "import torch\n");
        assert_eq!(server.diagnostics(&train), []);
        assert_eq!(actions(&mut server, &train, "source.fixAll.cublame", &[]), [] as [Value; 0]);
    }
}

#[test]
fn all_fixes_of_a_rule_are_one_action() {
    let text = "import os\nimport torch\n\nx = torch.zeros(3, device=\"cuda:1\")\ny = torch.zeros(3, device=\"cuda:1\")\n\
                os.environ[\"TORCH_USE_CUDA_DSA\"] = \"1\"\n";
    let project = Project::new(&[("train.py", text)]);
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, text);
    let found = server.diagnostics(&train);
    assert_eq!(rules(&found), ["hardcoded-device", "hardcoded-device", "dsa-env"]);
    let offered = actions(&mut server, &train, "quickfix", &found[1..]);
    let titles: Vec<&str> = offered.iter().filter_map(|action| action["title"].as_str()).collect();
    assert_eq!(titles, ["Use the current device", "Take it out", "Fix all 2 of hardcoded-device in this file"]);
    let edits = offered[2]["edit"]["changes"][uri(&train).as_str()].as_array().expect("edits");
    let lines: Vec<_> = edits.iter().map(|edit| edit["range"]["start"]["line"].clone()).collect();
    assert_eq!(lines, [json!(3), json!(4)]);
}

#[test]
fn a_client_that_keeps_no_data_has_the_same_fix() {
    let project = project();
    let train = project.path("train.py");
    let mut initialize = able(&project);
    initialize["capabilities"]["textDocument"]["publishDiagnostics"] = json!({});
    let mut server = TestServer::start(&project, initialize);
    server.open(&train, 1, TOO_LATE);
    let found = server.diagnostics(&train);
    assert_eq!(found[0].data, None);
    let offered = actions(&mut server, &train, "quickfix", &found);
    assert_eq!(offered[0]["title"], "Move it above the first use of the GPU");
}

#[test]
fn settings_and_pyproject_choose_the_rules() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, TOO_LATE);
    assert_eq!(rules(&server.diagnostics(&train)), [RULE]);
    let set = |server: &mut TestServer, lint: Value| {
        let params = json!({ "settings": { "cublame": { "lint": lint } } });
        server.send_raw(&json!({ "jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": params }));
    };
    set(&mut server, json!({ "ignore": [RULE] }));
    assert_eq!(server.diagnostics(&train), []);
    set(&mut server, json!({}));
    assert_eq!(rules(&server.diagnostics(&train)), [RULE]);
    project.write("pyproject.toml", &format!("[tool.cublame.lint]\nignore = [\"{RULE}\"]\n"));
    server.rewrite(&train, 2, TOO_LATE);
    assert_eq!(server.diagnostics(&train), []);
    project.write("pyproject.toml", "[tool.cublame.lint]\nignore = [\"no-such-rule\"]\n");
    server.rewrite(&train, 3, TOO_LATE);
    let said = server.notification::<ShowMessage>().message;
    assert!(said.contains("pyproject.toml") && said.contains("`no-such-rule` is no rule"), "{said}");
}
