//! `cublame repro`: a failed run for somebody else.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cublame_core::catalog::{Language, Texts};
use cublame_core::scrub::scrub;

use crate::error::{Error, Result};
use crate::os::processes;
use crate::repro::bundle::{Bundle, size_in_words};
use crate::repro::choose::{self, Failed};
use crate::repro::issue::{self, About};
use crate::repro::minimal::{self, Minimal};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The id of a run, or its folder (else the newest of this project that has failed)
    run: Option<PathBuf>,
    /// Run the program again, and make a small program of the failing call alone
    #[arg(long, conflicts_with_all = ["issue", "output"])]
    minimal: bool,
    /// Print a bug report in Markdown
    #[arg(long, conflicts_with = "output")]
    issue: bool,
    /// Where the bundle goes (else cublame-repro-<run>.tar.gz here)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Language of the texts: en or zh (else LC_ALL, LC_MESSAGES, LANG)
    #[arg(long, value_name = "LANG")]
    lang: Option<Language>,
}

pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    let texts = Texts::get(arguments.lang.unwrap_or_else(super::language_of_the_environment));
    let failed = choose::failed_run(arguments.run.as_deref(), texts)?;
    if arguments.minimal {
        return minimal(arguments, &failed);
    }
    let about = About::of(&failed, texts);
    let identity = processes::identity(&failed.run.host);
    if arguments.issue {
        let page = scrub(&issue::page(&failed, &about), &identity);
        return match io::stdout().write_all(page.as_bytes()) {
            Err(failure) if failure.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::environment("cannot write to standard output").because(failure))
            }
            _ => Ok(ExitCode::SUCCESS),
        };
    }
    write_bundle(arguments, &failed, &Bundle::gather(&failed, &about).scrubbed(&identity))
}

fn write_bundle(arguments: &Arguments, failed: &Failed, bundle: &Bundle) -> Result<ExitCode> {
    let name = format!("cublame-repro-{}", failed.folder.id());
    let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
    eprintln!("cublame: the bundle of the run {}, without secrets, home folders and names:", failed.folder.id());
    eprint!("{}", bundle.listing());
    if arguments.dry_run {
        eprintln!("cublame: nothing was written ({} in all)", size_in_words(bundle.size()));
        return Ok(ExitCode::SUCCESS);
    }
    let question = format!("Write these {} to {}?", size_in_words(bundle.size()), path.display());
    if !agreed(arguments.yes, &question)? {
        return Ok(ExitCode::SUCCESS);
    }
    bundle.write(&path, &name, modified(failed)).map_err(|failure| match failure.kind() {
        io::ErrorKind::AlreadyExists => {
            Error::user(format!("{} is there already", path.display())).hint("name another file with --output")
        }
        _ => Error::environment(format!("{} cannot be written", path.display())).because(failure),
    })?;
    println!("{}", path.display());
    Ok(ExitCode::SUCCESS)
}

fn minimal(arguments: &Arguments, failed: &Failed) -> Result<ExitCode> {
    let python = failed.python.clone().ok_or_else(|| {
        Error::user(format!("the run {} does not say which Python it was", failed.folder.id()))
            .hint("run the program with `cublame run -- ` before its command, and name that run")
    })?;
    // The command comes from a file that anybody may have written, so it is shown before it is run.
    let command = failed.run.argv.join(" ");
    eprintln!("cublame: this runs the program again, in {}:", failed.run.cwd);
    eprintln!("  {command}\n  {} (the interpreter of what failed)", python.display());
    if arguments.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !agreed(arguments.yes, "Run it?")? {
        return Ok(ExitCode::SUCCESS);
    }
    let made = minimal::make(failed, &python, &mut |what| eprintln!("cublame: {what}"))?;
    tell(&made);
    println!("{}", made.folder.join(minimal::PROGRAM).display());
    if made.reproduced {
        return Ok(ExitCode::SUCCESS);
    }
    let how = match &made.failed_with {
        Some((kind, exception)) => format!("it failed with {kind} ({exception}), which is another failure"),
        None => "alone it does not fail".to_owned(),
    };
    Err(Error::user(format!("the call was taken out, but {how}"))
        .hint("what it needs is in the state of the whole program: `cublame repro` bundles that"))
}

fn tell(made: &Minimal) {
    let size = size_in_words(usize::try_from(made.bytes).unwrap_or(usize::MAX));
    eprintln!("cublame: {} alone, {size}, after {} tries:", made.call, made.tries);
    for tensor in &made.tensors {
        let shape = tensor.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let kept = match (tensor.kept, tensor.shape.iter().product::<u64>()) {
            (0, _) => "all its values are the same".to_owned(),
            (kept, all) if kept == all && kept > 1 => "all its values are kept".to_owned(),
            (1, _) => "1 value is kept".to_owned(),
            (kept, all) => format!("{kept} of {all} values are kept"),
        };
        eprintln!("  {} {}[{shape}]: {kept}", tensor.name, tensor.dtype.trim_start_matches("torch."));
    }
    if let (true, Some((kind, exception))) = (made.reproduced, &made.failed_with) {
        eprintln!("cublame: reproduced: {kind} ({exception})");
    }
}

/// Asks on the terminal; without one, --yes is the only agreement.
fn agreed(yes: bool, question: &str) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(Error::user("there is no terminal to ask on").hint("add --yes to go on, or --dry-run to look only"));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|failure| Error::environment("cannot read from the terminal").because(failure))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The run's start: the same run gives the same archive.
fn modified(failed: &Failed) -> u64 {
    std::time::Duration::try_from_secs_f64(failed.run.started).map_or(0, |started| started.as_secs())
}
