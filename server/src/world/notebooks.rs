//! Notebooks that are open as such: a finding in a cell is shown in the cell's own document, else in the `.ipynb` file.
//!
//! A cell's document has no file. It goes by the notebook's path and, below it, the document's address, so that everything
//! that knows documents by their path knows cells as well.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cublame_core::event::{Cell, What};
use cublame_core::evidence::ProcessEvents;
use cublame_core::lint::notebook::lint_cells;
use cublame_core::text::LineIndex;
use cublame_core::verdict::Place;

use super::finding::{Anchor, Finding};
use super::linting::Linted;
use super::{Editor, Event, World};
use crate::linting::Project;

/// A cell of an open notebook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellDocument {
    /// As its document is known.
    pub path: PathBuf,
    /// The names that a kernel may have been given for it: the document's address, the cell's id in the file.
    pub names: Vec<String>,
}

/// How long the user pauses before what is typed is read.
const PAUSE: Duration = Duration::from_millis(300);

#[derive(Debug, Default)]
pub(super) struct Notebook {
    cells: Vec<CellDocument>,
    /// How often its cells have changed.
    edits: i32,
}

/// The path of a cell's document.
pub fn path_of_cell(notebook: &Path, address: &str) -> PathBuf {
    notebook.join(address.trim_start_matches('/'))
}

/// Where a finding is in a notebook, beside its place in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct InCell {
    /// The `.ipynb`, canonical.
    pub notebook: PathBuf,
    pub name: Option<String>,
    pub source: Option<Arc<str>>,
    /// In the cell, from 1.
    pub place: Place,
    pub anchor: Option<Anchor>,
    /// The cell that was run when it failed, and when that was.
    pub run: Option<String>,
    pub failed: f64,
}

impl InCell {
    /// The cell that a place names, as the kernel told of it.
    pub fn of<'e>(place: &Place, events: &'e [ProcessEvents]) -> Option<(Self, &'e Cell)> {
        let mut all = events.iter().flat_map(|process| &process.events).filter_map(|event| match &event.what {
            What::Exception(exception) => Some((event.time, exception)),
            What::Start(_) | What::Cell(_) | What::Exit(_) => None,
        });
        let (failed, run, cell) = all.find_map(|(time, exception)| {
            let cell = exception.cells.values().find(|cell| cell.name() == place.file)?;
            Some((time, exception.running_cell().and_then(|cell| cell.id.clone()), cell))
        })?;
        let anchor = cell.source.as_deref().map(|source| Anchor::at(&LineIndex::new(source), place.line));
        let in_cell = Self {
            notebook: PathBuf::from(cell.notebook.as_deref()?),
            name: cell.id.clone(),
            source: cell.source.as_deref().map(Arc::from),
            place: place.clone(),
            anchor,
            run,
            failed,
        };
        Some((in_cell, cell))
    }
}

/// When each cell last ran to its end, by the kernel's name for it.
pub type CellsDone = BTreeMap<String, f64>;

pub fn cells_done(events: &[ProcessEvents]) -> CellsDone {
    let mut done = CellsDone::new();
    for event in events.iter().flat_map(|process| &process.events) {
        if let What::Cell(Cell { id: Some(id), .. }) = &event.what {
            let last = done.entry(id.clone()).or_insert(event.time);
            *last = last.max(event.time);
        }
    }
    done
}

impl<E: Editor> World<E> {
    /// A notebook was opened, has other cells, or was closed (None).
    pub(super) fn notebook(&mut self, path: PathBuf, cells: Option<Vec<CellDocument>>) {
        match cells {
            Some(cells) => {
                self.notebooks.entry(path.clone()).or_default().cells = cells;
                self.lint_notebook_soon(&path, Duration::ZERO);
            }
            None => {
                self.notebooks.remove(&path);
            }
        }
        self.recompute();
    }

    /// The finding as it is shown now. None: its cell has run well since, or is no longer in the open notebook.
    pub(super) fn in_notebook(&self, finding: Finding, done: &CellsDone) -> Option<Finding> {
        let Some(in_cell) = &finding.cell else { return Some(finding) };
        let mended = in_cell.run.as_ref().and_then(|run| done.get(run));
        if mended.is_some_and(|time| *time > in_cell.failed) {
            return None;
        }
        let Some(notebook) = self.notebooks.get(&in_cell.notebook) else { return Some(finding) };
        let cell = self.cell_of(in_cell, &notebook.cells)?;
        Some(Finding {
            path: cell.path.clone(),
            place: in_cell.place.clone(),
            anchor: in_cell.anchor.clone(),
            ..finding
        })
    }

    /// By its name, else by its text, else by the line itself.
    fn cell_of<'a>(&self, in_cell: &InCell, cells: &'a [CellDocument]) -> Option<&'a CellDocument> {
        let named = |cell: &&CellDocument| in_cell.name.as_ref().is_some_and(|name| cell.names.contains(name));
        let text = |cell: &CellDocument| self.open.get(&cell.path).map(|(_, text)| text);
        let same = |cell: &&CellDocument| text(cell).map(LineIndex::text) == in_cell.source.as_deref();
        let holds = |cell: &&CellDocument| {
            let line = in_cell.anchor.as_ref().zip(text(cell));
            line.is_some_and(|(anchor, text)| (1..=text.line_count()).any(|line| *anchor == Anchor::at(text, line)))
        };
        let find = |fits: &dyn Fn(&&CellDocument) -> bool| cells.iter().find(fits);
        find(&named).or_else(|| find(&same)).or_else(|| find(&holds))
    }

    /// Lints the notebook of a cell that has changed. False: it is no cell.
    pub(super) fn lint_notebook_of(&mut self, cell: &Path) -> bool {
        let of_cell = |notebook: &Notebook| notebook.cells.iter().any(|it| it.path == cell);
        let Some(path) = self.notebooks.iter().find(|(_, notebook)| of_cell(notebook)).map(|(path, _)| path.clone())
        else {
            return false;
        };
        self.lint_notebook_soon(&path, PAUSE);
        true
    }

    pub(super) fn lint_notebook_soon(&mut self, path: &Path, pause: Duration) {
        let Some(notebook) = self.notebooks.get_mut(path) else { return };
        notebook.edits += 1;
        let due = Event::NotebookLintDue { path: path.to_owned(), edits: notebook.edits };
        let events = self.events.clone();
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            events.post(due);
        });
    }

    /// All cells are read as one module, once the user pauses: a change of one may be a finding in another.
    pub(super) fn notebook_lint_due(&self, path: &Path, edits: i32) {
        // A later change has its own turn.
        let Some(notebook) = self.notebooks.get(path).filter(|notebook| notebook.edits == edits) else { return };
        let open = |cell: &CellDocument| {
            let (version, text) = self.open.get(&cell.path)?;
            Some((cell.path.clone(), *version, text.clone()))
        };
        let cells: Vec<(PathBuf, i32, LineIndex)> = notebook.cells.iter().filter_map(open).collect();
        let (path, events) = (path.to_owned(), self.events.clone());
        let (select, ignore) = (self.settings.lint_select.clone(), self.settings.lint_ignore.clone());
        tokio::task::spawn_blocking(move || {
            let settings = match Project::of(&path, &select, &ignore) {
                Ok(project) => project.settings(&path),
                Err(failure) => return events.post(Event::Linted { path, linted: Err(failure.to_string()) }),
            };
            let texts: Vec<(usize, &str)> = (1..).zip(cells.iter().map(|(_, _, text)| text.text())).collect();
            let findings = lint_cells(&path.to_string_lossy(), &texts, &settings);
            for ((path, version, text), findings) in cells.iter().cloned().zip(findings) {
                let linted = Ok(Arc::new(Linted { version, text, settings: settings.clone(), findings }));
                events.post(Event::Linted { path, linted });
            }
        });
    }
}
