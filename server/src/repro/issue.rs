//! A failure in the words of a bug report.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cublame_core::catalog::Texts;

use super::choose::Failed;
use super::{machine, minimal};
use crate::render::markdown::{code, escaped, hover};

/// Lines of the log that are quoted: the last ones.
const LOG_LINES: usize = 60;
/// Packages that decide about a CUDA failure, by the start of their names.
const PACKAGES: [&str; 12] = [
    "torch",
    "triton",
    "nvidia",
    "cuda",
    "cupy",
    "jax",
    "numba",
    "numpy",
    "transformers",
    "lightning",
    "deepspeed",
    "flash",
];

/// What was asked of the machine, once.
pub struct About {
    pub texts: &'static Texts,
    pub python: PathBuf,
    pub python_version: String,
    pub packages: String,
    pub gpus: String,
    pub system: String,
}

impl About {
    /// Asks. The interpreter is that of the failed process, else the first word of the command, else `python3`.
    pub fn of(failed: &Failed, texts: &'static Texts) -> Self {
        let first = failed.run.argv.first().filter(|word| word.contains("python")).map(PathBuf::from);
        let python = failed.python.clone().or(first).unwrap_or_else(|| PathBuf::from("python3"));
        let or_why = |answer: Result<String, String>| answer.unwrap_or_else(|why| why + "\n");
        Self {
            texts,
            python_version: or_why(machine::python_version(&python)),
            packages: or_why(machine::packages(&python)),
            gpus: machine::gpus(),
            system: machine::system(),
            python,
        }
    }

    /// `machine.txt` of a bundle.
    pub fn machine(&self, failed: &Failed) -> String {
        let mut text = format!("{}{}{}\n{}", self.system, self.python_version, self.python.display(), self.gpus);
        let _ = writeln!(text, "\ncublame {}\n", crate::VERSION);
        for (name, value) in &failed.run.env {
            let _ = writeln!(text, "{name}={value}");
        }
        text
    }
}

/// The whole report; the caller scrubs it.
pub fn page(failed: &Failed, about: &About) -> String {
    let mut page = String::new();
    if let Some(verdict) = failed.judged.verdicts.first() {
        let at = verdict.place.as_ref().map(|place| format!(" at {}:{}", base_name(&place.file), place.line));
        let _ = writeln!(page, "# {}{}\n", escaped(&verdict.summary), escaped(&at.unwrap_or_default()));
        if let Some(exception) = &verdict.exception {
            let first = exception.message.lines().next().unwrap_or_default();
            let text = format!("{}: {first}", exception.type_name);
            if text != verdict.summary {
                let _ = writeln!(page, "{}\n", code(&text));
            }
        }
        let _ = writeln!(page, "{}\n", hover(verdict, about.texts));
    }
    reproduction(&mut page, failed);
    environment(&mut page, failed, about);
    if let Some(log) = failed.folder.log().whole().filter(|log| !log.lines.is_empty()) {
        let from = log.lines.len().saturating_sub(LOG_LINES);
        let lines: String = log.lines[from..].iter().map(|line| format!("{}\n", without_escapes(&line.text))).collect();
        let _ = writeln!(page, "## The end of the log\n\n{}", block("", &lines));
    }
    page
}

fn reproduction(page: &mut String, failed: &Failed) {
    let _ = writeln!(page, "## To reproduce\n");
    let folder = minimal::folder_of(failed);
    match std::fs::read_to_string(folder.join(minimal::PROGRAM)) {
        Ok(program) => {
            let _ = writeln!(page, "The failing call alone:\n\n{}", block("python", &program));
            if folder.join(minimal::TENSORS).exists() {
                let _ = writeln!(page, "It reads `tensors.pt`, which has to be attached.\n");
            }
            let _ = writeln!(page, "The whole program:\n");
        }
        Err(_) => {
            let _ = writeln!(page, "The whole program (`cublame repro --minimal` makes a smaller one):\n");
        }
    }
    let _ = writeln!(page, "{}", block("sh", &(failed.run.argv.join(" ") + "\n")));
}

fn environment(page: &mut String, failed: &Failed, about: &About) {
    let _ = writeln!(page, "## Environment\n\n| | |\n| --- | --- |");
    let mut row = |name: &str, value: &str| {
        for line in value.lines().filter(|line| !line.is_empty()) {
            let _ = writeln!(page, "| {name} | {} |", escaped(line));
        }
    };
    row("GPU, driver, memory, capability", &about.gpus);
    row("System", &about.system);
    row("Python", about.python_version.trim_start_matches("Python "));
    row("cublame", &format!("{} in mode {}", crate::VERSION, failed.run.mode));
    let matters = |line: &&str| PACKAGES.iter().any(|start| line.to_ascii_lowercase().starts_with(start));
    let packages: Vec<&str> = about.packages.lines().filter(matters).collect();
    row("Packages", &packages.join(", "));
    for (name, value) in failed.run.env.iter().filter(|(name, _)| !name.starts_with("CUBLAME_")) {
        row(name, value);
    }
    let _ = writeln!(page);
}

/// A fenced block whose fence is longer than any in it.
fn block(language: &str, text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// A log may hold the colours of a terminal.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            if characters.next_if_eq(&'[').is_some() {
                while characters.next_if(|it| !('@'..='~').contains(it)).is_some() {}
                characters.next();
            }
        } else if !character.is_control() || character == '\t' {
            plain.push(character);
        }
    }
    plain
}

fn base_name(file: &str) -> &str {
    Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_cannot_be_left_from_inside() {
        assert_eq!(block("sh", "a ``` b"), "````sh\na ``` b\n````\n");
        assert_eq!(block("", "plain\n"), "```\nplain\n```\n");
    }

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(without_escapes("\u{1b}[1;31mError\u{1b}[0m: x\ty\r"), "Error: x\ty");
    }
}
