//! What becomes of a debug session in the run folder: the run, what the debugger stands at, the report at the end.
//!
//! Everything here may block; the proxy calls it on a thread of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cublame_core::catalog::Texts;
use cublame_core::catalog::facts::UNRECOGNISED;
use cublame_core::config::launch_request::LaunchRequest;
use cublame_core::event::Exception;
use cublame_core::evidence::Evidence;
use cublame_core::log::Log;
use cublame_core::mode::{EnvBlock, Mode};
use cublame_core::run::{self, Exit, Run, Watch};
use cublame_core::{Place, Verdict};

use crate::os::processes;
use crate::render::terminal::{self, Style};
use crate::session::environment::{Current, environment_over};
use crate::session::folder::RunFolder;
use crate::session::mode::{Wishes, resolve_mode};
use crate::session::place::Surroundings;
use crate::session::recorder::Recorded;
use crate::session::supervise::Ran;
use crate::session::verdict::conclude;
use crate::session::{facts, index, retention, standing};
use crate::sources::{Judged, judge};

/// The run of one debug session.
pub struct Record {
    /// Where the proxy was started.
    cwd: PathBuf,
    /// The interpreter that a launch takes which names none.
    python: PathBuf,
    texts: &'static Texts,
    /// Where the run of a program may be that somebody else has started.
    runs_folders: Vec<PathBuf>,
    folder: Option<RunFolder>,
    /// Of a run that was made here, and whose report is written here.
    facts: Option<Run>,
    /// What the client was told already, by kind and place: the end of a run says nothing twice.
    told: Option<Identity>,
    /// The program's process, and what the debugger calls it.
    program: Option<(u32, String)>,
    concluded: bool,
}

/// What a launch gets.
#[derive(Debug, Default)]
pub struct Prepared {
    pub env: EnvBlock,
    /// What the user has to know about it, as whole sentences.
    pub notes: Vec<String>,
}

/// A verdict for a person to read in a debug console.
#[derive(Debug, Clone, PartialEq)]
pub struct Spoken {
    pub text: String,
    /// The culprit, where its file is on this machine.
    pub place: Option<Place>,
}

impl Record {
    pub fn new(cwd: PathBuf, python: PathBuf, texts: &'static Texts, runs_folders: Vec<PathBuf>) -> Self {
        let (folder, facts, told, program) = (None, None, None, None);
        Self { cwd, python, texts, runs_folders, folder, facts, told, program, concluded: false }
    }

    /// Makes the run of a program that is about to be launched, and the variables that it is to get.
    pub fn launch(&mut self, request: &LaunchRequest) -> Prepared {
        let cwd = self.cwd_of(request);
        let surroundings = Surroundings::of(cwd.clone());
        let mut current = Current::of_this_process();
        current.values = request.environment(current.values);
        let (mode, mut notes) = mode_of(request, &current, &surroundings);
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
        let env = environment_over(&current, mode, folder.as_ref(), Some("run".to_owned()), &mut notes);
        let mut argv = request.argv.clone();
        if let Some(python) = argv.first_mut().filter(|word| word.is_empty()) {
            *python = self.python.display().to_string();
        }
        let words: Vec<OsString> = argv.iter().map(Into::into).collect();
        let facts = Run {
            entry: facts::entry(&words, &cwd).map(|entry| entry.to_string_lossy().into_owned()),
            argv,
            blocking: mode == Mode::Blocking,
            env: facts::recorded_variables(current.values.into_iter().map(|(name, value)| (name.into(), value.into()))),
            ..self.facts_of(folder.as_ref(), mode, &cwd)
        };
        self.begin(folder, facts, &surroundings);
        Prepared { env, notes }
    }

    /// The launch was refused: an empty run explains nothing.
    pub fn forget(&mut self) {
        if let Some(folder) = self.folder.take() {
            // Where it cannot be deleted, retention tries again.
            folder.delete().ok();
        }
        self.facts = None;
    }

    /// The program runs as this process.
    pub fn started(&mut self, pid: u32, name: String) {
        self.program = Some((pid, name));
        match (&self.folder, &mut self.facts) {
            (Some(folder), Some(facts)) => {
                facts.child = Some(processes::identify(pid));
                // Only what stops a run by its folder misses it.
                folder.write_run(facts).ok();
                // While the program runs, so that its start need not wait. What cannot be deleted is tried again by the
                // next run.
                retention::apply(folder.siblings(), retention::LIMITS);
            }
            _ => self.folder = standing::run_of(pid, &self.runs_folders),
        }
    }

    /// The program stands at an exception that nobody will catch: it is written down for every editor, and judged.
    pub fn stands(&mut self, exception: Exception, log: &Log) -> Option<Spoken> {
        let pid = self.program.as_ref().map_or(0, |(pid, _)| *pid);
        let folder = self.found().or_else(|| self.adopt(pid))?;
        if log.total_bytes > 0 {
            folder.write_log(log).ok();
        }
        folder.stand_at(pid, exception).ok()?;
        let evidence = Evidence { exit: None, ..folder.evidence() };
        let judged = self.judged(&evidence);
        // Any exception stops a debugger, which shows it itself: most have nothing to do with a GPU.
        let first = judged.verdicts.first().filter(|verdict| verdict.kind != UNRECOGNISED)?;
        self.told = Some(identity(first));
        Some(spoken(first, &judged))
    }

    pub fn went_on(&mut self) {
        let Some((folder, (pid, _))) = self.folder.as_ref().zip(self.program.as_ref()) else { return };
        // Where the program has a hook, that has the word from now on.
        if folder.has_events_of(*pid) {
            folder.go_on(*pid).ok();
        }
    }

    /// The program has ended, or is out of sight. What was not said while it stood is said now.
    pub fn ended(&mut self, exit: Exit, log: Log) -> Option<Spoken> {
        if std::mem::replace(&mut self.concluded, true) {
            return None;
        }
        let folder = self.found()?;
        let Some(facts) = self.facts.take() else {
            // Whoever reads the run judges it, from what its processes left and from this.
            if log.total_bytes > 0 {
                folder.write_log(&log).ok();
            }
            return None;
        };
        let ran = Ran { exit, recorded: Some(Recorded { log, lost: 0 }), partial: Vec::new() };
        let concluded = conclude(Some(&folder), facts, ran, Vec::new(), self.texts);
        let first = concluded.judged.verdicts.first()?;
        let said = self.told == Some(identity(first));
        (!said && first.kind != UNRECOGNISED).then(|| spoken(first, &concluded.judged))
    }

    /// The run, if there is one by now: the program's own hook may have made it.
    fn found(&mut self) -> Option<RunFolder> {
        if self.folder.is_none() {
            let (pid, _) = self.program.as_ref()?;
            self.folder = standing::run_of(*pid, &self.runs_folders);
        }
        self.folder.clone()
    }

    /// A run for a program that has none: nothing of ours was put into its environment.
    fn adopt(&mut self, pid: u32) -> Option<RunFolder> {
        let surroundings = Surroundings::of(self.cwd.clone());
        let folder = RunFolder::create(&surroundings, SystemTime::now()).ok()?.folder;
        let name = self.program.as_ref().map(|(_, name)| name.clone()).unwrap_or_default();
        let facts = Run {
            watch: Watch::Adopted,
            runner: None,
            entry: facts::entry(&[OsString::from(&name)], &self.cwd).map(|entry| entry.to_string_lossy().into_owned()),
            argv: vec![name],
            child: Some(processes::identify(pid)),
            ..self.facts_of(Some(&folder), Mode::Off, &self.cwd)
        };
        self.begin(Some(folder), facts, &surroundings);
        self.facts = None;
        self.folder.clone()
    }

    fn begin(&mut self, folder: Option<RunFolder>, facts: Run, surroundings: &Surroundings) {
        if let Some(folder) = &folder {
            folder.write_run(&facts).ok();
            if let Some(state) = surroundings.state_folder() {
                let (run, cwd) = (folder.path().to_owned(), surroundings.cwd.clone());
                // Only editors that watch another folder miss it.
                index::append(&state, &index::Entry { run, cwd, started: facts.started }).ok();
            }
        }
        (self.folder, self.facts, self.concluded) = (folder, Some(facts), false);
    }

    fn facts_of(&self, folder: Option<&RunFolder>, mode: Mode, cwd: &Path) -> Run {
        Run {
            schema: run::SCHEMA,
            id: folder.map(|folder| folder.id().to_owned()).unwrap_or_default(),
            watch: Watch::Supervised,
            mode,
            argv: Vec::new(),
            cwd: cwd.to_string_lossy().into_owned(),
            entry: None,
            started: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
            host: processes::host_name(),
            runner: Some(processes::this_process()),
            child: None,
            blocking: false,
            env: BTreeMap::new(),
        }
    }

    /// As debugpy takes it: the request's own, else the folder of the program.
    fn cwd_of(&self, request: &LaunchRequest) -> PathBuf {
        self.cwd.join(request.cwd.as_deref().unwrap_or_default())
    }

    fn judged(&self, evidence: &Evidence) -> Judged {
        let cwd = evidence.run.as_ref().map_or_else(|| self.cwd.clone(), |run| PathBuf::from(&run.cwd));
        judge(evidence, &[], Some(&cwd), self.texts)
    }
}

/// The request's own word, else the variable, else the workspace's.
fn mode_of(request: &LaunchRequest, current: &Current, surroundings: &Surroundings) -> (Mode, Vec<String>) {
    let project = surroundings.project_folder(|path| path.exists());
    let named = request.mode.as_deref().filter(|word| !word.is_empty());
    let wishes = Wishes {
        variable: named.map(str::to_owned).or_else(|| current.values.get("CUBLAME_MODE").cloned()),
        blocking_is_on: current.values.get("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value == "1"),
        ..Wishes::read(None, &project)
    };
    let (mode, mut notes) = resolve_mode(&wishes);
    if mode == Mode::Sanitize {
        notes.push(
            "a debugger cannot start the sanitizer, so this session runs in mode off; \
             `cublame run --mode sanitize` runs the program under it."
                .to_owned(),
        );
        return (Mode::Off, notes);
    }
    (mode, notes)
}

/// A kind at a line of a file.
pub type Identity = (String, Option<(String, u32)>);

/// The program's own traceback may name a file as it was typed, where the debugger has its path.
pub fn identity(verdict: &Verdict) -> Identity {
    let place = verdict.place.as_ref();
    let file = |place: &Place| place.path.clone().unwrap_or_else(|| place.file.clone());
    (verdict.kind.clone(), place.map(|place| (file(place), place.line)))
}

fn spoken(first: &Verdict, judged: &Judged) -> Spoken {
    let text = terminal::render(&judged.verdicts, &judged.sources, Style::PLAIN);
    Spoken { text, place: first.place.clone().filter(|place| place.path.is_some()) }
}
