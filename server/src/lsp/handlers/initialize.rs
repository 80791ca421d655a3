//! `initialize`.

use tower_lsp::ls_types::{InitializeParams, InitializeResult, ServerInfo};

use super::super::backend::Backend;
use super::super::capabilities::capabilities;
use super::super::features::Start;
use super::configuration;

pub fn initialize(backend: &Backend, params: &InitializeParams) -> InitializeResult {
    let start = Start::of(params);
    // A second `initialize` is refused by the framework, so these are set once.
    let features = backend.features.get_or_init(|| start.features);
    backend.locale.get_or_init(|| params.locale.clone());
    backend.editor_process.send_replace(start.editor_process);
    configuration::apply(backend, start.settings);
    backend.set_roots(|roots| *roots = start.roots);
    InitializeResult {
        capabilities: capabilities(features),
        server_info: Some(ServerInfo { name: "cublame".to_owned(), version: Some(crate::VERSION.to_owned()) }),
        offset_encoding: None,
    }
}
