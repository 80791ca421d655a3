//! Lines to paste where no file of ours goes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cublame_core::config::dap_clients;
use cublame_core::config::launch_json::{Launch, Profile};
use cublame_core::config::launchers::Launcher;
use cublame_core::mode::{Machine, Mode, Os, env_block};

use crate::error::{Error, Result};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The program that the debuggers' entries run [default: the file that the editor shows]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    mode: Mode,
}

pub fn print(arguments: &Arguments) -> Result<ExitCode> {
    let block = env_block(arguments.mode, Os::HERE, &Machine::default(), &BTreeMap::new());
    let pairs: Vec<(&str, &str)> = block.shared().map(|variable| (variable.name, variable.value.as_str())).collect();
    let launch = match &arguments.program {
        None => Launch::CurrentFile,
        Some(path) => Launch::Program(path.to_string_lossy().into_owned()),
    };
    let profile = Profile { launch, mode: arguments.mode };
    let mut text = String::new();
    for launcher in Launcher::ALL {
        text += &format!("# {}\n{}\n\n", launcher.title(), launcher.lines(&pairs).trim_end());
    }
    text += &format!("-- Neovim, nvim-dap\n{}\n", dap_clients::nvim_dap(&profile));
    text += &format!(";; Emacs, dape\n{}", dap_clients::dape(&profile));
    let printed = std::io::stdout().write_all(text.as_bytes());
    printed.map_err(|failure| Error::environment("the lines could not be printed").because(failure))?;
    Ok(ExitCode::SUCCESS)
}
