//! cublame: run a program, find the line behind its CUDA failure, show it in the terminal and in the editor.
//!
//! The thinking is in `cublame-core`; this crate holds the edges: processes, files, the language server, the terminal.
//! The modules are listed in reading order.

pub mod cli;
pub mod error;

pub mod lsp;
pub mod world;

pub mod configure;
pub mod dap;
pub mod doctor;
pub mod gpu;
pub mod interpreter;
pub mod linting;
pub mod repro;

pub mod render;
pub mod session;
pub mod sources;

pub mod hook;
pub mod tracer;

pub mod demo;

pub mod os;

pub use error::{Blame, Error};

/// The version that `--version`, the language server and the editors compare.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
