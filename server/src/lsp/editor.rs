//! The world's editor, spoken to over the protocol. It renders, remembers what it has sent, and never waits.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cublame_core::Verdict;
use cublame_core::catalog::{Language, Texts};
use cublame_core::run::Watch;
use cublame_core::text::LineIndex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tower_lsp::Client;
use tower_lsp::ls_types::notification::{Notification, Progress as ProgressNotification};
use tower_lsp::ls_types::{
    Diagnostic, MessageActionItem, MessageType, ProgressParams, ProgressParamsValue, ProgressToken, ShowDocumentParams,
    Uri, WorkDoneProgress, WorkDoneProgressBegin, WorkDoneProgressEnd,
};

use super::diagnostics;
use super::documents::Documents;
use super::features::Features;
use super::workspace_edit;
use crate::configure::files::Change;
use crate::world::finding::Finding;
use crate::world::linting::Linted;
use crate::world::mark::Mark;
use crate::world::standing::{KnownRun, Outcome};
use crate::world::{Editor, Event, Level, Progress, Reply};

/// How long the client may take for an answer that only it can give.
const ANSWER: Duration = Duration::from_secs(10);

/// How long a person may take for one.
const PERSON: Duration = Duration::from_secs(600);

pub struct LspEditor {
    client: Client,
    reply: Reply,
    documents: Arc<Documents>,
    features: Arc<OnceLock<Features>>,
    outbox: mpsc::UnboundedSender<Outgoing>,
    /// What each file shows.
    published: HashMap<PathBuf, Published>,
    bars: BTreeMap<u64, watch::Sender<Option<String>>>,
    last_runs: Vec<RunLine>,
    texts: &'static Texts,
}

/// What was sent last for a file.
struct Published {
    uri: Uri,
    diagnostics: Vec<Diagnostic>,
    open: bool,
}

enum Outgoing {
    Diagnostics { uri: Uri, diagnostics: Vec<Diagnostic>, version: Option<i32> },
    Message { kind: MessageType, text: String },
    Log(String),
    Runs(Vec<RunLine>),
    RunInTerminal(RunInTerminal),
    Dap(DapQuestion),
    LensRefresh,
    HintRefresh,
}

/// `cublame/runs`: the runs of the workspace, newest first.
pub enum RunsNotification {}

impl Notification for RunsNotification {
    type Params = RunsParams;
    const METHOD: &'static str = "cublame/runs";
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunsParams {
    pub runs: Vec<RunLine>,
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunLine {
    pub id: String,
    /// `running`, `succeeded`, `failed`, `interrupted`.
    pub state: String,
    pub mode: String,
    pub argv: Vec<String>,
    pub cwd: String,
    pub entry: Option<String>,
    /// Unix seconds.
    pub started: f64,
    pub dismissed: bool,
    /// Of its first verdict.
    pub kind: Option<String>,
    pub summary: Option<String>,
    pub certainty: Option<String>,
    pub path: Option<String>,
    pub line: Option<u32>,
    /// Absolute, or the id again for a log that was pasted and has no folder.
    pub folder: String,
    pub watch: Watch,
    /// As in `report.json`, the root cause first.
    pub verdicts: Vec<Arc<Verdict>>,
}

/// `cublame/runInTerminal`: run this in a terminal of the editor's.
pub enum RunInTerminalNotification {}

impl Notification for RunInTerminalNotification {
    type Params = RunInTerminal;
    const METHOD: &'static str = "cublame/runInTerminal";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInTerminal {
    pub argv: Vec<String>,
    pub cwd: String,
}

/// `cublame/report`: show this page of a run.
pub enum ReportNotification {}

impl Notification for ReportNotification {
    type Params = ReportParams;
    const METHOD: &'static str = "cublame/report";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportParams {
    pub uri: Uri,
}

/// `cublame/dap`, from the client: a message of an adapter in the editor's own debugger. To the client: what that adapter is
/// to be asked; the answer comes back as any other message does.
pub enum DapNotification {}

impl Notification for DapNotification {
    type Params = DapQuestion;
    const METHOD: &'static str = "cublame/dap";
}

/// The client passes on the events `output` of the program, `process`, `stopped`, `continued`, `exited` and `terminated`,
/// and the responses to `exceptionInfo` and `stackTrace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DapMessage {
    /// The editor's own name for the session.
    pub session: String,
    pub message: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DapQuestion {
    pub session: String,
    pub command: String,
    pub arguments: Value,
}

impl LspEditor {
    pub fn new(
        client: Client,
        reply: Reply,
        mut ready: watch::Receiver<bool>,
        documents: Arc<Documents>,
        features: Arc<OnceLock<Features>>,
    ) -> Self {
        let (outbox, mut letters) = mpsc::unbounded_channel();
        let postman = client.clone();
        // One task sends, so that what the world says arrives in the order in which it was said.
        tokio::spawn(async move {
            // The framework drops what is sent before, and a survey can be faster than the client.
            if ready.wait_for(|ready| *ready).await.is_err() {
                return;
            }
            while let Some(letter) = letters.recv().await {
                send(&postman, letter).await;
            }
        });
        Self {
            client,
            reply,
            documents,
            features,
            outbox,
            published: HashMap::new(),
            bars: BTreeMap::new(),
            last_runs: Vec::new(),
            texts: Texts::get(Language::English),
        }
    }

    fn post(&self, letter: Outgoing) {
        // The other end goes only with the whole server.
        self.outbox.send(letter).ok();
    }

    fn features(&self) -> Features {
        self.features.get().cloned().unwrap_or_default()
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<Diagnostic>, version: Option<i32>) {
        self.post(Outgoing::Diagnostics { uri, diagnostics, version });
    }
}

async fn send(client: &Client, letter: Outgoing) {
    match letter {
        Outgoing::Diagnostics { uri, diagnostics, version } => {
            client.publish_diagnostics(uri, diagnostics, version).await
        }
        Outgoing::Message { kind, text } => client.show_message(kind, text).await,
        Outgoing::Log(text) => client.log_message(MessageType::LOG, text).await,
        Outgoing::Runs(runs) => client.send_notification::<RunsNotification>(RunsParams { runs }).await,
        Outgoing::RunInTerminal(run) => client.send_notification::<RunInTerminalNotification>(run).await,
        Outgoing::Dap(question) => client.send_notification::<DapNotification>(question).await,
        Outgoing::LensRefresh => {
            let client = client.clone();
            detached(ANSWER, async move { client.code_lens_refresh().await });
        }
        Outgoing::HintRefresh => {
            let client = client.clone();
            detached(ANSWER, async move { client.inlay_hint_refresh().await });
        }
    }
}

impl Editor for LspEditor {
    fn speak(&mut self, texts: &'static Texts) {
        self.texts = texts;
    }

    fn show(
        &mut self,
        path: &Path,
        text: Option<&LineIndex>,
        version: Option<i32>,
        findings: &[Finding],
        marks: &[Mark],
        linted: Option<&Linted>,
    ) {
        let features = self.features();
        let of_runs = findings.iter().map(|finding| diagnostics::diagnostic(finding, text, &features, self.texts));
        let of_sites = marks.iter().filter_map(|mark| diagnostics::of_site(mark, text, &features, self.texts));
        let of_lint = linted.into_iter().flat_map(|linted| diagnostics::of_lint(linted, &features));
        let diagnostics: Vec<Diagnostic> = of_runs.chain(of_sites).chain(of_lint).collect();
        // An open document is spoken of by the name under which the editor opened it.
        let open = self.documents.of_path(path).map(|document| document.uri.clone());
        let Some(uri) = open.or_else(|| Uri::from_file_path(path)) else { return };
        let before = self.published.remove(path);
        if let Some(before) = before.as_ref().filter(|before| before.uri != uri) {
            self.publish(before.uri.clone(), Vec::new(), None);
        }
        let before = before.filter(|before| before.uri == uri);
        let shown = before.as_ref().map_or(&[][..], |before| &before.diagnostics);
        // Some clients forget what was sent before they opened the file (eglot 1.9), so it is sent again.
        let opened = version.is_some() && before.as_ref().is_some_and(|before| !before.open);
        let changed = shown != diagnostics || opened;
        if changed {
            self.publish(uri.clone(), diagnostics.clone(), version);
        }
        if !diagnostics.is_empty() {
            self.published.insert(path.to_owned(), Published { uri, diagnostics, open: version.is_some() });
        }
        if changed && features.lens_refresh {
            self.post(Outgoing::LensRefresh);
        }
    }

    fn marks_changed(&mut self) {
        if self.features().hint_refresh {
            self.post(Outgoing::HintRefresh);
        }
    }

    fn runs(&mut self, runs: &[&KnownRun]) {
        if !self.features().custom.runs {
            return;
        }
        let lines: Vec<RunLine> = runs.iter().map(|run| run_line(run)).collect();
        if lines != self.last_runs {
            self.last_runs.clone_from(&lines);
            self.post(Outgoing::Runs(lines));
        }
    }

    fn tell(&mut self, level: Level, text: String) {
        match level {
            Level::Warning => self.post(Outgoing::Message { kind: MessageType::WARNING, text }),
            Level::Info => self.post(Outgoing::Message { kind: MessageType::INFO, text }),
            Level::Log => self.post(Outgoing::Log(text)),
        }
    }

    fn ask(&mut self, question: u64, text: String, choices: &[&str]) {
        let (client, reply) = (self.client.clone(), self.reply.clone());
        let names: Vec<String> = choices.iter().map(|&choice| choice.to_owned()).collect();
        let items =
            names.iter().map(|title| MessageActionItem { title: title.clone(), properties: HashMap::new() }).collect();
        tokio::spawn(async move {
            let asked = client.show_message_request(MessageType::INFO, text, Some(items));
            let answer = tokio::time::timeout(PERSON, asked).await;
            let chosen = answer.ok().and_then(Result::ok).flatten();
            let choice = chosen.and_then(|item| names.iter().position(|name| *name == item.title));
            reply.post(Event::Answered { question, choice });
        });
    }

    /// What is open here is edited here, by its version. A file that is on disk alone is written there: what the editor
    /// may have of it unsaved is not known, and edits that miss their text would spoil it.
    fn can_edit(&self, change: &Change) -> bool {
        let features = self.features();
        let creates = change.before.is_none() && features.create_files;
        features.apply_edit && change.after.is_some() && (change.open.is_some() || creates)
    }

    fn edit(&mut self, edit: u64, changes: &[(Change, Option<i32>)]) {
        let (client, reply, texts) = (self.client.clone(), self.reply.clone(), self.texts);
        let applied = workspace_edit::workspace_edit(changes, &self.features(), |path| {
            let open = self.documents.of_path(path).map(|document| document.uri.clone());
            open.or_else(|| Uri::from_file_path(path))
        });
        tokio::spawn(async move {
            // A client may ask the person first.
            let Ok(answer) = tokio::time::timeout(PERSON, client.apply_edit(applied)).await else { return };
            let failure = match answer {
                Ok(answer) if answer.applied => None,
                Ok(answer) => Some(answer.failure_reason.unwrap_or_else(|| texts.line("editor.say.no-reason", &[]))),
                Err(error) => Some(error.message.to_string()),
            };
            reply.post(Event::Edited { edit, failure });
        });
    }

    fn open(&mut self, path: &Path) {
        let Some(uri) = Uri::from_file_path(path) else { return };
        let features = self.features();
        if features.custom.report {
            let client = self.client.clone();
            tokio::spawn(async move { client.send_notification::<ReportNotification>(ReportParams { uri }).await });
        } else if features.show_document {
            let client = self.client.clone();
            // A page is for a browser, what is written in Markdown for the editor.
            let external = Some(path.extension().is_some_and(|end| end == "html"));
            let shown = ShowDocumentParams { uri, external, take_focus: Some(true), selection: None };
            detached(ANSWER, async move { client.show_document(shown).await });
        } else {
            self.tell(Level::Info, self.texts.line("editor.say.report-is", &[("path", &*path.display().to_string())]));
        }
    }

    fn progress(&mut self, child: u64, step: Progress) {
        if !self.features().progress {
            return;
        }
        match step {
            Progress::Begin(title) => {
                let (end, ended) = watch::channel(None);
                self.bars.insert(child, end);
                tokio::spawn(bar(self.client.clone(), child, title, ended));
            }
            Progress::End(message) => {
                if let Some(end) = self.bars.remove(&child) {
                    end.send_replace(Some(message));
                }
            }
        }
    }

    fn ask_debugger(&mut self, session: &str, command: &str, thread: i64) {
        if self.features().custom.dap {
            let arguments = json!({ "threadId": thread });
            self.post(Outgoing::Dap(DapQuestion {
                session: session.to_owned(),
                command: command.to_owned(),
                arguments,
            }));
        }
    }

    fn run_in_terminal(&mut self, argv: &[String], cwd: &Path) -> bool {
        let can = self.features().custom.run_in_terminal;
        if can {
            self.post(Outgoing::RunInTerminal(RunInTerminal { argv: argv.to_vec(), cwd: cwd.display().to_string() }));
        }
        can
    }
}

/// The token of the bar of a child.
pub fn progress_token(child: u64) -> ProgressToken {
    ProgressToken::String(format!("cublame/run/{child}"))
}

/// The child of a bar's token.
pub fn child_of_token(token: &ProgressToken) -> Option<u64> {
    match token {
        ProgressToken::String(token) => token.strip_prefix("cublame/run/")?.parse().ok(),
        ProgressToken::Number(_) => None,
    }
}

/// Begins once the client has agreed to the token, ends when the child does.
async fn bar(client: Client, child: u64, title: String, mut ended: watch::Receiver<Option<String>>) {
    let token = progress_token(child);
    let created = tokio::time::timeout(ANSWER, client.create_work_done_progress(token.clone())).await;
    if !matches!(created, Ok(Ok(()))) {
        return;
    }
    let send = |step: WorkDoneProgress| {
        let params = ProgressParams { token: token.clone(), value: ProgressParamsValue::WorkDone(step) };
        client.send_notification::<ProgressNotification>(params)
    };
    let begin = WorkDoneProgressBegin { title, cancellable: Some(true), message: None, percentage: None };
    send(WorkDoneProgress::Begin(begin)).await;
    let end = ended.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
    send(WorkDoneProgress::End(WorkDoneProgressEnd { message: end })).await;
}

/// Sends a request to the client without anybody waiting for the answer.
pub fn detached<T>(limit: Duration, request: impl Future<Output = T> + Send + 'static)
where
    T: Send + 'static,
{
    tokio::spawn(async move { tokio::time::timeout(limit, request).await.ok() });
}

fn run_line(run: &KnownRun) -> RunLine {
    let verdict = run.verdicts.first();
    let place = verdict.and_then(|verdict| verdict.place.as_ref());
    let state = match run.outcome {
        Outcome::Running | Outcome::Held => "running",
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::Interrupted => "interrupted",
    };
    RunLine {
        id: run.run.id.clone(),
        state: state.to_owned(),
        mode: run.run.mode.to_string(),
        argv: run.run.argv.clone(),
        cwd: run.run.cwd.clone(),
        entry: run.run.entry.clone(),
        started: run.run.started,
        dismissed: run.dismissed,
        kind: verdict.map(|verdict| verdict.kind.clone()),
        summary: verdict.map(|verdict| verdict.summary.clone()),
        certainty: verdict.map(|verdict| format!("{:?}", verdict.certainty).to_lowercase()),
        path: place.and_then(|place| place.path.clone()),
        line: place.map(|place| place.line),
        folder: run.folder.display().to_string(),
        watch: run.run.watch,
        verdicts: run.verdicts.clone(),
    }
}
