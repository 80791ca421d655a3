//! The fixes of the lint: one at its finding, all of them as `source.fixAll.cublame`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use tower_lsp::ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Diagnostic, NumberOrString,
};

use cublame_core::catalog::Texts;
use cublame_core::lint::{Finding, fix_all};

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
    let (document, now) = linted_now(backend, params)?;
    let title = Texts::get(backend.world.snapshot().language).line("editor.action.fix-all", &[]);
    together(backend, &document, &now.findings, title, FIX_ALL)
}

/// For each rule that is asked about and has several fixes in the file: all of them.
pub fn fixes_of_rules(backend: &Backend, params: &CodeActionParams) -> Vec<CodeActionOrCommand> {
    let ours = params.context.diagnostics.iter().filter(|it| it.source.as_deref() == Some(LINT_SOURCE));
    let asked = ours.filter_map(|diagnostic| match &diagnostic.code {
        Some(NumberOrString::String(rule)) => Some(rule.as_str()),
        _ => None,
    });
    let asked: BTreeSet<&str> = asked.collect();
    let Some((document, now)) = (!asked.is_empty()).then(|| linted_now(backend, params)).flatten() else {
        return Vec::new();
    };
    let texts = Texts::get(backend.world.snapshot().language);
    let all = asked.into_iter().filter_map(|rule| {
        let fixable = now.findings.iter().filter(|finding| finding.rule == rule && finding.fix.is_some());
        let of_rule: Vec<Finding> = fixable.cloned().collect();
        let values = [("count", &*of_rule.len().to_string()), ("rule", rule)];
        let title = texts.line("editor.action.fix-rule", &values);
        (of_rule.len() > 1).then(|| together(backend, &document, &of_rule, title, CodeActionKind::QUICKFIX)).flatten()
    });
    all.collect()
}

/// The document and what the lint says of it as it is now.
fn linted_now(backend: &Backend, params: &CodeActionParams) -> Option<(Arc<Document>, Linted)> {
    let document = backend.documents.get(&params.text_document.uri)?;
    let path = document.path.as_ref()?;
    let known = backend.world.snapshot().linted.get(path).cloned()?;
    if known.version == document.version {
        return Some((Arc::clone(&document), (*known).clone()));
    }
    let now = Linted::of(path, document.version, document.text.clone(), known.settings.clone());
    Some((Arc::clone(&document), now))
}

fn together(
    backend: &Backend,
    document: &Document,
    findings: &[Finding],
    title: String,
    kind: CodeActionKind,
) -> Option<CodeActionOrCommand> {
    let features = backend.features();
    let edits = text_edits(&document.text, &fix_all(findings), features.encoding());
    let edit = (!edits.is_empty()).then(|| document_edit(document, edits, &features))?;
    let action = CodeAction { title, kind: Some(kind), edit: Some(edit), ..CodeAction::default() };
    Some(CodeActionOrCommand::CodeAction(action))
}

fn in_range(backend: &Backend, params: &CodeActionParams, document: &Document) -> Vec<(Option<Diagnostic>, LintData)> {
    let snapshot = backend.world.snapshot();
    let Some(linted) = document.path.as_ref().and_then(|path| snapshot.linted.get(path)) else { return Vec::new() };
    let lines = params.range.start.line + 1..=params.range.end.line + 1;
    let here = linted.findings.iter().filter(|finding| lines.contains(&linted.text.line_of(finding.range.start)));
    here.map(|finding| (None, diagnostics::lint_data(finding, linted, &backend.features()))).collect()
}
