//! One file: every rule in some language, the fixes that go together, and the fixes of a failure at some line.

use std::sync::Arc;

use cublame_core::Verdict;
use cublame_core::catalog::{Language, Texts};
use cublame_core::config::apply;
use cublame_core::fixes::{Failure, fixes};
use cublame_core::lint::notebook::lint_cells;
use cublame_core::lint::{self, FileKind, Finding, LintFile, Settings, fix_all};
use cublame_core::verdict::{Advice, Tensor};
use fastrand::Rng;

use crate::seeds::Seeds;

/// Returns the bytes that were read.
pub fn lint(bytes: &[u8], _: &Seeds, random: &mut Rng) -> usize {
    let text: Arc<str> = Arc::from(String::from_utf8_lossy(bytes));
    // Most rules are about Python.
    let path = if random.bool() { "a.py" } else { PATHS[random.usize(..PATHS.len())] };
    if let Some(kind) = FileKind::of(path) {
        check(&text, &lint::lint(&LintFile { path, text: Arc::clone(&text), kind }, &Settings::default()));
    }
    let (first, second) = text.split_at(text.floor_char_boundary(random.usize(..=text.len())));
    let by_cell = lint_cells("a.ipynb", &[(1, first), (3, second)], &Settings::default());
    [first, second].into_iter().zip(&by_cell).for_each(|(cell, found)| check(cell, found));
    fix_failure(&text, random);
    3 * text.len()
}

const PATHS: &[&str] =
    &["Dockerfile", "compose.yml", ".gitlab-ci.yml", "run.sh", ".env", ".vscode/launch.json", "a.run.xml", "k.cu"];

/// Places are in the text, and all fixes can be made together.
fn check(text: &str, found: &[Finding]) {
    for finding in found {
        assert!(text.get(finding.range.clone()).is_some(), "{} is at {:?}", finding.rule, finding.range);
        std::hint::black_box(finding.fix.as_ref().map(|fix| apply(text, &fix.edits)));
    }
    std::hint::black_box(apply(text, &fix_all(found)));
}

/// The advice that has fixes, whatever the failure.
const ADVICE: &[&str] = &[
    "check-index-range",
    "check-labels",
    "check-loss-inputs",
    "check-loss-targets",
    "check-probabilities",
    "move-to-device",
    "register-buffer",
    "map-location",
    "choose-device",
    "count-devices",
    "spawn-workers",
    "record-main",
    "set-device-first",
    "move-environment",
    "reduce-batch",
    "checkpoint-activations",
    "evaluate-without-grad",
    "rebuild-extension",
];

fn fix_failure(text: &Arc<str>, random: &mut Rng) {
    let verdict = include_str!("../fixtures/verdicts/device-assert.json");
    let Ok(mut verdict) = serde_json::from_str::<Verdict>(verdict) else { return };
    let advice =
        |id: &str| Advice { id: id.to_owned(), title: String::new(), detail: String::new(), command: None, edit: None };
    verdict.advice = vec![advice(ADVICE[random.usize(..ADVICE.len())])];
    verdict.frames.clear();
    verdict.tensors = [("x", "cuda:0"), ("mask", "cpu")]
        .map(|(name, device)| Tensor {
            name: name.to_owned(),
            dtype: "int64".to_owned(),
            device: device.to_owned(),
            ..Tensor::default()
        })
        .into();
    let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let failure = Failure { verdict: &verdict, path: "a.py", text, line: random.u32(..=lines) };
    for fix in fixes(&failure, Texts::get(Language::English)) {
        std::hint::black_box(apply(text, &fix.edits));
    }
}
