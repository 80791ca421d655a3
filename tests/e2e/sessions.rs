//! The run folders recorded on an H200, judged again: place against culprit, and nothing called exact that is wrong.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};

use cublame::session::RunFolder;
use cublame::sources::judge;
use cublame_core::Certainty;
use cublame_core::catalog::{Language, Texts};
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The programs without the comments that mark their culprit: the product must not be able to read the answer.
fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixtures().join("gpu/programs")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let bare = text.replace("# FORWARD-CULPRIT", "").replace("# CULPRIT", "");
        fs::write(folder.path().join(path.file_name().unwrap()), bare).unwrap();
    }
    folder
}

/// One row of index.json a program: its culprit lines and its kind.
fn programs() -> Vec<(String, Vec<u64>, String)> {
    let index: Vec<Value> = serde_json::from_slice(&fs::read(fixtures().join("gpu/index.json")).unwrap()).unwrap();
    let once = index.into_iter().filter(|row| row["mode"] == "async");
    once.map(|row| {
        let name = row["program"].as_str().unwrap().trim_start_matches("programs/").trim_end_matches(".py").to_owned();
        let lines = row["culprit_lines"].as_array().unwrap().iter().map(|line| line.as_u64().unwrap()).collect();
        (name, lines, row["kind"].as_str().unwrap().to_owned())
    })
    .collect()
}

/// Judges every recorded run of a mode; the names of the programs whose place is not the culprit.
fn misses(mode: &str) -> Vec<String> {
    let workspace = workspace();
    let roots = [workspace.path().to_owned()];
    let mut misses = Vec::new();
    for (name, lines, kind) in programs() {
        let folder = RunFolder::open(fixtures().join("sessions/h200").join(mode).join(&name)).unwrap();
        let report = folder.report().whole().unwrap();
        let run = folder.run().whole().unwrap();
        let mut evidence = folder.evidence();
        evidence.exit = Some(report.exit);
        evidence.blocking = run.blocking;
        let judged = judge(&evidence, &roots, None, Texts::get(Language::English));
        let verdict = &judged.verdicts[0];
        assert_eq!(verdict.kind, kind, "{mode}/{name}");
        let right = verdict
            .place
            .as_ref()
            .is_some_and(|place| place.file.ends_with(&format!("{name}.py")) && lines.contains(&place.line.into()));
        assert!(right || verdict.certainty != Certainty::Exact, "{mode}/{name} is called exact and wrong");
        if !right {
            misses.push(name);
        }
    }
    misses
}

/// JAX dispatches asynchronously by itself, blocking or not: its error surfaces at the print after the jitted call.
#[test]
fn blocking_runs_name_the_culprit() {
    assert_eq!(misses("blocking"), ["jax_oom"]);
}

#[test]
fn runs_at_full_speed_name_the_culprit_from_log_and_sources() {
    assert_eq!(misses("off"), ["jax_oom"]);
}
