//! The verdicts on every log of `tests/fixtures`, against what is expected of each.
//!
//! `logs/reports.json`: logs retyped from public reports. `gpu/`: programs that failed on a GPU, with and without
//! CUDA_LAUNCH_BLOCKING. The programs mark the culprit with a comment that tracebacks quote; it is stripped first.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the helpers of a test may fail it")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use cublame_core::blame::{blame, wanted};
use cublame_core::catalog::{Language, Texts};
use cublame_core::log::Log;
use cublame_core::source::Source;
use cublame_core::{Certainty, Evidence, Place, Sources, Verdict};
use serde::Deserialize;
use serde_json::Value;

#[test]
fn logs_of_public_reports() {
    let reports: Vec<Report> = read_json("logs/reports.json");
    let mut tally = Tally::default();
    for report in &reports {
        let verdicts = explain(&report.log, false, &mut Sources::default());
        let verdict = verdicts.first().map(|verdict| serde_json::to_value(verdict).unwrap()).unwrap_or_default();
        let expect = &report.expect;
        let id = &report.id;
        tally.note(id, "kind", &verdict["kind"], &expect["kind"]);
        if expect.get("reported").is_some() {
            let same = same_place(&verdict["reported"], expect["reported"].as_str());
            tally.check(id, "reported", same, &verdict["reported"], &expect["reported"]);
        }
        if expect["reported_is_culprit"].is_boolean() {
            tally.note(id, "trusted", &verdict["trace_trusted"], &expect["reported_is_culprit"]);
        }
        if let Some(rank) = expect.get("root_rank").or(expect.get("rank")) {
            tally.note(id, "rank", &verdict["rank"], rank);
        }
        if expect.get("error_name").is_some() {
            tally.note(id, "error", &verdict["error"]["name"], &expect["error_name"]);
        }
        if let Some(code) = expect.get("code") {
            let error = &verdict["error"];
            tally.check(id, "error", error["code"] == *code || error["legacy_code"] == *code, error, code);
        }
        let trusts = verdict["trace_trusted"] == true && is_asynchronous(verdict["kind"].as_str().unwrap_or(""));
        tally.check(id, "overclaimed", !trusts, &verdict["kind"], &Value::Null);
        snapshot(&format!("report_{id}"), &verdicts);
    }
    tally.expect_no_miss(&[]);
}

#[test]
fn logs_recorded_on_a_gpu() {
    let recordings: Vec<Recording> = read_json("gpu/index.json");
    let mut tally = Tally::default();
    for recording in &recordings {
        let log = without_marks(&read(&format!("gpu/{}", recording.log)));
        let blocking = recording.mode == "blocking";
        let mut sources = Sources::new(vec!["/home/dev/proj".to_owned()]);
        let verdicts = explain(&log, blocking, &mut sources);
        let verdict = verdicts.first().expect("a verdict");
        let place = verdict.place.as_ref();
        let right = place.is_some_and(|place| {
            place.file.rsplit('/').next() == recording.program.rsplit('/').next()
                && recording.culprit_lines.contains(&place.line)
        });
        let exact = verdict.certainty == Certainty::Exact;
        let id = &recording.log;
        let line = Value::from(place.map(|place| place.line));
        let mode = if blocking { "place-blocking" } else { "place-async" };
        tally.note(id, "kind", &Value::from(verdict.kind.as_str()), &Value::from(recording.kind.as_str()));
        tally.check(id, mode, right, &line, &Value::from(recording.culprit_lines.clone()));
        tally.check(id, "overclaimed", right || !exact, &line, &Value::Null);
        if !is_asynchronous(&recording.kind) {
            tally.check(id, "underclaimed", exact || !right, &line, &Value::Null);
        }
        snapshot(&format!("gpu_{}", id.trim_start_matches("logs/").trim_end_matches(".txt")), &verdicts);
    }
    tally.expect_no_miss(&["place-async", "place-blocking"]);
    tally.expect_part("place-blocking", 0.9);
    tally.expect_part("place-async", 0.75);
}

#[derive(Deserialize)]
struct Report {
    id: String,
    log: String,
    expect: Value,
}

#[derive(Deserialize)]
struct Recording {
    log: String,
    program: String,
    mode: String,
    culprit_lines: Vec<u32>,
    kind: String,
}

fn explain(log: &str, blocking: bool, sources: &mut Sources) -> Vec<Verdict> {
    let evidence = Evidence { log: Some(Log::from_text(log)), blocking, ..Evidence::default() };
    for _ in 0..4 {
        let names = wanted(&evidence, sources);
        if names.is_empty() {
            break;
        }
        for name in names {
            let program = name.strip_prefix("/home/dev/proj/").map(|name| format!("gpu/programs/{name}"));
            let text = program.filter(|program| exists(program)).map(|program| without_marks(&read(&program)));
            let source = text.map(|text| Source { path: name.clone(), text: text.into() });
            sources.insert(name, source);
        }
    }
    blame(&evidence, sources, Texts::get(Language::English))
}

fn snapshot(name: &str, verdicts: &[Verdict]) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_json_snapshot!(name, verdicts);
    });
}

fn same_place(place: &Value, expected: Option<&str>) -> bool {
    let Some(expected) = expected else { return place.is_null() };
    let Ok(place) = serde_json::from_value::<Place>(place.clone()) else { return false };
    let (file, line) = expected.rsplit_once(':').unwrap();
    components(&place.file).ends_with(&components(file)) && place.line.to_string() == line
}

fn components(path: &str) -> Vec<String> {
    path.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
}

fn is_asynchronous(kind: &str) -> bool {
    [
        "device-assert",
        "illegal-address",
        "misaligned-address",
        "illegal-instruction",
        "invalid-address-space",
        "launch-failure",
        "launch-timeout",
        "ecc",
        "unknown-error",
    ]
    .contains(&kind)
}

/// The comments that mark the culprit in a program, and so in the lines that tracebacks quote.
fn without_marks(text: &str) -> String {
    let line = |line: &str| {
        ["# CULPRIT", "# FORWARD-CULPRIT"].iter().fold(line.to_owned(), |line, mark| {
            line.split_once(mark).map_or(line.clone(), |(before, after)| format!("{}{after}", before.trim_end()))
        })
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// What was right of what was asked, by question.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<&'static str, (u32, u32)>,
    misses: Vec<(&'static str, String)>,
}

impl Tally {
    fn note(&mut self, id: &str, question: &'static str, is: &Value, should: &Value) {
        self.check(id, question, is == should, is, should);
    }

    fn check(&mut self, id: &str, question: &'static str, right: bool, is: &Value, should: &Value) {
        let (good, all) = self.counts.entry(question).or_default();
        *all += 1;
        *good += u32::from(right);
        if !right {
            self.misses.push((question, format!("{id}: {question}: {is} for {should}")));
        }
    }

    fn expect_no_miss(&self, but_for: &[&str]) {
        let misses: Vec<&str> = self
            .misses
            .iter()
            .filter(|(question, _)| !but_for.contains(question))
            .map(|(_, text)| text.as_str())
            .collect();
        let others: Vec<&str> = self.misses.iter().map(|(_, text)| text.as_str()).collect();
        println!("{:?}\n{}", self.counts, others.join("\n"));
        assert!(misses.is_empty(), "{}", misses.join("\n"));
    }

    fn expect_part(&self, question: &str, least: f64) {
        let (good, all) = self.counts[question];
        assert!(f64::from(good) >= least * f64::from(all), "{question}: {good} of {all}");
    }
}

fn read_json<T: serde::de::DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&read(name)).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
fn exists(name: &str) -> bool {
    path(name).exists()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}
