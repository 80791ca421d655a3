//! What `cublame run` costs: throughput through pipes, latency of a line, start-up. Each against the bare child.
//!
//! `cargo run --release -p cublame-tests --bin bench-run -- target/release/cublame`
//!
//! The ways are measured in turns within one run, so that other load on the machine falls on all of them;
//! the ratios are of medians.

use std::error::Error;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const BYTES: u64 = 200 << 20;
const TURNS: usize = 9;
const LINES: usize = 2_000;
const STARTS: usize = 60;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["print-lines"] => print_lines(),
        ["print-times"] => print_times(),
        [cublame] => bench(&std::path::absolute(cublame)?),
        _ => Err("usage: bench-run PATH-OF-CUBLAME".into()),
    }
}

fn bench(cublame: &Path) -> Outcome {
    let folder = std::env::temp_dir().join(format!("cublame-bench-{}", std::process::id()));
    std::fs::create_dir_all(folder.join(".cublame"))?;
    let bench = Bench { cublame: cublame.to_path_buf(), this: std::env::current_exe()?, folder };
    let outcome = bench.all();
    std::fs::remove_dir_all(&bench.folder)?;
    outcome
}

struct Bench {
    cublame: PathBuf,
    this: PathBuf,
    folder: PathBuf,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Bare,
    Wrapped,
    Tee,
}

impl Bench {
    fn all(&self) -> Outcome {
        self.throughput()?;
        self.latency()?;
        self.start_up()
    }

    fn throughput(&self) -> Outcome {
        let ways = [Way::Bare, Way::Wrapped, Way::Tee];
        let mut seconds = ways.map(|_| Vec::new());
        for _ in 0..TURNS {
            for (way, seconds) in ways.iter().zip(&mut seconds) {
                seconds.push(self.drain(*way)?);
            }
        }
        let [bare, wrapped, tee] = seconds.map(|seconds| quantile(seconds, 0.5));
        let megabytes = BYTES as f64 / 1e6;
        println!("{megabytes:.0} MB of short lines through pipes, {TURNS} turns, median");
        println!("  bare         {bare:.3} s  {:.0} MB/s", megabytes / bare);
        println!("  cublame run  {wrapped:.3} s  {:.3} of bare", wrapped / bare);
        println!("  tee          {tee:.3} s  {:.3} of bare", tee / bare);
        Ok(())
    }

    /// Seconds from the start to the last byte and the end of the process.
    fn drain(&self, way: Way) -> Outcome<f64> {
        let mut command = self.command(way, "print-lines");
        let start = Instant::now();
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut out = child.stdout.take().ok_or("no stdout")?;
        let mut piece = vec![0; 1 << 20];
        let mut total = 0;
        loop {
            match out.read(&mut piece)? {
                0 => break,
                count => total += count as u64,
            }
        }
        let status = child.wait()?;
        let seconds = start.elapsed().as_secs_f64();
        if total < BYTES || !status.success() {
            return Err(format!("{total} bytes came, {status}").into());
        }
        Ok(seconds)
    }

    fn latency(&self) -> Outcome {
        println!("latency of a line, {LINES} lines a millisecond apart");
        let mut medians = Vec::new();
        for way in [Way::Bare, Way::Wrapped, Way::Tee] {
            let micros = self.line_latencies(way)?;
            let (p50, p99) = (quantile(micros.clone(), 0.5), quantile(micros, 0.99));
            let name = way.name();
            let added = medians.first().map(|(b50, b99)| (p50 - b50, p99 - b99));
            println!(
                "  {name:<12} p50 {p50:.0} us  p99 {p99:.0} us{}",
                match added {
                    Some((p50, p99)) => format!("  (added {p50:.0} and {p99:.0})"),
                    None => String::new(),
                }
            );
            medians.push((p50, p99));
        }
        Ok(())
    }

    fn line_latencies(&self, way: Way) -> Outcome<Vec<f64>> {
        let mut child = self.command(way, "print-times").stdout(Stdio::piped()).spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut micros = Vec::new();
        for line in out.lines() {
            let sent: u128 = line?.parse()?;
            micros.push(now()?.saturating_sub(sent) as f64 / 1e3);
        }
        child.wait()?;
        Ok(micros)
    }

    fn start_up(&self) -> Outcome {
        let (mut bare, mut wrapped) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            bare.push(milliseconds(&mut Command::new("/bin/true"))?);
            wrapped.push(milliseconds(self.cublame().args(["run", "--mode", "off", "--", "/bin/true"]))?);
        }
        let (bare, wrapped) = (quantile(bare, 0.5), quantile(wrapped, 0.5));
        println!("start to end of `true`, {STARTS} turns, median");
        println!("  bare         {bare:.2} ms");
        println!("  cublame run  {wrapped:.2} ms  (added {:.2})", wrapped - bare);
        Ok(())
    }

    fn command(&self, way: Way, what: &str) -> Command {
        match way {
            Way::Bare => {
                let mut command = Command::new(&self.this);
                command.arg(what);
                command
            }
            Way::Wrapped => {
                let mut command = self.cublame();
                command.args(["run", "--mode", "off", "--"]).arg(&self.this).arg(what);
                command
            }
            Way::Tee => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("'{}' {what} | tee /dev/null", self.this.display()));
                command
            }
        }
    }

    fn cublame(&self) -> Command {
        let mut command = Command::new(&self.cublame);
        command.current_dir(&self.folder).env("XDG_STATE_HOME", &self.folder).env("XDG_CACHE_HOME", &self.folder);
        command
    }
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Bare => "bare",
            Way::Wrapped => "cublame run",
            Way::Tee => "tee",
        }
    }
}

fn milliseconds(command: &mut Command) -> Outcome<f64> {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("{command:?}: {status}").into());
    }
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The child of the throughput part: lines of a training, through a buffer of the size that Python's print has.
fn print_lines() -> Outcome {
    let mut out = BufWriter::with_capacity(8 << 10, io::stdout().lock());
    let (mut written, mut step) = (0, 0_u64);
    while written < BYTES {
        let line = format!("step {step} loss {}.{:04}\n", 9 - step % 9, step % 10_000);
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
        step += 1;
    }
    Ok(out.flush()?)
}

/// The child of the latency part: the time, as a line, at once.
fn print_times() -> Outcome {
    let mut out = io::stdout().lock();
    for _ in 0..LINES {
        writeln!(out, "{}", now()?)?;
        out.flush()?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Nanoseconds, from the clock that both processes share.
fn now() -> Outcome<u128> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())
}
