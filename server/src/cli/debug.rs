//! `cublame debug`: as `cublame run`, under debugpy, which holds the program at its failure.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cublame_core::catalog::Texts;
use cublame_core::mode::{Half, Variable};

use super::run::{self, OWN_FAILURE};
use crate::dap::holder::{Holder, Stage};
use crate::dap::instrument::instrument;
use crate::error::Error;
use crate::session::folder::RunFolder;

pub type Arguments = run::Arguments;

/// Returns the child's exit code, or 125 to 127 when it never started.
pub fn main(arguments: &Arguments) -> ExitCode {
    match Debugger::prepare(&arguments.command) {
        Ok(debugger) => run::run(arguments, Some(debugger)),
        Err(error) => {
            eprintln!("cublame: {error}");
            ExitCode::from(OWN_FAILURE)
        }
    }
}

/// A debugger that waits for the program.
pub struct Debugger {
    listener: TcpListener,
    /// The command with debugpy in it.
    command: Vec<OsString>,
}

impl Debugger {
    fn prepare(command: &[OsString]) -> Result<Self, Error> {
        let cwd = std::env::current_dir().unwrap_or_default();
        let (listener, port) = Holder::listen()
            .map_err(|failure| Error::environment("no port can be had for the debugger").because(failure))?;
        Ok(Self { listener, command: instrument(command, port, &cwd)? })
    }

    /// Keeps debugpy from writing about the interpreter's frozen modules into the program's stderr.
    pub fn variable(&self) -> Variable {
        const WHY: &str = "Keeps the debugger's own warnings out of your program's output.";
        Variable { name: "PYDEVD_DISABLE_FILE_VALIDATION", value: "1".to_owned(), half: Half::Launch, why: WHY }
    }

    /// From now on it serves whoever connects. The command to run, and what the program's processes share.
    pub fn start(
        self,
        folder: Option<RunFolder>,
        cwd: &Path,
        texts: &'static Texts,
    ) -> (Vec<OsString>, Option<Arc<Stage>>) {
        let stage = Arc::new(Stage::new(folder, cwd.to_owned(), texts));
        if let Err(failure) = Holder::new(self.listener, Arc::clone(&stage)).start() {
            // The listener is gone with it, so that the program does not wait.
            eprintln!("cublame: the debugger cannot be started: {failure}");
        }
        (self.command, Some(stage))
    }
}
