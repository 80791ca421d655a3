//! `cublame configure`: run configurations and profiles, written for each tool or taken away again.
//!
//! What changes is worked out in [`crate::configure`]; here is what the command line says and prints.

mod notebook;
mod other;
mod pycharm;
mod shell;
mod vscode;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cublame_core::mode::Mode;

use crate::configure::{self, Plan};
use crate::error::{Error, Result};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Debug, Subcommand)]
enum Tool {
    /// Profiles in .vscode/launch.json and tasks in .vscode/tasks.json, or in a .code-workspace file
    Vscode(vscode::Arguments),
    /// Run configurations in .run or .idea/runConfigurations
    Pycharm(pycharm::Arguments),
    /// The function `pydebug` in your shell's profile
    Shell(shell::Arguments),
    /// The first cell of a Jupyter notebook
    Notebook(notebook::Arguments),
    /// Print the lines for .env files, containers, clusters, Neovim and Emacs
    Other(other::Arguments),
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.tool {
        Tool::Vscode(arguments) => finish(vscode::plan(arguments)?, arguments.writing),
        Tool::Pycharm(arguments) => finish(pycharm::plan(arguments)?, arguments.writing),
        Tool::Shell(arguments) => finish(shell::changes(arguments)?.into(), arguments.writing),
        Tool::Notebook(arguments) => finish(notebook::plan(arguments)?, arguments.writing),
        Tool::Other(arguments) => other::print(arguments),
    }
}

/// Flags that every tool with files has.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct Writing {
    /// Print what would change, as a diff, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Take away what cublame has written
    #[arg(long)]
    pub(super) remove: bool,
}

/// What is to be run, for the tools that have a configuration for each program.
#[derive(Debug, Args)]
struct Targets {
    /// A program of yours
    #[arg(long, value_name = "FILE")]
    program: Vec<PathBuf>,
    /// A module, as after `python -m`
    #[arg(long, value_name = "NAME")]
    module: Vec<String>,
    /// pytest, on a file or a folder or on everything
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "")]
    pytest: Option<PathBuf>,
    /// A program under torchrun, with one process for each GPU
    #[arg(long, value_name = "FILE")]
    torchrun: Vec<PathBuf>,
    /// A program under `accelerate launch`
    #[arg(long, value_name = "FILE")]
    accelerate: Vec<PathBuf>,
    /// The mode; may be given more than once [default: blocking and trace]
    #[arg(long, value_name = "MODE")]
    mode: Vec<Mode>,
}

impl Targets {
    fn named(&self) -> configure::Targets {
        configure::Targets {
            programs: self.program.clone(),
            modules: self.module.clone(),
            pytest: self.pytest.clone(),
            torchrun: self.torchrun.clone(),
            accelerate: self.accelerate.clone(),
            modes: self.mode.clone(),
        }
    }

    /// The one mode of a switch or a twin.
    fn one_mode(&self) -> Result<Mode> {
        match self.mode[..] {
            [] => Ok(Mode::Blocking),
            [mode] => Ok(mode),
            _ => Err(Error::user("one mode is wanted here, and several were given")),
        }
    }
}

/// Prints the diff, or writes the files and says so. All files are read and edited before the first is written.
pub(super) fn finish(plan: Plan, writing: Writing) -> Result<ExitCode> {
    let changes: Vec<_> = plan.changes.into_iter().filter(|change| change.is_one()).collect();
    for note in plan.notes {
        eprintln!("cublame: {note}");
    }
    if changes.is_empty() {
        eprintln!("cublame: nothing to change");
    }
    for change in &changes {
        if writing.dry_run {
            let printed = std::io::stdout().write_all(change.diff().as_bytes());
            printed.map_err(|failure| Error::environment("the diff could not be printed").because(failure))?;
        } else {
            change.write()?;
            eprintln!(
                "cublame: {} {}",
                if change.after.is_some() { "wrote" } else { "deleted" },
                change.path.display()
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
