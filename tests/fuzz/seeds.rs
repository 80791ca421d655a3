//! What the mutations start from: every log of the fixtures, and programs to answer for wanted sources.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub struct Seeds {
    pub logs: Vec<Vec<u8>>,
    /// Their file names and texts.
    pub programs: Vec<(String, String)>,
}

impl Seeds {
    pub fn read() -> Result<Self, Box<dyn Error>> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        let mut logs = Vec::new();
        for path in files(&fixtures.join("logs"))?.into_iter().chain(files(&fixtures.join("gpu/logs"))?) {
            let bytes = fs::read(&path)?;
            match serde_json::from_slice::<Value>(&bytes) {
                Ok(document) => logs_in(&document, &mut logs),
                Err(_) => logs.push(bytes),
            }
        }
        let mut programs = Vec::new();
        for path in files(&fixtures.join("gpu/programs"))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            programs.push((name, fs::read_to_string(&path)?));
        }
        if logs.is_empty() || programs.is_empty() {
            return Err(format!("no logs or no programs under {}", fixtures.display()).into());
        }
        Ok(Self { logs, programs })
    }

    /// The snippets of the lint's tests and of the fixes', each a seed, and the programs.
    pub fn of_lint() -> Result<Self, Box<dyn Error>> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let core = tests.join("../server/core/src");
        let mut logs = Vec::new();
        for path in files(&core.join("lint/cases"))?.into_iter().chain(files(&core.join("fixes/cases"))?) {
            let cases = fs::read_to_string(&path)?;
            logs.extend(cases.split("=== ").skip(1).map(|case| case.as_bytes().to_vec()));
        }
        for path in files(&tests.join("fixtures/gpu/programs"))? {
            logs.push(fs::read(&path)?);
        }
        if logs.is_empty() {
            return Err(format!("no snippets under {}", core.display()).into());
        }
        Ok(Self { logs, programs: Vec::new() })
    }
}

fn logs_in(document: &Value, logs: &mut Vec<Vec<u8>>) {
    match document {
        Value::Array(all) => all.iter().for_each(|each| logs_in(each, logs)),
        Value::Object(fields) => match fields.get("log") {
            Some(Value::String(log)) => logs.push(log.clone().into_bytes()),
            _ => fields.values().for_each(|value| logs_in(value, logs)),
        },
        _ => {}
    }
}

/// In an order that no file system decides.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|failure| format!("{}: {failure}", folder.display()))? {
        let path = entry?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
