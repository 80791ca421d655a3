//! What the advice on a failure comes to in the user's source, where an edit of it is safe.
//!
//! A fix is worked out from the verdict and the text as it is now, whenever somebody asks: nothing of it is kept.
//! Every edit leaves code that parsed as code that parses, or it is not offered.

use std::sync::Arc;

use crate::catalog::Texts;
use crate::config::{Edit, apply};
use crate::lint::code::Code;
use crate::python::{Module, Program};
use crate::verdict::Verdict;

mod spot;

mod check;
mod index;
mod labels;
mod probabilities;

mod devices;
mod extension;
mod foreseen;
mod memory;
mod processes;

use spot::Spot;

/// A failure at a line of a text.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'f> {
    pub verdict: &'f Verdict,
    pub path: &'f str,
    /// The file that the line is in.
    pub text: &'f Arc<str>,
    /// From 1: the culprit's line, or where it went since.
    pub line: u32,
}

/// One edit of the source that carries out an advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFix {
    /// The advice that it belongs to.
    pub advice: String,
    /// What an editor shows in its menu.
    pub title: String,
    pub edits: Vec<Edit>,
}

/// The fixes of a failure, in the order of its advice.
pub fn fixes(failure: &Failure<'_>, texts: &Texts) -> Vec<CodeFix> {
    let advised = || failure.verdict.advice.iter().map(|advice| advice.id.as_str());
    if !advised().any(|id| FAMILIES.iter().any(|(name, _)| *name == id)) {
        return Vec::new();
    }
    // A script without the ending is Python too; only a notebook's cells have another syntax.
    let name = if failure.path.ends_with(".ipynb") { "cell" } else { "file.py" };
    let modules = [Module::parse(name, None, Arc::clone(failure.text))];
    let program = Program::new(&modules, |_| true);
    let code = Code::read(&program);
    let spot = Spot::new(&code, failure);
    let mut found: Vec<CodeFix> = Vec::new();
    for id in advised() {
        for (_, family) in FAMILIES.iter().filter(|(name, _)| *name == id) {
            program.refill();
            let new = family(&spot).into_iter().map(|draft| draft.write(id, texts));
            let is_new = |fix: &CodeFix| found.iter().all(|known| known.edits != fix.edits);
            let new: Vec<CodeFix> = new.filter(is_new).filter(|fix| still_parses(&modules[0], &fix.edits)).collect();
            found.extend(new);
        }
    }
    found
}

type Family = fn(&Spot<'_, '_, '_>) -> Vec<Draft>;

/// Who knows an edit for an advice of `advice/plans.toml`.
const FAMILIES: &[(&str, Family)] = &[
    ("check-index-range", index::fixes),
    ("check-labels", labels::fixes),
    ("check-loss-inputs", probabilities::inputs),
    ("check-loss-targets", probabilities::targets),
    ("check-probabilities", probabilities::drawn),
    ("move-to-device", devices::moved),
    ("register-buffer", foreseen::unregistered),
    ("map-location", devices::map_location),
    ("choose-device", devices::chosen),
    ("count-devices", foreseen::hardcoded),
    ("spawn-workers", processes::spawned),
    ("record-main", foreseen::recorded),
    ("set-device-first", foreseen::device_first),
    ("move-environment", foreseen::moved_environment),
    ("set-visible-devices-early", foreseen::moved_environment),
    ("reduce-batch", memory::accumulated),
    ("checkpoint-activations", memory::checkpointed),
    ("evaluate-without-grad", memory::without_grad),
    ("rebuild-extension", extension::architectures),
    ("rebuild-extension-for", extension::architectures),
];

/// A fix before it has words: the key of its title in `catalog/fixes.*.toml`, and what that is filled with.
struct Draft {
    key: &'static str,
    values: Vec<(&'static str, String)>,
    edits: Vec<Edit>,
}

impl Draft {
    fn new(key: &'static str, edits: Vec<Edit>) -> Self {
        Self { key, values: Vec::new(), edits }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.values.push((name, value.to_string()));
        self
    }

    fn write(self, advice: &str, texts: &Texts) -> CodeFix {
        let values: Vec<(&str, &str)> = self.values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let title = texts.line(&format!("fixes.{}", self.key), &values);
        CodeFix { advice: advice.to_owned(), title, edits: self.edits }
    }
}

fn still_parses(module: &Module, edits: &[Edit]) -> bool {
    let after = apply(module.lines.text(), edits);
    let name = module.name.clone();
    Module::parse(name, None, after).parsed().errors().len() <= module.parsed().errors().len()
}

#[cfg(test)]
mod tests;
