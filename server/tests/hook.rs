//! Runs the hook's suite, `tests/hook`, under every Python on this machine, and reads all that it wrote with the product's
//! own types.
//!
//! Interpreters are taken from pyenv, from PATH, from /usr/bin and from CUBLAME_TEST_PYTHONS (separated by colons). The
//! tests of pytest, pytest-xdist and coverage run in those that have them. What is skipped is printed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails the test")]

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use cublame::hook;
use cublame_core::event::{self, Event};
use cublame_core::run::Run;
use serde_json::Value;

#[test]
fn python_2_7() {
    check((2, 7));
}

#[test]
fn python_3_6() {
    check((3, 6));
}

#[test]
fn python_3_7() {
    check((3, 7));
}

#[test]
fn python_3_8() {
    check((3, 8));
}

#[test]
fn python_3_9() {
    check((3, 9));
}

#[test]
fn python_3_10() {
    check((3, 10));
}

#[test]
fn python_3_11() {
    check((3, 11));
}

#[test]
fn python_3_12() {
    check((3, 12));
}

#[test]
fn python_3_13() {
    check((3, 13));
}

#[test]
fn python_3_14() {
    check((3, 14));
}

/// The suite is written for this version and later; older interpreters are driven by a newer one.
const OLDEST_DRIVER: (u32, u32) = (3, 9);

static PYTHONS: LazyLock<Vec<Python>> = LazyLock::new(pythons);

#[derive(Debug)]
struct Python {
    version: (u32, u32),
    executable: PathBuf,
}

#[track_caller]
fn check(version: (u32, u32)) {
    let (major, minor) = version;
    let Some(driver) =
        PYTHONS.iter().filter(|python| python.version >= OLDEST_DRIVER).max_by_key(|python| python.version)
    else {
        eprintln!("skipped: there is no Python of at least 3.{} on this machine to drive the suite", OLDEST_DRIVER.1);
        return;
    };
    let these: Vec<&Python> = PYTHONS.iter().filter(|python| python.version == version).collect();
    if these.is_empty() {
        eprintln!("skipped: there is no Python {major}.{minor} on this machine");
    }
    for python in these {
        eprintln!("Python {major}.{minor}: {}", python.executable.display());
        run_suite(driver, python);
    }
}

#[track_caller]
fn run_suite(driver: &Python, python: &Python) {
    let scratch = tempfile::tempdir().unwrap();
    let runs = scratch.path().join("runs");
    fs::create_dir(&runs).unwrap();
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/hook");
    let done = Command::new(&driver.executable)
        .args(["-B", "-m", "unittest", "discover", "--verbose", "--start-directory", "."])
        .current_dir(suite)
        .env("CUBLAME_TEST_PYTHON", &python.executable)
        .env("CUBLAME_TEST_HOOK", hook::install_in(scratch.path()).unwrap())
        .env("CUBLAME_TEST_RUNS", &runs)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    said.lines().filter(|line| line.contains("... skipped")).for_each(|line| eprintln!("{line}"));

    let (mut events, mut adopted) = (0, 0);
    for file in files_beneath(&runs) {
        let text = || fs::read_to_string(&file).unwrap();
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            for line in text().lines() {
                check_covers::<Event>(line);
                let event: Event = serde_json::from_str(line).unwrap();
                assert_eq!(event.v, event::VERSION);
                events += 1;
            }
        } else if file.file_name().is_some_and(|name| name == "run.json") {
            check_covers::<Run>(&text());
            adopted += 1;
        }
    }
    if python.version >= (3, 8) {
        assert!(events > 500, "only {events} events were written");
        assert!(adopted > 10, "only {adopted} runs were adopted");
    } else {
        assert_eq!((events, adopted), (0, 0));
    }
}

/// The text is a `T`, and `T` has every field of it: serde alone would pass over a misspelt optional one.
#[track_caller]
fn check_covers<T: serde::Serialize + serde::de::DeserializeOwned>(text: &str) {
    let written: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let read: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    assert!(covers(&serde_json::to_value(read).unwrap(), &written), "a field is not known: {text}");
}

fn covers(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            written.iter().all(|(key, value)| read.get(key).is_some_and(|read| covers(read, value)))
        }
        (Value::Array(read), Value::Array(written)) => {
            read.len() == written.len() && read.iter().zip(written).all(|(read, written)| covers(read, written))
        }
        _ => read == written,
    }
}

fn pythons() -> Vec<Python> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let pyenv = fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten().flatten();
    let named = env::var_os("CUBLAME_TEST_PYTHONS").unwrap_or_default();
    let mut candidates: Vec<PathBuf> = env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
    candidates.extend(pyenv.map(|version| version.path().join("bin/python")));
    candidates.extend(["python3", "/usr/bin/python3"].map(PathBuf::from));

    let mut seen = BTreeSet::new();
    candidates
        .into_iter()
        .filter_map(|candidate| ask(&candidate))
        .filter(|python| seen.insert(python.executable.clone()))
        .collect()
}

fn ask(candidate: &Path) -> Option<Python> {
    // On PATH may be a wrapper such as pyenv's: the interpreter itself knows where it is.
    let question = "import sys; print('%d %d %s' % (sys.version_info[0], sys.version_info[1], sys.executable))";
    let output = Command::new(candidate).args(["-S", "-E", "-c", question]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.trim_end().splitn(3, ' ');
    let version = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Python { version, executable: PathBuf::from(words.next()?) })
}

fn files_beneath(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_beneath(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}
