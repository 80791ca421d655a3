//! `cublame env`: a mode's variables, in the words of a shell.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use cublame_core::config::shell::{Format, print};
use cublame_core::mode::{self, Half, Mode};

use crate::error::{Error, Result};
use crate::session::environment::environment;

#[derive(Debug, Args)]
pub struct Arguments {
    /// off, blocking, trace, core, guard or sanitize
    #[arg(long, value_name = "MODE")]
    mode: Mode,
    /// sh, fish, powershell, cmd, json, dotenv or notebook
    #[arg(long, value_name = "FORMAT", default_value = "sh")]
    format: Format,
    /// Only what may stand in a file under version control: nothing that holds a path of this machine
    #[arg(long)]
    shared: bool,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let mut notes = Vec::new();
    let mut block = environment(arguments.mode, None, Some("run".to_owned()), &mut notes);
    if arguments.shared {
        block.variables.retain(|variable| variable.half == Half::Shared);
    } else {
        notes.iter().for_each(|note| eprintln!("cublame: {note}"));
    }
    let prefix = mode::prefix(arguments.mode);
    if !prefix.is_empty() {
        eprintln!("cublame: mode {} also needs these words before your command: {}", arguments.mode, prefix.join(" "));
    }
    let text = print(&block, arguments.mode, arguments.format)
        .map_err(|unwritable| Error::environment(unwritable.to_string()).hint("`--format json` can hold any value"))?;
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|failure| Error::environment("the variables could not be printed").because(failure))?;
    Ok(ExitCode::SUCCESS)
}
