//! The `cublame` binary, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    cublame::cli::main()
}
