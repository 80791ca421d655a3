//! A debugger for a person without one: stops a program of any number of processes at its failure, shows, and goes on.
//!
//! debugpy's server connects to us and speaks the protocol itself; no adapter stands between. Each process has a
//! connection and a thread here. When we are gone the connections break, and the programs run on without a debugger.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io, thread};

use cublame_core::Evidence;
use cublame_core::catalog::Texts;
use cublame_core::catalog::facts::UNRECOGNISED;
use cublame_core::dap::{QUESTIONS, Session, Told};
use cublame_core::log::Condenser;
use serde_json::{Value, json};

use super::framing::{Frame, Frames, framed};
use super::record::{Identity, identity};
use crate::os::{processes, signals};
use crate::render::terminal::{self, Style};
use crate::session::folder::RunFolder;
use crate::sources::judge;

/// Where the processes of one run connect to.
pub struct Holder {
    listener: TcpListener,
    stage: Arc<Stage>,
}

/// What all processes of the run share.
pub struct Stage {
    pub folder: Option<RunFolder>,
    pub cwd: PathBuf,
    pub texts: &'static Texts,
    /// What the program has written so far.
    pub output: Arc<Mutex<Condenser>>,
    /// One process at a time speaks with the person; what was shown last.
    shown: Mutex<Option<Identity>>,
}

impl Stage {
    pub fn new(folder: Option<RunFolder>, cwd: PathBuf, texts: &'static Texts) -> Self {
        Self { folder, cwd, texts, output: Arc::default(), shown: Mutex::default() }
    }

    /// The verdict that a person has seen already.
    pub fn shown(&self) -> Option<Identity> {
        self.turn().clone()
    }

    fn turn(&self) -> MutexGuard<'_, Option<Identity>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder {
    /// On a free port of this machine's own address.
    pub fn listen() -> io::Result<(TcpListener, u16)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    }

    pub fn new(listener: TcpListener, stage: Arc<Stage>) -> Self {
        Self { listener, stage }
    }

    /// Serves every process that connects, for as long as this process lives.
    pub fn start(self) -> io::Result<()> {
        thread::Builder::new().name("debugger".to_owned()).spawn(move || {
            for connection in self.listener.incoming().flatten() {
                let stage = Arc::clone(&self.stage);
                // A process that cannot be served waits for ever: it is told to go on by the end of its connection.
                let served = thread::Builder::new().name("debugged".to_owned()).spawn(move || hold(connection, &stage));
                drop(served);
            }
        })?;
        Ok(())
    }
}

/// From a process's first word to its last. Where the protocol breaks off, the program runs on alone.
fn hold(connection: TcpStream, stage: &Stage) -> Option<()> {
    let mut talk = Talk { connection, frames: Frames::default(), number: 0, heard: VecDeque::new() };
    let process = talk.ask("pydevdSystemInfo", json!({}))?;
    let pid = u32::try_from(process.get("process")?.get("pid")?.as_u64()?).ok()?;
    talk.ask("initialize", json!({ "adapterID": "debugpy", "pathFormat": "path", "linesStartAt1": true }))?;
    talk.ask("attach", json!({ "justMyCode": true, "subProcess": true }))?;
    talk.ask("setExceptionBreakpoints", json!({ "filters": ["uncaught"] }))?;
    talk.ask("configurationDone", json!({}))?;
    let mut session = Session::default();
    loop {
        let message = talk.next()?;
        match session.heard(&message) {
            Some(Told::AtException { thread }) => {
                let mut told = None;
                for question in QUESTIONS {
                    let response = talk.response(question, json!({ "threadId": thread }))?;
                    told = session.answered(&response).or(told);
                }
                let goes_on = match told {
                    Some(Told::Uncaught(exception)) => stand(stage, pid, exception, &mut talk, thread),
                    _ => Next::GoOn,
                };
                if goes_on == Next::End {
                    processes::signal_exactly(processes::identify(pid), signals::SIGTERM).ok();
                }
                talk.ask("continue", json!({ "threadId": "*" }))?;
            }
            Some(Told::WentOn) => {
                stage.folder.as_ref().map(|folder| folder.go_on(pid));
            }
            Some(Told::Exited { .. } | Told::Terminated) => return Some(()),
            Some(Told::Process { .. } | Told::Uncaught(_)) | None => {
                if message.get("event").and_then(Value::as_str) == Some("stopped") {
                    // A breakpoint in the program's own code: nobody is here to step.
                    talk.ask("continue", json!({ "threadId": "*" }))?;
                }
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

/// Shows what it stands at, if that has to do with a GPU, and asks what is to become of the program.
fn stand(stage: &Stage, pid: u32, exception: cublame_core::event::Exception, talk: &mut Talk, thread: i64) -> Next {
    let Some(folder) = &stage.folder else { return Next::GoOn };
    let mut shown = stage.turn();
    if folder.stand_at(pid, exception).is_err() {
        return Next::GoOn;
    }
    let log = stage.output.lock().unwrap_or_else(PoisonError::into_inner).snapshot();
    let evidence = Evidence { log: Some(log), exit: None, ..folder.evidence() };
    let judged = judge(&evidence, &[], Some(&stage.cwd), stage.texts);
    let Some(first) = judged.verdicts.first().filter(|verdict| verdict.kind != UNRECOGNISED) else {
        folder.go_on(pid).ok();
        return Next::GoOn;
    };
    let mut text = format!("cublame: process {pid} stands at its failure.\n");
    text += &terminal::render(&judged.verdicts, &judged.sources, Style::of_stderr());
    text += &stack(talk, thread).unwrap_or_default();
    io::stderr().write_all(text.as_bytes()).ok();
    *shown = Some(identity(first));
    ask_person()
}

/// The frames, innermost last as Python prints them, each with its tensors. Never a value of a tensor.
fn stack(talk: &mut Talk, thread: i64) -> Option<String> {
    const FRAMES: usize = 20;
    let stack = talk.ask("stackTrace", json!({ "threadId": thread }))?;
    let frames = stack.get("stackFrames")?.as_array()?;
    let of_cause = |frame: &&Value| frame.get("name").and_then(Value::as_str).is_some_and(|it| it.starts_with('['));
    let frames: Vec<&Value> = frames.iter().filter(|frame| !of_cause(frame)).take(FRAMES).collect();
    let mut text = String::from("the stack, and the tensors that its frames name:\n");
    for frame in frames.into_iter().rev() {
        let path = frame.get("source")?.get("path")?.as_str()?;
        let (name, line) = (frame.get("name")?.as_str()?, frame.get("line")?);
        text += &format!("  {path}:{line}, in {}\n", terminal::plain(name));
        for (name, shape, dtype, device) in tensors(talk, frame.get("id")?).unwrap_or_default() {
            let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
            text += &format!("    {} is {dtype} [{}] on {device}\n", terminal::plain(&name), shape.join(", "));
        }
    }
    Some(text)
}

type Tensor = (String, Vec<u64>, String, String);

/// The metadata of the tensors in a frame. After a fault on the GPU a value, and so a repr, cannot be had.
fn tensors(talk: &mut Talk, frame: &Value) -> Option<Vec<Tensor>> {
    const EXPRESSION: &str = include_str!("tensors.py");
    // The context of the clipboard is the only one whose answer is not cut.
    let arguments = json!({ "expression": EXPRESSION.trim(), "frameId": frame, "context": "clipboard" });
    let answer = talk.ask("evaluate", arguments)?;
    let digits = answer.get("result")?.as_str()?.trim_matches('\'');
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    serde_json::from_slice(&bytes?).ok()
}

/// Without a terminal nobody can answer, and the program goes on at once.
fn ask_person() -> Next {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Next::GoOn;
    }
    // Standard input is the program's.
    let Ok(terminal) = fs::OpenOptions::new().read(true).open("/dev/tty") else { return Next::GoOn };
    let mut terminal = BufReader::new(terminal);
    loop {
        io::stderr().write_all(b"cublame: [c]ontinue or [q]uit? ").ok();
        let mut line = String::new();
        match terminal.read_line(&mut line) {
            Ok(0) | Err(_) => return Next::GoOn,
            Ok(_) => {}
        }
        match line.trim().chars().next() {
            Some('c' | 'C') => return Next::GoOn,
            Some('q' | 'Q') => return Next::End,
            _ => {}
        }
    }
}

/// A conversation, one question at a time. What comes meanwhile is kept for later.
struct Talk {
    connection: TcpStream,
    frames: Frames,
    number: i64,
    heard: VecDeque<Value>,
}

impl Talk {
    /// The next message that is no answer; None at the end.
    fn next(&mut self) -> Option<Value> {
        match self.heard.pop_front() {
            Some(message) => Some(message),
            None => self.read(),
        }
    }

    /// The body of the answer, null where it has none; None where it was refused or the connection has ended.
    fn ask(&mut self, command: &str, arguments: Value) -> Option<Value> {
        let response = self.response(command, arguments)?;
        let succeeded = response.get("success").and_then(Value::as_bool) == Some(true);
        succeeded.then(|| response.get("body").cloned().unwrap_or_default())
    }

    fn response(&mut self, command: &str, arguments: Value) -> Option<Value> {
        self.number += 1;
        let request = json!({ "seq": self.number, "type": "request", "command": command, "arguments": arguments });
        self.connection.write_all(&framed(&request.to_string())).ok()?;
        loop {
            let message = self.read()?;
            if message.get("request_seq").and_then(Value::as_i64) == Some(self.number) {
                return Some(message);
            }
            self.heard.push_back(message);
        }
    }

    fn read(&mut self) -> Option<Value> {
        loop {
            match self.frames.next_frame() {
                Some(Frame::Message(message)) => {
                    if let Ok(value) = serde_json::from_slice(message.body()) {
                        return Some(value);
                    }
                }
                Some(Frame::Damaged(_)) => {}
                None => {
                    let mut piece = vec![0; 64 << 10];
                    let count = self.connection.read(&mut piece).ok().filter(|count| *count > 0)?;
                    self.frames.feed(&piece[..count]);
                }
            }
        }
    }
}
