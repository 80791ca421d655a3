//! The editor's own debugger, through `cublame/dap`: the line is there while the program stands at its failure.

use std::process::{Child, Command, Stdio};

use cublame::lsp::{DapMessage, DapQuestion};
use cublame::os::processes;
use cublame::session::folder::RunFolder;
use cublame_core::run::{Run, Watch};
use cublame_tests::client::able;
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::Notification;

const TRAIN: &str = include_str!("../../gpu/programs/embedding_oob.py");
const LOG: &str = include_str!("../../fixtures/gpu/logs/embedding_oob.async.txt");

enum ToServer {}
impl Notification for ToServer {
    type Params = DapMessage;
    const METHOD: &'static str = "cublame/dap";
}

enum ToClient {}
impl Notification for ToClient {
    type Params = DapQuestion;
    const METHOD: &'static str = "cublame/dap";
}

/// What stood on the terminal before the exception went up.
fn printed() -> &'static str {
    LOG.split("Traceback").next().unwrap_or_default()
}

/// A program that a debugger holds: its process lives as long as this does.
struct Debugged {
    process: Child,
}

impl Debugged {
    fn start() -> Self {
        // It reads what nobody writes.
        let process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("a process");
        Self { process }
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Debugged {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("its end");
    }
}

/// The run that the program's hook has made.
fn adopted(project: &Project, pid: u32) -> RunFolder {
    let folder = project.start(&project.failure("train.py"), None);
    let run = folder.run().whole().expect("run.json");
    let child = Some(processes::identify(pid));
    folder.write_run(&Run { watch: Watch::Adopted, runner: None, child, ..run }).expect("run.json");
    let start = json!({ "v": 1, "time": 1.0, "pid": pid, "event": "start", "ppid": 1, "argv": ["train.py"],
        "cwd": project.root(), "python": "3.12.3", "executable": "python3" });
    std::fs::write(folder.path().join(format!("events/{pid}-a.jsonl")), format!("{start}\n")).expect("a file");
    folder
}

struct Session {
    server: TestServer,
    line: u32,
    path: String,
}

impl Session {
    fn start(project: &Project) -> Self {
        let mut initialize = able(project);
        initialize["initializationOptions"] = json!({ "custom": ["cublame/dap"] });
        let path = project.path("train.py").display().to_string();
        let line = project.fault_line("train.py");
        Self { server: TestServer::start(project, initialize), line, path }
    }

    fn tell(&mut self, message: Value) {
        self.server.notify::<ToServer>(DapMessage { session: "s1".to_owned(), message });
    }

    fn event(&mut self, name: &str, body: Value) {
        self.tell(json!({ "seq": 1, "type": "event", "event": name, "body": body }));
    }

    /// The debugger stops, and the editor asks it what the server wants to know.
    fn stop(&mut self) {
        self.event("stopped", json!({ "reason": "exception", "threadId": 1 }));
        for _ in 0..2 {
            let DapQuestion { session, command, arguments } = self.server.notification::<ToClient>();
            assert_eq!((session.as_str(), arguments), ("s1", json!({ "threadId": 1 })));
            let body = self.answer(&command);
            self.tell(json!({ "seq": 2, "type": "response", "success": true, "command": command, "body": body }));
        }
    }

    fn answer(&self, command: &str) -> Value {
        let (path, surfaced) = (&self.path, self.line + 1);
        if command == "stackTrace" {
            return json!({ "stackFrames": [{ "line": surfaced, "column": 16, "endColumn": 26, "source": { "path": path } }] });
        }
        let trace = format!(
            "  File \"{path}\", line {surfaced}, in forward\n    return self.fc(x).mean(dim=1)\n  File \"{path}\", line 14, in \
             main\n    out = net(tok)\nRuntimeError: CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling \
             `cublasCreate(handle)`\n"
        );
        json!({ "breakMode": "unhandled", "details": { "stackTrace": trace } })
    }
}

#[test]
fn the_line_is_there_while_the_debugger_stands_and_the_runs_own_word_follows() {
    let project = Project::new(&[("train.py", TRAIN)]);
    let train = project.path("train.py");
    let debugged = Debugged::start();
    let pid = debugged.pid();
    let folder = adopted(&project, pid);
    let mut session = Session::start(&project);
    session.event("process", json!({ "systemProcessId": pid, "name": "train.py" }));
    session.event("output", json!({ "category": "stderr", "output": printed() }));
    session.stop();
    // The assertion on the terminal gives the line away, one before the one where the error surfaced.
    let diagnostics = session.server.diagnostics(&train);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].range.start.line + 1, session.line, "{diagnostics:#?}");
    assert!(folder.path().join(format!("debugger-{pid}.jsonl")).exists());
    assert!(folder.log().whole().is_some_and(|log| log.total_lines > 0));

    session.event("continued", json!({ "threadId": 1 }));
    assert_eq!(session.server.diagnostics(&train), []);
    session.stop();
    assert_eq!(session.server.diagnostics(&train).len(), 1);
    // The program is ended where it stands: what was found stays.
    drop(debugged);
    session.event("terminated", Value::Null);
    let report = session.server.command("cublame.copyReport", json!({ "run": folder.id() })).expect("a report");
    assert!(report.is_some_and(|report| report.as_str().is_some_and(|text| text.contains("embedding"))));
}

#[test]
fn a_program_without_a_hook_gets_a_run_of_its_own() {
    let project = Project::new(&[("train.py", TRAIN)]);
    let debugged = Debugged::start();
    let mut session = Session::start(&project);
    session.event("process", json!({ "systemProcessId": debugged.pid(), "name": session.path }));
    session.event("output", json!({ "category": "stderr", "output": printed() }));
    session.stop();
    assert_eq!(session.server.diagnostics(&project.path("train.py")).len(), 1);
    // There is no hook to take over: what was found stays when the program goes on.
    session.event("continued", json!({ "threadId": 1 }));
    session.event("terminated", Value::Null);
}

#[test]
fn a_client_that_declares_nothing_is_asked_nothing() {
    let project = Project::new(&[("train.py", TRAIN)]);
    let mut server = TestServer::start(&project, able(&project));
    let stopped = json!({ "type": "event", "event": "stopped", "body": { "reason": "exception", "threadId": 1 } });
    server.notify::<ToServer>(DapMessage { session: "s".to_owned(), message: stopped });
    // The server would fail this test with the question that nobody claims.
    server.command("cublame.clear", Value::Null).expect("an answer");
}
