//! The ranking of suspects on logs recorded on a GPU: from the log's frames and the program's source alone.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cublame_core::source::{Source, Sources};
use cublame_core::suspects::{Query, hints, rank};
use cublame_core::verdict::{DeviceAssert, Frame};

/// Kinds whose failure surfaces later than its kernel, or under JAX than its call.
const LATE: &[&str] =
    &["device-assert", "illegal-address", "invalid-address-space", "launch-failure", "jax-resource-exhausted"];

#[test]
fn the_culprit_of_a_late_failure_ranks_first() {
    let gpu = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/gpu");
    let index: serde_json::Value = serde_json::from_str(&fs::read_to_string(gpu.join("index.json")).unwrap()).unwrap();
    let (mut right, mut wrong) = (0, Vec::new());
    for row in index.as_array().unwrap() {
        let kind = row["kind"].as_str().unwrap();
        if row["mode"] != "async" || !LATE.contains(&kind) {
            continue;
        }
        let log = without_markers(&fs::read_to_string(gpu.join(row["log"].as_str().unwrap())).unwrap());
        let program = row["program"].as_str().unwrap();
        let source = without_markers(&fs::read_to_string(gpu.join(program)).unwrap());
        let ranking = rank(&query(kind, &log), &sources(program, &source));
        let wanted: Vec<u64> = row["culprit_lines"].as_array().unwrap().iter().filter_map(|l| l.as_u64()).collect();
        let first = ranking.places.first().map(|suspect| u64::from(suspect.place.line));
        if first.is_some_and(|line| wanted.contains(&line)) {
            right += 1;
        } else {
            wrong.push(format!("{program}: {first:?} for {wanted:?}"));
        }
    }
    assert!(right >= 13, "only {right} were right");
    assert_eq!(wrong, Vec::<String>::new());
}

/// The recorded programs mark their culprit in a comment, which nothing may use.
fn without_markers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let cut = ["# CULPRIT", "# FORWARD-CULPRIT"].iter().filter_map(|marker| line.find(marker)).min();
        match cut {
            Some(at) => {
                let rest = line[at..].trim_start_matches("# FORWARD-CULPRIT").trim_start_matches("# CULPRIT");
                out.push_str(line[..at].trim_end_matches(' '));
                out.push_str(rest);
            }
            None => out.push_str(line),
        }
    }
    out
}

fn sources(program: &str, text: &str) -> Sources {
    let name = format!("/home/dev/proj/{}", program.trim_start_matches("programs/"));
    let mut sources = Sources::new(vec!["/home/dev/proj".to_owned()]);
    sources.insert(name.clone(), Some(Source { path: name, text: Arc::from(text) }));
    sources
}

/// The frames and the assertions of a log, read as simply as these logs allow.
fn query(kind: &str, log: &str) -> Query {
    let mut frames: Vec<Frame> = Vec::new();
    let mut asserts = Vec::new();
    let mut ended = false;
    for line in log.lines() {
        let line = line.strip_prefix("[rank1]: ").unwrap_or(line);
        if let Some((site, condition)) = line.split_once(" Assertion `") {
            let mut parts = site.split(": ");
            let (file, number) = parts.next().unwrap().rsplit_once(':').unwrap();
            asserts.push(DeviceAssert {
                file: file.to_owned(),
                line: number.parse().unwrap(),
                kernel: parts.next().map(str::to_owned),
                condition: condition.trim_end_matches("` failed.").to_owned(),
                count: 1,
            });
        }
        let frame = line.strip_prefix("  File \"").and_then(|rest| rest.split_once("\", line "));
        match frame {
            Some((file, rest)) if file.starts_with("/home/dev/proj/") && !ended => {
                let (number, function) = rest.split_once(", in ").unwrap();
                frames.push(Frame {
                    file: file.to_owned(),
                    path: None,
                    line: number.parse().unwrap(),
                    column: None,
                    end_column: None,
                    function: Some(function.to_owned()),
                    user: true,
                });
            }
            Some(_) => {}
            None => ended = ended || (!frames.is_empty() && !line.starts_with(' ')),
        }
    }
    let (family, kernel) = hints(&asserts);
    Query { frames, kind: kind.to_owned(), family, kernel, ..Query::default() }
}
