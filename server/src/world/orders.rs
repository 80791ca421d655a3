//! What the user can order. The set is closed, and every order is answered at once: what takes time shows itself later.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cublame_core::Verdict;
use cublame_core::advice::is_for_terminal;
use cublame_core::catalog::Texts;
use cublame_core::mode::Mode;
use cublame_core::scrub::scrub;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::configuring::Wanted;
use super::reading::{self, Surveyed};
use super::standing::KnownRun;
use super::starting::Start;
use super::{Editor, Event, Level, World, survey, unix_now};
use crate::doctor::{self, Whom};
use crate::interpreter::{self, Interpreter};
use crate::os::processes;
use crate::render::{self, markdown};
use crate::session::folder::{self, RunFolder};
use crate::session::mode::Wishes;
use crate::session::place::Surroundings;
use crate::session::{Told, tell};

/// A command of the user's, with what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Runs a Python program of the workspace.
    Run {
        program: PathBuf,
        arguments: Vec<String>,
        mode: Option<Mode>,
        debug: bool,
    },
    Stop {
        run: Option<String>,
    },
    /// Runs a run's command again, after the user has seen it.
    Rerun {
        run: String,
        mode: Option<Mode>,
    },
    /// Writes the workspace's default mode.
    SetMode {
        mode: Mode,
        /// One of the roots; without it, all of them.
        folder: Option<PathBuf>,
        /// Nothing is said when it is done.
        quiet: bool,
    },
    /// Writes or takes away run configurations.
    Configure(Wanted),
    /// Blames a log that the user has at hand.
    Explain {
        text: String,
        blocking: bool,
        /// Nothing is said about it, whatever it holds.
        live: bool,
    },
    /// Takes everything away that is shown now. What is on disk stays.
    Clear,
    /// Takes one run's failure away, for every server and for good.
    Dismiss {
        run: String,
    },
    /// Removes the folder of a run that has ended.
    Delete {
        run: String,
    },
    /// The report of a run, or of the newest failure, as Markdown.
    CopyReport {
        run: Option<String>,
    },
    OpenReport {
        run: Option<String>,
    },
    /// Runs the command of an advice in a terminal, after the user has seen it.
    FollowAdvice {
        run: String,
        index: usize,
        advice: String,
    },
    /// Runs a run's command again, and makes a program of the failing call alone.
    Repro {
        run: Option<String>,
    },
    /// Examines the machine, and the project's Python where the workspace is trusted.
    Doctor {
        trusted: bool,
    },
}

/// Where the outcome of an order is waited for.
pub type Answer = oneshot::Sender<Result<Value, Refusal>>;

/// Why an order is not carried out: one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

/// What was asked and not answered yet.
#[derive(Debug, Default)]
pub struct Questions {
    last: u64,
    open: BTreeMap<u64, Asked>,
}

/// What a yes is the answer to.
#[derive(Debug)]
enum Asked {
    /// To run this again, in this root.
    Rerun(Start, PathBuf),
    /// To run this command line in a terminal.
    Terminal(String, PathBuf),
}

/// What follows when a file was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    Open(PathBuf),
    Look,
    Tell(String),
}

/// Keys of the catalogue.
const CHOICES: [&str; 3] = ["run", "always", "cancel"];
const ONCE: [&str; 2] = ["run", "cancel"];

impl<E: Editor> World<E> {
    /// Carries an order out and answers it. Who asked may have given up waiting.
    pub(super) fn order(&mut self, order: Order, answer: Answer) {
        let outcome = match order {
            Order::Run { program, arguments, mode, debug } => self.run_program(&program, arguments, mode, debug),
            Order::Stop { run } => self.stop_run(run.as_deref()).map(|id| json!({ "run": id })),
            Order::Rerun { run, mode } => self.rerun(&run, mode),
            Order::SetMode { mode, folder, quiet } => self.set_mode(mode, folder, quiet),
            // It is answered once the files are read.
            Order::Configure(wanted) => return self.configure(wanted, answer),
            Order::Explain { text, blocking, live } => Ok(json!({ "run": self.explain(text, blocking, live) })),
            Order::Clear => Ok(self.clear()),
            Order::Dismiss { run } => self.dismiss(&run),
            Order::Delete { run } => self.delete(&run),
            Order::CopyReport { run } => self.reported(run.as_deref()).map(|run| handed_on(&run, self.texts()).into()),
            Order::OpenReport { run } => self.open_report(run.as_deref()),
            Order::FollowAdvice { run, index, advice } => self.follow_advice(&run, index, &advice),
            Order::Repro { run } => self.reproduce(run.as_deref()),
            Order::Doctor { trusted } => self.examine(trusted),
        };
        answer.send(outcome).ok();
    }

    pub(super) fn answered(&mut self, question: u64, choice: Option<usize>) {
        let (start, root) = match self.questions.open.remove(&question) {
            Some(Asked::Rerun(start, root)) => (start, root),
            Some(Asked::Terminal(command, folder)) if choice == Some(0) => return self.type_in(&command, &folder),
            Some(Asked::Terminal(..)) | None => return,
        };
        match choice {
            Some(0) => {}
            Some(1) => self.remember_consent(&root),
            _ => return,
        }
        if let Err(failure) = self.start(&start) {
            self.editor.tell(Level::Warning, failure);
        }
    }

    pub(super) fn written(&mut self, outcome: Result<(), String>, then: Then) {
        match (outcome, then) {
            (Err(failure), _) => self.editor.tell(Level::Warning, failure),
            (Ok(()), Then::Open(path)) => self.editor.open(&path),
            (Ok(()), Then::Look) => self.look(),
            (Ok(()), Then::Tell(text)) => self.editor.tell(Level::Info, text),
        }
    }

    fn run_program(
        &mut self,
        program: &Path,
        arguments: Vec<String>,
        mode: Option<Mode>,
        debug: bool,
    ) -> Result<Value, Refusal> {
        let mut argv = vec![self.interpreter(program).path.display().to_string(), program.display().to_string()];
        argv.extend(arguments);
        let cwd = self.root_of(program).map(Path::to_owned).or_else(|| program.parent().map(Path::to_owned));
        let cwd = cwd.unwrap_or_default();
        let mode = mode.or_else(|| self.setting_of_mode(&cwd));
        let hang_seconds = self.settings.hang_seconds;
        let start = Start { argv, cwd, mode, hang_seconds, reproduces: None, debug };
        Ok(started(self.start(&start).map_err(Refusal)?))
    }

    /// The editor's setting is for projects in which nobody has chosen a mode.
    fn setting_of_mode(&self, cwd: &Path) -> Option<Mode> {
        let around = Surroundings { cwd: cwd.to_owned(), ..self.surroundings.clone() };
        let wishes = Wishes::read(None, &around.project_folder(|path| path.exists()));
        self.settings.mode.filter(|_| wishes.is_silent())
    }

    fn clear(&mut self) -> Value {
        self.gone.extend(self.shown.values().flat_map(|findings| findings.iter()).map(|it| (it.run.clone(), it.index)));
        self.recompute();
        Value::Null
    }

    fn open_report(&self, run: Option<&str>) -> Result<Value, Refusal> {
        let run = self.reported(run)?;
        let path = self.page_of(&run)?;
        let texts = self.texts();
        self.write(Then::Open(path.clone()), move || {
            let folder = Some(&run.folder).filter(|folder| folder.is_absolute());
            // The folder has more to tell than the server keeps. A pasted log has none.
            let told = folder.and_then(|folder| tell(&RunFolder::open(folder).ok()?, texts).ok());
            write_aside(&path, &render::page::page(&told.unwrap_or_else(|| known(&run)), texts))
        });
        Ok(Value::Null)
    }

    /// The page opens when the driver and the interpreter have answered, seconds later.
    fn examine(&mut self, trusted: bool) -> Result<Value, Refusal> {
        let path = self.state_file("doctor.md")?;
        let root = self.roots.first().cloned().unwrap_or_default();
        let whom = if trusted { Whom::Chosen(self.interpreter(&root)) } else { Whom::Nobody };
        let texts = self.texts();
        let cublame = self.cublame.clone();
        self.write(Then::Open(path.clone()), move || {
            write_aside(&path, &render::doctor::page(&doctor::examine(&whom, &cublame, texts)))
        });
        Ok(Value::Null)
    }

    fn rerun(&mut self, id: &str, mode: Option<Mode>) -> Result<Value, Refusal> {
        let run = self.run(id)?;
        let mode = mode.or(Some(run.run.mode));
        let mode_word = mode.map(Mode::name).unwrap_or_default();
        let question = self.say("rerun-in-mode", &[("mode", mode_word), ("folder", &run.run.cwd)]);
        self.run_again(&run, question, mode, None)
    }

    fn reproduce(&mut self, id: Option<&str>) -> Result<Value, Refusal> {
        let run = self.reported(id)?;
        if !run.folder.is_absolute() {
            return Err(self.refused("pasted", &[]));
        }
        let folder = run.folder.clone();
        let question = self.say("reproduce", &[("folder", &run.run.cwd)]);
        self.run_again(&run, question, None, Some(folder))
    }

    /// The command comes from a file that anybody may have written, so it is shown before it is run.
    fn run_again(
        &mut self,
        run: &KnownRun,
        question: String,
        mode: Option<Mode>,
        reproduces: Option<PathBuf>,
    ) -> Result<Value, Refusal> {
        let start = Start {
            argv: run.run.argv.clone(),
            cwd: PathBuf::from(&run.run.cwd),
            mode,
            hang_seconds: self.settings.hang_seconds,
            reproduces,
            debug: false,
        };
        if start.argv.is_empty() {
            return Err(self.refused("no-command", &[("run", &run.run.id)]));
        }
        let root = self.root_of(&start.cwd).unwrap_or(&start.cwd).to_owned();
        if self.consents.contains(&root) {
            return Ok(started(self.start(&start).map_err(Refusal)?));
        }
        let text = format!("{question}\n{}", quoted(&start.argv));
        self.ask(Asked::Rerun(start, root), text, &CHOICES);
        Ok(json!({ "asked": true }))
    }

    /// The words of the command are the catalogue's, but the interpreter in it is the run's: it is shown before it is run.
    fn follow_advice(&mut self, id: &str, index: usize, advice: &str) -> Result<Value, Refusal> {
        let run = self.run(id)?;
        let advised = run.verdicts.get(index).and_then(|verdict| verdict.advice.iter().find(|it| it.id == advice));
        let command = advised.filter(|it| is_for_terminal(&it.id)).and_then(|it| it.command.clone());
        let command = command.ok_or_else(|| self.refused("no-advice", &[("run", id), ("advice", advice)]))?;
        let folder = PathBuf::from(&run.run.cwd);
        let text = format!("{}\n{command}", self.say("in-terminal", &[]));
        self.ask(Asked::Terminal(command, folder), text, &ONCE);
        Ok(json!({ "asked": true }))
    }

    /// A client without terminals of ours is told what to type.
    fn type_in(&mut self, command: &str, folder: &Path) {
        let argv = ["sh", "-c", command].map(str::to_owned);
        if !self.editor.run_in_terminal(&argv, folder) {
            let said = format!("{}\n{command}", self.say("type-it", &[]));
            self.editor.tell(Level::Info, said);
        }
    }

    fn ask(&mut self, asked: Asked, text: String, choices: &[&str]) {
        self.questions.last += 1;
        self.questions.open.insert(self.questions.last, asked);
        let choices: Vec<String> =
            choices.iter().map(|choice| self.texts().line(&format!("editor.choice.{choice}"), &[])).collect();
        let words: Vec<&str> = choices.iter().map(String::as_str).collect();
        self.editor.ask(self.questions.last, text, &words);
    }

    /// The workspace's own word: it is for every front end, so it takes the place of this editor's setting.
    fn set_mode(&mut self, mode: Mode, folder: Option<PathBuf>, quiet: bool) -> Result<Value, Refusal> {
        let wanted = folder.map(|folder| folder.canonicalize().unwrap_or(folder));
        let chosen: Vec<&PathBuf> =
            self.roots.iter().filter(|&root| wanted.as_ref().is_none_or(|folder| root == folder)).collect();
        if chosen.is_empty() {
            return Err(self.refused("no-folder", &[]));
        }
        self.settings.mode = None;
        let around = |root: &PathBuf| Surroundings { cwd: root.clone(), ..self.surroundings.clone() };
        let folders: BTreeSet<PathBuf> =
            chosen.into_iter().map(|root| around(root).project_folder(|path| path.exists())).collect();
        let said = self.say("mode-set", &[("mode", mode.name())]);
        self.write(if quiet { Then::Look } else { Then::Tell(said) }, move || {
            folders.iter().try_for_each(|folder| {
                folder::prepare(folder)?;
                write_aside(&folder.join("mode"), &format!("{mode}\n"))
            })
        });
        Ok(json!({ "mode": mode }))
    }

    /// The log's verdicts are shown as those of a run that ended now, under the name that is returned.
    fn explain(&mut self, text: String, blocking: bool, live: bool) -> String {
        let (plan, events) = (self.plan(), self.events.clone());
        self.explanations += 1;
        let number = self.explanations;
        self.explaining.insert(reading::name_of_explanation(number));
        tokio::task::spawn_blocking(move || {
            let explained = reading::explained(&text, blocking, number, &plan, unix_now());
            events.post(Event::Explained { explained: Box::new(explained), live });
        });
        reading::name_of_explanation(number)
    }

    pub(super) fn explained(&mut self, explained: Surveyed, live: bool) {
        // One that was dismissed while it was being judged is not shown.
        if !self.explaining.remove(&explained.run.run.id) {
            return;
        }
        let said = explained.run.verdicts.first().map(|verdict| verdict.summary.clone());
        let shown = explained.findings.len();
        self.disk.extend(explained.texts.clone());
        self.explained.push(explained);
        self.recompute();
        if live {
            return;
        }
        let said = match said {
            Some(summary) if shown > 0 => self.say("log-says-here", &[("summary", &summary)]),
            Some(summary) => self.say("log-says-elsewhere", &[("summary", &summary)]),
            None => self.say("log-says-nothing", &[]),
        };
        self.editor.tell(Level::Info, said);
    }

    fn dismiss(&mut self, id: &str) -> Result<Value, Refusal> {
        if self.explaining.remove(id) {
            return Ok(Value::Null);
        }
        let folder = self.run(id)?.folder.clone();
        let pasted = self.explained.len();
        self.explained.retain(|explained| explained.run.folder != folder);
        if pasted != self.explained.len() {
            self.recompute();
            return Ok(Value::Null);
        }
        for (_, surveyed) in self.runs.values_mut() {
            if let Some(surveyed) = surveyed.as_mut().filter(|surveyed| surveyed.run.folder == folder) {
                surveyed.run.dismissed = true;
            }
        }
        self.recompute();
        self.write(Then::Look, move || {
            let folder = RunFolder::open(&folder).map_err(std::io::Error::other)?;
            folder.dismiss()
        });
        Ok(Value::Null)
    }

    /// A folder that is still written to is not removed.
    fn delete(&mut self, id: &str) -> Result<Value, Refusal> {
        let run = self.run(id)?;
        if run.outcome.is_running() {
            return Err(self.refused("still-running", &[("run", id)]));
        }
        let folder = run.folder.clone();
        self.explained.retain(|explained| explained.run.folder != folder);
        if folder.is_absolute() {
            self.write(Then::Look, move || RunFolder::open(&folder).map_err(std::io::Error::other)?.delete());
        } else {
            self.recompute();
        }
        Ok(Value::Null)
    }

    fn run(&self, id: &str) -> Result<Arc<KnownRun>, Refusal> {
        let run = self.known_runs().find(|run| run.run.id == id).cloned();
        run.map(Arc::new).ok_or_else(|| self.refused("no-such-run", &[("run", id)]))
    }

    /// The run that was named, or the newest that has something to say.
    fn reported(&self, id: Option<&str>) -> Result<Arc<KnownRun>, Refusal> {
        match id {
            Some(id) => self.run(id),
            None => {
                let failed = self.known_runs().filter(|run| !run.verdicts.is_empty());
                let newest = failed.max_by_key(|run| run.generation()).cloned();
                newest.map(Arc::new).ok_or_else(|| self.refused("none-failed", &[]))
            }
        }
    }

    /// A pasted log has no folder: its page goes beside the user's own state.
    fn page_of(&self, run: &KnownRun) -> Result<PathBuf, Refusal> {
        if run.folder.is_absolute() {
            return Ok(run.folder.join(REPORT));
        }
        self.state_file(&format!("{}.html", run.run.id.replace(' ', "-")))
    }

    fn state_file(&self, name: &str) -> Result<PathBuf, Refusal> {
        let state = self.surroundings.state_folder();
        let state = state.ok_or_else(|| self.refused("no-home", &[]))?;
        Ok(state.join(name))
    }

    pub(super) fn root_of(&self, path: &Path) -> Option<&Path> {
        let holding = self.roots.iter().filter(|root| path.starts_with(root));
        holding.max_by_key(|root| root.as_os_str().len()).map(PathBuf::as_path)
    }

    fn interpreter(&mut self, program: &Path) -> Interpreter {
        let chosen = interpreter::choose(self.settings.python.as_deref(), self.root_of(program));
        let (python, why) = (chosen.path.display(), chosen.chosen_by);
        self.editor.tell(Level::Log, format!("the interpreter is {python}, from {why}"));
        chosen
    }

    /// Writes on a thread that may block, and comes back with [`Event::Written`].
    fn write(&self, then: Then, write: impl FnOnce() -> std::io::Result<()> + Send + 'static) {
        let (events, texts) = (self.events.clone(), self.texts());
        tokio::task::spawn_blocking(move || {
            let failed =
                |error: std::io::Error| texts.line("editor.say.not-written", &[("failure", &*error.to_string())]);
            let outcome = write().map_err(failed);
            events.post(Event::Written { outcome, then });
        });
    }

    fn remember_consent(&mut self, root: &Path) {
        self.consents.insert(root.to_owned());
        let Some(path) = survey::consent_file(&self.surroundings) else { return };
        let consents = self.consents.clone();
        self.write(Then::Look, move || write_aside(&path, &serde_json::to_string_pretty(&consents)?));
    }
}

/// The page in a run folder that `openReport` shows.
const REPORT: &str = "report.html";

/// What the server keeps of a run.
fn known(run: &KnownRun) -> Told {
    let verdicts = run.verdicts.iter().map(|verdict| Verdict::clone(verdict)).collect();
    Told { run: Some(run.run.clone()), verdicts, ..Told::default() }
}

/// The report as Markdown for an issue tracker, without what is nobody's business there.
fn handed_on(run: &KnownRun, texts: &Texts) -> String {
    scrub(&markdown::report(&known(run), texts), &processes::identity(&run.run.host))
}

fn started(child: Option<u64>) -> Value {
    match child {
        Some(child) => json!({ "started": child }),
        None => json!({ "inTerminal": true }),
    }
}

/// A command as a person reads it, each word that a shell would split in quotes.
fn quoted(argv: &[String]) -> String {
    let plain =
        |word: &str| !word.is_empty() && word.chars().all(|it| it.is_alphanumeric() || "-_./=:,@+".contains(it));
    let quote = |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) };
    argv.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Whoever reads the file sees the old one or the new one whole.
fn write_aside(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&aside)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&aside, path));
    if written.is_err() {
        std::fs::remove_file(&aside).ok();
    }
    written
}
