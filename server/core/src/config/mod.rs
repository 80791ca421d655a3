//! A mode, written for every tool: pure functions from a file's text to the edits that change it.
//!
//! Every writer answers with [`Edit`]s and never with a whole new file.
//! What no edit touches is unchanged byte for byte, by construction,
//! and the same edits serve the command line (applied and written) and the language server (a workspace edit).
//! A text that cannot be read is refused with the place of the error, as [`Refused`].

mod edit;
mod entries;
mod jsonc;

pub mod launch_json;
pub mod launch_request;
pub mod run_xml;
pub mod tasks_json;

pub mod shell;

pub mod dap_clients;
pub mod launchers;
pub mod notebook;
pub mod shell_profile;

pub use edit::{Edit, Refused, apply, between, position};
pub use entries::{ENTRY_VERSION, NAME_PREFIX, Place};
