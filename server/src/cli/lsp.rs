//! `cublame lsp`

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::{Error, Result};
use crate::lsp::{self, Left, Options};
use crate::session::place::Surroundings;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Record everything that the client sends
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    mirror: Option<PathBuf>,
    /// Read a recording in place of standard input
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Accepted and without effect: clients add it, and standard input and output are the only way
    #[arg(long, hide = true)]
    stdio: bool,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let record = arguments.mirror.as_ref().map(|path| recording(path)).transpose()?;
    let cublame = std::env::current_exe()
        .map_err(|error| Error::environment("the path of this program cannot be read").because(error))?;
    let options = Options { record, cublame, surroundings: Surroundings::of_this_process() };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Error::environment("the server's threads cannot be started").because(error))?;
    let stdout = tokio::io::stdout();
    let left = match &arguments.replay {
        Some(path) => {
            let file = File::open(path).map_err(|error| {
                Error::user(format!("the recording {} cannot be read", path.display())).because(error)
            })?;
            runtime.block_on(lsp::serve(tokio::fs::File::from_std(file), stdout, options))
        }
        None => runtime.block_on(lsp::serve(tokio::io::stdin(), stdout, options)),
    };
    // A read of standard input that nothing will ever answer must not keep the process.
    runtime.shutdown_background();
    Ok(match left {
        Left::Orderly => ExitCode::SUCCESS,
        Left::ExitWithoutShutdown => ExitCode::FAILURE,
    })
}

fn recording(path: &std::path::Path) -> Result<File> {
    File::create(path)
        .map_err(|error| Error::user(format!("the recording {} cannot be written", path.display())).because(error))
}
