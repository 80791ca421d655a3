//! A client of the language server: typed requests and answers, over the real binary or in this process.
//!
//! It fails on messages that nobody claimed, and leaves through the protocol when it is dropped.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::runtime::Runtime;
use tower_lsp::jsonrpc::Error;
use tower_lsp::ls_types::notification::{self as notifications, Notification};
use tower_lsp::ls_types::request::{self as requests, Request};
use tower_lsp::ls_types::{Diagnostic, InitializeResult, Position, Range, Uri};
use tower_lsp::{ClientSocket, LanguageServer, LspService};

use crate::Project;

/// How long anything may take before a test gives up. No test asserts a time.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct TestServer {
    runtime: Runtime,
    /// None once the client has closed it.
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    messages: Receiver<Value>,
    unclaimed: VecDeque<Value>,
    next_id: i64,
    peer: Peer,
    /// Methods of the server that this client takes no notice of.
    ignored: Vec<&'static str>,
}

enum Peer {
    InProcess(tokio::task::JoinHandle<bool>),
    Child(tokio::process::Child),
    Left,
}

/// A request on its way.
#[must_use]
pub struct Sent<R: Request> {
    id: i64,
    kind: std::marker::PhantomData<R>,
}

impl TestServer {
    /// The server of this product on a duplex stream, initialized by a client that can do what `initialize` says.
    pub fn start(project: &Project, initialize: Value) -> Self {
        let mut server = Self::start_silent(project);
        server.initialize(initialize);
        server
    }

    /// The same, not initialized.
    pub fn start_silent(project: &Project) -> Self {
        let options = cublame::lsp::Options {
            record: None,
            cublame: std::env::current_exe().expect("this program"),
            surroundings: project.surroundings(),
        };
        Self::in_process(|client, answers| async {
            cublame::lsp::serve(client, answers, options).await == cublame::lsp::Left::Orderly
        })
    }

    /// Any other service of the framework behind the transport of this product.
    pub fn of_service<S: LanguageServer>(service: LspService<S>, socket: ClientSocket) -> Self {
        Self::in_process(|client, answers| async {
            cublame::lsp::converse(client, answers, None, service, socket).await;
            true
        })
    }

    /// The real binary, as an editor starts it.
    pub fn binary(project: &Project, program: &Path, arguments: &[&str]) -> Self {
        let runtime = runtime();
        let mut child = {
            let _inside = runtime.enter();
            tokio::process::Command::new(program)
                .args(arguments)
                .current_dir(project.root())
                .env("XDG_STATE_HOME", project.state_home())
                .env_remove("CUBLAME_DIR")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .expect("the binary under test")
        };
        let input = child.stdin.take().expect("its input");
        let messages = received(&runtime, child.stdout.take().expect("its output"));
        Self::new(runtime, Box::new(input), messages, Peer::Child(child))
    }

    fn in_process<F>(serve: impl FnOnce(tokio::io::DuplexStream, tokio::io::DuplexStream) -> F) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let runtime = runtime();
        let (input, client) = tokio::io::duplex(1 << 16);
        let (answers, output) = tokio::io::duplex(1 << 16);
        let server = runtime.spawn(serve(client, answers));
        let messages = received(&runtime, output);
        Self::new(runtime, Box::new(input), messages, Peer::InProcess(server))
    }

    fn new(runtime: Runtime, input: Box<dyn AsyncWrite + Send + Unpin>, messages: Receiver<Value>, peer: Peer) -> Self {
        let unclaimed = VecDeque::new();
        Self { runtime, input: Some(input), messages, unclaimed, next_id: 0, peer, ignored: Vec::new() }
    }

    /// `initialize` and `initialized`.
    pub fn initialize(&mut self, params: Value) -> InitializeResult {
        let params = serde_json::from_value(params).expect("the parameters of initialize");
        let sent = self.send::<requests::Initialize>(params);
        let result = self.answer(sent).expect("initialize is answered");
        self.notify::<notifications::Initialized>(tower_lsp::ls_types::InitializedParams {});
        result
    }

    /// Fails on any message that comes in this time.
    pub fn nothing_comes(&mut self, time: Duration) {
        if let Ok(message) = self.messages.recv_timeout(time) {
            panic!("nothing should come, and this did: {message:#}");
        }
    }

    pub fn send<R: Request>(&mut self, params: R::Params) -> Sent<R> {
        self.next_id += 1;
        let id = self.next_id;
        let params = serde_json::to_value(params).expect("parameters");
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": R::METHOD });
        // The protocol knows absent parameters, and no others that are null.
        if !params.is_null() {
            message["params"] = params;
        }
        self.send_raw(&message);
        Sent { id, kind: std::marker::PhantomData }
    }

    pub fn answer<R: Request>(&mut self, sent: Sent<R>) -> Result<R::Result, Error> {
        let message = self.answer_to(&json!(sent.id));
        match message.get("error") {
            Some(error) => Err(serde_json::from_value(error.clone()).expect("an error")),
            None => Ok(serde_json::from_value(message["result"].clone()).expect(R::METHOD)),
        }
    }

    pub fn request<R: Request>(&mut self, params: R::Params) -> Result<R::Result, Error> {
        let sent = self.send::<R>(params);
        self.answer(sent)
    }

    pub fn cancel<R: Request>(&mut self, sent: &Sent<R>) {
        self.send_raw(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": sent.id } }));
    }

    pub fn notify<N: Notification>(&mut self, params: N::Params) {
        let params = serde_json::to_value(params).expect("parameters");
        self.send_raw(&json!({ "jsonrpc": "2.0", "method": N::METHOD, "params": params }));
    }

    /// The answer to a message that was sent raw.
    pub fn answer_to(&mut self, id: &Value) -> Value {
        self.claim(&format!("an answer to {id}"), |message| {
            message.get("method").is_none() && message.get("id") == Some(id)
        })
    }

    pub fn notification<N: Notification>(&mut self) -> N::Params {
        let message =
            self.claim(N::METHOD, |message| method(message) == Some(N::METHOD) && message.get("id").is_none());
        serde_json::from_value(message["params"].clone()).expect(N::METHOD)
    }

    /// A request of the server's. Leaving it unanswered is up to the test.
    pub fn server_request<R: Request>(&mut self) -> (Value, R::Params) {
        let message =
            self.claim(R::METHOD, |message| method(message) == Some(R::METHOD) && message.get("id").is_some());
        (message["id"].clone(), serde_json::from_value(message["params"].clone()).expect(R::METHOD))
    }

    pub fn respond(&mut self, id: Value, result: Value) {
        self.send_raw(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// The next list of diagnostics for a file.
    pub fn diagnostics(&mut self, path: &Path) -> Vec<Diagnostic> {
        self.diagnostics_of(&uri(path)).0
    }

    pub fn diagnostics_of(&mut self, uri: &Uri) -> (Vec<Diagnostic>, Option<i32>) {
        let wanted = json!(uri);
        let message = self.claim(&format!("diagnostics of {wanted}"), |message| {
            method(message) == Some("textDocument/publishDiagnostics") && message["params"]["uri"] == wanted
        });
        let params: tower_lsp::ls_types::PublishDiagnosticsParams =
            serde_json::from_value(message["params"].clone()).expect("diagnostics");
        (params.diagnostics, params.version)
    }

    pub fn open(&mut self, path: &Path, version: i32, text: &str) {
        self.notify::<notifications::DidOpenTextDocument>(parameters(json!({
            "textDocument": { "uri": uri(path), "languageId": "python", "version": version, "text": text } })));
    }

    /// Replaces the whole text.
    pub fn rewrite(&mut self, path: &Path, version: i32, text: &str) {
        self.notify::<notifications::DidChangeTextDocument>(parameters(json!({
            "textDocument": { "uri": uri(path), "version": version }, "contentChanges": [{ "text": text }] })));
    }

    /// Puts text in at a position.
    pub fn insert(&mut self, path: &Path, version: i32, at: Position, text: &str) {
        self.notify::<notifications::DidChangeTextDocument>(parameters(json!({
            "textDocument": { "uri": uri(path), "version": version },
            "contentChanges": [{ "range": { "start": at, "end": at }, "text": text }] })));
    }

    pub fn save(&mut self, path: &Path) {
        self.notify::<notifications::DidSaveTextDocument>(parameters(json!({ "textDocument": { "uri": uri(path) } })));
    }

    pub fn close(&mut self, path: &Path) {
        self.notify::<notifications::DidCloseTextDocument>(parameters(json!({ "textDocument": { "uri": uri(path) } })));
    }

    pub fn hover(&mut self, path: &Path, at: Position) -> Sent<requests::HoverRequest> {
        self.send(parameters(json!({ "textDocument": { "uri": uri(path) }, "position": at })))
    }

    pub fn code_actions(&mut self, path: &Path, diagnostics: &[Diagnostic]) -> Vec<Value> {
        let range = diagnostics.first().map(|diagnostic| diagnostic.range).unwrap_or_default();
        self.code_actions_in(path, range, diagnostics)
    }

    /// What is offered at the start of a line (from 0), where no diagnostic is.
    pub fn code_actions_at(&mut self, path: &Path, line: u32) -> Vec<Value> {
        let at = Position::new(line, 0);
        self.code_actions_in(path, Range::new(at, at), &[])
    }

    fn code_actions_in(&mut self, path: &Path, range: Range, diagnostics: &[Diagnostic]) -> Vec<Value> {
        let params = json!({
            "textDocument": { "uri": uri(path) }, "range": range, "context": { "diagnostics": diagnostics } });
        let actions = self.request::<requests::CodeActionRequest>(parameters(params)).expect("code actions");
        actions.unwrap_or_default().iter().map(|action| json!(action)).collect()
    }

    pub fn command(&mut self, name: &str, argument: Value) -> Result<Option<Value>, Error> {
        self.request::<requests::ExecuteCommand>(parameters(json!({ "command": name, "arguments": [argument] })))
    }

    /// What the server says with this method is of no interest to this test, be it said already or not.
    pub fn ignore(&mut self, ignored: &'static str) {
        self.ignored.push(ignored);
        self.unclaimed.retain(|message| method(message) != Some(ignored));
    }

    pub fn send_raw(&mut self, message: &Value) {
        let body = message.to_string();
        self.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let Self { runtime, input, .. } = self;
        let input = input.as_mut().expect("an open input");
        let sent = runtime.block_on(async {
            input.write_all(bytes).await?;
            input.flush().await
        });
        sent.expect("the server reads");
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for the server to end; was it an orderly end (exit code 0)?
    pub fn wait_for_end(&mut self) -> bool {
        let peer = std::mem::replace(&mut self.peer, Peer::Left);
        self.runtime.block_on(async {
            let ended = async {
                match peer {
                    Peer::InProcess(server) => server.await.expect("the server does not panic"),
                    Peer::Child(mut child) => child.wait().await.expect("a child").success(),
                    Peer::Left => panic!("it has ended already"),
                }
            };
            tokio::time::timeout(PATIENCE, ended).await.expect("the server does not leave")
        })
    }

    /// `shutdown` and `exit`.
    pub fn shut_down(&mut self) -> bool {
        self.request::<requests::Shutdown>(()).expect("shutdown is answered");
        self.send_raw(&json!({ "jsonrpc": "2.0", "method": "exit" }));
        self.wait_for_end()
    }

    /// The process id of the binary.
    pub fn pid(&self) -> u32 {
        match &self.peer {
            Peer::Child(child) => child.id().expect("a running child"),
            Peer::InProcess(_) | Peer::Left => std::process::id(),
        }
    }

    /// The first message, now or later, that `wanted` accepts; the others wait for theirs.
    fn claim(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unclaimed.iter().position(&wanted) {
            return self.unclaimed.remove(at).expect("a position in it");
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(message) if wanted(&message) => return message,
                Ok(message) => self.keep(message),
                Err(RecvTimeoutError::Timeout) => panic!("{what} did not come; unclaimed: {:#?}", self.unclaimed),
                Err(RecvTimeoutError::Disconnected) => panic!("the server left before {what}: {:#?}", self.unclaimed),
            }
        }
    }

    fn keep(&mut self, message: Value) {
        if !method(&message).is_some_and(|method| self.ignored.contains(&method)) {
            self.unclaimed.push_back(message);
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if !matches!(self.peer, Peer::Left) {
            assert!(self.shut_down(), "the server does not leave in an orderly way");
        }
        while let Ok(message) = self.messages.recv_timeout(PATIENCE) {
            self.keep(message);
        }
        assert!(self.unclaimed.is_empty(), "messages that no test claimed: {:#?}", self.unclaimed);
    }
}

/// What a client says in `initialize` that can do everything this server makes use of, in a project.
pub fn able(project: &Project) -> Value {
    json!({
        "processId": null,
        "capabilities": {
            "textDocument": {
                "publishDiagnostics": { "relatedInformation": true, "codeDescriptionSupport": true, "dataSupport": true },
                "hover": { "contentFormat": ["markdown"] },
                "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["quickfix"] } } }
            },
            "window": { "showDocument": { "support": true }, "workDoneProgress": true }
        },
        "workspaceFolders": [{ "uri": uri(project.root()), "name": "proj" }]
    })
}

pub fn uri(path: &Path) -> Uri {
    Uri::from_file_path(path).expect("an absolute path")
}

fn parameters<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("parameters")
}

fn method(message: &Value) -> Option<&str> {
    message.get("method")?.as_str()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// The messages of a server, until its output ends.
fn received(runtime: &Runtime, output: impl AsyncRead + Send + Unpin + 'static) -> Receiver<Value> {
    let (sender, receiver) = channel();
    runtime.spawn(async move {
        let mut output = BufReader::new(output);
        while let Some(message) = next_message(&mut output).await {
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn next_message(output: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", bytes)) => length = bytes.parse().ok(),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length.expect("a length")];
    output.read_exact(&mut body).await.ok()?;
    Some(serde_json::from_slice(&body).expect("the server speaks JSON"))
}
