//! A mutational fuzzer: damaged logs go from bytes to what a person reads, half-written files through the lint and the
//! fixes.
//!
//! `cargo run -p cublame-tests --bin fuzz -- [lint] [--seconds N] [--seed S] [--case C]`
//!
//! The seeds are the logs under `tests/fixtures`, for `lint` the snippets that its tests have. Case C of seed S is always the same, so a failure is had again by the
//! two numbers that it prints. A case fails when it panics, or when it takes more processor time than its size allows;
//! its log is then left in the temporary folder. The last line is `N passed, N failed`, the whole hunt counted as one.

mod explain;
mod lint;
mod mutate;
mod seeds;

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::seeds::Seeds;

/// A build without optimisation reads random bytes and endless tracebacks at half a megabyte a second or more: a case
/// that is ten times slower than that has work in it that grows faster than its size.
const ALLOWED: Duration = Duration::from_millis(500);
const ALLOWED_PER_BYTE: Duration = Duration::from_micros(20);

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::read()?;
    let seeds = if arguments.lint { Seeds::of_lint()? } else { Seeds::read()? };
    let read = if arguments.lint { lint::lint } else { explain::explain };
    let target = if arguments.lint { "lint " } else { "" };
    println!("fuzz {target}--seed {} on {} seeds", arguments.seed, seeds.logs.len());
    // Every pattern is compiled once, which is no case's own time.
    for log in &seeds.logs {
        read(log, &seeds, &mut fastrand::Rng::with_seed(0));
    }

    let end = Instant::now() + Duration::from_secs(arguments.seconds);
    let first = arguments.case.unwrap_or(0);
    let (mut case, mut failed, mut bytes) = (first, 0, 0);
    loop {
        let mut random = fastrand::Rng::with_seed(mix(arguments.seed, case));
        let log = mutate::log(&seeds.logs, &mut random);
        bytes += log.len();
        if let Some(what) = failure(&log, &seeds, &mut random, read) {
            failed += 1;
            let kept = std::env::temp_dir().join(format!("cublame-fuzz-{}-{case}.log", arguments.seed));
            std::fs::write(&kept, &log)?;
            println!("FAILED {target}--seed {} --case {case}: {what}: {}", arguments.seed, kept.display());
        }
        case += 1;
        if arguments.case.is_some() || failed >= MOST_FAILURES || Instant::now() >= end {
            break;
        }
    }
    println!("{} cases, {:.1} MB", case - first, bytes as f64 / 1e6);
    println!("{} passed, {} failed", u8::from(failed == 0), u8::from(failed > 0));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// More of them are nearly always the same.
const MOST_FAILURES: u32 = 5;

/// Reads a case; the bytes that it came to.
type Read = fn(&[u8], &Seeds, &mut fastrand::Rng) -> usize;

fn failure(log: &[u8], seeds: &Seeds, random: &mut fastrand::Rng, read: Read) -> Option<String> {
    let start = processor_time();
    let outcome = catch_unwind(AssertUnwindSafe(|| read(log, seeds, random)));
    let taken = processor_time().saturating_sub(start);
    let Ok(read) = outcome else { return Some("it panicked".to_owned()) };
    let allowed = ALLOWED + ALLOWED_PER_BYTE.saturating_mul(u32::try_from(read).unwrap_or(u32::MAX));
    (taken > allowed).then(|| format!("{taken:.1?} for {read} bytes, {allowed:.1?} allowed"))
}

/// Of this thread: what else the machine does is not the case's.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Neighbouring cases share nothing (the finalizer of SplitMix64).
fn mix(seed: u64, case: u64) -> u64 {
    let mixed = seed.wrapping_add(case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

struct Arguments {
    lint: bool,
    seconds: u64,
    seed: u64,
    /// This case alone.
    case: Option<u64>,
}

impl Arguments {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut arguments = std::env::args().skip(1).peekable();
        let lint = arguments.next_if(|first| first == "lint").is_some();
        let mut read = Self { lint, seconds: 20, seed: 1, case: None };
        while let (Some(name), value) = (arguments.next(), arguments.next()) {
            let value: u64 = value.and_then(|value| value.parse().ok()).ok_or(format!("{name} takes a number"))?;
            match name.as_str() {
                "--seconds" => read.seconds = value,
                "--seed" => read.seed = value,
                "--case" => read.case = Some(value),
                _ => return Err("usage: fuzz [lint] [--seconds N] [--seed S] [--case C]".into()),
            }
        }
        Ok(read)
    }
}
