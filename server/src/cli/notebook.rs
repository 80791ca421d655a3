//! `cublame notebook`: the extension for every notebook of the user's, and what it says below a failed cell.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use cublame_core::catalog::Texts;

use super::configure::{Writing, finish};
use crate::configure::ipython;
use crate::error::{Error, Result};
use crate::render::cell;
use crate::session::folder::RunFolder;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Load the extension in every notebook of yours, as `%load_ext cublame` does in one
    Enable {
        /// Load it no more, and take away what was written
        #[arg(long)]
        disable: bool,
        /// Print what would change, as a diff, and write nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// What is said below a cell that failed; nothing where the failure has nothing to do with a GPU
    #[command(hide = true)]
    Verdict {
        /// The cell's execution count
        #[arg(long)]
        cell: u32,
        run: PathBuf,
    },
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.what {
        What::Enable { disable, dry_run } => {
            let program = std::env::current_exe()
                .map_err(|failure| Error::environment("the path of this program cannot be read").because(failure))?;
            let folder = ipython::folder(|name| std::env::var_os(name).map(PathBuf::from))?;
            let plan = ipython::plan(&folder, &program, !disable)?;
            let leftovers = [folder.join("cublame/cublame"), folder.join("cublame")];
            let code = finish(plan, Writing { dry_run: *dry_run, remove: *disable })?;
            if *disable && !dry_run {
                // What Python compiled; and the folders, where nothing else is in them.
                drop(std::fs::remove_dir_all(folder.join("cublame/cublame/__pycache__")));
                leftovers.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
            }
            Ok(code)
        }
        What::Verdict { cell, run } => {
            let evidence = RunFolder::open(run)?.evidence();
            let texts = Texts::get(super::language_of_the_environment());
            let text = cell::verdict(&evidence, *cell, texts).unwrap_or_default();
            let written = std::io::stdout().write_all(text.as_bytes());
            written.map_err(|failure| Error::environment("the verdict could not be printed").because(failure))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
