//! Changes of files as a workspace edit of the protocol. Pure: changes and what the client can do, to a value.

use std::path::Path;

use cublame_core::config::between;
use cublame_core::text::{Encoding, LineIndex};
use tower_lsp::ls_types::{
    CreateFile, CreateFileOptions, DocumentChangeOperation, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, Position, Range, ResourceOp, TextDocumentEdit, TextEdit, Uri,
    WorkspaceEdit,
};

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
    let index = LineIndex::new(before);
    let position = |offset| {
        let position = index.position(offset, encoding);
        Position::new(position.line, position.character)
    };
    Some(TextEdit { range: Range::new(position(edit.start), position(edit.end)), new_text: edit.text })
}
