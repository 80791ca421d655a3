//! Run configurations: worked out on a thread that may block, changed in the editor where it can, else on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::orders::{Answer, Refusal};
use super::{Editor, Event, Level, World};
use crate::configure::files::{Change, Texts};
use crate::configure::{self, Plan, Tool, Wish};

/// What the user wants, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub tool: Tool,
    /// The workspace folder, a .code-workspace file, or the notebook; without it, the root of the program that is named,
    /// else the first.
    pub place: Option<PathBuf>,
    pub wish: Wish,
    /// Nothing is changed; the answer is the diff.
    pub dry_run: bool,
}

/// What is done, and what is the editor's to do.
#[derive(Debug)]
pub struct Configured {
    written: Vec<Change>,
    in_editor: Vec<Change>,
}

/// What was handed to the editor.
#[derive(Debug, Default)]
pub struct Edits {
    last: u64,
    open: BTreeMap<u64, Configured>,
    /// The files that the editor was asked to create. They are empty on disk until the user saves them.
    created: BTreeSet<PathBuf>,
}

impl<E: Editor> World<E> {
    pub(super) fn configure(&mut self, wanted: Wanted, answer: Answer) {
        let open = self.open.iter().map(|(path, (_, text))| (path.clone(), text.clone()));
        let texts = Texts { open: open.collect() };
        let Some(place) = wanted.place.clone().or_else(|| self.place_of(&wanted)) else {
            answer.send(Err(self.refused("no-folder-for-configurations", &[]))).ok();
            return;
        };
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || match configure::plan(wanted.tool, &place, &wanted.wish, &texts) {
            Err(failure) => drop(answer.send(Err(Refusal(failure.to_string())))),
            Ok(plan) if wanted.dry_run => drop(answer.send(Ok(diff(&plan)))),
            Ok(plan) => events.post(Event::Planned { plan, answer }),
        });
    }

    pub(super) fn planned(&mut self, plan: Plan, answer: Answer) {
        let changes: Vec<Change> = plan.changes.into_iter().filter(Change::is_one).collect();
        if let Some(refusal) = changes.iter().find_map(|change| self.unknown_text(change)) {
            answer.send(Err(refusal)).ok();
            return;
        }
        plan.notes.into_iter().for_each(|note| self.editor.tell(Level::Info, format!("{note}.")));
        let by_server = |change: &Change| is_ours(&change.path) || !self.editor.can_edit(change);
        let (written, in_editor): (Vec<_>, Vec<_>) = changes.into_iter().partition(by_server);
        let done = Configured { written, in_editor };
        if done.written.is_empty() {
            return self.configured(done, answer);
        }
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || match done.written.iter().try_for_each(Change::write) {
            Ok(()) => events.post(Event::Configured { done, answer }),
            Err(failure) => drop(answer.send(Err(Refusal(failure.to_string())))),
        });
    }

    pub(super) fn configured(&mut self, done: Configured, answer: Answer) {
        let written = names(done.written.iter().filter(|change| !is_ours(&change.path)));
        let in_editor = names(&done.in_editor);
        answer.send(Ok(json!({ "changed": written, "inEditor": in_editor }))).ok();
        if done.in_editor.is_empty() {
            let said = if written.is_empty() {
                self.say("nothing-changed", &[])
            } else {
                self.say("changed", &[("files", &*written.join(", "))])
            };
            self.editor.tell(Level::Info, said);
            return;
        }
        let version = |change: &Change| Some(self.open.get(change.open.as_ref()?)?.0);
        let changes: Vec<_> = done.in_editor.iter().map(|change| (change.clone(), version(change))).collect();
        self.edits.last += 1;
        let edit = self.edits.last;
        self.edits.open.insert(edit, done);
        self.editor.edit(edit, &changes);
    }

    pub(super) fn edited(&mut self, edit: u64, failure: Option<String>) {
        let Some(Configured { written, in_editor }) = self.edits.open.remove(&edit) else { return };
        let Some(failure) = failure else {
            let new = in_editor.iter().filter(|change| change.before.is_none());
            self.edits.created.extend(new.map(|change| change.path.clone()));
            let said = self.say("changed-in-editor", &[("files", &*names(&in_editor).join(", "))]);
            return self.editor.tell(Level::Info, said);
        };
        let said = self.say("not-taken", &[("failure", &failure)]);
        self.editor.tell(Level::Warning, said);
        // The record of a switch that did not happen.
        let records: Vec<Change> =
            written.into_iter().filter(|change| is_ours(&change.path)).map(Change::undone).collect();
        let events = self.events.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(failure) = records.iter().try_for_each(Change::write) {
                let then = super::orders::Then::Look;
                events.post(Event::Written { outcome: Err(failure.to_string()), then });
            }
        });
    }

    /// Why a change was worked out from a text that is not the file's any more.
    fn unknown_text(&self, change: &Change) -> Option<Refusal> {
        let name = change.path.display();
        if let Some(open) = &change.open {
            let now = self.open.get(open).map(|(_, text)| text.text());
            return (now != change.before.as_deref())
                .then(|| Refusal(format!("{name} was changed in the meantime: run the command again")));
        }
        let unsaved = change.before.as_deref() == Some("") && self.edits.created.contains(&change.path);
        unsaved.then(|| Refusal(format!("{name} has changes in the editor that are not saved: save it first")))
    }

    fn place_of(&self, wanted: &Wanted) -> Option<PathBuf> {
        let named = match &wanted.wish {
            Wish::Write(targets) => {
                let paths = targets.programs.iter().chain(&targets.torchrun).chain(&targets.accelerate);
                paths.chain(&targets.pytest).find(|path| path.is_absolute())
            }
            _ => None,
        };
        let root = named.and_then(|path| self.root_of(path)).or_else(|| self.roots.first().map(PathBuf::as_path));
        root.or_else(|| named?.parent()).map(Path::to_owned)
    }
}

/// The project's folder holds nothing that a person edits, so its files are never the editor's to change.
fn is_ours(path: &Path) -> bool {
    path.parent().and_then(Path::file_name).is_some_and(|folder| folder == ".cublame")
}

fn names<'c>(changes: impl IntoIterator<Item = &'c Change>) -> Vec<String> {
    changes.into_iter().map(|change| change.path.display().to_string()).collect()
}

fn diff(plan: &Plan) -> Value {
    plan.changes.iter().filter(|change| change.is_one()).map(Change::diff).collect::<String>().into()
}
