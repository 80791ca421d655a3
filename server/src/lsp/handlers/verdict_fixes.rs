//! The edits that carry out the advice on a verdict, worked out from the document as it is now.

use cublame_core::advice::{Setting, is_for_terminal};
use cublame_core::catalog::Texts;
use cublame_core::fixes::{CodeFix, Failure, fixes};
use serde_json::{Value, json};
use tower_lsp::ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Command as LspCommand, Diagnostic, Uri,
};

use super::super::backend::Backend;
use super::super::commands::Command;
use super::super::diagnostics::Data;
use super::super::documents::Document;
use super::super::workspace_edit::{document_edit, text_edits};
use super::code_action;
use crate::world::finding::Finding;

/// `diagnosed` are the diagnostics that are asked about, with their data. A finding is known by what the data names;
/// a line that was edited since the run has no edits any more.
pub fn of_verdicts(
    backend: &Backend,
    params: &CodeActionParams,
    diagnosed: &[(Option<Diagnostic>, Data)],
) -> Vec<CodeActionOrCommand> {
    let Some(document) = backend.documents.get(&params.text_document.uri) else { return Vec::new() };
    let Some(path) = document.path.as_ref() else { return Vec::new() };
    let snapshot = backend.world.snapshot();
    let Some(findings) = snapshot.findings.get(path) else { return Vec::new() };
    let texts = Texts::get(snapshot.language);
    let shared = document.text.shared_text();
    let mut actions = Vec::new();
    for (diagnostic, data) in diagnosed {
        let meant = findings.iter().find(|finding| finding.run == data.run && finding.index == data.index);
        let Some((finding, now)) = meant.map(|finding| (finding, finding.whereabouts(&document.text))) else {
            continue;
        };
        if !now.edited {
            let path = path.to_string_lossy();
            let failure = Failure { verdict: &finding.verdict, path: &path, text: &shared, line: now.line };
            let found = fixes(&failure, texts);
            actions.extend(found.into_iter().map(|fix| action(fix, diagnostic.clone(), &document, backend)));
        }
        actions.extend(commands(finding, diagnostic.as_ref(), texts));
    }
    actions
}

/// What is done outside of the source: a command for the terminal, a setting for the run configurations.
fn commands(finding: &Finding, diagnostic: Option<&Diagnostic>, texts: &Texts) -> Vec<CodeActionOrCommand> {
    let entry = finding.entry.as_deref().and_then(Uri::from_file_path);
    let mut found = Vec::new();
    for advice in &finding.verdict.advice {
        if is_for_terminal(&advice.id) && advice.command.is_some() {
            let arguments = json!({ "run": finding.run, "index": finding.index, "advice": advice.id });
            found.push((
                texts.line("editor.action.in-terminal", &[("title", &*advice.title)]),
                Command::FollowAdvice,
                arguments,
            ));
        }
        if let (Some(Setting { variable, value }), Some(program)) = (Setting::of(advice), &entry) {
            for (tool, name) in [("vscode", "VS Code"), ("pycharm", "PyCharm")] {
                let values = [("variable", variable), ("value", value), ("name", name)];
                let title = texts.line("editor.action.set-variable", &values);
                let arguments = json!({ "tool": tool, "action": "set", "program": program,
                    "variable": variable, "value": value });
                found.push((title, Command::Configure, arguments));
            }
        }
    }
    found.into_iter().map(|(title, command, arguments)| call(title, command, arguments, diagnostic)).collect()
}

fn call(title: String, command: Command, arguments: Value, diagnostic: Option<&Diagnostic>) -> CodeActionOrCommand {
    let command = LspCommand { title, command: command.name().to_owned(), arguments: Some(vec![arguments]) };
    code_action::action(command, CodeActionKind::QUICKFIX, diagnostic, true)
}

fn action(fix: CodeFix, diagnostic: Option<Diagnostic>, document: &Document, backend: &Backend) -> CodeActionOrCommand {
    let features = backend.features();
    let edits = text_edits(&document.text, &fix.edits, features.encoding());
    CodeActionOrCommand::CodeAction(CodeAction {
        title: fix.title,
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: diagnostic.map(|diagnostic| vec![diagnostic]),
        edit: Some(document_edit(document, edits, &features)),
        ..CodeAction::default()
    })
}
