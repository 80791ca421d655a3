//! `cublame report`: what a run told, once more, for a person, a browser, an issue tracker or a program.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cublame_core::catalog::{Language, Texts};
use cublame_core::scrub::scrub;

use crate::error::{Error, Result};
use crate::os::processes;
use crate::render::{markdown, page, terminal};
use crate::session::choice::choose;
use crate::session::place::Surroundings;
use crate::session::{RunFolder, Stored, Told, tell};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The run: its folder, its id, or the beginning of its id; without it, the newest of this project
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// One page with everything, which needs no other file and no network
    #[arg(long)]
    html: bool,
    /// For an issue tracker: secrets, home folders, user and host are taken out
    #[arg(long, conflicts_with = "html")]
    markdown: bool,
    /// The report as it was written, one JSON document
    #[arg(long, conflicts_with_all = ["html", "markdown"])]
    json: bool,
    /// Write to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Language of the texts: en or zh (else LC_ALL, LC_MESSAGES, LANG)
    #[arg(long, value_name = "LANG")]
    lang: Option<Language>,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let surroundings = Surroundings::of_this_process();
    let folder = choose(arguments.run.as_deref(), &surroundings)?;
    let texts = Texts::get(arguments.lang.unwrap_or_else(super::language_of_the_environment));
    let text = if arguments.json {
        json(&folder)?
    } else {
        let told = tell(&folder, texts)?;
        match (arguments.html, arguments.markdown) {
            (true, _) => page::page(&told, texts),
            (_, true) => scrub(
                &markdown::report(&told, texts),
                &processes::identity(told.run.as_ref().map_or("", |run| &run.host)),
            ),
            _ => plain(&told, &folder, arguments),
        }
    };
    match &arguments.output {
        Some(file) => std::fs::write(file, text)
            .map_err(|error| Error::environment(format!("{} cannot be written", file.display())).because(error))?,
        None => match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            outcome => {
                outcome.map_err(|error| Error::environment("cannot write to standard output").because(error))?;
            }
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn json(folder: &RunFolder) -> Result<String> {
    let report = match folder.report() {
        Stored::Whole(report) => report,
        Stored::Damaged(what) => return Err(Error::user(format!("the run {}: {what}", folder.id()))),
        Stored::Absent => {
            return Err(Error::user(format!("the run {} has no report", folder.id()))
                .hint("it is still running, or was killed; --html shows what there is"));
        }
    };
    let text = serde_json::to_string_pretty(&report)
        .map_err(|error| Error::internal("cannot write the report as JSON").because(error))?;
    Ok(text + "\n")
}

/// The verdict as `cublame run` printed it.
fn plain(told: &Told, folder: &RunFolder, arguments: &Arguments) -> String {
    let style = if arguments.output.is_some() { terminal::Style::PLAIN } else { terminal::Style::of_stdout() };
    if told.verdicts.is_empty() {
        return format!("No failure was found in the run {}.\n", folder.id());
    }
    terminal::render(&told.verdicts, &told.sources, style)
}
