//! The open documents, changed synchronously in the notification handlers and read by everyone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cublame_core::text::{Encoding, LineIndex, Position};
use dashmap::DashMap;
use tower_lsp::ls_types::{TextDocumentContentChangeEvent, TextDocumentItem, Uri};

/// One version of an open document.
#[derive(Debug)]
pub struct Document {
    pub uri: Uri,
    /// The file it stands for, with symbolic links resolved; None for `untitled:` and the like.
    pub path: Option<PathBuf>,
    pub language: String,
    pub version: i32,
    pub text: LineIndex,
}

/// All open documents. No guard of the map leaves this type, so none is held across an await.
#[derive(Debug, Default)]
pub struct Documents(DashMap<Uri, Arc<Document>>);

impl Documents {
    pub fn get(&self, uri: &Uri) -> Option<Arc<Document>> {
        self.0.get(uri).map(|document| Arc::clone(&document))
    }

    /// The open document of a file, by whatever name the editor opened it.
    pub fn of_path(&self, path: &Path) -> Option<Arc<Document>> {
        self.0.iter().find(|document| document.path.as_deref() == Some(path)).map(|document| Arc::clone(&document))
    }

    pub fn open(&self, item: TextDocumentItem) -> Arc<Document> {
        let path = path_of(&item.uri);
        self.open_as(item, path)
    }

    /// Opens a document that goes by a path of its own.
    pub fn open_as(&self, item: TextDocumentItem, path: Option<PathBuf>) -> Arc<Document> {
        let document = Arc::new(Document {
            path,
            uri: item.uri,
            language: item.language_id,
            version: item.version,
            text: LineIndex::new(item.text),
        });
        self.0.insert(document.uri.clone(), Arc::clone(&document));
        document
    }

    /// Applies the changes in order; None when the document is not open.
    pub fn change(
        &self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) -> Option<Arc<Document>> {
        let mut entry = self.0.get_mut(uri)?;
        let mut text = entry.text.clone();
        for change in changes {
            text = changed(&text, change, encoding);
        }
        let document = Arc::new(Document {
            uri: entry.uri.clone(),
            path: entry.path.clone(),
            language: entry.language.clone(),
            version,
            text,
        });
        *entry = Arc::clone(&document);
        Some(document)
    }

    pub fn close(&self, uri: &Uri) -> Option<Arc<Document>> {
        self.0.remove(uri).map(|(_, document)| document)
    }
}

/// The file that a `file:` address names, with symbolic links resolved as far as it exists.
pub fn path_of(uri: &Uri) -> Option<PathBuf> {
    if !uri.scheme().as_str().eq_ignore_ascii_case("file") {
        return None;
    }
    let path = uri.to_file_path()?.into_owned();
    Some(path.canonicalize().unwrap_or(path))
}

fn changed(text: &LineIndex, change: TextDocumentContentChangeEvent, encoding: Encoding) -> LineIndex {
    let Some(range) = change.range else { return LineIndex::new(change.text) };
    let offset = |position: tower_lsp::ls_types::Position| {
        text.offset_at(Position { line: position.line, character: position.character }, encoding)
    };
    let start = offset(range.start);
    // A range that ends before it starts is the client's mistake: it is taken as empty.
    let end = offset(range.end).max(start);
    let old = text.text();
    let mut new = String::with_capacity(old.len() - (end - start) + change.text.len());
    new.push_str(&old[..start]);
    new.push_str(&change.text);
    new.push_str(&old[end..]);
    LineIndex::new(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri() -> Uri {
        "file:///home/dev/proj/train.py".parse().expect("an address")
    }

    fn opened(text: &str) -> Documents {
        let documents = Documents::default();
        let item = TextDocumentItem::new(uri(), "python".to_owned(), 1, text.to_owned());
        documents.open(item);
        documents
    }

    fn edit(from: (u32, u32), to: (u32, u32), text: &str) -> TextDocumentContentChangeEvent {
        let range = serde_json::json!({
            "start": { "line": from.0, "character": from.1 }, "end": { "line": to.0, "character": to.1 } });
        serde_json::from_value(serde_json::json!({ "range": range, "text": text })).expect("a change")
    }

    #[track_caller]
    fn check(encoding: Encoding, before: &str, changes: Vec<TextDocumentContentChangeEvent>, after: &str) {
        let documents = opened(before);
        let document = documents.change(&uri(), 2, changes, encoding).expect("an open document");
        assert_eq!((document.text.text(), document.version), (after, 2));
    }

    #[test]
    fn changes_apply_in_order_and_in_the_clients_units() {
        check(Encoding::Utf16, "a\nb\n", vec![edit((0, 0), (0, 0), "x\n"), edit((1, 0), (1, 1), "y")], "x\ny\nb\n");
        check(Encoding::Utf16, "é😀c", vec![edit((0, 3), (0, 4), "d")], "é😀d");
        check(Encoding::Utf32, "é😀c", vec![edit((0, 2), (0, 3), "d")], "é😀d");
        check(Encoding::Utf8, "é😀c", vec![edit((0, 6), (0, 7), "d")], "é😀d");
    }

    #[test]
    fn positions_outside_the_text_are_its_ends() {
        check(Encoding::Utf16, "a", vec![edit((9, 9), (12, 0), "!")], "a!");
        check(Encoding::Utf16, "abc", vec![edit((0, 2), (0, 1), "!")], "ab!c");
    }

    #[test]
    fn a_change_of_a_document_that_is_not_open_is_none() {
        let changes = vec![edit((0, 0), (0, 0), "x")];
        assert!(Documents::default().change(&uri(), 2, changes, Encoding::Utf16).is_none());
    }
}
