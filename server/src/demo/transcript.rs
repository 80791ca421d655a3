//! What an editor and the server say to each other over the demo's workspace: the real server, over a pipe in memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use crate::error::{Error, Result};
use crate::lsp::{self, Options};
use crate::session::place::Surroundings;

/// The server reads the run folders before it publishes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Opens the program in a server of its own and returns every message up to its diagnostics, in order.
pub async fn transcript(workspace: &Path, program: &Path) -> Result<Vec<Message>> {
    let cublame = std::env::current_exe()
        .map_err(|error| Error::environment("the path of this program cannot be read").because(error))?;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (from_client, to_client) = tokio::io::split(theirs);
    let surroundings = Surroundings { cwd: workspace.to_owned(), ..Surroundings::default() };
    let server = tokio::spawn(async move {
        lsp::serve(from_client, to_client, Options { record: None, cublame, surroundings }).await
    });
    let mut editor = Editor::new(ours);
    let said = tokio::time::timeout(PATIENCE, editor.converse(workspace, program)).await;
    server.abort();
    match said {
        Ok(Ok(())) => Ok(editor.messages),
        Ok(Err(error)) => Err(Error::internal("the language server cannot be heard").because(error)),
        Err(_) => Err(Error::internal("the language server published nothing")),
    }
}

/// One JSON-RPC message.
pub struct Message {
    pub from_server: bool,
    pub content: Value,
}

/// As much of an editor as a transcript takes.
struct Editor {
    from_server: BufReader<ReadHalf<DuplexStream>>,
    to_server: WriteHalf<DuplexStream>,
    messages: Vec<Message>,
}

impl Editor {
    fn new(stream: DuplexStream) -> Self {
        let (from_server, to_server) = tokio::io::split(stream);
        Self { from_server: BufReader::new(from_server), to_server, messages: Vec::new() }
    }

    async fn converse(&mut self, workspace: &Path, program: &Path) -> std::io::Result<()> {
        let uri = uri(program);
        self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "processId": null, "rootUri": self::uri(workspace),
            "workspaceFolders": [{ "uri": self::uri(workspace), "name": "demo" }],
            "capabilities": { "textDocument": { "publishDiagnostics": { "relatedInformation": true, "codeDescriptionSupport": true, "dataSupport": true } } },
        } }))
        .await?;
        self.receive_until(|message| message["id"] == 1 && message["method"].is_null()).await?;
        self.send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} })).await?;
        let text = std::fs::read_to_string(program)?;
        self.send(json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {
            "textDocument": { "uri": uri, "languageId": "python", "version": 1, "text": text } } }))
            .await?;
        self.receive_until(|message| {
            let params = &message["params"];
            let published = message["method"] == "textDocument/publishDiagnostics" && params["uri"] == uri.as_str();
            published && params["diagnostics"].as_array().is_some_and(|diagnostics| !diagnostics.is_empty())
        })
        .await?;
        self.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" })).await?;
        self.receive_until(|message| message["id"] == 2 && message["method"].is_null()).await?;
        self.send(json!({ "jsonrpc": "2.0", "method": "exit" })).await
    }

    async fn send(&mut self, content: Value) -> std::io::Result<()> {
        let text = content.to_string();
        self.to_server.write_all(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes()).await?;
        self.messages.push(Message { from_server: false, content });
        Ok(())
    }

    async fn receive_until(&mut self, wanted: impl Fn(&Value) -> bool) -> std::io::Result<()> {
        loop {
            let content = self.receive().await?;
            let found = wanted(&content);
            // A request of the server would otherwise wait for this editor.
            if !content["id"].is_null() && !content["method"].is_null() {
                let answer = json!({ "jsonrpc": "2.0", "id": content["id"], "result": null });
                self.messages.push(Message { from_server: true, content });
                self.send(answer).await?;
            } else {
                self.messages.push(Message { from_server: true, content });
            }
            if found {
                return Ok(());
            }
        }
    }

    async fn receive(&mut self) -> std::io::Result<Value> {
        let mut length = 0;
        loop {
            let mut header = String::new();
            if self.from_server.read_line(&mut header).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            match header.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().map_err(|_| std::io::ErrorKind::InvalidData)?;
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut content = vec![0; length];
        self.from_server.read_exact(&mut content).await?;
        Ok(serde_json::from_slice(&content)?)
    }
}

fn uri(path: &Path) -> String {
    tower_lsp::ls_types::Uri::from_file_path(PathBuf::from(path)).map_or_else(String::new, |uri| uri.to_string())
}
