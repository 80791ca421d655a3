//! The first cell of a notebook.

use std::path::PathBuf;

use clap::Args;
use cublame_core::config::notebook;
use cublame_core::mode::{Mode, prefix};

use super::Writing;
use super::files::{Change, existing};
use crate::error::{Error, Result};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The notebook (.ipynb)
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// The mode of its kernel
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    mode: Mode,
    #[command(flatten)]
    pub writing: Writing,
}

pub fn changes(arguments: &Arguments) -> Result<Vec<Change>> {
    if !prefix(arguments.mode).is_empty() {
        return Err(Error::user(format!(
            "mode {} needs words before the interpreter, which a kernel cannot have",
            arguments.mode
        ))
        .hint("run the notebook as a script: `jupyter nbconvert --to script` and then `cublame run`"));
    }
    existing(&arguments.program)?;
    let mut change = Change::of(arguments.program.clone())?;
    if arguments.writing.remove {
        change.edit(notebook::remove)?;
    } else {
        change.edit(|text| notebook::add(text, arguments.mode))?;
    }
    Ok(vec![change])
}
