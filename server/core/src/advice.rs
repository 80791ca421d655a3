//! From a verdict to what to do about it: an ordered list of advice, as data.
//!
//! `advice/plans.toml` says which advice a kind gets and in which order; the words are in `catalog/advice.*.toml`.
//! An entry in angle brackets is decided from the evidence, by the function of that name in [`decisions`].
//! Every other entry is given unless [`Case::forbids`] knows that it cannot work here.

mod case;
mod command;
mod decisions;
mod memory;
mod platform;
mod setting;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::catalog::Texts;
use crate::evidence::Evidence;
use crate::verdict::{Advice, Verdict};

use case::Case;
pub use platform::{Capability, Os, Platform};
pub use setting::Setting;

/// The advice for a verdict, most useful first. What is known of the machine is read from the evidence.
pub fn advise(verdict: &Verdict, evidence: &Evidence, texts: &Texts) -> Vec<Advice> {
    advise_on(verdict, evidence, &Platform::seen(verdict, evidence), texts)
}

/// The advice for a verdict on a machine that is known from elsewhere.
pub fn advise_on(verdict: &Verdict, evidence: &Evidence, platform: &Platform, texts: &Texts) -> Vec<Advice> {
    let case = Case::new(verdict, evidence, platform);
    let planned = plan(&verdict.kind).iter().flat_map(|entry| {
        match entry.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            Some(decision) => decisions::decide(decision, &case),
            None => vec![Step::new(entry)],
        }
    });
    decisions::whatever_the_kind(&case)
        .into_iter()
        .chain(planned)
        .filter(|step| !case.forbids(&step.id))
        .map(|step| step.write(&case, texts))
        .collect()
}

/// Is the command of this advice one to be typed into a terminal as it is, rather than a run of the program?
pub fn is_for_terminal(id: &str) -> bool {
    PLANS.terminal.iter().any(|listed| listed == id)
}

/// One advice and the values that its words are filled with.
struct Step {
    id: String,
    values: Vec<(&'static str, String)>,
}

impl Step {
    fn new(id: &str) -> Self {
        Self { id: id.to_owned(), values: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.values.push((name, value.to_string()));
        self
    }

    fn write(self, case: &Case, texts: &Texts) -> Advice {
        let values: Vec<(&str, &str)> = self.values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let all: Vec<(&str, &str)> = values.iter().copied().chain(case.values()).collect();
        Advice {
            title: texts.line(&format!("advice.{}.title", self.id), &values),
            detail: texts.line(&format!("advice.{}.detail", self.id), &values),
            command: case.command_of(&self.id).and_then(|command| command::fill(command, &all)),
            edit: None,
            id: self.id,
        }
    }
}

/// A number of bytes as PyTorch writes it: `1.50 GiB`.
pub fn size(bytes: u64) -> String {
    memory::size(bytes)
}

fn plan(kind: &str) -> &'static [String] {
    PLANS.kinds.get(kind).or_else(|| PLANS.kinds.get("unrecognised")).map_or(&[], Vec::as_slice)
}

#[derive(Debug, Default, Deserialize)]
struct Plans {
    /// Advice ids by kind, in order.
    kinds: BTreeMap<String, Vec<String>>,
    /// Advice ids by the id of a known assertion.
    asserts: BTreeMap<String, String>,
    /// Advice ids by a part of what the guard calls an argument.
    guarded: BTreeMap<String, String>,
    /// Command lines by advice id. One with a placeholder that nothing fills is left out.
    commands: BTreeMap<String, String>,
    /// The advice whose command an editor offers to run in a terminal.
    terminal: Vec<String>,
}

static PLANS: LazyLock<Plans> = LazyLock::new(|| data("plans.toml", include_str!("advice/plans.toml")));

/// Reads one of our own data files. A damaged one stops debug builds, and so the tests.
fn data<T: Default + serde::de::DeserializeOwned>(name: &str, text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|error| {
        debug_assert!(false, "{name}: {error}");
        T::default()
    })
}

#[cfg(test)]
mod tests;
