//! The written schemas of what a run leaves on disk, in `docs/schema`: made of the types, kept in step, and held against
//! every recorded session.

#![expect(clippy::disallowed_methods, reason = "the schemas and the recorded sessions are files")]

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use crate::event::Event;
use crate::log::{Head, Line};
use crate::run::{Report, Run};
use crate::telemetry::Record;

/// Each file of a run folder with the schema of it, or of its lines. The number is the version in the file.
fn schemas() -> [(&'static str, Value); 6] {
    [
        ("run.v1", schema::<Run>("run.json")),
        ("report.v1", schema::<Report>("report.json")),
        ("event.v1", schema::<Event>("a line of events/<pid>-<random>.jsonl")),
        ("log-head.v1", schema::<Head>("the first line of log.jsonl")),
        ("log-line.v1", schema::<Line>("a further line of log.jsonl")),
        ("telemetry.v1", schema::<Record>("a line of telemetry.jsonl")),
    ]
}

fn schema<T: JsonSchema>(of: &str) -> Value {
    let mut schema = schema_for!(T);
    schema.insert("title".to_owned(), of.into());
    schema.to_value()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// With UPDATE_SCHEMAS=1 the files are written. A change that an older reader cannot take needs a new version.
#[test]
fn the_written_schemas_are_those_of_the_types() {
    let folder = root().join("docs/schema");
    for (name, schema) in schemas() {
        let file = folder.join(format!("{name}.json"));
        let expected = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&file, &expected).unwrap();
        }
        assert!(fs::read_to_string(&file).unwrap_or_default() == expected, "{name}: run with UPDATE_SCHEMAS=1");
    }
}

#[test]
fn every_recorded_session_is_as_the_schemas_say() {
    let [run, report, event, head, line, sample] =
        schemas().map(|(_, schema)| jsonschema::validator_for(&schema).unwrap());
    let mut seen = [0; 5];
    for file in files(&root().join("tests/fixtures/sessions")) {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let within_events = file.parent().is_some_and(|folder| folder.ends_with("events"));
        let lines = || text.lines().map(|line| serde_json::from_str(line).unwrap());
        match name {
            "run.json" => seen[0] += check(&run, [serde_json::from_str(&text).unwrap()], &file),
            "report.json" => seen[1] += check(&report, [serde_json::from_str(&text).unwrap()], &file),
            "log.jsonl" => {
                check(&head, lines().take(1), &file);
                seen[2] += check(&line, lines().skip(1), &file);
            }
            "telemetry.jsonl" => seen[3] += check(&sample, lines(), &file),
            _ if within_events && name.ends_with(".jsonl") => seen[4] += check(&event, lines(), &file),
            _ => {}
        }
    }
    let [runs, reports, lines, _, events] = seen;
    assert!(runs > 50 && reports > 50 && lines > 500 && events > 100, "{seen:?}");
}

fn check(validator: &Validator, values: impl IntoIterator<Item = Value>, file: &Path) -> usize {
    let mut count = 0;
    for value in values {
        if let Some(error) = validator.iter_errors(&value).next() {
            panic!("{}: {error} at {}", file.display(), error.instance_path());
        }
        count += 1;
    }
    count
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// A report of version 1 as the first release wrote it: all that it says is kept by a reader of today.
#[test]
fn old_reports_stay_readable() {
    let old: Value = serde_json::from_str(include_str!("../../../tests/fixtures/reports/v1.json")).unwrap();
    let read: Report = serde_json::from_value(old.clone()).unwrap();
    assert_kept(&old, &serde_json::to_value(&read).unwrap(), "report");
    assert!(!read.verdicts.is_empty());
}

/// Newer readers may add fields; they lose none.
fn assert_kept(old: &Value, new: &Value, at: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in old {
                assert_kept(value, new.get(name).unwrap_or(&Value::Null), &format!("{at}.{name}"));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{at}");
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                assert_kept(old, new, &format!("{at}[{index}]"));
            }
        }
        _ => assert_eq!(old, new, "{at}"),
    }
}

#[test]
fn a_value_that_is_wrong_is_found() {
    let (_, schema) = schemas().into_iter().find(|(name, _)| *name == "report.v1").unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut report: Value = serde_json::from_str(include_str!("../../../tests/fixtures/reports/v1.json")).unwrap();
    assert!(validator.is_valid(&report));
    report["verdicts"][0]["certainty"] = "certain".into();
    assert!(!validator.is_valid(&report));
}
