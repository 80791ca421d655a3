//! The editor's own debugger: the messages of its sessions, passed on by the editor, read as the proxy reads them.

use std::collections::HashMap;
use std::path::PathBuf;

use cublame_core::catalog::Texts;
use cublame_core::dap::{QUESTIONS, Session, Told};
use cublame_core::run::Exit;
use serde_json::Value;

use super::{Editor, Event, World, survey};
use crate::dap::desk::Desk;
use crate::dap::record::Record;

/// The sessions that have not ended, by the editor's own names for them.
#[derive(Debug, Default)]
pub struct Debuggers(HashMap<String, Debugger>);

#[derive(Debug)]
struct Debugger {
    session: Session,
    desk: Desk,
}

impl<E: Editor> World<E> {
    /// Takes a message of the adapter's.
    pub(super) fn debugged(&mut self, id: String, message: &Value) {
        let (roots, surroundings, language) = (&self.roots, &self.surroundings, self.settings.language);
        let debugger = self.debuggers.0.entry(id.clone()).or_insert_with(|| {
            let cwd = roots.first().cloned().unwrap_or_else(|| surroundings.cwd.clone());
            let runs_folders = survey::runs_folders(roots, surroundings).into_iter().collect();
            let record = Record::new(cwd, PathBuf::new(), Texts::get(language), runs_folders);
            Debugger { session: Session::default(), desk: Desk::open(record) }
        });
        let told = match message.get("type").and_then(Value::as_str) {
            Some("response") => debugger.session.answered(message),
            _ => debugger.session.heard(message),
        };
        let desk = debugger.desk.clone();
        match told {
            None => {}
            Some(Told::Process { pid, name }) => desk.tell(move |record| record.started(pid, name)),
            Some(Told::AtException { thread }) => {
                QUESTIONS.iter().for_each(|question| self.editor.ask_debugger(&id, question, thread));
            }
            Some(Told::Uncaught(exception)) => {
                let log = debugger.session.log();
                self.then_look(desk.ask(move |record| drop(record.stands(exception, &log))));
            }
            Some(Told::WentOn) => self.then_look(desk.ask(Record::went_on)),
            // How it ended is seen in the run.
            Some(Told::Exited { .. }) => {}
            Some(Told::Terminated) => {
                let log = debugger.session.log();
                self.debuggers.0.remove(&id);
                self.then_look(desk.ask(move |record| drop(record.ended(Exit::default(), log))));
            }
        }
    }

    fn then_look(&self, done: impl Future<Output = Option<()>> + Send + 'static) {
        let events = self.events.clone();
        tokio::spawn(async move {
            done.await;
            events.post(Event::Stirred);
        });
    }
}
