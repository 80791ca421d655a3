//! `cublame run`: a program in a mode, its streams, signals and exit code untouched, and the verdict at a failure.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use cublame_core::Evidence;
use cublame_core::catalog::Texts;
use cublame_core::config::launchers::{is_torchrun, not_carried};
use cublame_core::hang::{Hang, several_gpus_at};
use cublame_core::mode::{EnvBlock, Half, Mode, Variable, prefix};
use cublame_core::run::{self, Exit, ProcessId, Run, Watch};

use super::debug::Debugger;
use crate::dap::record::{Identity, identity};
use crate::os::{processes, signals};
use crate::render::terminal;
use crate::session::environment::environment;
use crate::session::folder::{ELASTIC, RunFolder};
use crate::session::journals::Journals;
use crate::session::mode::{Wishes, resolve_mode};
use crate::session::place::Surroundings;
use crate::session::supervise::{Job, NotStarted, OnHang, Ran, supervise};
use crate::session::task::Task;
use crate::session::telemetry::Telemetry;
use crate::session::traced::CORES;
use crate::session::verdict::{Concluded, conclude, write_copy};
use crate::session::{facts, index, journals, retention};
use crate::sources::judge;

#[derive(Debug, Args)]
pub struct Arguments {
    /// off, blocking, trace, core, guard or sanitize (else CUBLAME_MODE, else the workspace's .cublame/mode)
    #[arg(long, value_name = "MODE")]
    pub(super) mode: Option<Mode>,
    /// Write the report (JSON) to this file as well
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Record which lines of a PyTorch program hold the GPU's memory, for when it runs out
    #[arg(long)]
    pub(super) memory: bool,
    /// Have autograd record forward calls, so that a failure in backward is placed at its forward line; slow
    #[arg(long)]
    pub(super) anomaly: bool,
    /// Say nothing about the failure: who started the run reads the report
    #[arg(long, hide = true)]
    pub(super) quiet: bool,
    /// Ask each Python process where it stands when the run has said nothing for so long; the run goes on
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    hang_after: Option<u32>,
    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,
}

/// Whatever fails before the child starts; as with docker and timeout.
pub const OWN_FAILURE: u8 = 125;

/// Returns the child's exit code, or 125 to 127 when it never started.
pub fn main(arguments: &Arguments) -> ExitCode {
    run(arguments, None)
}

/// The same; `debugger` holds the program at its failure.
pub(super) fn run(arguments: &Arguments, debugger: Option<Debugger>) -> ExitCode {
    signals::survive_file_size_limits();
    let surroundings = Surroundings::of_this_process();
    let wishes = Wishes::read(arguments.mode, &surroundings.project_folder(|path| path.exists()));
    let (mut mode, mut notes) = resolve_mode(&wishes);
    if debugger.is_some() && mode == Mode::Sanitize {
        notes.push("a debugger cannot start the sanitizer, so this run goes in mode off.".to_owned());
        mode = Mode::Off;
    }
    let folder = match RunFolder::create(&surroundings, SystemTime::now()) {
        Ok(created) => {
            notes.extend(created.notes);
            Some(created.folder)
        }
        Err(error) => {
            notes.push(format!("no report will be written: {error}"));
            None
        }
    };
    let task = Task::of(|name| std::env::var(name).ok());
    let (run, folder) = shared_with_the_job(folder, task.as_ref(), &mut notes);
    // A debugger reads the launches while the program stands, so they go into the run folder at once.
    let traced = matches!(mode, Mode::Trace | Mode::Core) && debugger.is_none();
    let journals = if traced { prepare_journals(mode, folder.as_ref(), &mut notes) } else { None };
    let journal = journals.as_ref().map(Journals::value).or(debugger.as_ref().map(|_| "run".to_owned()));
    let mut env = environment(mode, folder.as_ref(), journal, &mut notes);
    if let Some(folder) = &folder {
        env.variables.extend(error_file_of_torchrun(&arguments.command, folder));
    }
    env.variables.extend(debugger.iter().map(Debugger::variable));
    env.ask_for(arguments.memory, arguments.anomaly);
    notes.extend(lost_on_the_way(&arguments.command, &env));
    notes.extend(may_block_for_ever(mode, &arguments.command, &surroundings.cwd));
    notes.iter().for_each(|note| say(note));

    let mut facts = facts_of_run(&arguments.command, &surroundings.cwd, mode, run.as_ref());
    let (mut unwritten, mut clearing) = (Vec::new(), None);
    let texts = Texts::get(super::language_of_the_environment());
    let (argv, stage) = match debugger {
        Some(debugger) => debugger.start(folder.clone(), &surroundings.cwd, texts),
        None => (with_prefix(mode, &arguments.command), None),
    };
    let job = Job {
        argv: &argv,
        env: &env,
        run: folder.as_ref().map(RunFolder::path),
        hang: arguments.hang_after.map(|after| OnHang { after: Duration::from_secs(after.into()), tell: tell_of_hang }),
        also: stage.as_ref().map(|stage| &stage.output),
    };
    let mut sampling = None;
    let outcome = supervise(&job, |child| {
        sampling = Telemetry::start(std::env::var("CUDA_VISIBLE_DEVICES").ok());
        facts.child = Some(child);
        unwritten = record_start(run.as_ref(), &surroundings, &facts);
        clearing = run.as_ref().and_then(clear_old_runs);
    });
    let ran = match outcome {
        Ok(ran) => ran,
        Err(NotStarted { code, error }) => {
            // An empty run explains nothing; where it cannot be deleted, retention tries again.
            folder.filter(|folder| folder.job().is_none()).map(RunFolder::delete);
            say(&error.to_string());
            return ExitCode::from(code);
        }
    };
    let telemetry = sampling.map(Telemetry::finish).unwrap_or_default();
    let unkept = journals.zip(folder.as_ref()).map(|(journals, folder)| journals.keep(folder.path()));
    let partial = unwritten.into_iter().chain(ran.partial).chain(unkept.into_iter().flatten()).collect();
    let ran = Ran { partial, ..ran };
    let exit = ran.exit;
    let mut concluded = conclude(folder.as_ref(), facts, ran, telemetry, texts);
    if let Some(file) = &arguments.report
        && let Err(failure) = write_copy(&concluded.report, file)
    {
        concluded.report.partial.push(format!("{} could not be written: {failure}.", file.display()));
    }
    let shown = stage.and_then(|stage| stage.shown());
    if !arguments.quiet {
        tell(&concluded, task.as_ref(), exit, shown);
    }
    // Where old runs are still being deleted nobody waits: the next run goes on with it.
    if let Some(Ok(failures)) = clearing.filter(JoinHandle::is_finished).map(JoinHandle::join) {
        failures.iter().for_each(|failure| say(failure));
    }
    ExitCode::from(exit_code(exit))
}

/// The child's own code, or 128+N after signal N, as shells count.
fn exit_code(exit: Exit) -> u8 {
    let code = exit.code.or_else(|| exit.signal.map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(OWN_FAILURE)
}

/// The run, and this runner's part of it: the same but for a task of a job, whose runners share one run. There only the
/// task that announced the run writes `run.json`: the others have none to write to.
fn shared_with_the_job(
    created: Option<RunFolder>,
    task: Option<&Task>,
    notes: &mut Vec<String>,
) -> (Option<RunFolder>, Option<RunFolder>) {
    let (Some(created), Some(task)) = (created.clone(), task) else { return (created.clone(), created) };
    let alone = created.clone();
    let joined = task.join(created).and_then(|(run, first)| Ok((first.then(|| run.clone()), run.of_task(task.rank)?)));
    match joined {
        Ok((run, own)) => (run, Some(own)),
        Err(failure) => {
            notes
                .push(format!("each task of this job has a report of its own, since they cannot share one: {failure}"));
            (Some(alone.clone()), Some(alone))
        }
    }
}

/// The command behind the mode's own, which is looked for where NVIDIA's installers put it as well as on PATH.
fn with_prefix(mode: Mode, command: &[OsString]) -> Vec<OsString> {
    let mut prefix: Vec<OsString> = prefix(mode).into_iter().map(OsString::from).collect();
    if let Some(tool) = prefix.first_mut() {
        let installed = Path::new("/usr/local/cuda/bin").join(&*tool);
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&paths).any(|folder| folder.join(&*tool).is_file());
        if !on_path && installed.is_file() {
            *tool = installed.into_os_string();
        }
    }
    prefix.extend_from_slice(command);
    prefix
}

/// The memory that a traced child writes its launches into, and in mode core the folder of the driver's dumps.
fn prepare_journals(mode: Mode, folder: Option<&RunFolder>, notes: &mut Vec<String>) -> Option<Journals> {
    let dumps = folder.filter(|_| mode == Mode::Core).map(|folder| journals::make_folder(folder.path(), CORES));
    let prepared = dumps.unwrap_or(Ok(())).and_then(|()| Journals::prepare());
    prepared.map_err(|failure| notes.push(format!("launches are not traced: no memory for them ({failure})"))).ok()
}

/// Where torchrun is to write what it knows of the worker that failed first; the user's own choice stays.
fn error_file_of_torchrun(argv: &[OsString], folder: &RunFolder) -> Option<Variable> {
    const NAME: &str = "TORCHELASTIC_ERROR_FILE";
    let argv: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let wanted = is_torchrun(&argv) && std::env::var_os(NAME).is_none();
    let value = folder.path().join(ELASTIC).to_str().map(str::to_owned).filter(|_| wanted)?;
    Some(Variable { name: NAME, value, half: Half::Launch, why: "torchrun writes there which worker failed first." })
}

/// The warning of a program that drives several GPUs from one process.
fn may_block_for_ever(mode: Mode, argv: &[OsString], cwd: &Path) -> Option<String> {
    let program = facts::entry(argv, cwd).filter(|_| mode == Mode::Blocking)?;
    let line = several_gpus_at(&std::fs::read_to_string(&program).ok()?)?;
    Some(format!(
        "{}:{line} drives several GPUs from one process; with blocking launches they may wait for each other for ever. \
         If it stands still, `--hang-after 60` says where, and `--mode trace` does without.",
        program.display()
    ))
}

/// What to say of a launcher that does not hand the variables on to the program.
fn lost_on_the_way(argv: &[OsString], env: &EnvBlock) -> Option<String> {
    let argv: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let pairs: Vec<(&str, &str)> = env.shared().map(|variable| (variable.name, variable.value.as_str())).collect();
    let lost = not_carried(&argv, &pairs)?;
    let add = lost.add.map(|add| format!("; it needs `{add}`")).unwrap_or_default();
    Some(format!("{}: {}, so failures are read from the output alone{add}.", lost.launcher, lost.what))
}

fn facts_of_run(argv: &[OsString], cwd: &Path, mode: Mode, folder: Option<&RunFolder>) -> Run {
    let text = |text: &OsString| text.to_string_lossy().into_owned();
    Run {
        schema: run::SCHEMA,
        id: folder.map(|folder| folder.id().to_owned()).unwrap_or_default(),
        watch: Watch::Supervised,
        mode,
        argv: argv.iter().map(text).collect(),
        cwd: cwd.to_string_lossy().into_owned(),
        entry: facts::entry(argv, cwd).map(|entry| entry.to_string_lossy().into_owned()),
        started: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        host: processes::host_name(),
        runner: Some(processes::this_process()),
        child: None::<ProcessId>,
        blocking: mode == Mode::Blocking,
        env: facts::recorded_variables(std::env::vars_os()),
    }
}

/// After the child's start, which it must not delay. Returns what could not be written.
fn record_start(folder: Option<&RunFolder>, surroundings: &Surroundings, facts: &Run) -> Vec<String> {
    let Some(folder) = folder else { return Vec::new() };
    let mut unwritten = Vec::new();
    if let Err(failure) = folder.write_run(facts) {
        unwritten.push(format!("run.json could not be written: {failure}."));
    }
    if let Some(state) = surroundings.state_folder() {
        let (run, cwd) = (folder.path().to_owned(), surroundings.cwd.clone());
        // Only editors that watch another folder miss it.
        index::append(&state, &index::Entry { run, cwd, started: facts.started }).ok();
    }
    unwritten
}

/// While the child runs, so that it costs the run no time.
fn clear_old_runs(folder: &RunFolder) -> Option<JoinHandle<Vec<String>>> {
    let runs = folder.siblings().to_owned();
    // Without a thread to be had, the next run does it.
    thread::Builder::new().name("clearing".to_owned()).spawn(move || retention::apply(&runs, retention::LIMITS)).ok()
}

/// The verdicts at a failure, and what the report lacks. A success of which everything was kept says nothing.
/// What a person has `shown` already is not said again.
fn tell(concluded: &Concluded, task: Option<&Task>, exit: Exit, shown: Option<Identity>) {
    let Concluded { report, judged } = concluded;
    let known = shown.is_some() && judged.verdicts.first().map(identity) == shown;
    let failed = !report.exit.success() || judged.verdicts.iter().any(|verdict| verdict.fatal);
    let root = judged.verdicts.first().and_then(|verdict| verdict.rank);
    if let Some((task, root)) = task.zip(root).filter(|(task, root)| task.rank != *root) {
        // The task of that rank says the rest.
        if !exit.success() {
            say(&format!("rank {root} failed first; rank {} only followed.", task.rank));
        }
    } else if failed && !known && !judged.verdicts.is_empty() {
        let text = terminal::render(&judged.verdicts, &judged.sources, terminal::Style::of_stderr());
        write_to_stderr(&text);
    }
    if !report.partial.is_empty() {
        say(&format!("the report is partial.\n  {}", report.partial.join("\n  ")));
    }
}

/// Written down for editors, and shown: where each process stands, while the run goes on.
fn tell_of_hang(run: &Path, hang: Option<Hang>) {
    let Ok(folder) = RunFolder::open(run) else { return };
    // A folder that was removed meanwhile is no reason to say nothing.
    let written = folder.write_hang(hang.as_ref());
    let Some(hang) = hang else { return };
    let silent = hang.silent;
    if let Err(failure) = written {
        say(&format!("hang.json could not be written: {failure}."));
    }
    let known = folder.evidence();
    let evidence = Evidence { hang: Some(hang), run: known.run, processes: known.processes, ..Evidence::default() };
    let texts = Texts::get(super::language_of_the_environment());
    let judged = judge(&evidence, &[], None, texts);
    if judged.verdicts.is_empty() {
        say(&format!(
            "the run has said nothing for {silent} seconds, and none of its processes tells where it stands."
        ));
    } else {
        write_to_stderr(&terminal::render(&judged.verdicts, &judged.sources, terminal::Style::of_stderr()));
        say("the run goes on.");
    }
}

fn say(text: &str) {
    write_to_stderr(&format!("cublame: {text}\n"));
}

/// A closed stderr is no reason to fail.
fn write_to_stderr(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).ok();
}
