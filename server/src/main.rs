//! The `cublame` binary: all of it is in the library, so that tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    cublame::cli::main()
}
