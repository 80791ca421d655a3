//! Open documents: `textDocument/didOpen`, `didChange`, `didSave`, `didClose`. Nothing here waits.

use std::sync::Arc;

use tower_lsp::ls_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams,
    TextDocumentContentChangeEvent, Uri,
};

use super::super::backend::Backend;
use super::super::documents::Document;
use crate::world::Event;

pub fn opened(backend: &Backend, params: DidOpenTextDocumentParams) {
    let document = backend.documents.open(params.text_document);
    if !backend.has_roots()
        && let Some(folder) = document.path.as_deref().and_then(|path| path.parent())
    {
        // An editor that was started on a single file has no workspace: the file's folder serves for one.
        backend.set_roots(|roots| roots.push(folder.to_owned()));
    }
    post(backend, &document);
}

pub fn changed(backend: &Backend, params: DidChangeTextDocumentParams) {
    let identity = params.text_document;
    change(backend, &identity.uri, identity.version, params.content_changes);
}

pub fn change(backend: &Backend, uri: &Uri, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
    let encoding = backend.features().encoding();
    match backend.documents.change(uri, version, changes, encoding) {
        Some(document) => post(backend, &document),
        None => eprintln!("cublame lsp: {} was changed and is not open", uri.as_str()),
    }
}

pub fn saved(backend: &Backend, params: DidSaveTextDocumentParams) {
    let document = backend.documents.get(&params.text_document.uri);
    if let Some(path) = document.and_then(|document| document.path.clone()) {
        backend.world.post(Event::Saved(path));
    }
}

pub fn closed(backend: &Backend, params: DidCloseTextDocumentParams) {
    close(backend, &params.text_document.uri);
}

pub fn close(backend: &Backend, uri: &Uri) {
    let document = backend.documents.close(uri);
    if let Some(path) = document.and_then(|document| document.path.clone()) {
        backend.world.post(Event::Closed(path));
    }
}

pub fn post(backend: &Backend, document: &Arc<Document>) {
    if let Some(path) = document.path.clone() {
        backend.world.post(Event::Text { path, version: document.version, text: document.text.clone() });
    }
}
