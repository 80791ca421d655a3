//! `cublame doctor`: what is wrong with this machine before any program fails.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cublame_core::catalog::{Language, Texts};
use cublame_core::doctor::Examination;

use crate::doctor::{Whom, examine};
use crate::error::{Error, Result};
use crate::interpreter::{self, Interpreter};
use crate::render::doctor;
use crate::render::terminal::Style;
use crate::session::place::Surroundings;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print what was seen and found as one JSON document
    #[arg(long)]
    json: bool,
    /// The interpreter to ask (else VIRTUAL_ENV, CONDA_PREFIX, the project's .venv, PATH)
    #[arg(long, value_name = "EXE")]
    python: Option<PathBuf>,
    /// Language of the texts: en or zh (else LC_ALL, LC_MESSAGES, LANG)
    #[arg(long, value_name = "LANG")]
    lang: Option<Language>,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let texts = Texts::get(arguments.lang.unwrap_or_else(super::language_of_the_environment));
    let cublame = std::env::current_exe()
        .map_err(|error| Error::environment("the path of this program cannot be read").because(error))?;
    let examination = examine(&Whom::Chosen(interpreter(arguments.python.as_ref())?), &cublame, texts);
    print(&examination, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

fn interpreter(named: Option<&PathBuf>) -> Result<Interpreter> {
    match named {
        // A bare name is looked up as a shell does.
        Some(path) if path.is_file() || path.components().count() == 1 => {
            Ok(Interpreter { path: path.clone(), chosen_by: "option" })
        }
        Some(path) => Err(Error::user(format!("there is no interpreter {}", path.display()))
            .hint("give the path of a python executable")),
        None => {
            let project = Surroundings::of_this_process().project_folder(|path| path.exists());
            Ok(interpreter::choose(None, project.parent()))
        }
    }
}

fn print(examination: &Examination, json: bool) -> Result<()> {
    let text = if json {
        serde_json::to_string_pretty(examination)
            .map_err(|error| Error::internal("cannot write the findings as JSON").because(error))?
            + "\n"
    } else {
        doctor::text(examination, Style::of_stdout())
    };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| Error::environment("cannot write to standard output").because(error)),
    }
}
