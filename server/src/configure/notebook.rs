//! The first cell of a notebook.

use std::path::Path;

use cublame_core::config::notebook;
use cublame_core::mode::{Mode, prefix};

use super::Plan;
use super::files::{Texts, existing};
use crate::error::{Error, Result};

/// The snippet of a mode put in; taken out where there is no mode.
pub fn plan(notebook: &Path, mode: Option<Mode>, texts: &Texts) -> Result<Plan> {
    if let Some(mode) = mode.filter(|&mode| !prefix(mode).is_empty()) {
        return Err(Error::user(format!("mode {mode} needs words before the interpreter, which a kernel cannot have"))
            .hint("run the notebook as a script: `jupyter nbconvert --to script` and then `cublame run`"));
    }
    existing(notebook)?;
    let mut change = texts.of(notebook.to_owned())?;
    match mode {
        None => change.edit(notebook::remove)?,
        Some(mode) => change.edit(|text| notebook::add(text, mode))?,
    }
    Ok(vec![change].into())
}
