//! The command line: one file a subcommand, each with its arguments and a `main` that returns the exit code.

mod explain;
mod lsp;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use cublame_core::catalog::Language;

use crate::error::Result;

#[derive(Debug, Parser)]
#[command(name = "cublame", version, about = "cuBLAS multiplies; cuBLAME says which line broke", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Explain a log of any origin: what failed, which line, what to do
    Explain(explain::Arguments),
    /// The language server, on standard input and output
    Lsp(lsp::Arguments),
}

/// Reads the process's arguments and runs the subcommand. Usage errors exit with 2 (clap's own code).
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome: Result<ExitCode> = match &arguments.command {
        Command::Explain(arguments) => explain::main(arguments),
        Command::Lsp(arguments) => lsp::main(arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("cublame: {error}");
        ExitCode::from(error.exit_code())
    })
}

/// The language that the user's locale asks for (POSIX, "Environment Variables", 8.2).
fn language_of_the_environment() -> Language {
    ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .map_or(Language::English, |locale| Language::of_locale(&locale))
}
