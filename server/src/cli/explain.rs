//! `cublame explain`: verdicts from a log of any origin, of any size, in flat memory.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cublame_core::Evidence;
use cublame_core::catalog::{Language, Texts};
use cublame_core::log::{Condenser, Log, Stream};
use cublame_core::verdict::Verdicts;

use crate::error::{Error, Result};
use crate::render::terminal;
use crate::sources::{Judged, judge};

/// Large reads: the search for a failure runs at memory speed, so system calls would show.
const CHUNK: usize = 1 << 20;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The log; `-` or nothing is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    log: PathBuf,
    /// Print the verdicts as one JSON document
    #[arg(long)]
    json: bool,
    /// Where the program's sources are; its files always count as the user's own code
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The log is of a run with CUDA_LAUNCH_BLOCKING=1, so the trace can be believed
    #[arg(long)]
    blocking: bool,
    /// Language of the texts: en or zh (else LC_ALL, LC_MESSAGES, LANG)
    #[arg(long, value_name = "LANG")]
    lang: Option<Language>,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let log = read(&arguments.log)?;
    let roots = match &arguments.workspace {
        Some(folder) => vec![existing_folder(folder)?],
        None => Vec::new(),
    };
    let evidence = Evidence { log: Some(log), blocking: arguments.blocking, ..Evidence::default() };
    let texts = Texts::get(arguments.lang.unwrap_or_else(super::language_of_the_environment));
    let cwd = std::env::current_dir().ok();
    let judged = judge(&evidence, &roots, cwd.as_deref(), texts);
    print(judged, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Log> {
    if path == Path::new("-") {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            eprintln!("cublame: reading a log from the terminal; end it with Ctrl-D");
        }
        return condense(stdin.lock()).map_err(|error| Error::environment("cannot read standard input").because(error));
    }
    let shown = path.display();
    File::open(path).and_then(condense).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Error::user(format!("there is no file {shown}")).hint("give a log file, or `-` for standard input")
        }
        io::ErrorKind::IsADirectory => Error::user(format!("{shown} is a folder")).hint("give the log file inside it"),
        _ => Error::environment(format!("cannot read {shown}")).because(error),
    })
}

fn condense(mut input: impl Read) -> io::Result<Log> {
    let mut condenser = Condenser::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => return Ok(condenser.finish()),
            Ok(count) => condenser.feed(Stream::Mixed, &chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn existing_folder(folder: &Path) -> Result<PathBuf> {
    let shown = folder.display();
    let whole =
        folder.canonicalize().map_err(|error| Error::user(format!("there is no folder {shown}")).because(error))?;
    if whole.is_dir() { Ok(whole) } else { Err(Error::user(format!("{shown} is not a folder"))) }
}

fn print(judged: Judged, json: bool) -> Result<()> {
    let text = if json {
        let document = Verdicts::new(judged.verdicts);
        serde_json::to_string_pretty(&document)
            .map_err(|error| Error::internal("cannot write the verdicts as JSON").because(error))?
            + "\n"
    } else if judged.verdicts.is_empty() {
        "No CUDA failure was found in this log.\n".to_owned()
    } else {
        terminal::render(&judged.verdicts, &judged.sources, terminal::Style::of_stdout())
    };
    match io::stdout().write_all(text.as_bytes()) {
        // The reader has seen enough: `cublame explain log | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| Error::environment("cannot write to standard output").because(error)),
    }
}
