//! The command line: one file a subcommand, each with its arguments and a `main` that returns the exit code.

mod configure;
mod dap;
mod debug;
mod demo;
mod doctor;
mod env;
mod explain;
mod lint;
mod lsp;
mod notebook;
mod report;
mod repro;
mod run;
mod top;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use cublame_core::catalog::Language;
use cublame_core::run::ProcessId;

use crate::error::{Error, Result};
use crate::gpu;
use crate::session::{guardian, relay};
use crate::world::starting;

#[derive(Debug, Parser)]
#[command(name = "cublame", version, about = "cuBLAS multiplies; cuBLAME says which line broke", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See what cublame does: a failure recorded on a real GPU, replayed without one
    Demo(demo::Arguments),
    /// Explain a log of any origin: what failed, which line, what to do
    Explain(explain::Arguments),
    /// Run a program, and at a CUDA failure say which line broke
    Run(run::Arguments),
    #[command(name = guardian::SUBCOMMAND, hide = true)]
    Guardian { runner: u32, start: u64, run: Option<PathBuf> },
    /// See whether this machine, its GPUs and the project's Python go together
    Doctor(doctor::Arguments),
    #[command(name = gpu::SUBCOMMAND, hide = true)]
    Driver,
    #[command(name = relay::SUBCOMMAND, hide = true)]
    Relay,
    /// Write run configurations for VS Code, PyCharm, your shell or a notebook
    Configure(configure::Arguments),
    /// Run a Python program under debugpy, and hold it at its CUDA failure: verdict, stack and tensors
    Debug(debug::Arguments),
    /// A debug adapter for any editor: debugpy's own, with the mode's variables and the verdict where it stops
    Dap(dap::Arguments),
    /// Print a mode's variables for a shell
    Env(env::Arguments),
    #[command(name = starting::IN_NEW_SESSION, hide = true)]
    InNewSession {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Find what makes CUDA debugging fail, before the program runs
    Lint(lint::Arguments),
    /// Bundle a failed run, make a small program of its failing call, or write the bug report
    Repro(repro::Arguments),
    /// What each stream of a run is executing, with its Python line
    Top(top::Arguments),
    /// Show a run's report again: in the terminal, as a page, as Markdown, as JSON
    Report(report::Arguments),
    /// The language server, on standard input and output
    Lsp(lsp::Arguments),
    /// Say which line broke in Jupyter notebooks
    Notebook(notebook::Arguments),
}

/// Reads the process's arguments and runs the subcommand. Usage errors exit with 2 (clap's own code), of `run` with 125.
pub fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|failure| refuse(&failure));
    let outcome: Result<ExitCode> = match &arguments.command {
        Command::Demo(arguments) => demo::main(arguments),
        Command::Explain(arguments) => explain::main(arguments),
        Command::Run(arguments) => Ok(run::main(arguments)),
        Command::Guardian { runner, start, run } => {
            guardian::main(ProcessId { pid: *runner, start: *start }, run.as_deref())
                .map(|()| ExitCode::SUCCESS)
                .map_err(|failure| Error::internal("the guardian failed").because(failure))
        }
        Command::Doctor(arguments) => doctor::main(arguments),
        Command::Driver => {
            gpu::main();
            Ok(ExitCode::SUCCESS)
        }
        Command::Relay => {
            relay::main();
            Ok(ExitCode::SUCCESS)
        }
        Command::Configure(arguments) => configure::main(arguments),
        Command::Debug(arguments) => Ok(debug::main(arguments)),
        Command::Dap(arguments) => dap::main(arguments),
        Command::Env(arguments) => env::main(arguments),
        Command::InNewSession { words } => Err(starting::in_new_session(words)),
        Command::Lint(arguments) => lint::main(arguments),
        Command::Repro(arguments) => repro::main(arguments),
        Command::Top(arguments) => top::main(arguments),
        Command::Report(arguments) => report::main(arguments),
        Command::Lsp(arguments) => lsp::main(arguments),
        Command::Notebook(arguments) => notebook::main(arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("cublame: {error}");
        ExitCode::from(error.exit_code())
    })
}

/// Prints clap's own help or complaint. The codes of `run` and `debug` below 125 are the child's.
fn refuse(failure: &clap::Error) -> ! {
    // Where it cannot be printed, the code still tells.
    failure.print().ok();
    let is_run = std::env::args_os().nth(1).is_some_and(|word| word == "run" || word == "debug");
    std::process::exit(if is_run && failure.use_stderr() { run::OWN_FAILURE.into() } else { failure.exit_code() })
}

/// The language that the user's locale asks for (POSIX, "Environment Variables", 8.2).
fn language_of_the_environment() -> Language {
    ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .map_or(Language::English, |locale| Language::of_locale(&locale))
}
