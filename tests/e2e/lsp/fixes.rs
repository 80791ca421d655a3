//! The fixes of a failure: edits of the open document, a setting for the run configurations, a command for the terminal.

use std::path::Path;

use cublame_core::config::{Edit, apply};
use cublame_core::text::{Encoding, LineIndex, Position};
use cublame_core::verdict::{DeviceAssert, ExceptionText, Memory, Tensor};
use cublame_tests::client::{able, uri};
use cublame_tests::project::Written;
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::Notification;
use tower_lsp::ls_types::request::{ApplyWorkspaceEdit, ShowMessageRequest};

/// A failure of this kind at the marked line.
fn failure(project: &Project, kind: &str, message: &str) -> Written {
    let mut failure = project.failure("train.py");
    let verdict = &mut failure.verdicts[0];
    verdict.kind = kind.to_owned();
    verdict.error = None;
    verdict.tensors.clear();
    verdict.exception = Some(ExceptionText { type_name: "RuntimeError".to_owned(), message: message.to_owned() });
    failure
}

/// What is offered at the failure of a program that is open.
fn offered(server: &mut TestServer, project: &Project, text: &str) -> Vec<Value> {
    let train = project.path("train.py");
    server.diagnostics(&train);
    server.open(&train, 3, text);
    let diagnostics = server.diagnostics(&train);
    server.code_actions(&train, &diagnostics)
}

fn titled<'a>(actions: &'a [Value], start: &str) -> &'a Value {
    let found = actions.iter().find(|action| action["title"].as_str().is_some_and(|title| title.starts_with(start)));
    found.unwrap_or_else(|| panic!("nothing is titled {start}: {actions:#?}"))
}

/// The text after an action's edit, which must be for this version of this document.
fn edited(action: &Value, path: &Path, version: i32, text: &str) -> String {
    let change = &action["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({ "uri": uri(path), "version": version }));
    let lines = LineIndex::new(text);
    let offset = |position: &Value| {
        let number = |name: &str| u32::try_from(position[name].as_u64().expect("a number")).expect("a small one");
        lines.offset_at(Position { line: number("line"), character: number("character") }, Encoding::Utf16)
    };
    let edit = |edit: &Value| {
        let text = edit["newText"].as_str().expect("text");
        Edit::replace(offset(&edit["range"]["start"]), offset(&edit["range"]["end"]), text)
    };
    apply(text, &change["edits"].as_array().expect("edits").iter().map(edit).collect::<Vec<_>>())
}

fn versioned(project: &Project) -> Value {
    let mut initialize = able(project);
    initialize["capabilities"]["workspace"] = json!({ "workspaceEdit": { "documentChanges": true } });
    initialize
}

const LOOKUP: &str = "import torch\nfrom torch import nn\n\nemb = nn.Embedding(10, 4).cuda()\n\n\n\
                      def look(é, tok):\n    return é, emb(tok)  # @fault\n";

#[test]
fn an_index_is_checked_or_clamped_in_the_document_as_it_is_now() {
    let project = Project::new(&[("train.py", LOOKUP)]);
    let mut failure = failure(&project, "device-assert", "CUDA error: device-side assert triggered");
    failure.verdicts[0].asserts = vec![DeviceAssert {
        file: "IndexKernelUtils.cu".to_owned(),
        line: 16,
        kernel: Some("vectorized_gather_kernel".to_owned()),
        condition: "ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of bounds\"".to_owned(),
        count: 96,
    }];
    project.ran(&failure);
    let mut server = TestServer::start(&project, versioned(&project));
    let train = project.path("train.py");
    let actions = offered(&mut server, &project, LOOKUP);
    let check = titled(&actions, "Check `tok` before the call");
    assert_eq!(check["kind"], "quickfix");
    let after = edited(check, &train, 3, LOOKUP);
    let wanted = "def look(é, tok):\n    if tok.numel() and not 0 <= tok.min().item() <= tok.max().item() < emb.num_embeddings:\n";
    assert!(after.contains(wanted) && after.ends_with("    return é, emb(tok)  # @fault\n"), "{after}");
    let clamped = edited(titled(&actions, "Clamp `tok`"), &train, 3, LOOKUP);
    assert!(clamped.ends_with("return é, emb(tok.clamp(0, emb.num_embeddings - 1))  # @fault\n"), "{clamped}");
    // Lines came above it, so the edit is for where it is now, in the new version.
    let moved = format!("import os\n{LOOKUP}");
    server.rewrite(&train, 4, &moved);
    let diagnostics = server.diagnostics(&train);
    let actions = server.code_actions(&train, &diagnostics);
    let after = edited(titled(&actions, "Check `tok`"), &train, 4, &moved);
    assert!(after.contains(wanted) && after.starts_with("import os\n"), "{after}");
    // A line that was edited is not edited by us.
    server.rewrite(&train, 5, &LOOKUP.replace("emb(tok)", "emb(tok % 10)"));
    let diagnostics = server.diagnostics(&train);
    let actions = server.code_actions(&train, &diagnostics);
    assert!(actions.iter().all(|action| action["edit"].is_null()), "{actions:#?}");
}

#[test]
fn a_checkpoint_is_loaded_to_the_cpu_and_a_tensor_goes_where_the_other_is() {
    let load = "import torch\nstate = torch.load(\"best.pt\")  # @fault\n";
    let project = Project::new(&[("train.py", load)]);
    let message = "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.";
    project.ran(&failure(&project, "deserialize-cuda", message));
    let mut server = TestServer::start(&project, versioned(&project));
    let actions = offered(&mut server, &project, load);
    let after = edited(titled(&actions, "Load it to the CPU"), &project.path("train.py"), 3, load);
    assert_eq!(after, load.replace("\"best.pt\")", "\"best.pt\", map_location=\"cpu\")"));

    let add = "def f(x, mask):\n    return x + mask  # @fault\n";
    let project = Project::new(&[("train.py", add)]);
    let message = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!";
    let mut failure = failure(&project, "same-device", message);
    failure.verdicts[0].tensors = [("x", "cuda:0"), ("mask", "cpu")].map(tensor).into();
    project.ran(&failure);
    let mut server = TestServer::start(&project, versioned(&project));
    let actions = offered(&mut server, &project, add);
    let after = edited(titled(&actions, "Move `mask` to the device of `x`"), &project.path("train.py"), 3, add);
    assert_eq!(after, add.replace("x + mask", "x + mask.to(x.device)"));
}

fn tensor((name, device): (&str, &str)) -> Tensor {
    let (name, device) = (name.to_owned(), device.to_owned());
    Tensor { name, shape: vec![4], dtype: "float32".to_owned(), device, ..Tensor::default() }
}

const STEP: &str = "import torch\nx = torch.zeros(1 << 34, device=\"cuda\")  # @fault\n";

#[test]
fn a_setting_of_the_allocator_goes_into_the_run_configurations() {
    const LAUNCH: &str = r#"{
    // mine
    "version": "0.2.0",
    "configurations": [
        { "name": "tests", "type": "debugpy", "request": "launch", "module": "pytest" },
        {
            "name": "train",
            "type": "debugpy",
            "request": "launch",
            "program": "${workspaceFolder}/train.py",
            "env": { "A": "1" },
        },
    ]
}
"#;
    let files = [("train.py", STEP), (".vscode/launch.json", LAUNCH)];
    let project = Project::new(&files);
    let message = "CUDA out of memory. Tried to allocate 2.00 GiB. If reserved but unallocated memory is large try setting \
                   PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";
    let mut failure = failure(&project, "oom", message);
    failure.verdicts[0].memory = Some(Memory {
        requested: Some(2 << 30),
        capacity: Some(24 << 30),
        free: Some(1 << 30),
        reserved_unallocated: Some(3 << 30),
        process: Some(23 << 30),
        ..Memory::default()
    });
    project.ran(&failure);
    let mut initialize = able(&project);
    initialize["capabilities"]["workspace"] =
        json!({ "applyEdit": true, "workspaceEdit": { "documentChanges": true } });
    let mut server = TestServer::start(&project, initialize);
    server.ignore("window/showMessage");
    let actions = offered(&mut server, &project, STEP);
    let set = "Set PYTORCH_ALLOC_CONF=expandable_segments:True in the run configurations of";
    let set_in_vscode = titled(&actions, &format!("{set} VS Code"));
    let arguments = set_in_vscode["command"]["arguments"][0].clone();
    assert_eq!(set_in_vscode["command"]["command"], "cublame.configure");
    server.command("cublame.configure", arguments).expect("an answer");
    let wanted =
        LAUNCH.replace("{ \"A\": \"1\" }", "{ \"A\": \"1\", \"PYTORCH_ALLOC_CONF\": \"expandable_segments:True\" }");
    assert_eq!(project.read(".vscode/launch.json"), wanted);
    // Nothing of PyCharm's runs it, and that is said.
    let arguments = titled(&actions, &format!("{set} PyCharm"))["command"]["arguments"][0].clone();
    let refused = server.command("cublame.configure", arguments).expect_err("a refusal");
    assert!(refused.message.contains("no run configuration here runs train.py"), "{}", refused.message);
    // In an editor that has the file open, it is the editor's to change.
    let launch = project.path(".vscode/launch.json");
    let text = project.read(".vscode/launch.json").replace("expandable_segments:True", "backend:native");
    server.open(&launch, 7, &text);
    let arguments = set_in_vscode["command"]["arguments"][0].clone();
    server.command("cublame.configure", arguments).expect("an answer");
    let (id, asked) = server.server_request::<ApplyWorkspaceEdit>();
    let asked = json!({ "edit": asked.edit });
    assert_eq!(edited(&asked, &launch, 7, &text), wanted);
    server.respond(id, json!({ "applied": true }));
}

#[test]
fn the_command_of_an_advice_is_shown_and_then_run_in_a_terminal() {
    let project = Project::new(&[("train.py", STEP)]);
    let message = "Torch not compiled with CUDA enabled";
    let run = project.ran(&failure(&project, "no-kernel-image", message));
    let mut initialize = able(&project);
    initialize["initializationOptions"] = json!({ "custom": ["cublame/runInTerminal"] });
    let mut server = TestServer::start(&project, initialize);
    let actions = offered(&mut server, &project, STEP);
    let follow = titled(&actions, "Compare the GPU with the installed build");
    assert_eq!(follow["command"]["command"], "cublame.followAdvice");
    let arguments = follow["command"]["arguments"][0].clone();
    assert_eq!(arguments, json!({ "run": run.id(), "index": 0, "advice": "compare-architectures" }));
    for answer in ["Cancel", "Run"] {
        server.command("cublame.followAdvice", arguments.clone()).expect("an answer");
        let (id, asked) = server.server_request::<ShowMessageRequest>();
        assert!(asked.message.contains("get_arch_list"), "{}", asked.message);
        server.respond(id, json!({ "title": answer }));
    }
    let terminal = server.notification::<InTerminal>();
    assert_eq!(terminal.argv[..2], ["sh", "-c"]);
    assert!(terminal.argv[2].contains("get_arch_list"), "{:?}", terminal.argv);
    assert_eq!(terminal.cwd, project.root().display().to_string());
    // An advice that has no command of its own to be run, or that is not there.
    for advice in ["reduce-batch", "nonsense"] {
        let arguments = json!({ "run": run.id(), "index": 0, "advice": advice });
        assert!(server.command("cublame.followAdvice", arguments).is_err());
    }
}

enum InTerminal {}

impl Notification for InTerminal {
    type Params = cublame::lsp::RunInTerminal;
    const METHOD: &'static str = "cublame/runInTerminal";
}
