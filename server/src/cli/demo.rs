//! `cublame demo`: see what cublame does, without a GPU.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cublame_core::catalog::{Language, Texts};

use crate::demo::{self, Replayed};
use crate::error::{Error, Result};
use crate::render::terminal;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Print what an editor and the language server say to each other about the failure
    #[arg(long)]
    lsp_transcript: bool,
    /// Lay the recorded program and its runs into this empty folder and keep them, to open it in an editor
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Language of the texts: en or zh (else LC_ALL, LC_MESSAGES, LANG)
    #[arg(long, value_name = "LANG")]
    lang: Option<Language>,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let texts = Texts::get(arguments.lang.unwrap_or_else(super::language_of_the_environment));
    match &arguments.workspace {
        Some(folder) => show(arguments, &empty(folder)?, texts)?,
        None => {
            let folder = tempfile::Builder::new()
                .prefix("cublame-demo-")
                .tempdir()
                .map_err(|error| Error::environment("no temporary folder can be made").because(error))?;
            let path = folder.path().canonicalize().unwrap_or_else(|_| folder.path().to_owned());
            show(arguments, &path, texts)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &Arguments, workspace: &Path, texts: &Texts) -> Result<()> {
    let replayed = demo::replay(workspace, texts)?;
    let text = if arguments.lsp_transcript { conversation(&replayed)? } else { story(&replayed) };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| Error::environment("cannot write to standard output").because(error)),
    }
}

/// What the program printed, and what cublame says of it.
fn story(replayed: &Replayed) -> String {
    let mut story = String::from("Recorded on an NVIDIA H200 (torch 2.11.0, CUDA 13.0), replayed on this machine.\n");
    let shorten = format!("{}/", replayed.workspace.display());
    for run in &replayed.runs {
        story += &format!("\n$ {}\n", run.title);
        let trace = run.printed.iter().skip_while(|line| !line.starts_with("Traceback"));
        let own = trace.filter(|line| !line.contains("site-packages")).map(|line| line.replace(&shorten, ""));
        let lines: Vec<String> = own.collect();
        story += &format!("{}\n\n", brief(&lines));
        let shown = terminal::render(&run.judged.verdicts, &run.judged.sources, terminal::Style::of_stdout());
        story += &shown.replace(&shorten, "");
    }
    story
}

/// The program's own frames and the last line, as a person skims a traceback.
fn brief(trace: &[String]) -> String {
    let is_frame = |line: &String| line.starts_with("  File \"") && line.contains(demo::PROGRAM);
    let mut shown: Vec<&str> = trace.iter().filter(|line| is_frame(line)).map(String::as_str).collect();
    shown.extend(trace.iter().find(|line| line.contains("Error: ")).map(String::as_str));
    shown.join("\n")
}

fn conversation(replayed: &Replayed) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Error::environment("the server's threads cannot be started").because(error))?;
    let messages = runtime.block_on(demo::transcript(&replayed.workspace, &replayed.program))?;
    runtime.shutdown_background();
    let mut text = String::new();
    for message in messages {
        let arrow = if message.from_server { "server -> editor" } else { "editor -> server" };
        let content = serde_json::to_string_pretty(&message.content)
            .map_err(|error| Error::internal("a message cannot be written").because(error))?;
        text += &format!("{arrow}\n{content}\n\n");
    }
    Ok(text)
}

/// Somebody's own files are not mixed with the demo's.
fn empty(folder: &Path) -> Result<PathBuf> {
    let failed = |error| Error::environment(format!("{} cannot be used", folder.display())).because(error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    if std::fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(Error::user(format!("{} is not empty", folder.display())).hint("name a new folder"));
    }
    folder.canonicalize().map_err(failed)
}
