//! The protocol's methods, each a line or two that hands over to its handler.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::watch;
use tower_lsp::jsonrpc::Result;
use tower_lsp::ls_types::notification::Notification as _;
use tower_lsp::ls_types::{
    CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams, DidChangeConfigurationParams,
    DidChangeNotebookDocumentParams, DidChangeTextDocumentParams, DidChangeWorkspaceFoldersParams,
    DidCloseNotebookDocumentParams, DidCloseTextDocumentParams, DidOpenNotebookDocumentParams,
    DidOpenTextDocumentParams, DidSaveNotebookDocumentParams, DidSaveTextDocumentParams, ExecuteCommandParams, Hover,
    HoverParams, InitializeParams, InitializeResult, InitializedParams, InlayHint, InlayHintParams, LSPAny,
    NotebookCell, Uri, WorkDoneProgressCancelParams,
};
use tower_lsp::{Client, LanguageServer, LspServiceBuilder};

use super::documents::Documents;
use super::editor::{DapMessage, DapNotification, LspEditor};
use super::features::Features;
use super::handlers;
use crate::session::place::Surroundings;
use crate::world::{self, Event, Handle};

/// What the handlers share.
pub struct Backend {
    pub client: Client,
    pub documents: Arc<Documents>,
    pub features: Arc<OnceLock<Features>>,
    pub world: Handle,
    /// The workspace's folders. Held for the length of a clone, never across an await.
    pub roots: Mutex<Vec<PathBuf>>,
    /// The cells of the open notebooks. Held for the length of a change, never across an await.
    notebooks: Mutex<HashMap<Uri, Vec<NotebookCell>>>,
    pub locale: OnceLock<Option<String>>,
    pub editor_process: watch::Sender<Option<u32>>,
    /// The client has said that it is initialized: only now may anything be sent to it.
    ready: watch::Sender<bool>,
    shut_down: Arc<AtomicBool>,
}

impl Backend {
    pub fn new(
        client: Client,
        surroundings: Surroundings,
        cublame: PathBuf,
        shut_down: Arc<AtomicBool>,
        editor_process: watch::Sender<Option<u32>>,
    ) -> Self {
        let documents = Arc::<Documents>::default();
        let features = Arc::<OnceLock<Features>>::default();
        let (ready, is_ready) = watch::channel(false);
        let editor =
            |reply| LspEditor::new(client.clone(), reply, is_ready, Arc::clone(&documents), Arc::clone(&features));
        let world = world::start(editor, surroundings, cublame);
        let (roots, notebooks, locale) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Self { client, documents, features, world, roots, notebooks, locale, editor_process, ready, shut_down }
    }

    /// The methods that the framework's trait does not have.
    pub fn custom_methods(builder: LspServiceBuilder<Self>) -> LspServiceBuilder<Self> {
        builder
            .custom_method("window/workDoneProgress/cancel", Self::work_done_progress_cancel)
            .custom_method(DapNotification::METHOD, Self::dap)
    }

    pub fn features(&self) -> Features {
        self.features.get().cloned().unwrap_or_default()
    }

    /// Changes the list of roots and tells the world.
    pub fn set_roots(&self, change: impl FnOnce(&mut Vec<PathBuf>)) {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut roots);
        roots.sort();
        roots.dedup();
        self.world.post(Event::Roots(roots.clone()));
    }

    pub fn change_notebooks<T>(&self, change: impl FnOnce(&mut HashMap<Uri, Vec<NotebookCell>>) -> T) -> T {
        change(&mut self.notebooks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn has_roots(&self) -> bool {
        !self.roots.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    async fn dap(&self, params: DapMessage) {
        let DapMessage { session, message } = params;
        self.world.post(Event::Debugged { session, message });
    }

    async fn work_done_progress_cancel(&self, params: WorkDoneProgressCancelParams) {
        if let Some(child) = super::editor::child_of_token(&params.token) {
            self.world.post(Event::Cancelled { child });
        }
    }
}

impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        Ok(handlers::initialize::initialize(self, &params))
    }

    async fn initialized(&self, _: InitializedParams) {
        self.ready.send_replace(true);
        handlers::configuration::ask(self);
    }

    async fn shutdown(&self) -> Result<()> {
        self.shut_down.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        handlers::text::opened(self, params);
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        handlers::text::changed(self, params);
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        handlers::text::saved(self, params);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        handlers::text::closed(self, params);
    }

    async fn notebook_did_open(&self, params: DidOpenNotebookDocumentParams) {
        handlers::notebook::opened(self, params);
    }

    async fn notebook_did_change(&self, params: DidChangeNotebookDocumentParams) {
        handlers::notebook::changed(self, params);
    }

    async fn notebook_did_save(&self, params: DidSaveNotebookDocumentParams) {
        handlers::notebook::saved(self, &params);
    }

    async fn notebook_did_close(&self, params: DidCloseNotebookDocumentParams) {
        handlers::notebook::closed(self, &params);
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        handlers::configuration::changed(self, &params);
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        handlers::folders::changed(self, params);
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        Ok(handlers::hover::hover(self, &params))
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        Ok(handlers::code_lens::code_lens(self, &params))
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        Ok(handlers::inlay_hint::inlay_hints(self, &params))
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        Ok(handlers::code_action::code_action(self, &params))
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<LSPAny>> {
        handlers::execute_command::execute_command(self, params).await
    }
}
