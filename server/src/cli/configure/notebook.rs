//! The first cell of a notebook.

use std::path::PathBuf;

use clap::Args;
use cublame_core::mode::Mode;

use super::Writing;
use crate::configure::files::Texts;
use crate::configure::{Plan, notebook};
use crate::error::Result;

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

pub fn plan(arguments: &Arguments) -> Result<Plan> {
    let mode = (!arguments.writing.remove).then_some(arguments.mode);
    notebook::plan(&arguments.program, mode, &Texts::default())
}
