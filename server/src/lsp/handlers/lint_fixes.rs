//! The fixes of the lint: one at its finding, all of them as `source.fixAll.cublame`.

use serde::Deserialize;
use tower_lsp::ls_types::{CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Diagnostic};

use cublame_core::lint::fix_all;

use super::super::backend::Backend;
use super::super::diagnostics::{self, LINT_SOURCE, LintData};
use super::super::documents::Document;
use super::super::workspace_edit::{document_edit, text_edits};
use crate::world::linting::Linted;

/// The kind of the action that makes every fix.
pub const FIX_ALL: CodeActionKind = CodeActionKind::new("source.fixAll.cublame");

/// What the findings that are asked about carry; for a client that keeps no data, what is known of the range.
pub fn fixes(backend: &Backend, params: &CodeActionParams) -> Vec<CodeActionOrCommand> {
    let Some(document) = backend.documents.get(&params.text_document.uri) else { return Vec::new() };
    let ours = || params.context.diagnostics.iter().filter(|it| it.source.as_deref() == Some(LINT_SOURCE));
    let carried = ours().filter_map(|diagnostic| {
        let data = LintData::deserialize(diagnostic.data.as_ref()?).ok()?;
        Some((Some(diagnostic.clone()), data))
    });
    let mut found: Vec<(Option<Diagnostic>, LintData)> = carried.collect();
    if found.is_empty() && !backend.features().diagnostic_data {
        found = in_range(backend, params, &document);
    }
    let action = |(diagnostic, data): (Option<Diagnostic>, LintData)| {
        // A fix is for the text that it was found in.
        let fix = data.fix.filter(|_| data.version == document.version)?;
        Some(CodeActionOrCommand::CodeAction(CodeAction {
            title: fix.title,
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: diagnostic.map(|diagnostic| vec![diagnostic]),
            edit: Some(document_edit(&document, fix.edits, &backend.features())),
            ..CodeAction::default()
        }))
    };
    found.into_iter().filter_map(action).collect()
}

/// Asked for on saving too, so the text is read as it is now.
pub fn all_fixes(backend: &Backend, params: &CodeActionParams) -> Option<CodeActionOrCommand> {
    let document = backend.documents.get(&params.text_document.uri)?;
    let path = document.path.as_ref()?;
    let known = backend.world.snapshot().linted.get(path).cloned()?;
    let now = Linted::of(path, document.version, document.text.clone(), known.settings.clone());
    let edits = text_edits(&document.text, &fix_all(&now.findings), backend.features().encoding());
    (!edits.is_empty()).then(|| {
        CodeActionOrCommand::CodeAction(CodeAction {
            title: "Fix everything that cublame lint can fix".to_owned(),
            kind: Some(FIX_ALL),
            edit: Some(document_edit(&document, edits, &backend.features())),
            ..CodeAction::default()
        })
    })
}

fn in_range(backend: &Backend, params: &CodeActionParams, document: &Document) -> Vec<(Option<Diagnostic>, LintData)> {
    let snapshot = backend.world.snapshot();
    let Some(linted) = document.path.as_ref().and_then(|path| snapshot.linted.get(path)) else { return Vec::new() };
    let lines = params.range.start.line + 1..=params.range.end.line + 1;
    let here = linted.findings.iter().filter(|finding| lines.contains(&linted.text.line_of(finding.range.start)));
    here.map(|finding| (None, diagnostics::lint_data(finding, linted, &backend.features()))).collect()
}
