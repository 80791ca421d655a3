//! `cublame lint`: the rules over files and folders, for people and for CI.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args, ValueEnum};
use cublame_core::config::apply;
use cublame_core::lint::document::{Document, Row};
use cublame_core::lint::{FileKind, Finding, LintFile, RULES, Settings, fix_all, lint, notebook};
use cublame_core::text::LineIndex;
use ignore::WalkBuilder;

use crate::configure::files::Change;
use crate::error::{Error, Result};
use crate::linting::Project;
use crate::render::findings;

/// Larger files are data, not code.
const MOST_BYTES: u64 = 8 << 20;

#[derive(Debug, Args)]
pub struct Arguments {
    /// Files and folders
    #[arg(value_name = "PATH", required_unless_present = "rules")]
    paths: Vec<PathBuf>,
    /// Print the findings as one JSON document
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Only these rules, separated by commas
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    select: Vec<String>,
    /// Not these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Write the fixes into the files; what is left is printed
    #[arg(long)]
    fix: bool,
    /// Print what every rule finds, why, and when it is quiet
    #[arg(long)]
    rules: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    /// Annotations of GitHub Actions
    Github,
    Sarif,
}

/// 0 without findings, 1 with.
pub fn main(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.rules {
        print(&RULES.iter().map(|rule| rule.documentation()).collect::<Vec<_>>().join("\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let project = {
        let first = arguments.paths.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
        Project::of(first, &arguments.select, &arguments.ignore)?
    };
    let files = files(&arguments.paths)?;
    let outcome = lint_all(&files, &project, arguments.fix);
    for sentence in &outcome.left_out {
        eprintln!("cublame: {sentence}");
    }
    let document = Document::new(outcome.rows);
    let format = if arguments.json { Format::Json } else { arguments.format };
    print(&match format {
        Format::Text => findings::text(&document),
        Format::Json => json(&document)?,
        Format::Github => findings::github(&document),
        Format::Sarif => json(&findings::sarif(&document))?,
    })?;
    if outcome.fixed > 0 {
        eprintln!("cublame: {} fixed", counted(outcome.fixed, "file"));
    }
    Ok(if document.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn json(document: &impl serde::Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(document);
    text.map(|text| text + "\n").map_err(|error| Error::internal("cannot write the findings as JSON").because(error))
}

fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        // A reader such as `head` that has seen enough is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::environment("cannot write to standard output").because(error))
        }
        _ => Ok(()),
    }
}

/// The files to read, sorted. A file that is named is read whatever git ignores; folders are walked as git sees them,
/// with the hidden files that hold settings, without what is installed or generated.
fn files(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Language)>> {
    let Some((first, rest)) = paths.split_first() else { return Ok(Vec::new()) };
    for path in paths {
        if !path.exists() {
            return Err(Error::user(format!("there is no {}", path.display())).hint("give a file or a folder"));
        }
    }
    let mut walk = WalkBuilder::new(first);
    rest.iter().for_each(|path| {
        walk.add(path);
    });
    walk.hidden(false).require_git(false).filter_entry(|entry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || !NOT_ENTERED.contains(&name.as_ref())
    });
    let found = Mutex::new(Vec::new());
    walk.build_parallel().run(|| {
        let mut here = Batch { found: &found, files: Vec::new() };
        Box::new(move |entry| {
            if let Ok(entry) = entry
                && entry.file_type().is_some_and(|kind| kind.is_file())
                && let Some(language) = Language::of(entry.path())
            {
                here.files.push((entry.into_path(), language));
            }
            ignore::WalkState::Continue
        })
    });
    let mut files = found.into_inner().unwrap_or_default();
    files.sort();
    files.dedup();
    Ok(files)
}

const NOT_ENTERED: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".tox",
    ".nox",
    ".cublame",
    "site-packages",
];

/// Collects what one thread of the walk finds, and hands it over at its end.
struct Batch<'f> {
    found: &'f Mutex<Vec<(PathBuf, Language)>>,
    files: Vec<(PathBuf, Language)>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if let Ok(mut found) = self.found.lock() {
            found.append(&mut self.files);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Language {
    Notebook,
    Other,
}

impl Language {
    fn of(path: &Path) -> Option<Self> {
        if path.extension().is_some_and(|extension| extension == "ipynb") {
            return Some(Language::Notebook);
        }
        FileKind::of(&path.to_string_lossy()).map(|_| Language::Other)
    }
}

#[derive(Default)]
struct Outcome {
    rows: Vec<Row>,
    fixed: usize,
    left_out: Vec<String>,
}

/// Lints the files on all processors; the rows are in the order of the files.
fn lint_all(files: &[(PathBuf, Language)], project: &Project, fix: bool) -> Outcome {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(files.len().max(1));
    let done: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = Vec::new();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((path, language)) = files.get(index) else { break };
                    let outcome = lint_one(path, *language, project, fix);
                    if !outcome.rows.is_empty() || !outcome.left_out.is_empty() || outcome.fixed > 0 {
                        own.push((index, outcome));
                    }
                }
                if let Ok(mut done) = done.lock() {
                    done.append(&mut own);
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    let mut all = Outcome::default();
    for (_, outcome) in done {
        all.rows.extend(outcome.rows);
        all.left_out.extend(outcome.left_out);
        all.fixed += outcome.fixed;
    }
    all
}

fn lint_one(path: &Path, language: Language, project: &Project, fix: bool) -> Outcome {
    let shown = path.to_string_lossy();
    let shown = shown.strip_prefix("./").unwrap_or(&shown);
    let left_out =
        |why: String| Outcome { left_out: vec![format!("{shown} was left out: {why}")], ..Outcome::default() };
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > MOST_BYTES) {
        return left_out(format!("it is larger than {} MiB", MOST_BYTES >> 20));
    }
    let text = match fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => return left_out("it is not UTF-8".to_owned()),
        Err(error) => return left_out(error.to_string()),
    };
    let settings = project.settings(path);
    if language == Language::Notebook {
        return Outcome { rows: notebook_rows(shown, &text, &settings), ..Outcome::default() };
    }
    let Some(kind) = FileKind::of(shown) else { return Outcome::default() };
    let lint_text =
        |text: &str| -> Vec<Finding> { lint(&LintFile { path: shown, text: text.into(), kind }, &settings) };
    let mut text = text;
    let mut found = lint_text(&text);
    let mut outcome = Outcome::default();
    if fix {
        let edits = fix_all(&found);
        if !edits.is_empty() {
            let after = apply(&text, &edits);
            let change = Change { path: path.to_owned(), open: None, before: Some(text), after: Some(after) };
            match change.write() {
                Ok(()) => {
                    outcome.fixed = 1;
                    text = change.after.unwrap_or_default();
                    found = lint_text(&text);
                }
                Err(error) => {
                    outcome.left_out.push(error.to_string());
                    text = change.before.unwrap_or_default();
                }
            }
        }
    }
    if !found.is_empty() {
        let lines = LineIndex::new(text);
        outcome.rows = found.iter().map(|finding| Row::new(shown, None, &lines, finding)).collect();
    }
    outcome
}

fn notebook_rows(shown: &str, text: &str, settings: &Settings) -> Vec<Row> {
    let cells = notebook::code_cells(text).unwrap_or_default();
    let sources: Vec<(usize, &str)> = cells.iter().map(|(number, source)| (*number, source.as_str())).collect();
    let by_cell = notebook::lint_cells(shown, &sources, settings);
    let mut rows = Vec::new();
    for ((number, source), found) in cells.iter().zip(by_cell) {
        let lines = LineIndex::new(source.as_str());
        rows.extend(found.iter().map(|finding| Row::new(shown, Some(*number), &lines, finding)));
    }
    rows
}
