//! The lint of open Python files: read again when the user pauses, shown beside what runs have left.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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

/// How long the user pauses before what is typed is read.
pub(super) const PAUSE: Duration = Duration::from_millis(300);

impl<E: Editor> World<E> {
    /// A document was opened or changed. What is opened is read at once.
    pub(super) fn lint_soon(&mut self, path: &Path, version: i32) {
        if self.lint_notebook_of(path) {
            return;
        }
        if FileKind::of(&path.to_string_lossy()) != Some(FileKind::Python) {
            return;
        }
        let due = Event::LintDue { path: path.to_owned(), version };
        let (events, pause) =
            (self.events.clone(), if self.linted.contains_key(path) { PAUSE } else { Duration::ZERO });
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            events.post(due);
        });
    }

    /// The settings have changed.
    pub(super) fn lint_all_again(&mut self) {
        let open: Vec<(PathBuf, i32)> = self.open.iter().map(|(path, (version, _))| (path.clone(), *version)).collect();
        open.iter().for_each(|(path, version)| self.lint_soon(path, *version));
    }

    pub(super) fn lint_due(&mut self, path: PathBuf, version: i32) {
        if self.notebook_lint_due(&path, version) {
            return;
        }
        // A later version has its own turn.
        let Some((_, text)) = self.open.get(&path).filter(|(now, _)| *now == version) else { return };
        let (text, events) = (text.clone(), self.events.clone());
        let (select, ignore) = (self.settings.lint_select.clone(), self.settings.lint_ignore.clone());
        tokio::task::spawn_blocking(move || {
            let project = Project::of(&path, &select, &ignore);
            let linted = project.map(|project| Linted::of(&path, version, text, project.settings(&path)));
            let linted = linted.map(Arc::new).map_err(|failure| failure.to_string());
            events.post(Event::Linted { path, linted });
        });
    }

    pub(super) fn linted(&mut self, path: PathBuf, linted: Result<Arc<Linted>, String>) {
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
