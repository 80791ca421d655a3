//! Failures that a rule of the lint foresees: the rule's own fix.

use std::sync::Arc;

use crate::lint::{FileKind, Finding, LintFile, Settings, lint};

use super::Draft;
use super::spot::Spot;

/// The attribute of the failing line that `.to()` leaves behind.
pub fn unregistered(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let line = spot.code.module.lines.line(spot.failure.line);
    let is_used = |finding: &Finding| {
        let edits = finding.fix.iter().flat_map(|fix| &fix.edits);
        let names = edits.filter_map(|edit| edit.text.split('"').nth(1));
        names.into_iter().any(|name| line.contains(&format!(".{name}")))
    };
    found(spot, "unregistered-tensor")
        .iter()
        .filter(|it| is_used(it))
        .filter_map(|it| draft("register-buffer", it))
        .collect()
}

/// The number of a GPU that is written into the failing line, else anywhere in the file.
pub fn hardcoded(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    let found = found(spot, "hardcoded-device");
    let lines = &spot.code.module.lines;
    let is_here = |finding: &&Finding| lines.line_of(finding.range.start) == spot.failure.line;
    let here: Vec<&Finding> = found.iter().filter(is_here).collect();
    let meant: Vec<&Finding> = if here.is_empty() { found.iter().collect() } else { here };
    meant.into_iter().filter_map(|finding| draft("current-device", finding)).collect()
}

pub fn recorded(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    all(spot, "missing-record", "record-main")
}

pub fn device_first(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    all(spot, "set-device-late", "set-device-first")
}

pub fn moved_environment(spot: &Spot<'_, '_, '_>) -> Vec<Draft> {
    all(spot, "env-too-late", "move-environment")
}

pub fn all(spot: &Spot<'_, '_, '_>, rule: &'static str, key: &'static str) -> Vec<Draft> {
    found(spot, rule).iter().filter_map(|finding| draft(key, finding)).collect()
}

fn found(spot: &Spot<'_, '_, '_>, rule: &str) -> Vec<Finding> {
    let file = LintFile { path: spot.failure.path, text: Arc::clone(spot.failure.text), kind: FileKind::Python };
    lint(&file, &Settings { select: Some([rule.to_owned()].into()), ..Settings::default() })
}

fn draft(key: &'static str, finding: &Finding) -> Option<Draft> {
    finding.fix.as_ref().map(|fix| Draft::new(key, fix.edits.clone()))
}
