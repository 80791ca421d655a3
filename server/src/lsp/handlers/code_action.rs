//! `textDocument/codeAction`: what can be done about a diagnostic, from the diagnostic's own data, and about run
//! configurations, from the document.

use cublame_core::catalog::Texts;
use cublame_core::mode::Mode;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeActionResponse, Command as LspCommand,
    Diagnostic,
};

use super::super::backend::Backend;
use super::super::commands::Command;
use super::super::diagnostics::{self, Data, SOURCE};
use super::{lint_fixes, run_configurations, verdict_fixes};

pub fn code_action(backend: &Backend, params: &CodeActionParams) -> Option<CodeActionResponse> {
    let wanted = |kind: &CodeActionKind| {
        let only = params.context.only.as_ref();
        only.is_none_or(|kinds| kinds.iter().any(|outer| includes(outer, kind)))
    };
    let literals = backend.features().action_literals;
    let texts = Texts::get(backend.world.snapshot().language);
    let mut actions = Vec::new();
    if wanted(&CodeActionKind::QUICKFIX) {
        let diagnosed = diagnosed(backend, params);
        if literals {
            actions.extend(verdict_fixes::of_verdicts(backend, params, &diagnosed));
        }
        for (diagnostic, data) in diagnosed {
            let fix = |command| action(command, CodeActionKind::QUICKFIX, diagnostic.as_ref(), literals);
            actions.extend(commands(&data, texts).into_iter().map(fix));
        }
    }
    // Edits need literals: a client of commands alone fixes by `cublame lint --fix`.
    if wanted(&CodeActionKind::QUICKFIX) && literals {
        actions.extend(lint_fixes::fixes(backend, params));
        actions.extend(lint_fixes::fixes_of_rules(backend, params));
    }
    if wanted(&lint_fixes::FIX_ALL) && literals {
        actions.extend(lint_fixes::all_fixes(backend, params));
    }
    if wanted(&CodeActionKind::REFACTOR)
        && let Some(document) = backend.documents.get(&params.text_document.uri)
    {
        let offers = run_configurations::offers(&document, params.range, texts);
        actions.extend(offers.into_iter().map(|command| action(command, CodeActionKind::REFACTOR, None, literals)));
    }
    (!actions.is_empty()).then_some(actions)
}

/// A kind of the client's includes one of ours when it is the same or a prefix of it by its dots; the empty one is all.
fn includes(outer: &CodeActionKind, inner: &CodeActionKind) -> bool {
    let (outer, inner) = (outer.as_str(), inner.as_str());
    outer.is_empty() || inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}

/// The diagnostics asked about. A client that does not keep `data` is served from what is shown in the range.
fn diagnosed(backend: &Backend, params: &CodeActionParams) -> Vec<(Option<Diagnostic>, Data)> {
    let ours = params.context.diagnostics.iter().filter(|diagnostic| diagnostic.source.as_deref() == Some(SOURCE));
    let with_data = ours.filter_map(|diagnostic| {
        let data = Data::deserialize(diagnostic.data.as_ref()?).ok()?;
        Some((Some(diagnostic.clone()), data))
    });
    let with_data: Vec<_> = with_data.collect();
    if !with_data.is_empty() {
        return with_data;
    }
    shown_in_range(backend, params).unwrap_or_default()
}

fn shown_in_range(backend: &Backend, params: &CodeActionParams) -> Option<Vec<(Option<Diagnostic>, Data)>> {
    let document = backend.documents.get(&params.text_document.uri)?;
    let snapshot = backend.world.snapshot();
    let findings = snapshot.findings.get(document.path.as_ref()?)?;
    let lines = params.range.start.line..=params.range.end.line;
    let here = findings.iter().filter(|finding| lines.contains(&(finding.whereabouts(&document.text).line - 1)));
    Some(here.map(|finding| (None, diagnostics::data(finding))).collect())
}

fn commands(data: &Data, texts: &Texts) -> Vec<LspCommand> {
    let command = |title: &str, command: Command, arguments: Value| LspCommand {
        title: texts.line(&format!("editor.action.{title}"), &[]),
        command: command.name().to_owned(),
        arguments: Some(vec![arguments]),
    };
    let run = || json!({ "run": data.run });
    let rerun = |mode: Mode| json!({ "run": data.run, "mode": mode });
    let has_run = !data.run.starts_with("pasted log");
    let mut commands = Vec::new();
    if has_run && data.mode != Mode::Blocking.name() {
        commands.push(command("rerun-blocking", Command::Rerun, rerun(Mode::Blocking)));
    }
    if has_run && data.advice.iter().any(|advice| advice == "rerun-guard") {
        commands.push(command("rerun-guard", Command::Rerun, rerun(Mode::Guard)));
    }
    commands.push(command("open-report", Command::OpenReport, run()));
    if has_run {
        commands.push(command("reproduce", Command::Repro, run()));
    }
    commands.push(command("dismiss", Command::Dismiss, run()));
    commands.push(command("copy-report", Command::CopyReport, run()));
    commands
}

pub fn action(
    command: LspCommand,
    kind: CodeActionKind,
    diagnostic: Option<&Diagnostic>,
    literals: bool,
) -> CodeActionOrCommand {
    if !literals {
        return CodeActionOrCommand::Command(command);
    }
    CodeActionOrCommand::CodeAction(CodeAction {
        title: command.title.clone(),
        kind: Some(kind),
        diagnostics: diagnostic.map(|diagnostic| vec![diagnostic.clone()]),
        command: Some(command),
        ..CodeAction::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_include_each_other_by_their_dots() {
        let kind = |name: &'static str| CodeActionKind::new(name);
        assert!(includes(&kind(""), &CodeActionKind::QUICKFIX));
        assert!(includes(&kind("quickfix"), &CodeActionKind::QUICKFIX));
        assert!(!includes(&kind("quick"), &CodeActionKind::QUICKFIX));
        assert!(!includes(&kind("source"), &CodeActionKind::QUICKFIX));
    }
}
