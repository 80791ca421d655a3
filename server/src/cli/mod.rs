//! The command line: one file a subcommand, each with its arguments and a `main` that returns the exit code.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Result;

#[derive(Debug, Parser)]
#[command(name = "cublame", version, about = "cuBLAS multiplies; cuBLAME says which line broke", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {}

/// Reads the process's arguments and runs the subcommand. Usage errors exit with 2 (clap's own code).
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome: Result<ExitCode> = match arguments.command {};
    outcome.unwrap_or_else(|error| {
        eprintln!("cublame: {error}");
        ExitCode::from(error.exit_code())
    })
}
