//! The proxy itself: two streams that pass each other, and what is put in between.
//!
//! The adapter's messages go to the client at the client's pace, so that memory stays bounded. Our own questions have
//! numbers that no client counts up to, and their answers stay here.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cublame_core::config::launch_request::{LaunchRequest, with_variables};
use cublame_core::dap::{QUESTIONS, Session, Told};
use cublame_core::run::{Exit, ProcessId};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::adapter::Debugpy;
use super::desk::Desk;
use super::framing::{Frame, Frames, framed};
use super::record::{Record, Spoken};
use crate::error::Error;
use crate::os::{processes, signals};

/// How the session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The client has gone, or was served to the end.
    Orderly,
    /// The adapter ended before the session did.
    AdapterGone,
}

/// Stands between a client and debugpy until one of them leaves. `debugpy` may be what has to be said instead of one.
pub async fn serve<R, W>(client: R, answers: W, debugpy: Result<Debugpy, Error>, record: Record) -> Left
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let started = debugpy.and_then(|debugpy| {
        let mut command = Command::from(debugpy.adapter());
        // Its own words about a session go where ours go; it ends by itself at the end of its input.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(false);
        command.spawn().map_err(|failure| {
            Error::environment(format!("{} cannot be started", debugpy.python.display())).because(failure)
        })
    });
    match started {
        Ok(adapter) => converse(client, answers, adapter, record).await,
        Err(error) => {
            eprintln!("cublame dap: {error}");
            refuse_all(client, answers, &error.to_string()).await;
            Left::AdapterGone
        }
    }
}

/// How many messages may wait for the client before the adapter has to.
const WAITING: usize = 64;
/// How long the adapter may take to end what it has started, once the client is gone.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The first number of our own messages. Clients count from 1, and debugpy does too.
const OURS: i64 = 1 << 40;

async fn converse<R, W>(client: R, answers: W, mut adapter: Child, record: Record) -> Left
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (Some(to_adapter), Some(from_adapter)) = (adapter.stdin.take(), adapter.stdout.take()) else {
        return Left::AdapterGone;
    };
    let (to_client, client_queue) = mpsc::channel(WAITING);
    let (questions, adapter_queue) = mpsc::unbounded_channel();
    let state = State { next: OURS, to_adapter: Some(questions), ..State::default() };
    let between = Between { state: Arc::new(Mutex::new(state)), desk: Desk::open(record), to_client };
    let writing = async {
        tokio::join!(
            write_all(answers, Queue::Bounded(client_queue)),
            write_all(to_adapter, Queue::Unbounded(adapter_queue))
        )
    };
    let passing = {
        let (up, down) = (between.clone(), between.clone());
        async move {
            let mut down = std::pin::pin!(down.read_adapter(from_adapter));
            tokio::select! {
                () = up.read_client(client) => {
                    // The session that the adapter drives ends with its input. What it says until then may still be read.
                    up.state().to_adapter = None;
                    tokio::time::timeout(LAST_WORDS, down).await.ok();
                    Left::Orderly
                }
                () = &mut down => Left::AdapterGone,
            }
        }
    };
    let mut writing = Box::pin(writing);
    let mut left = tokio::select! {
        left = passing => left,
        // The client reads no more: it is gone, whatever its own stream says.
        _ = &mut writing => Left::Orderly,
    };
    if left == Left::AdapterGone && between.is_over() {
        left = Left::Orderly;
    }
    if left == Left::AdapterGone {
        between.say_that_the_adapter_is_gone(adapter.try_wait().ok().flatten()).await;
    }
    between.state().to_adapter = None;
    let family = between.family();
    let desk = between.leave().await;
    tokio::time::timeout(LAST_WORDS, writing).await.ok();
    end(adapter, family).await;
    desk.close().await;
    left
}

/// The adapter ends what it has started. What it leaves behind in spite of that is ended here.
async fn end(mut adapter: Child, launched: Option<ProcessId>) {
    if tokio::time::timeout(LAST_WORDS, adapter.wait()).await.is_err() {
        adapter.kill().await.ok();
    }
    let Some(program) = launched else { return };
    for _ in 0..20 {
        if !processes::is_alive(program) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    processes::signal_exactly(program, signals::SIGKILL).ok();
}

/// Both directions share it.
#[derive(Clone)]
struct Between {
    state: Arc<Mutex<State>>,
    desk: Desk,
    to_client: mpsc::Sender<Vec<u8>>,
}

#[derive(Default)]
struct State {
    session: Session,
    /// None once its input is to end.
    to_adapter: Option<mpsc::UnboundedSender<Vec<u8>>>,
    /// The number of the next message of our own.
    next: i64,
    /// Our questions that are not answered yet, and what the client has asked and was not answered: by number, the command.
    asked: BTreeMap<i64, String>,
    waiting: BTreeMap<i64, String>,
    /// The program was started by this session, and is ended with it.
    launched: bool,
    program: Option<ProcessId>,
    /// `exited` or `terminated` has come.
    over: bool,
}

impl Between {
    async fn read_client(&self, mut client: impl AsyncRead + Unpin) {
        let mut frames = Frames::default();
        while read(&mut client, &mut frames).await {
            while let Some(frame) = frames.next_frame() {
                self.hear_client(frame).await;
            }
        }
    }

    async fn hear_client(&self, frame: Frame) {
        let message = match frame {
            Frame::Message(message) => message,
            Frame::Damaged(what) => return self.answer_damage(&what).await,
        };
        let fields = match serde_json::from_slice::<Value>(message.body()) {
            Ok(Value::Object(fields)) => fields,
            // A number that fits into no machine word is the adapter's to judge.
            Err(_) if is_json_object(message.body()) => return self.state().hand_over(message.bytes),
            // At what is no JSON the adapter would end.
            _ => return self.answer_damage("the message is no JSON object").await,
        };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut bytes = message.bytes.clone();
        if text("type") == "request" {
            let command = text("command").to_owned();
            if command == "launch" {
                bytes = self.launch(&message, fields.get("arguments").unwrap_or(&Value::Null)).await;
            }
            if let Some(number) = fields.get("seq").and_then(Value::as_i64) {
                self.state().waiting.insert(number, command);
            }
        }
        self.state().hand_over(bytes);
    }

    /// The request with the mode's variables in it.
    async fn launch(&self, message: &super::framing::Message, arguments: &Value) -> Vec<u8> {
        let request = LaunchRequest::of(arguments);
        let Some(prepared) = self.desk.ask(move |record| record.launch(&request)).await else {
            return message.bytes.clone();
        };
        self.state().launched = true;
        for note in &prepared.notes {
            self.say("console", &format!("cublame: {note}\n")).await;
        }
        let body = String::from_utf8_lossy(message.body());
        let variables = prepared.env.variables.iter().map(|variable| (variable.name, variable.value.as_str()));
        match with_variables(&body, variables) {
            Ok(body) => framed(&body),
            // The adapter says what is wrong with it.
            Err(_) => message.bytes.clone(),
        }
    }

    async fn answer_damage(&self, what: &str) {
        let answer = json!({ "request_seq": 0, "success": false, "command": "", "message": format!("{what}.") });
        self.send("response", answer).await;
    }

    async fn read_adapter(&self, mut adapter: impl AsyncRead + Unpin) {
        let mut frames = Frames::default();
        while read(&mut adapter, &mut frames).await {
            while let Some(frame) = frames.next_frame() {
                match frame {
                    Frame::Message(message) => self.hear_adapter(message).await,
                    Frame::Damaged(what) => eprintln!("cublame dap: of the adapter: {what}"),
                }
            }
        }
    }

    async fn hear_adapter(&self, message: super::framing::Message) {
        let value: Value = serde_json::from_slice(message.body()).unwrap_or_default();
        if let Some(question) = self.question_of(&value) {
            let told = self.state().session.answered(&value);
            drop(question);
            return self.act(told).await;
        }
        self.note_answer(&value).await;
        let told = self.state().session.heard(&value);
        match told {
            // What is said of the end comes before the end.
            Some(told @ (Told::Exited { .. } | Told::Terminated)) => {
                self.act(Some(told)).await;
                self.pass_on(message.bytes).await;
            }
            told => {
                self.pass_on(message.bytes).await;
                self.act(told).await;
            }
        }
    }

    async fn act(&self, told: Option<Told>) {
        match told {
            None => {}
            Some(Told::Process { pid, name }) => {
                self.state().program = Some(processes::identify(pid));
                self.desk.tell(move |record| record.started(pid, name));
            }
            Some(Told::AtException { thread }) => QUESTIONS.iter().for_each(|question| self.ask(question, thread)),
            Some(Told::Uncaught(exception)) => {
                let log = self.state().session.log();
                let judging = self.desk.ask(move |record| record.stands(exception, &log));
                let between = self.clone();
                // Judging reads files. The adapter's next messages need not wait for it.
                tokio::spawn(async move { between.speak(judging.await.flatten()).await });
            }
            Some(Told::WentOn) => self.desk.tell(Record::went_on),
            Some(Told::Exited { code }) => self.conclude(exit(code)).await,
            Some(Told::Terminated) => self.conclude(Exit::default()).await,
        }
    }

    async fn conclude(&self, exit: Exit) {
        self.state().over = true;
        let log = self.state().session.log();
        let spoken = self.desk.ask(move |record| record.ended(exit, log)).await.flatten();
        self.speak(spoken).await;
    }

    fn ask(&self, command: &str, thread: i64) {
        let number = {
            let mut state = self.state();
            let number = state.number();
            state.asked.insert(number, command.to_owned());
            number
        };
        let arguments = json!({ "threadId": thread });
        let question = json!({ "seq": number, "type": "request", "command": command, "arguments": arguments });
        self.state().hand_over(framed(&question.to_string()));
    }

    /// The question of ours that this answers.
    fn question_of(&self, message: &Value) -> Option<String> {
        if message.get("type")?.as_str()? != "response" {
            return None;
        }
        let number = message.get("request_seq")?.as_i64()?;
        self.state().asked.remove(&number)
    }

    /// Keeps count of what the client waits for.
    async fn note_answer(&self, message: &Value) {
        let is_response = message.get("type").and_then(Value::as_str) == Some("response");
        let Some(number) = message.get("request_seq").and_then(Value::as_i64).filter(|_| is_response) else { return };
        let command = self.state().waiting.remove(&number);
        let refused = message.get("success").and_then(Value::as_bool) == Some(false);
        if refused && command.as_deref() == Some("launch") {
            self.desk.tell(Record::forget);
        }
    }

    async fn speak(&self, spoken: Option<Spoken>) {
        let Some(Spoken { text, place }) = spoken else { return };
        let mut body = json!({ "category": "stderr", "output": text });
        if let Some(place) = place {
            let name = Path::new(&place.file).file_name().unwrap_or_default().to_string_lossy();
            body["source"] = json!({ "name": name, "path": place.path });
            body["line"] = json!(place.line);
        }
        self.send("event", json!({ "event": "output", "body": body })).await;
    }

    async fn say(&self, category: &str, text: &str) {
        let body = json!({ "category": category, "output": text });
        self.send("event", json!({ "event": "output", "body": body })).await;
    }

    /// A message of our own.
    async fn send(&self, kind: &str, mut message: Value) {
        message["seq"] = json!(self.state().number());
        message["type"] = json!(kind);
        self.pass_on(framed(&message.to_string())).await;
    }

    async fn pass_on(&self, bytes: Vec<u8>) {
        // A client that is gone is noticed where it is read.
        self.to_client.send(bytes).await.ok();
    }

    async fn say_that_the_adapter_is_gone(&self, status: Option<ExitStatus>) {
        self.conclude(Exit::default()).await;
        let how = status.map(|status| format!(" ({status})")).unwrap_or_default();
        let what = format!("debugpy's adapter has ended before the session{how}");
        let hint = "start the session again; DEBUGPY_LOG_DIR=folder makes debugpy write down what happened";
        self.say("important", &format!("cublame: {what}.\n  hint: {hint}\n")).await;
        let waiting = std::mem::take(&mut self.state().waiting);
        for (number, command) in waiting {
            let answer = json!({ "request_seq": number, "success": false, "command": command, "message": what });
            self.send("response", answer).await;
        }
        self.send("event", json!({ "event": "terminated" })).await;
    }

    fn is_over(&self) -> bool {
        self.state().over
    }

    /// The program, if it is ours to end.
    fn family(&self) -> Option<ProcessId> {
        let state = self.state();
        state.program.filter(|_| state.launched)
    }

    /// Ends both queues. What was recorded so far is concluded.
    async fn leave(self) -> Desk {
        let log = self.state().session.log();
        self.desk.ask(move |record| record.ended(Exit::default(), log)).await;
        self.desk
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// To the adapter. One that is gone is noticed where it is read.
    fn hand_over(&self, message: Vec<u8>) {
        if let Some(adapter) = &self.to_adapter {
            adapter.send(message).ok();
        }
    }

    fn number(&mut self) -> i64 {
        self.next += 1;
        self.next
    }
}

fn is_json_object(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// A negative code is a signal, as Python's subprocess counts.
fn exit(code: i64) -> Exit {
    match i32::try_from(code) {
        Ok(code) if code < 0 => Exit { code: None, signal: Some(-code) },
        code => Exit { code: code.ok(), signal: None },
    }
}

/// Every request gets the same answer, until the client leaves.
async fn refuse_all(mut client: impl AsyncRead + Unpin, mut answers: impl AsyncWrite + Unpin, why: &str) {
    let mut frames = Frames::default();
    let mut number = 0;
    while read(&mut client, &mut frames).await {
        while let Some(frame) = frames.next_frame() {
            let Frame::Message(message) = frame else { continue };
            let request: Value = serde_json::from_slice(message.body()).unwrap_or_default();
            if request.get("type").and_then(Value::as_str) != Some("request") {
                continue;
            }
            number += 1;
            let error = json!({ "id": 1, "format": format!("cublame: {why}"), "showUser": true });
            let is_goodbye = request["command"] == "disconnect";
            let answer = json!({
                "seq": number, "type": "response", "request_seq": request["seq"], "command": request["command"],
                "success": is_goodbye, "message": why, "body": { "error": error } });
            let sent = answers.write_all(&framed(&answer.to_string())).await;
            if sent.is_err() || answers.flush().await.is_err() || is_goodbye {
                return;
            }
        }
    }
}

/// False at the end of the stream.
async fn read(input: &mut (impl AsyncRead + Unpin), frames: &mut Frames) -> bool {
    let mut piece = vec![0; 64 << 10];
    match input.read(&mut piece).await {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            frames.feed(&piece[..count]);
            true
        }
    }
}

enum Queue {
    Bounded(mpsc::Receiver<Vec<u8>>),
    Unbounded(mpsc::UnboundedReceiver<Vec<u8>>),
}

/// Until nobody can send any more, or nobody reads.
async fn write_all(mut output: impl AsyncWrite + Unpin, mut queue: Queue) {
    loop {
        let message = match &mut queue {
            Queue::Bounded(queue) => queue.recv().await,
            Queue::Unbounded(queue) => queue.recv().await,
        };
        let Some(message) = message else { return };
        if output.write_all(&message).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}
