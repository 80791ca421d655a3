//! `workspace/didChangeWorkspaceFolders`.

use tower_lsp::ls_types::DidChangeWorkspaceFoldersParams;

use super::super::backend::Backend;
use super::super::documents::path_of;

pub fn changed(backend: &Backend, params: DidChangeWorkspaceFoldersParams) {
    let paths = |folders: Vec<tower_lsp::ls_types::WorkspaceFolder>| {
        folders.into_iter().filter_map(|folder| path_of(&folder.uri)).collect::<Vec<_>>()
    };
    let (added, removed) = (paths(params.event.added), paths(params.event.removed));
    backend.set_roots(|roots| {
        roots.retain(|root| !removed.contains(root));
        roots.extend(added);
    });
}
