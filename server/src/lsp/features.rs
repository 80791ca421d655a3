//! What the client can do, read once from its `initialize`.

use std::path::PathBuf;

use cublame_core::text::Encoding;
use serde_json::Value;
use tower_lsp::ls_types::{InitializeParams, MarkupKind, PositionEncodingKind, ResourceOperationKind};

use super::documents::path_of;
use super::settings::{self, Settings};

/// Every field is false, or the protocol's default, for a client that does not speak of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features {
    /// None: the client made no offer, so positions are in UTF-16 and the answer does not speak of it either.
    pub offered_encoding: Option<Encoding>,
    pub related_information: bool,
    pub code_description: bool,
    pub diagnostic_data: bool,
    pub hover_markdown: bool,
    pub action_literals: bool,
    pub show_document: bool,
    pub progress: bool,
    pub pull_settings: bool,
    pub settings_registration: bool,
    pub lens_refresh: bool,
    pub hint_refresh: bool,
    /// `workspace/applyEdit`
    pub apply_edit: bool,
    /// Edits name the version of the document that they are for.
    pub versioned_edits: bool,
    /// An edit may create a file.
    pub create_files: bool,
    pub custom: Custom,
}

/// The messages of ours that the client declares: `initializationOptions: { "custom": ["cublame/runs", ...] }`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Custom {
    /// `cublame/runs`, to the client: the runs of the workspace.
    pub runs: bool,
    /// `cublame/runInTerminal`, to the client: run a command in a terminal of the editor's.
    pub run_in_terminal: bool,
    /// `cublame/report`, to the client: show the page of a run.
    pub report: bool,
    /// `cublame/dap`, both ways: the messages of the editor's own debugger, and what it is to be asked.
    pub dap: bool,
}

/// What else `initialize` says.
#[derive(Debug, Clone, Default)]
pub struct Start {
    pub features: Features,
    pub roots: Vec<PathBuf>,
    pub settings: Settings,
    pub editor_process: Option<u32>,
}

impl Features {
    pub fn encoding(&self) -> Encoding {
        self.offered_encoding.unwrap_or_default()
    }
}

impl Start {
    pub fn of(params: &InitializeParams) -> Self {
        let options = params.initialization_options.as_ref();
        Self {
            features: features(params),
            roots: roots(params),
            settings: settings::of_initialize(options, params.locale.as_deref()),
            editor_process: params.process_id,
        }
    }
}

fn features(params: &InitializeParams) -> Features {
    let capabilities = &params.capabilities;
    let document = capabilities.text_document.as_ref();
    let diagnostics = document.and_then(|document| document.publish_diagnostics.as_ref());
    let window = capabilities.window.as_ref();
    let workspace = capabilities.workspace.as_ref();
    let yes = |answer: Option<bool>| answer == Some(true);
    let edits = workspace.and_then(|workspace| workspace.workspace_edit.as_ref());
    let versioned_edits = yes(edits.and_then(|edits| edits.document_changes));
    let hover_formats = document.and_then(|document| document.hover.as_ref()?.content_format.as_ref());
    Features {
        offered_encoding: offered_encoding(params),
        related_information: yes(diagnostics.and_then(|it| it.related_information)),
        code_description: yes(diagnostics.and_then(|it| it.code_description_support)),
        diagnostic_data: yes(diagnostics.and_then(|it| it.data_support)),
        hover_markdown: hover_formats.is_some_and(|formats| formats.contains(&MarkupKind::Markdown)),
        action_literals: document
            .and_then(|it| it.code_action.as_ref()?.code_action_literal_support.as_ref())
            .is_some(),
        show_document: window.and_then(|it| it.show_document.as_ref()).is_some_and(|it| it.support),
        progress: yes(window.and_then(|it| it.work_done_progress)),
        pull_settings: yes(workspace.and_then(|it| it.configuration)),
        settings_registration: yes(workspace.and_then(|it| it.did_change_configuration.as_ref()?.dynamic_registration)),
        hint_refresh: yes(workspace.and_then(|it| it.inlay_hint.as_ref()?.refresh_support)),
        lens_refresh: yes(workspace.and_then(|it| it.code_lens.as_ref()?.refresh_support)),
        apply_edit: yes(workspace.and_then(|it| it.apply_edit)),
        versioned_edits,
        create_files: versioned_edits
            && edits
                .and_then(|edits| edits.resource_operations.as_ref())
                .is_some_and(|operations| operations.contains(&ResourceOperationKind::Create)),
        custom: custom(params.initialization_options.as_ref()),
    }
}

/// UTF-8 where it is offered, since that is how texts are kept here; else what the client likes best.
fn offered_encoding(params: &InitializeParams) -> Option<Encoding> {
    let offered = params.capabilities.general.as_ref()?.position_encodings.as_ref()?;
    if offered.contains(&PositionEncodingKind::UTF8) {
        return Some(Encoding::Utf8);
    }
    offered.iter().find_map(|kind| match kind.as_str() {
        "utf-16" => Some(Encoding::Utf16),
        "utf-32" => Some(Encoding::Utf32),
        _ => None,
    })
}

pub fn encoding_kind(encoding: Encoding) -> PositionEncodingKind {
    match encoding {
        Encoding::Utf8 => PositionEncodingKind::UTF8,
        Encoding::Utf16 => PositionEncodingKind::UTF16,
        Encoding::Utf32 => PositionEncodingKind::UTF32,
    }
}

fn custom(options: Option<&Value>) -> Custom {
    let declared = options.and_then(|options| options.get("custom")?.as_array());
    let declares = |name: &str| declared.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)));
    Custom {
        runs: declares("cublame/runs"),
        run_in_terminal: declares("cublame/runInTerminal"),
        report: declares("cublame/report"),
        dap: declares("cublame/dap"),
    }
}

/// The workspace folders; of a client that has none, the one root.
fn roots(params: &InitializeParams) -> Vec<PathBuf> {
    if let Some(folders) = params.workspace_folders.as_ref().filter(|folders| !folders.is_empty()) {
        return folders.iter().filter_map(|folder| path_of(&folder.uri)).collect();
    }
    #[expect(deprecated, reason = "clients older than workspace folders say it this way")]
    let (uri, path) = (&params.root_uri, &params.root_path);
    let of_path = || Some(PathBuf::from(path.as_ref()?)).filter(|path| path.is_absolute());
    uri.as_ref().and_then(path_of).or_else(of_path).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! initialize {
        ($name:literal) => {
            include_str!(concat!("../../../tests/fixtures/initialize/initialize-", $name, ".json"))
        };
    }

    fn start(json: &str) -> Start {
        Start::of(&serde_json::from_str(json).expect("an initialize request"))
    }

    #[test]
    fn what_real_clients_can_do() {
        let common = Features { hover_markdown: true, action_literals: true, apply_edit: true, ..Features::default() };
        let vscode = start(initialize!("vscode-1.139-languageclient11"));
        assert_eq!(
            vscode.features,
            Features {
                offered_encoding: Some(Encoding::Utf16),
                related_information: true,
                code_description: true,
                diagnostic_data: true,
                show_document: true,
                progress: true,
                pull_settings: true,
                settings_registration: true,
                lens_refresh: true,
                hint_refresh: true,
                versioned_edits: true,
                create_files: true,
                ..common.clone()
            }
        );
        let neovim = start(initialize!("nvim-0.11.4"));
        assert_eq!(
            neovim.features,
            Features {
                offered_encoding: Some(Encoding::Utf8),
                related_information: true,
                diagnostic_data: true,
                show_document: true,
                progress: true,
                pull_settings: true,
                hint_refresh: true,
                ..common.clone()
            }
        );
        let old_neovim = start(initialize!("nvim-0.7.2"));
        assert_eq!(old_neovim.features, Features { related_information: true, progress: true, ..common.clone() });
        let emacs = start(initialize!("emacs28-eglot1.9"));
        assert_eq!(
            emacs.features,
            Features { pull_settings: true, hover_markdown: false, versioned_edits: true, ..common }
        );
        for client in [vscode, neovim, old_neovim, emacs] {
            assert_eq!(client.roots, [PathBuf::from("/home/dev/proj")]);
        }
    }

    #[test]
    fn a_client_that_says_nothing_can_do_nothing() {
        let start = start(r#"{ "capabilities": {}, "rootPath": "/home/dev/old" }"#);
        assert_eq!(start.features, Features::default());
        assert_eq!(start.roots, [PathBuf::from("/home/dev/old")]);
    }

    #[test]
    fn our_own_messages_are_declared() {
        let start = start(r#"{ "capabilities": {}, "initializationOptions": { "custom": ["cublame/runs", 7] } }"#);
        assert_eq!(start.features.custom, Custom { runs: true, ..Custom::default() });
        assert!(start.roots.is_empty());
    }
}
