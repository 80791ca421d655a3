//! What the launch journal says of a failure, without the rest of a run:
//! `narrow JOURNAL [KIND] [--core FILE]... [--log FILE]`.

use std::process::ExitCode;

use cublame_core::gpu_core::{self, GpuCore};
use cublame_core::journal::{Question, narrow};
use cublame_core::log::Log;
use cublame_core::parse::{self, AssertLine, What};

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let read = |path: &str| std::fs::read(path).map_err(|error| format!("{path}: {error}"));
    let journal = cublame_journal::read(&read(arguments.first().ok_or("no journal was given")?)?)?;
    let mut kind = "illegal-address".to_owned();
    let mut cores: Vec<GpuCore> = Vec::new();
    let mut asserts: Vec<AssertLine> = Vec::new();
    let mut rest = arguments[1..].iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().unwrap_or_default();
        match argument.as_str() {
            "--core" => cores.push(gpu_core::read(&read(&value())?)?),
            "--log" => {
                let text = String::from_utf8_lossy(&read(&value())?).into_owned();
                asserts = parse::parse(&Log::from_text(&text))
                    .found
                    .into_iter()
                    .filter_map(|found| match found.what {
                        What::Assert(line) => Some(line),
                        _ => None,
                    })
                    .collect();
            }
            _ => kind.clone_from(argument),
        }
    }
    if !asserts.is_empty() {
        kind = "device-assert".into();
    }
    let narrowed = narrow(&journal, &Question { kind: &kind, asserts: &asserts, cores: &cores });
    println!("{:?}", narrowed.certainty);
    for candidate in narrowed.candidates.iter().take(5) {
        let line = |frame: &cublame_journal::read::Frame| {
            let file = frame.file.rsplit('/').next().unwrap_or_default().to_owned();
            format!("{file}:{}", frame.location.map_or(0, |location| location.line))
        };
        let frames: Vec<String> = candidate.frames.iter().rev().take(3).map(line).collect();
        println!(
            "  {} x{} {:.60} | {}",
            candidate.number,
            candidate.launches,
            candidate.kernel.as_deref().unwrap_or(""),
            frames.join(" < ")
        );
    }
    for (key, values) in narrowed.because.iter().chain(&narrowed.missing) {
        println!("  {key} {values:.300?}");
    }
    if let Some(grid) = &narrowed.grid {
        println!("  core grid id {} thread {} faults {}", grid.id, grid.host_thread, grid.faults.len());
    }
    Ok(())
}
