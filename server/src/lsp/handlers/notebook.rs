//! Open notebooks: `notebookDocument/didOpen`, `didChange`, `didSave`, `didClose`. Nothing here waits.
//!
//! The cells' texts are documents like any other, under a path of their own.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tower_lsp::ls_types::{
    DidChangeNotebookDocumentParams, DidCloseNotebookDocumentParams, DidOpenNotebookDocumentParams,
    DidSaveNotebookDocumentParams, NotebookCell, TextDocumentIdentifier, TextDocumentItem, Uri,
};

use super::super::backend::Backend;
use super::super::documents::path_of;
use super::text;
use crate::world::Event;
use crate::world::notebooks::{CellDocument, path_of_cell};

pub fn opened(backend: &Backend, params: DidOpenNotebookDocumentParams) {
    let notebook = params.notebook_document;
    let path = path_of_notebook(&notebook.uri);
    if !backend.has_roots()
        && let Some(folder) = path.parent().filter(|folder| folder.is_absolute())
    {
        backend.set_roots(|roots| roots.push(folder.to_owned()));
    }
    for item in params.cell_text_documents {
        open_cell(backend, &path, item);
    }
    backend.world.post(Event::Notebook { cells: Some(documents(&path, &notebook.cells)), path });
    backend.change_notebooks(|notebooks| drop(notebooks.insert(notebook.uri, notebook.cells)));
}

pub fn changed(backend: &Backend, params: DidChangeNotebookDocumentParams) {
    let uri = params.notebook_document.uri;
    let path = path_of_notebook(&uri);
    let Some(change) = params.change.cells else { return };
    let mut closed = Vec::new();
    let mut rearranged = change.data.is_some();
    if let Some(structure) = change.structure {
        structure.did_open.into_iter().flatten().for_each(|item| open_cell(backend, &path, item));
        closed = structure.did_close.unwrap_or_default();
        rearranged = true;
        backend.change_notebooks(|notebooks| {
            let Some(cells) = notebooks.get_mut(&uri) else { return };
            let start = (structure.array.start as usize).min(cells.len());
            let end = start.saturating_add(structure.array.delete_count as usize).min(cells.len());
            cells.splice(start..end, structure.array.cells.unwrap_or_default());
        });
    }
    for cell in change.data.unwrap_or_default() {
        backend.change_notebooks(|notebooks| {
            let known = notebooks.get_mut(&uri).into_iter().flatten().find(|known| known.document == cell.document);
            known.into_iter().for_each(|known| known.clone_from(&cell));
        });
    }
    if rearranged {
        let cells = backend.change_notebooks(|notebooks| notebooks.get(&uri).map(|cells| documents(&path, cells)));
        match cells {
            Some(cells) => backend.world.post(Event::Notebook { path, cells: Some(cells) }),
            None => eprintln!("cublame lsp: {} was changed and is not open", uri.as_str()),
        }
    }
    closed.iter().for_each(|cell| close_cell(backend, cell));
    for text in change.text_content.unwrap_or_default() {
        text::change(backend, &text.document.uri, text.document.version, text.changes);
    }
}

pub fn saved(backend: &Backend, params: &DidSaveNotebookDocumentParams) {
    let uri = &params.notebook_document.uri;
    let path = path_of_notebook(uri);
    let cells = backend.change_notebooks(|notebooks| notebooks.get(uri).map(|cells| documents(&path, cells)));
    cells.into_iter().flatten().for_each(|cell| backend.world.post(Event::Saved(cell.path)));
}

pub fn closed(backend: &Backend, params: &DidCloseNotebookDocumentParams) {
    let uri = &params.notebook_document.uri;
    backend.change_notebooks(|notebooks| drop(notebooks.remove(uri)));
    backend.world.post(Event::Notebook { path: path_of_notebook(uri), cells: None });
    params.cell_text_documents.iter().for_each(|cell| close_cell(backend, cell));
}

/// One that was never saved goes by its address.
fn path_of_notebook(uri: &Uri) -> PathBuf {
    path_of(uri).unwrap_or_else(|| PathBuf::from(uri.as_str()))
}

fn open_cell(backend: &Backend, notebook: &Path, item: TextDocumentItem) {
    let path = path_of_cell(notebook, item.uri.as_str());
    text::post(backend, &backend.documents.open_as(item, Some(path)));
}

fn close_cell(backend: &Backend, cell: &TextDocumentIdentifier) {
    text::close(backend, &cell.uri);
}

/// The id of a cell is in its metadata, where the client has it at all: VS Code has it at the top, and had it under
/// `custom`.
fn documents(notebook: &Path, cells: &[NotebookCell]) -> Vec<CellDocument> {
    let id = |cell: &NotebookCell| {
        let metadata = cell.metadata.as_ref()?;
        let id = metadata.get("id").or_else(|| metadata.get("custom")?.get("id")).and_then(Value::as_str);
        id.map(str::to_owned)
    };
    let document = |cell: &NotebookCell| CellDocument {
        path: path_of_cell(notebook, cell.document.as_str()),
        names: std::iter::once(cell.document.as_str().to_owned()).chain(id(cell)).collect(),
    };
    cells.iter().map(document).collect()
}

/// Takes out of a notebook's message what the protocol's types do not allow and nobody needs: one cell with broken
/// metadata would cost the whole notebook.
pub fn tidy(params: &mut Value) {
    let is_no_object = |value: &Value| !value.is_object();
    for part in ["/notebookDocument", "/change"] {
        if let Some(part) = params.pointer_mut(part).and_then(Value::as_object_mut)
            && part.get("metadata").is_some_and(is_no_object)
        {
            part.remove("metadata");
        }
    }
    for list in ["/notebookDocument/cells", "/change/cells/structure/array/cells", "/change/cells/data"] {
        for cell in params.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            tidy_cell(cell);
        }
    }
}

fn tidy_cell(cell: &mut Value) {
    if !cell.is_object() {
        *cell = Value::Object(serde_json::Map::new());
    }
    let Some(cell) = cell.as_object_mut() else { return };
    if cell.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
        cell.remove("metadata");
    }
    // How a cell went is the run's to tell.
    cell.remove("executionSummary");
    if !matches!(cell.get("kind").and_then(Value::as_u64), Some(1 | 2)) {
        cell.insert("kind".to_owned(), 2.into());
    }
    let has_address = cell.get("document").and_then(Value::as_str).is_some_and(|uri| uri.parse::<Uri>().is_ok());
    if !has_address {
        // It keeps its place among the others, and no document is found for it.
        cell.insert("document".to_owned(), "cublame:no-address".into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn broken_cells_cost_themselves_only() {
        let good = json!({ "kind": 2, "document": "x:/1", "metadata": { "id": "a" } });
        let mut params = json!({
            "notebookDocument": {
                "uri": "file:///n.ipynb", "notebookType": "jupyter-notebook", "version": 1, "metadata": 7,
                "cells": [good, null, { "kind": 9, "document": 1, "metadata": [], "executionSummary": { "executionOrder": -1 } }] },
            "cellTextDocuments": [] });
        assert!(serde_json::from_value::<DidOpenNotebookDocumentParams>(params.clone()).is_err());
        tidy(&mut params);
        let opened: DidOpenNotebookDocumentParams = serde_json::from_value(params).expect("parameters");
        let names: Vec<Vec<String>> =
            documents(Path::new("/n.ipynb"), &opened.notebook_document.cells).into_iter().map(|it| it.names).collect();
        assert_eq!(names, [vec!["x:/1", "a"], vec!["cublame:no-address"], vec!["cublame:no-address"]]);
    }
}
