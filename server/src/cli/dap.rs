//! `cublame dap`

use std::path::PathBuf;
use std::process::ExitCode;

use cublame_core::catalog::Texts;

use crate::dap::adapter::Debugpy;
use crate::dap::proxy::{self, Left};
use crate::dap::record::Record;
use crate::error::{Error, Result};
use crate::session::folder;
use crate::session::place::Surroundings;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The interpreter of the project (else VIRTUAL_ENV, CONDA_PREFIX, .venv, PATH)
    #[arg(long, value_name = "EXE")]
    python: Option<PathBuf>,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let cwd = std::env::current_dir()
        .map_err(|failure| Error::environment("the working directory is gone").because(failure))?;
    let debugpy = Debugpy::find(arguments.python.as_deref(), &cwd);
    let python = debugpy.as_ref().map(|debugpy| debugpy.python.clone()).unwrap_or_default();
    let runs = folder::runs_in(&Surroundings::of(cwd.clone()).project_folder(|path| path.exists()));
    let record = Record::new(cwd, python, Texts::get(super::language_of_the_environment()), vec![runs]);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|failure| Error::environment("the proxy's threads cannot be started").because(failure))?;
    let left = runtime.block_on(proxy::serve(tokio::io::stdin(), tokio::io::stdout(), debugpy, record));
    // A read of standard input that nothing will ever answer must not keep the process.
    runtime.shutdown_background();
    Ok(match left {
        Left::Orderly => ExitCode::SUCCESS,
        Left::AdapterGone => ExitCode::from(Error::environment("").exit_code()),
    })
}
