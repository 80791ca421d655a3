//! The failing call alone: the program is run again with that call's inputs kept, and they become a program of their own,
//! which is made small and run.

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use cublame_core::run::Report;
use cublame_core::{Certainty, Place, Verdict};
use serde::Deserialize;

use super::choose::Failed;
use crate::error::{Error, Result};
use crate::hook;

/// What is in the folder of a minimal reproducer.
pub const PROGRAM: &str = "repro.py";
pub const TENSORS: &str = "tensors.pt";
const OUTCOME: &str = "outcome.json";

/// Seconds for making it small.
const SECONDS_FOR_LESS: &str = "150";

/// What came of it.
#[derive(Debug)]
pub struct Minimal {
    pub folder: PathBuf,
    pub call: String,
    pub tensors: Vec<KeptTensor>,
    pub tries: u32,
    /// Of the whole folder.
    pub bytes: u64,
    /// The kind and the exception with which `repro.py` failed when it was run.
    pub failed_with: Option<(String, String)>,
    pub reproduced: bool,
}

#[derive(Debug, Deserialize)]
pub struct KeptTensor {
    pub name: String,
    pub shape: Vec<u64>,
    pub dtype: String,
    /// How many values are left; the others are all the same.
    pub kept: u64,
}

/// What the reducer writes.
#[derive(Debug, Deserialize)]
struct Outcome {
    /// Why there is no reproducer.
    why: Option<Why>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    argument: String,
    #[serde(default)]
    tries: u32,
    #[serde(default)]
    tensors: Vec<KeptTensor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Why {
    NoCall,
    UnknownArgument,
    NotAlone,
}

/// Beside the run, and gone with it.
pub fn folder_of(failed: &Failed) -> PathBuf {
    failed.folder.path().join("repro")
}

/// Runs the program again, and whatever it takes. `say` tells the user what is being done.
pub fn make(failed: &Failed, python: &Path, say: &mut dyn FnMut(&str)) -> Result<Minimal> {
    let wanted = first_verdict(&failed.judged.verdicts)?;
    let work = tempfile::Builder::new()
        .prefix("cublame-repro-")
        .tempdir()
        .map_err(|failure| Error::environment("no temporary folder can be made").because(failure))?;
    let again = Again { failed, work: work.path() };
    let cwd = Path::new(&failed.run.cwd);

    let place = match proved_place(wanted) {
        Some(place) => place,
        None => {
            say("the line is not proved yet: the program is run again with blocking launches first");
            let report = again.run("line", &failed.run.argv, cwd, Output::Shown, &[])?;
            let verdict = first_verdict(&report.verdicts)?;
            verdict.place.clone().or_else(|| verdict.reported.clone()).ok_or_else(|| no_line(&failed.run.id))?
        }
    };
    let file = place.path.as_ref().ok_or_else(|| no_line(&failed.run.id))?;
    say(&format!("the program is run again, and the inputs of the call at {}:{} are kept", place.file, place.line));
    let captured = work.path().join("captured");
    make_folder(&captured)?;
    let capture = format!("{}\n{file}\n{}", captured.display(), place.line);
    let report = again.run("capture", &failed.run.argv, cwd, Output::Shown, &[("CUBLAME_CAPTURE", &capture)])?;
    let again_verdict = report.verdicts.first();
    if again_verdict.is_none() {
        return Err(Error::user("the program did not fail this time, so there is no call to take out of it")
            .hint("set the seeds of its random numbers, or run it until it fails and name that run"));
    }

    if is_empty(&captured) {
        return Err(none_of_torchs(&place));
    }
    let made = work.path().join("made");
    make_folder(&made)?;
    say("the call is made smaller, and tried after each step");
    let outcome = reduce(python, &captured, &made)?;
    if let Some(why @ (Why::NoCall | Why::UnknownArgument)) = outcome.why {
        return Err(match why {
            Why::UnknownArgument => cannot_be_written(&outcome, &place),
            Why::NoCall | Why::NotAlone => none_of_torchs(&place),
        });
    }
    let folder = folder_of(failed);
    put(&made, &folder)?;

    say(&format!("{} is run", folder.join(PROGRAM).display()));
    let argv = [python.display().to_string(), PROGRAM.to_owned()];
    let report = again.run("check", &argv, &folder, Output::Hidden, &[])?;
    let kind = |verdict: &Verdict| {
        let exception = verdict.exception.as_ref().map(|it| it.type_name.clone()).unwrap_or_default();
        (verdict.kind.clone(), exception)
    };
    let failed_with = report.verdicts.first().map(kind);
    let reproduced = failed_with.is_some() && failed_with == again_verdict.map(kind);
    let bytes = bytes_of(&folder);
    Ok(Minimal {
        folder,
        call: outcome.name,
        tensors: outcome.tensors,
        tries: outcome.tries,
        bytes,
        failed_with,
        reproduced,
    })
}

/// The root cause: the first verdict.
fn first_verdict(verdicts: &[Verdict]) -> Result<&Verdict> {
    verdicts
        .first()
        .ok_or_else(|| Error::user("the program did not fail this time, so its failing call cannot be found"))
}

/// The line, where nothing needs to be run to be sure of it.
fn proved_place(verdict: &Verdict) -> Option<Place> {
    verdict.place.clone().filter(|place| verdict.certainty == Certainty::Exact && place.path.is_some())
}

fn no_line(run: &str) -> Error {
    Error::user(format!("which line failed is not known of the run {run}, so its call cannot be taken out"))
        .hint("`cublame repro` without --minimal still bundles the run")
}

/// What becomes of what a program prints: of a long training, the user wants to see how far it is.
#[derive(Debug, Clone, Copy)]
enum Output {
    Shown,
    Hidden,
}

/// Runs of this program that leave no trace in the user's project: what they record is in the temporary folder.
struct Again<'a> {
    failed: &'a Failed,
    work: &'a Path,
}

impl Again<'_> {
    /// In mode blocking. The report says how it failed.
    fn run(&self, name: &str, argv: &[String], cwd: &Path, output: Output, env: &[(&str, &str)]) -> Result<Report> {
        let report = self.work.join(format!("{name}.json"));
        let mut words: Vec<OsString> =
            ["run", "--quiet", "--mode", "blocking", "--report"].map(OsString::from).to_vec();
        words.extend([report.clone().into_os_string(), "--".into()]);
        words.extend(argv.iter().map(OsString::from));
        let mut command = Command::new(this_program()?);
        command.args(words).current_dir(cwd).stdin(Stdio::null());
        match output {
            Output::Shown => command.stdout(on_stderr()?),
            Output::Hidden => command.stdout(Stdio::null()).stderr(Stdio::null()),
        };
        command.env("CUBLAME_DIR", self.work.join("runs")).env("XDG_STATE_HOME", self.work.join("state"));
        command.env_remove("CUBLAME_RUN").env_remove("CUBLAME_MODE").env_remove("CUBLAME_CAPTURE");
        // Which GPUs the run saw decides about the rest; no other recorded variable is believed.
        if let Some(devices) = self.failed.run.env.get("CUDA_VISIBLE_DEVICES") {
            command.env("CUDA_VISIBLE_DEVICES", devices);
        }
        command.envs(env.iter().copied());
        let status = wait(command, "the program could not be run again")?;
        let text = fs::read_to_string(&report).map_err(|failure| {
            Error::environment(format!("the program was not run again ({status})")).because(failure)
        })?;
        serde_json::from_str(&text)
            .map_err(|failure| Error::internal("the report of the run cannot be read").because(failure))
    }
}

fn reduce(python: &Path, captured: &Path, made: &Path) -> Result<Outcome> {
    let script = hook::install()?.join("_cublame_reduce.py");
    let mut command = Command::new(python);
    command.arg("-I").arg(script).arg(captured).arg(made).arg(SECONDS_FOR_LESS);
    command.stdin(Stdio::null()).stdout(on_stderr()?).env("PYTHONDONTWRITEBYTECODE", "1");
    let status = wait(command, "Python could not be started")?;
    let text = fs::read_to_string(made.join(OUTCOME))
        .map_err(|failure| Error::internal(format!("the reproducer could not be made ({status})")).because(failure))?;
    serde_json::from_str(&text).map_err(|failure| Error::internal("what was made cannot be read").because(failure))
}

const BUNDLE_INSTEAD: &str = "`cublame repro` without --minimal still bundles the run";

fn cannot_be_written(outcome: &Outcome, place: &Place) -> Error {
    let (name, argument) = (&outcome.name, &outcome.argument);
    Error::user(format!("the call of {name} at {}:{} cannot be written down: {argument}", place.file, place.line))
        .hint(BUNDLE_INSTEAD)
}

fn none_of_torchs(place: &Place) -> Error {
    let line = format!("{}:{}", place.file, place.line);
    Error::user(format!("the failing call at {line} is none of torch's functions, and only those can be taken out"))
        .hint(BUNDLE_INSTEAD)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

/// In place of what an earlier one left.
fn put(made: &Path, folder: &Path) -> Result<()> {
    let refused = |failure: std::io::Error| {
        Error::environment(format!("{} cannot be written", folder.display())).because(failure)
    };
    for name in [PROGRAM, TENSORS, OUTCOME] {
        match fs::remove_file(folder.join(name)) {
            Err(failure) if failure.kind() != std::io::ErrorKind::NotFound => return Err(refused(failure)),
            _ => {}
        }
    }
    make_folder(folder)?;
    for name in [PROGRAM, TENSORS].into_iter().filter(|name| made.join(name).exists()) {
        fs::copy(made.join(name), folder.join(name)).map_err(refused)?;
    }
    Ok(())
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .map_err(|failure| Error::environment(format!("{} cannot be made", folder.display())).because(failure))
}

fn bytes_of(folder: &Path) -> u64 {
    let sizes = [PROGRAM, TENSORS].into_iter().filter_map(|name| fs::metadata(folder.join(name)).ok());
    sizes.map(|about| about.len()).sum()
}

fn this_program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|failure| Error::environment("the path of this program cannot be read").because(failure))
}

/// Standard output is for what was asked for; what the program prints meanwhile is not.
fn on_stderr() -> Result<Stdio> {
    let copy = std::io::stderr().as_fd().try_clone_to_owned();
    copy.map(Stdio::from).map_err(|failure| Error::environment("standard error is closed").because(failure))
}

fn wait(mut command: Command, refused: &str) -> Result<ExitStatus> {
    command.status().map_err(|failure| Error::environment(refused).because(failure))
}
