//! What a debug session tells blame: the messages of the Debug Adapter Protocol, read as evidence.
//!
//! While a debugger stands at an exception, no hook of the program's has run yet: what it stands at is only known from the
//! debugger's own answers. They become an event as the Python hook would have written it, and the output becomes a log.

mod exception;

use serde_json::Value;

use crate::event::Exception;
use crate::log::{Condenser, Log, Stream};

/// One session, as far as its messages have told.
#[derive(Debug, Default)]
pub struct Session {
    output: Condenser,
    /// The exception that it stands at, until everything is known of it.
    stop: Option<Stop>,
}

/// What a message told.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// The program runs as this process.
    Process {
        pid: u32,
        name: String,
    },
    /// It stands at an exception. [`QUESTIONS`] are to be asked about this thread, and the answers to be given to
    /// [`Session::answered`].
    AtException {
        thread: i64,
    },
    /// What it stands at will be caught by nobody.
    Uncaught(Exception),
    /// It stands no more.
    WentOn,
    Exited {
        code: i64,
    },
    /// The session is over; what became of the program is not known.
    Terminated,
}

/// The commands that are asked of a debugger that stands at an exception, each with a `threadId`.
pub const QUESTIONS: [&str; 2] = ["exceptionInfo", "stackTrace"];

#[derive(Debug)]
struct Stop {
    thread: i64,
    /// The body of each answer to [`QUESTIONS`]: None until it is there, null where the debugger has none.
    info: Option<Value>,
    stack: Option<Value>,
}

impl Session {
    /// Takes an event of the adapter's; other messages tell nothing by themselves.
    pub fn heard(&mut self, message: &Value) -> Option<Told> {
        if message.get("type")?.as_str()? != "event" {
            return None;
        }
        let body = message.get("body").unwrap_or(&Value::Null);
        match message.get("event")?.as_str()? {
            "output" => {
                self.take_output(body);
                None
            }
            "process" => Some(Told::Process {
                pid: u32::try_from(body.get("systemProcessId")?.as_u64()?).ok()?,
                name: body.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            }),
            "stopped" => {
                let thread = body.get("threadId").and_then(Value::as_i64);
                let at_exception = body.get("reason")?.as_str()? == "exception";
                self.stop = thread.filter(|_| at_exception).map(|thread| Stop { thread, info: None, stack: None });
                self.stop.as_ref().map(|stop| Told::AtException { thread: stop.thread })
            }
            "continued" => {
                self.stop = None;
                Some(Told::WentOn)
            }
            "exited" => Some(Told::Exited { code: body.get("exitCode")?.as_i64()? }),
            "terminated" => Some(Told::Terminated),
            _ => None,
        }
    }

    /// Takes the answer to one of [`QUESTIONS`].
    pub fn answered(&mut self, response: &Value) -> Option<Told> {
        let stop = self.stop.as_mut()?;
        let succeeded = response.get("success").and_then(Value::as_bool) == Some(true);
        let body = response.get("body").filter(|_| succeeded).cloned().unwrap_or_default();
        match response.get("command")?.as_str()? {
            "exceptionInfo" => stop.info = Some(body),
            "stackTrace" => stop.stack = Some(body),
            _ => return None,
        }
        let (Some(info), Some(stack)) = (&stop.info, &stop.stack) else { return None };
        let exception = exception::uncaught(info, stack, stop.thread);
        // An answer that comes a second time, to the editor's own question, tells nothing new.
        self.stop = None;
        exception.map(Told::Uncaught)
    }

    /// What the program has written so far, where the debugger has its streams.
    pub fn log(&self) -> Log {
        self.output.snapshot()
    }

    fn take_output(&mut self, body: &Value) {
        let stream = match body.get("category").and_then(Value::as_str) {
            Some("stdout") => Stream::Stdout,
            Some("stderr") => Stream::Stderr,
            // The debugger's own words.
            _ => return,
        };
        if let Some(text) = body.get("output").and_then(Value::as_str) {
            self.output.feed(stream, text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
