//! Changes of files as a workspace edit of the protocol. Pure: changes and what the client can do, to a value.

use std::path::Path;

use cublame_core::config::{Edit, between};
use cublame_core::text::{Encoding, LineIndex};
use tower_lsp::ls_types::{
    CreateFile, CreateFileOptions, DocumentChangeOperation, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, Position, Range, ResourceOp, TextDocumentEdit, TextEdit, Uri,
    WorkspaceEdit,
};

use super::documents::Document;
use super::features::Features;
use crate::configure::files::Change;

/// Changes of texts, each with the version of its document where one is open, and new files.
/// `address` is what the editor calls a file. New files need a client that can create them ([`Features::create_files`]).
pub fn workspace_edit(
    changes: &[(Change, Option<i32>)],
    features: &Features,
    address: impl Fn(&Path) -> Option<Uri>,
) -> WorkspaceEdit {
    let addressed = changes.iter().filter_map(|(change, version)| {
        let uri = address(change.open.as_deref().unwrap_or(&change.path))?;
        Some((uri, text_edit(change, features.encoding())?, change.before.is_none(), *version))
    });
    if !features.versioned_edits {
        let changes = addressed.map(|(uri, edit, _, _)| (uri, vec![edit])).collect();
        return WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() };
    }
    let mut operations = Vec::new();
    for (uri, edit, is_new, version) in addressed {
        if is_new {
            let options = Some(CreateFileOptions { overwrite: Some(false), ignore_if_exists: Some(false) });
            let create = CreateFile { uri: uri.clone(), options, annotation_id: None };
            operations.push(DocumentChangeOperation::Op(ResourceOp::Create(create)));
        }
        let text_document = OptionalVersionedTextDocumentIdentifier { uri, version };
        operations
            .push(DocumentChangeOperation::Edit(TextDocumentEdit { text_document, edits: vec![OneOf::Left(edit)] }));
    }
    let document_changes = if operations.iter().any(|operation| matches!(operation, DocumentChangeOperation::Op(_))) {
        DocumentChanges::Operations(operations)
    } else {
        // The shape that clients without resource operations know.
        DocumentChanges::Edits(operations.into_iter().filter_map(text_only).collect())
    };
    WorkspaceEdit { document_changes: Some(document_changes), ..WorkspaceEdit::default() }
}

fn text_only(operation: DocumentChangeOperation) -> Option<TextDocumentEdit> {
    match operation {
        DocumentChangeOperation::Edit(edit) => Some(edit),
        DocumentChangeOperation::Op(_) => None,
    }
}

/// The smallest edit that makes the change, so that cursors and folds elsewhere stay.
fn text_edit(change: &Change, encoding: Encoding) -> Option<TextEdit> {
    let before = change.before.as_deref().unwrap_or_default();
    let edit = between(before, change.after.as_deref()?)?;
    text_edits(&LineIndex::new(before), &[edit], encoding).pop()
}

/// Edits of an open document, for the version that it has.
pub fn document_edit(document: &Document, edits: Vec<TextEdit>, features: &Features) -> WorkspaceEdit {
    let uri = document.uri.clone();
    if !features.versioned_edits {
        return WorkspaceEdit { changes: Some([(uri, edits)].into()), ..WorkspaceEdit::default() };
    }
    let text_document = OptionalVersionedTextDocumentIdentifier { uri, version: Some(document.version) };
    let edits = edits.into_iter().map(OneOf::Left).collect();
    let document_changes = Some(DocumentChanges::Edits(vec![TextDocumentEdit { text_document, edits }]));
    WorkspaceEdit { document_changes, ..WorkspaceEdit::default() }
}

/// Edits as the protocol has them, in the client's units.
pub fn text_edits(text: &LineIndex, edits: &[Edit], encoding: Encoding) -> Vec<TextEdit> {
    let edit = |edit: &Edit| TextEdit {
        range: byte_range(text, &(edit.start..edit.end), encoding),
        new_text: edit.text.clone(),
    };
    edits.iter().map(edit).collect()
}

/// Bytes of a text as a range of the protocol.
pub fn byte_range(text: &LineIndex, bytes: &std::ops::Range<usize>, encoding: Encoding) -> Range {
    let position = |offset| {
        let position = text.position(offset, encoding);
        Position::new(position.line, position.character)
    };
    Range::new(position(bytes.start), position(bytes.end))
}
