//! What the server knows beside the open documents: runs, what they left to show, the children it started.
//!
//! One task owns all of it. Everything that can change it is one [`Event`], and this task alone decides what an editor
//! shows. It never waits for a disk or for an editor: both answer with an event of their own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cublame_core::catalog::{Language, Texts};
use cublame_core::text::LineIndex;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

pub mod configuring;
pub mod debugging;
pub mod finding;
pub mod linting;
pub mod mark;
pub mod notebooks;
pub mod orders;
pub mod paths;
mod reading;
pub mod standing;
pub mod starting;
mod survey;
mod watching;

use configuring::{Configured, Edits};
use debugging::Debuggers;
use finding::Finding;
use linting::Linted;
use mark::Mark;
use notebooks::{CellDocument, CellsDone, Notebook};
use orders::{Answer, Order, Refusal, Then};
use paths::Mapping;
use reading::{FileTexts, Surveyed};
use standing::KnownRun;
use survey::{Plan, Stamp, Survey};
use watching::Watching;

use crate::configure::Plan as Configuration;
use crate::configure::files::Change;
use crate::session::place::Surroundings;

/// Everything that changes the world.
#[derive(Debug)]
pub enum Event {
    /// The workspace's folders, at the start and whenever they change.
    Roots(Vec<PathBuf>),
    /// The settings, and what could not be used of them.
    Settings(Settings, Vec<String>),
    /// A document was opened or changed.
    Text {
        path: PathBuf,
        version: i32,
        text: LineIndex,
    },
    /// The user has paused in a notebook, after that many changes of it.
    NotebookLintDue {
        path: PathBuf,
        edits: i32,
    },
    /// An open document was linted, or why its project's settings cannot be read.
    Linted {
        path: PathBuf,
        linted: Result<Arc<Linted>, String>,
    },
    /// A notebook was opened or its cells were rearranged; None: it was closed. Their texts come as documents, before.
    Notebook {
        path: PathBuf,
        cells: Option<Vec<CellDocument>>,
    },
    Saved(PathBuf),
    Closed(PathBuf),
    /// Something in a folder that may hold runs has changed.
    Stirred,
    Tick,
    Surveyed(Box<Survey>),
    TextsRead(FileTexts),
    /// A pasted log was judged. One that is `live` is shown and not spoken of.
    Explained {
        explained: Box<Surveyed>,
        live: bool,
    },
    /// A message of a debug adapter in the editor, under the editor's own name for the session.
    Debugged {
        session: String,
        message: Value,
    },
    /// A command of the user's; the answer is there at once.
    Order(Order, Answer),
    /// What has to change for the run configurations that the user wants.
    Planned {
        plan: Configuration,
        answer: Answer,
    },
    /// The part of it that is the server's is on disk.
    Configured {
        done: Configured,
        answer: Answer,
    },
    /// The editor has made the changes of [`Editor::edit`], or says why not.
    Edited {
        edit: u64,
        failure: Option<String>,
    },
    /// A file was written, or why not.
    Written {
        outcome: Result<(), String>,
        then: Then,
    },
    /// The user's answer to [`Editor::ask`]: the number of the choice, None when the question was turned down.
    Answered {
        question: u64,
        choice: Option<usize>,
    },
    /// A child that the server started has ended.
    ChildEnded {
        child: u64,
        failure: Option<String>,
    },
    /// The user wants the work behind a progress bar stopped.
    Cancelled {
        child: u64,
    },
}

/// Where the world shows itself. Nothing here may wait.
pub trait Editor: Send + 'static {
    /// The language of what is shown from now on.
    fn speak(&mut self, texts: &'static Texts);
    /// What is shown in a file from now on; nothing when there are no findings of either kind.
    fn show(
        &mut self,
        path: &Path,
        text: Option<&LineIndex>,
        version: Option<i32>,
        findings: &[Finding],
        marks: &[Mark],
        linted: Option<&Linted>,
    );
    /// What the marks of the open files tell has changed.
    fn marks_changed(&mut self);
    /// The runs of the workspace, newest first.
    fn runs(&mut self, runs: &[&KnownRun]);
    fn tell(&mut self, level: Level, text: String);
    /// Asks the user; the answer comes as [`Event::Answered`], or never.
    fn ask(&mut self, question: u64, text: String, choices: &[&str]);
    /// Can the editor make this change itself, so that it can be undone there?
    fn can_edit(&self, change: &Change) -> bool;
    /// Has the editor make changes, each to the version of its document that is given where one is open.
    /// How it went comes as [`Event::Edited`], or never.
    fn edit(&mut self, edit: u64, changes: &[(Change, Option<i32>)]);
    /// Shows a file.
    fn open(&mut self, path: &Path);
    /// A bar for a run that the server started, with a way to stop it.
    fn progress(&mut self, child: u64, step: Progress);
    /// Has the editor ask its debugger about a thread. The answer comes as [`Event::Debugged`], or never.
    fn ask_debugger(&mut self, session: &str, command: &str, thread: i64);
    /// Has the editor run a command in a terminal of its own; false where it has none.
    fn run_in_terminal(&mut self, argv: &[String], cwd: &Path) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Warning,
    Info,
    /// For the log only.
    Log,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    Begin(String),
    End(String),
}

/// The settings that the world reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `cublame.mode`
    pub mode: Option<cublame_core::mode::Mode>,
    /// `cublame.python`
    pub python: Option<PathBuf>,
    /// `cublame.pathMappings`
    pub path_mappings: Vec<Mapping>,
    /// `cublame.lint.select`
    pub lint_select: Vec<String>,
    /// `cublame.lint.ignore`
    pub lint_ignore: Vec<String>,
    /// `cublame.hangSeconds`
    pub hang_seconds: Option<u32>,
    /// `cublame.locale`, else the editor's.
    pub language: Language,
    /// `cublame.inlayHints` is false.
    pub no_inlay_hints: bool,
}

/// What request handlers read: the newest state that the world has published.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub language: Language,
    pub findings: BTreeMap<PathBuf, Arc<[Finding]>>,
    pub marks: BTreeMap<PathBuf, Arc<[Mark]>>,
    pub no_inlay_hints: bool,
    /// The open Python files.
    pub linted: BTreeMap<PathBuf, Arc<Linted>>,
    pub runs: Vec<Arc<KnownRun>>,
}

/// The way to the world.
#[derive(Debug, Clone)]
pub struct Handle {
    events: mpsc::UnboundedSender<Event>,
    snapshot: watch::Receiver<Arc<Snapshot>>,
}

impl Handle {
    /// Posts an event. It cannot fail and does not wait: a world that has ended has nothing left to be told.
    pub fn post(&self, event: Event) {
        self.events.send(event).ok();
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }
}

/// The way back to the world for what the world itself owns: it does not keep the world alive.
#[derive(Debug, Clone)]
pub struct Reply(mpsc::WeakUnboundedSender<Event>);

impl Reply {
    pub fn post(&self, event: Event) {
        if let Some(events) = self.0.upgrade() {
            events.send(event).ok();
        }
    }
}

/// Starts the world. It ends when every handle is gone. `cublame` is the program that it starts runs with.
pub fn start<E: Editor>(make_editor: impl FnOnce(Reply) -> E, surroundings: Surroundings, cublame: PathBuf) -> Handle {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let (publish, snapshot) = watch::channel(Arc::default());
    let handle = Handle { events: sender, snapshot };
    let reply = Reply(handle.events.downgrade());
    let stirred = reply.clone();
    let watching = Watching::new(move || stirred.post(Event::Stirred));
    let mut world = World {
        editor: make_editor(reply.clone()),
        events: reply,
        publish,
        watching,
        surroundings,
        cublame,
        started: unix_now(),
        roots: Vec::new(),
        settings: Settings::default(),
        runs: BTreeMap::new(),
        explained: Vec::new(),
        explanations: 0,
        explaining: HashSet::new(),
        open: HashMap::new(),
        linted: BTreeMap::new(),
        linting: BTreeMap::new(),
        notebooks: BTreeMap::new(),
        disk: FileTexts::new(),
        gone: HashSet::new(),
        shown: BTreeMap::new(),
        marks: BTreeMap::new(),
        dirty: BTreeSet::new(),
        reading: Reading::Idle,
        children: starting::Children::default(),
        debuggers: Debuggers::default(),
        questions: orders::Questions::default(),
        edits: Edits::default(),
        consents: BTreeSet::new(),
        complained: HashSet::new(),
    };
    tokio::spawn(async move {
        let mut tick = tokio::time::interval(POLL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            let event = tokio::select! {
                event = receiver.recv() => event,
                _ = tick.tick() => Some(Event::Tick),
            };
            let Some(event) = event else { return };
            world.change(event);
            // What came meanwhile is taken in first, so that a burst of edits is shown once.
            while let Ok(event) = receiver.try_recv() {
                world.change(event);
            }
            world.refresh();
        }
    });
    handle
}

/// How often run folders are looked at unasked: inotify is silent on network file systems and bind mounts.
const POLL: Duration = Duration::from_secs(2);

/// A failure that is older when the server starts is not shown.
const A_DAY: f64 = 24.0 * 3600.0;

struct World<E> {
    editor: E,
    events: Reply,
    publish: watch::Sender<Arc<Snapshot>>,
    watching: Watching,
    surroundings: Surroundings,
    cublame: PathBuf,
    /// Unix seconds.
    started: f64,
    roots: Vec<PathBuf>,
    settings: Settings,
    /// By run folder; None for a run of no concern here.
    runs: BTreeMap<PathBuf, (Stamp, Option<Surveyed>)>,
    /// What pasted logs said, newest last.
    explained: Vec<Surveyed>,
    explanations: u64,
    /// The names of the pasted logs that are being judged.
    explaining: HashSet<String>,
    open: HashMap<PathBuf, (i32, LineIndex)>,
    linted: BTreeMap<PathBuf, Arc<Linted>>,
    /// The documents that are being read, and whether they were changed since.
    linting: BTreeMap<PathBuf, bool>,
    notebooks: BTreeMap<PathBuf, Notebook>,
    /// The files on disk that findings are in.
    disk: FileTexts,
    /// Findings whose line was edited and saved, by run and index.
    gone: HashSet<(String, usize)>,
    shown: BTreeMap<PathBuf, Arc<[Finding]>>,
    marks: BTreeMap<PathBuf, Arc<[Mark]>>,
    /// The files to show anew.
    dirty: BTreeSet<PathBuf>,
    reading: Reading,
    children: starting::Children,
    debuggers: Debuggers,
    questions: orders::Questions,
    edits: Edits,
    /// The roots for which the user has said that a run may be repeated without asking.
    consents: BTreeSet<PathBuf>,
    /// What was already said about files that cannot be read.
    complained: HashSet<String>,
}

/// One look at the disk at a time, and one more when something stirred meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Idle,
    Busy,
    BusyAndAgain,
}

impl<E: Editor> World<E> {
    fn change(&mut self, event: Event) {
        match event {
            Event::Roots(roots) => self.set_roots(roots),
            Event::Settings(settings, complaints) => {
                let reread = self.settings.path_mappings != settings.path_mappings
                    || self.settings.language != settings.language;
                let relint = (&self.settings.lint_select, &self.settings.lint_ignore)
                    != (&settings.lint_select, &settings.lint_ignore);
                let other_hints = self.settings.no_inlay_hints != settings.no_inlay_hints;
                self.settings = settings;
                if other_hints {
                    self.recompute();
                    self.editor.marks_changed();
                }
                self.editor.speak(self.texts());
                if relint {
                    self.lint_all_again();
                }
                if reread {
                    self.runs.clear();
                    self.look();
                }
                complaints.into_iter().for_each(|complaint| self.editor.tell(Level::Warning, complaint));
            }
            Event::Text { path, version, text } => {
                self.dirty_if_shown(&path);
                self.open.insert(path.clone(), (version, text));
                self.lint(&path);
            }
            Event::NotebookLintDue { path, edits } => self.notebook_lint_due(&path, edits),
            Event::Linted { path, linted } => self.linted(path, linted),
            Event::Notebook { path, cells } => self.notebook(path, cells),
            Event::Saved(path) => self.saved(&path),
            Event::Closed(path) => {
                self.open.remove(&path);
                self.lint_closed(&path);
                self.dirty_if_shown(&path);
                self.read_texts(self.shown.contains_key(&path).then_some(path));
            }
            Event::Stirred => self.look(),
            Event::Tick => {
                self.look();
                let closed = self.shown.keys().filter(|path| !self.open.contains_key(*path)).cloned();
                self.read_texts(closed.collect::<Vec<_>>());
            }
            Event::Surveyed(survey) => self.surveyed(*survey),
            Event::TextsRead(texts) => self.texts_read(texts),
            Event::Explained { explained, live } => self.explained(*explained, live),
            Event::Debugged { session, message } => self.debugged(session, &message),
            Event::Order(order, answer) => self.order(order, answer),
            Event::Planned { plan, answer } => self.planned(plan, answer),
            Event::Configured { done, answer } => self.configured(done, answer),
            Event::Edited { edit, failure } => self.edited(edit, failure),
            Event::Written { outcome, then } => self.written(outcome, then),
            Event::Answered { question, choice } => self.answered(question, choice),
            Event::ChildEnded { child, failure } => self.child_ended(child, failure),
            Event::Cancelled { child } => self.stop_child(child),
        }
    }

    fn texts(&self) -> &'static Texts {
        Texts::get(self.settings.language)
    }

    /// A sentence of the catalogue's.
    fn say(&self, key: &str, values: &[(&str, &str)]) -> String {
        self.texts().line(&format!("editor.say.{key}"), values)
    }

    fn refused(&self, key: &str, values: &[(&str, &str)]) -> Refusal {
        Refusal(self.texts().line(&format!("editor.refused.{key}"), values))
    }

    fn set_roots(&mut self, roots: Vec<PathBuf>) {
        self.roots = roots;
        // Which runs concern the workspace, and where their lines are shown, depends on the roots.
        self.runs.clear();
        self.recompute();
        self.look();
    }

    /// Reads the run folders on a thread that may block.
    fn look(&mut self) {
        if self.reading != Reading::Idle {
            self.reading = Reading::BusyAndAgain;
            return;
        }
        if self.roots.is_empty() {
            return;
        }
        let events = self.events.clone();
        self.reading = Reading::Busy;
        let plan = self.plan();
        tokio::task::spawn_blocking(move || {
            let survey = survey::survey(&plan);
            events.post(Event::Surveyed(Box::new(survey)));
        });
    }

    fn plan(&self) -> Plan {
        Plan {
            roots: self.roots.clone(),
            surroundings: self.surroundings.clone(),
            seen: self.runs.iter().map(|(folder, (stamp, _))| (folder.clone(), stamp.clone())).collect(),
            mappings: self.settings.path_mappings.clone(),
            language: self.settings.language,
            oldest: self.started - A_DAY,
        }
    }

    fn surveyed(&mut self, survey: Survey) {
        let again = self.reading == Reading::BusyAndAgain;
        self.reading = Reading::Idle;
        self.consents.extend(survey.consents);
        for note in survey.notes {
            if self.complained.insert(note.clone()) {
                self.editor.tell(Level::Warning, note);
            }
        }
        let before = self.runs.len();
        self.runs.retain(|folder, _| survey.present.contains(folder));
        let changed = before != self.runs.len() || !survey.changed.is_empty();
        for (folder, stamp, surveyed) in survey.changed {
            if let Some(surveyed) = &surveyed {
                self.disk.extend(surveyed.texts.clone());
                self.forget_what_was_edited_before_the_start(surveyed);
            }
            self.runs.insert(folder, (stamp, surveyed));
        }
        if changed {
            self.recompute();
        }
        // What changed before a watch was set is found by one more look.
        let watched = survey.unreported.into_iter().chain(self.folders_shown());
        let again = self.watching.watch(&survey.runs_folders, &self.roots, watched.collect()) || again;
        if again {
            self.look();
        }
    }

    /// A server that starts shows old failures only where their line still matches.
    fn forget_what_was_edited_before_the_start(&mut self, surveyed: &Surveyed) {
        for finding in &surveyed.findings {
            let text = surveyed.texts.get(&finding.path).and_then(Option::as_ref);
            let edited = text.is_none_or(|file| finding.whereabouts(&file.text).edited);
            if edited && surveyed.run.run.started < self.started {
                self.gone.insert((finding.run.clone(), finding.index));
            }
        }
    }

    /// The folders of the runs that are shown: one may be dismissed by another server.
    fn folders_shown(&self) -> BTreeSet<PathBuf> {
        let shown: HashSet<&str> = self.shown.values().flat_map(|it| it.iter()).map(|it| it.run.as_str()).collect();
        let runs = self.known_runs().filter(|run| run.folder.is_absolute() && shown.contains(run.run.id.as_str()));
        runs.map(|run| run.folder.clone()).collect()
    }

    fn known_runs(&self) -> impl Iterator<Item = &KnownRun> {
        let surveyed = self.runs.values().filter_map(|(_, surveyed)| surveyed.as_ref());
        surveyed.chain(&self.explained).map(|surveyed| &surveyed.run)
    }

    /// Works out anew what stands, and marks the files where that makes a difference.
    fn recompute(&mut self) {
        let surveyed = || self.runs.values().filter_map(|(_, surveyed)| surveyed.as_ref()).chain(&self.explained);
        let standing = standing::standing(surveyed().map(|surveyed| &surveyed.run), &self.roots);
        let mut done = CellsDone::new();
        for (id, time) in surveyed().flat_map(|surveyed| &surveyed.cells_done) {
            let last = done.entry(id.clone()).or_insert(*time);
            *last = last.max(*time);
        }
        let mut files: BTreeMap<PathBuf, Vec<Finding>> = BTreeMap::new();
        let mut marked: BTreeMap<PathBuf, Vec<Mark>> = BTreeMap::new();
        for standing in standing {
            let Some(surveyed) = surveyed().find(|surveyed| surveyed.run.folder == standing.run.folder) else {
                continue;
            };
            let stays = |finding: &&Finding| !self.gone.contains(&(finding.run.clone(), finding.index));
            for finding in surveyed.findings.iter().filter(stays) {
                let finding = Finding { not_reproduced: standing.not_reproduced, ..finding.clone() };
                let shown = self.in_notebook(finding, &done);
                shown.into_iter().for_each(|it| files.entry(it.path.clone()).or_default().push(it));
            }
            for mark in surveyed.marks.iter().filter(|_| surveyed.findings.iter().any(|finding| stays(&finding))) {
                marked.entry(mark.path.clone()).or_default().push(mark.clone());
            }
        }
        let new: BTreeMap<PathBuf, Arc<[Finding]>> =
            files.into_iter().map(|(path, findings)| (path, findings.into())).collect();
        let paths: BTreeSet<PathBuf> = self.shown.keys().chain(new.keys()).cloned().collect();
        self.dirty.extend(paths.into_iter().filter(|path| self.shown.get(path) != new.get(path)));
        self.shown = new;
        let marks: BTreeMap<PathBuf, Arc<[Mark]>> =
            marked.into_iter().map(|(path, marks)| (path, marks.into())).collect();
        let other_marks = self.marks != marks;
        let paths: BTreeSet<&PathBuf> = self.marks.keys().chain(marks.keys()).collect();
        self.dirty.extend(paths.into_iter().filter(|path| self.marks.get(*path) != marks.get(*path)).cloned());
        self.marks = marks;
        self.disk.retain(|path, _| self.shown.contains_key(path) || self.marks.contains_key(path));
        let mut runs: Vec<Arc<KnownRun>> = self.known_runs().cloned().map(Arc::new).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.generation()));
        self.editor.runs(&runs.iter().map(Arc::as_ref).collect::<Vec<_>>());
        self.publish.send_replace(Arc::new(Snapshot {
            language: self.settings.language,
            findings: self.shown.clone(),
            marks: self.marks.clone(),
            no_inlay_hints: self.settings.no_inlay_hints,
            linted: self.linted.clone(),
            runs,
        }));
        if other_marks {
            self.editor.marks_changed();
        }
    }

    fn dirty_if_shown(&mut self, path: &Path) {
        if self.shown.contains_key(path) || self.marks.contains_key(path) {
            self.dirty.insert(path.to_owned());
        }
    }

    /// Shows the files that have changed.
    fn refresh(&mut self) {
        for path in std::mem::take(&mut self.dirty) {
            let findings = self.shown.get(&path).map_or(&[][..], |findings| findings);
            let marks = self.marks.get(&path).map_or(&[][..], |marks| marks);
            let linted = self.linted.get(&path).map(Arc::as_ref);
            match self.open.get(&path) {
                Some((version, text)) => self.editor.show(&path, Some(text), Some(*version), findings, marks, linted),
                None => {
                    let text = self.disk.get(&path).and_then(Option::as_ref).map(|file| &file.text);
                    self.editor.show(&path, text, None, findings, marks, linted);
                }
            }
        }
    }

    fn saved(&mut self, path: &Path) {
        if let Some((_, text)) = self.open.get(path) {
            let text = text.clone();
            self.let_edited_go(path, &text);
        }
    }

    /// A line that was edited since the run, and saved, has nothing left to say.
    fn let_edited_go(&mut self, path: &Path, text: &LineIndex) {
        let Some(findings) = self.shown.get(path) else { return };
        let edited: Vec<(String, usize)> = findings
            .iter()
            .filter(|finding| finding.whereabouts(text).edited)
            .map(|finding| (finding.run.clone(), finding.index))
            .collect();
        if !edited.is_empty() {
            self.gone.extend(edited);
            self.recompute();
        }
    }

    fn read_texts(&self, paths: impl IntoIterator<Item = PathBuf>) {
        let known = |path: &PathBuf| self.disk.get(path).and_then(|text| text.as_ref().map(|file| file.modified));
        let paths: Vec<(PathBuf, Option<f64>)> = paths.into_iter().map(|path| (path.clone(), known(&path))).collect();
        if paths.is_empty() {
            return;
        }
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            let changed =
                paths.into_iter().filter(|(path, known)| reading::modified(path) != *known || known.is_none());
            let texts: FileTexts = changed.map(|(path, _)| (path.clone(), reading::text_on_disk(&path))).collect();
            if !texts.is_empty() {
                events.post(Event::TextsRead(texts));
            }
        });
    }

    /// Files that are not open were read: one that another program changed is treated as saved.
    fn texts_read(&mut self, texts: FileTexts) {
        for (path, text) in texts {
            if self.open.contains_key(&path) || self.disk.get(&path) == Some(&text) {
                continue;
            }
            self.dirty_if_shown(&path);
            let edited_by = text.as_ref().map_or_else(|| LineIndex::new(""), |file| file.text.clone());
            self.disk.insert(path.clone(), text);
            self.let_edited_go(&path, &edited_by);
        }
    }
}

fn unix_now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
