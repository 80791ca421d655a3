//! The language server. This is the only place that names a type of the protocol.
//!
//! A message goes through [`wire`] (bytes to messages), the framework, [`guarded`] (no panic gets past it) and
//! `backend` to one file of [`handlers`]. Notifications change the open [`documents`] or post an event to the
//! [world](crate::world) before their first await; requests read the documents and the world's last snapshot.
//!
//! Rules, each with a test in `tests/e2e/lsp`: a notification acts before its first await; no handler waits for the
//! client; a run is never a request; 32 handlers at a time; a panic costs one answer; children belong to the world; the
//! server leaves on end of file, on `exit`, and when the editor is gone.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tower_lsp::{ClientSocket, LanguageServer, LspService, Server};

pub mod guarded;
pub mod wire;

mod backend;
mod handlers;

mod capabilities;
pub mod commands;
pub mod features;
pub mod settings;

pub mod diagnostics;
pub mod documents;
mod editor;
mod workspace_edit;

use backend::Backend;
use guarded::Guarded;
use wire::Last;

pub use capabilities::capabilities;
pub use editor::{DapMessage, DapQuestion, ReportParams, RunInTerminal, RunLine, RunsParams};

use crate::os::liveness;
use crate::session::place::Surroundings;

/// What a server is started with.
#[derive(Debug)]
pub struct Options {
    /// Gets every byte of the client.
    pub record: Option<std::fs::File>,
    /// The program that runs are started with: this one.
    pub cublame: PathBuf,
    pub surroundings: Surroundings,
}

/// How the client left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// After `shutdown`, or without a word.
    Orderly,
    /// With `exit` alone: the specification asks for exit code 1 ("Exit Notification", 3.17).
    ExitWithoutShutdown,
}

/// How many handlers run at a time.
const CONCURRENCY: usize = 32;

/// How long answers may still be written once the client has said its last word. It may not be reading any more.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Serves one client until it leaves.
pub async fn serve<R, W>(client: R, answers: W, options: Options) -> Left
where
    R: AsyncRead + Unpin,
    W: AsyncWrite,
{
    let shut_down = Arc::new(AtomicBool::new(false));
    let (editor_process, editor) = watch::channel(None);
    let (service, socket) = {
        let shut_down = Arc::clone(&shut_down);
        let builder = LspService::build(|client| {
            Backend::new(client, options.surroundings, options.cublame, shut_down, editor_process)
        });
        Backend::custom_methods(builder).finish()
    };
    let last = tokio::select! {
        last = converse(client, answers, options.record, service, socket) => last,
        () = gone(editor) => {
            eprintln!("cublame lsp: the editor is gone");
            Last::EndOfFile
        }
    };
    match last {
        Last::Exit if !shut_down.load(Ordering::Relaxed) => Left::ExitWithoutShutdown,
        Last::Exit | Last::EndOfFile => Left::Orderly,
    }
}

/// Carries the messages between a client and any service of the framework, with every safeguard of this server.
pub async fn converse<R, W, S>(
    client: R,
    answers: W,
    record: Option<std::fs::File>,
    service: LspService<S>,
    socket: ClientSocket,
) -> Last
where
    R: AsyncRead + Unpin,
    W: AsyncWrite,
    S: LanguageServer,
{
    let (to_server, from_client) = tokio::io::duplex(64 << 10);
    let exited = AtomicBool::new(false);
    let last_words = async {
        match wire::pass_on(client, to_server, record).await {
            Ok(last) => exited.store(last == Last::Exit, Ordering::Relaxed),
            Err(error) => eprintln!("cublame lsp: the client cannot be heard any more: {error}"),
        }
        tokio::time::sleep(LAST_WORDS).await;
    };
    let serving = Server::new(from_client, answers, socket).concurrency_level(CONCURRENCY).serve(Guarded(service));
    tokio::select! {
        () = serving => {}
        () = last_words => {}
    }
    if exited.load(Ordering::Relaxed) { Last::Exit } else { Last::EndOfFile }
}

/// Resolves when the editor's process, once it is known and can be seen, has ended.
async fn gone(mut editor: watch::Receiver<Option<u32>>) {
    let known = editor.wait_for(Option::is_some).await.ok().and_then(|pid| *pid);
    match known.and_then(liveness::ended) {
        Some(ended) => ended.await,
        None => std::future::pending().await,
    }
}
