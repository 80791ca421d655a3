//! What the server says it can do: what it dispatches, and nothing else.

use tower_lsp::ls_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions, ExecuteCommandOptions,
    HoverProviderCapability, Notebook, NotebookCellSelector, NotebookDocumentSyncOptions, NotebookSelector, OneOf,
    SaveOptions, ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions,
    TextDocumentSyncSaveOptions, WorkDoneProgressOptions, WorkspaceFoldersServerCapabilities,
    WorkspaceServerCapabilities,
};

use super::commands::Command;
use super::features::{Features, encoding_kind};
use super::handlers::lint_fixes::FIX_ALL;

pub fn capabilities(features: &Features) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: features.offered_encoding.map(encoding_kind),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
            ..TextDocumentSyncOptions::default()
        })),
        notebook_document_sync: Some(OneOf::Left(NotebookDocumentSyncOptions {
            notebook_selector: vec![NotebookSelector::ByNotebook {
                notebook: Notebook::String("jupyter-notebook".to_owned()),
                cells: Some(vec![NotebookCellSelector { language: "python".to_owned() }]),
            }],
            save: Some(true),
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        code_action_provider: Some(if features.action_literals {
            CodeActionProviderCapability::Options(CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX, CodeActionKind::REFACTOR, FIX_ALL]),
                resolve_provider: None,
                work_done_progress_options: WorkDoneProgressOptions::default(),
            })
        } else {
            CodeActionProviderCapability::Simple(true)
        }),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: None }),
        inlay_hint_provider: Some(OneOf::Left(true)),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: Command::ALL.iter().map(|command| command.name().to_owned()).collect(),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        }),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(OneOf::Left(true)),
            }),
            file_operations: None,
        }),
        ..ServerCapabilities::default()
    }
}
