//! `workspace/executeCommand`: every command is answered as soon as what it asks is known to be possible; what
//! takes time shows itself later.

use serde_json::Value;
use tokio::sync::oneshot;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::ls_types::ExecuteCommandParams;

use super::super::backend::Backend;
use super::super::commands::Command;
use crate::world::Event;

pub async fn execute_command(backend: &Backend, params: ExecuteCommandParams) -> Result<Option<Value>> {
    let command = Command::of_name(&params.command)
        .ok_or_else(|| Error::invalid_params(format!("`{}` is no command of this server", params.command)))?;
    let order = command.order(params.arguments)?;
    let (answer, answered) = oneshot::channel();
    backend.world.post(Event::Order(order, answer));
    // The world waits for nobody. It answers between two events, or for `configure` when the files are read.
    match answered.await {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(refusal)) => Err(failed(refusal.0)),
        Err(_) => Err(failed("the server is leaving".to_owned())),
    }
}

/// RequestFailed of the specification (3.17): the request was right, and could not be carried out.
fn failed(message: String) -> Error {
    Error { code: ErrorCode::ServerError(-32803), message: message.into(), data: None }
}
