//! `cublame top`: what each stream of a run is executing, with its Python line, while the run works or hangs.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cublame_core::Sources;
use cublame_journal::Journal;

use crate::error::{Error, Result};
use crate::os::memory;
use crate::render::queues;
use crate::render::terminal::Style;
use crate::session::choice::choose_live;
use crate::session::place::Surroundings;
use crate::session::{RunFolder, State, journals, traced};

/// How often a terminal is drawn anew.
const EVERY: Duration = Duration::from_secs(1);
/// Clears the terminal and goes to its upper left corner (ECMA-48, ED and CUP).
const CLEAR: &str = "\x1b[2J\x1b[H";

#[derive(Debug, Args)]
pub struct Arguments {
    /// The run: its folder, its id, or the beginning of its id; without it, the newest that goes on
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Print once and leave, as it does where standard output is no terminal
    #[arg(long)]
    once: bool,
    /// Rows shown of each stream
    #[arg(long, value_name = "N", default_value_t = 6)]
    rows: usize,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let folder = choose_live(arguments.run.as_deref(), &Surroundings::of_this_process())?;
    let repeat = !arguments.once && io::stdout().is_terminal();
    loop {
        let live = folder.state() == State::Live;
        let text = look(&folder, live, arguments.rows.max(1))?;
        let clear = if repeat { CLEAR } else { "" };
        match io::stdout().write_all(format!("{clear}{text}").as_bytes()).and_then(|()| io::stdout().flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            outcome => outcome.map_err(|error| Error::environment("cannot write to standard output").because(error))?,
        }
        if !repeat || !live {
            break;
        }
        std::thread::sleep(EVERY);
    }
    Ok(ExitCode::SUCCESS)
}

fn look(folder: &RunFolder, live: bool, rows: usize) -> Result<String> {
    let run = folder.run().whole().ok_or_else(|| {
        Error::user(format!("{} has no readable run.json", folder.path().display())).hint("give the folder runs/<id>")
    })?;
    let journals = journals_of(folder, live, &run);
    if journals.is_empty() {
        let why = if matches!(run.mode, cublame_core::mode::Mode::Trace | cublame_core::mode::Mode::Core) {
            "no process of it has launched anything yet"
        } else {
            "launches are written down in modes trace and core only"
        };
        return Ok(format!("{}\n{why}\n", queues::heading(&run, live)));
    }
    let sources = Sources::new(vec![run.cwd.clone()]);
    Ok(queues::render(&run, live, &journals, &sources, rows, memory::monotonic(), Style::of_stdout()))
}

/// Of a run that goes on, as the processes write them; of one that ended, as they were kept.
fn journals_of(folder: &RunFolder, live: bool, run: &cublame_core::run::Run) -> Vec<Journal> {
    let held = run.runner.filter(|_| live).map(|runner| journals::held_by(runner.pid)).unwrap_or_default();
    if !held.is_empty() {
        return held;
    }
    traced::read(folder.path()).0.into_iter().map(|process| process.journal).collect()
}
