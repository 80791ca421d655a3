//! The lint of open Python files: read again as they are typed, shown beside what runs have left.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cublame_core::lint::{FileKind, Finding, LintFile, Settings, lint};
use cublame_core::text::LineIndex;

use super::{Editor, Event, Level, World};
use crate::linting::Project;

/// What the lint says of one version of an open document.
#[derive(Debug, Clone, PartialEq)]
pub struct Linted {
    pub version: i32,
    pub text: LineIndex,
    pub settings: Settings,
    pub findings: Vec<Finding>,
}

impl Linted {
    pub fn of(path: &Path, version: i32, text: LineIndex, settings: Settings) -> Self {
        let file = LintFile { path: &path.to_string_lossy(), text: text.shared_text(), kind: FileKind::Python };
        let findings = lint(&file, &settings);
        Self { version, text, settings, findings }
    }
}

impl<E: Editor> World<E> {
    /// A document was opened or changed: it is read at once, one reading of a document at a time. What changes meanwhile is
    /// read when that one ends, and only the newest text's findings are shown.
    pub(super) fn lint(&mut self, path: &Path) {
        if self.lint_notebook_of(path) {
            return;
        }
        if FileKind::of(&path.to_string_lossy()) != Some(FileKind::Python) {
            return;
        }
        if let Some(again) = self.linting.get_mut(path) {
            *again = true;
            return;
        }
        let Some((version, text)) = self.open.get(path) else { return };
        self.linting.insert(path.to_owned(), false);
        let (path, version, text, events) = (path.to_owned(), *version, text.clone(), self.events.clone());
        let (select, ignore) = (self.settings.lint_select.clone(), self.settings.lint_ignore.clone());
        tokio::task::spawn_blocking(move || {
            let project = Project::of(&path, &select, &ignore);
            let linted = project.map(|project| Linted::of(&path, version, text, project.settings(&path)));
            let linted = linted.map(Arc::new).map_err(|failure| failure.to_string());
            events.post(Event::Linted { path, linted });
        });
    }

    /// The settings have changed.
    pub(super) fn lint_all_again(&mut self) {
        let open: Vec<PathBuf> = self.open.keys().cloned().collect();
        open.iter().for_each(|path| self.lint(path));
    }

    pub(super) fn linted(&mut self, path: PathBuf, linted: Result<Arc<Linted>, String>) {
        if self.linting.remove(&path) == Some(true) {
            return self.lint(&path);
        }
        match linted {
            Ok(linted) => {
                if self.open.get(&path).is_none_or(|(now, _)| *now != linted.version) {
                    return;
                }
                let before = self.linted.insert(path.clone(), Arc::clone(&linted));
                let shown = |linted: &Linted| !linted.findings.is_empty();
                if shown(&linted) || before.as_deref().is_some_and(shown) {
                    self.dirty.insert(path);
                }
                self.publish_snapshot();
            }
            Err(failure) if self.complained.insert(failure.clone()) => self.editor.tell(Level::Warning, failure),
            Err(_) => {}
        }
    }

    pub(super) fn lint_closed(&mut self, path: &Path) {
        if self.linted.remove(path).is_some_and(|linted| !linted.findings.is_empty()) {
            self.dirty.insert(path.to_owned());
        }
        self.publish_snapshot();
    }

    fn publish_snapshot(&self) {
        self.publish.send_modify(|snapshot| Arc::make_mut(snapshot).linted.clone_from(&self.linted));
    }
}
