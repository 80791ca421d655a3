//! Gathers what `cublame_core::doctor` examines: the driver, the project's Python, the variables.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cublame_core::catalog::Texts;
use cublame_core::doctor::{self, Examination, Facts, Interpreter, Python, WATCHED};

use crate::gpu;
use crate::interpreter;
use crate::os::answers::{self, Answered};

/// Which Python is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// None: the workspace is not trusted, so none of its programs is run.
    Nobody,
    Chosen(interpreter::Interpreter),
}

/// Examines this machine, as programs started by this process see it. It takes seconds: torch is imported.
/// `cublame` is the program that asks the driver.
pub fn examine(whom: &Whom, cublame: &Path, texts: &Texts) -> Examination {
    let interpreter = match whom {
        Whom::Nobody => Interpreter::NotTrusted,
        Whom::Chosen(chosen) => ask(chosen),
    };
    let set = WATCHED.into_iter().filter_map(|name| Some((name.to_owned(), env::var(name).ok()?)));
    let facts = Facts {
        driver: gpu::look(cublame),
        interpreter,
        environment: set.collect::<BTreeMap<_, _>>(),
        container: ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| Path::new(mark).exists()),
    };
    doctor::examine(facts, texts)
}

/// Importing torch from a cold network disk.
const PATIENCE: Duration = Duration::from_secs(120);

const QUESTION: &str = include_str!("doctor/question.py");

fn ask(chosen: &interpreter::Interpreter) -> Interpreter {
    let path = chosen.path.display().to_string();
    let mut command = Command::new(&chosen.path);
    // A run's hook has no part in this.
    command.args(["-c", QUESTION]).env_remove("CUBLAME_RUN").env_remove("CUBLAME_MODE");
    let failed = |why: String| Interpreter::Failed { path: path.clone(), why };
    match answers::ask(command, PATIENCE) {
        Ok(Answered::InTime { status, out, err }) if !status.success() || out.is_empty() => {
            let err = String::from_utf8_lossy(&err);
            let last = err.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            failed(if last.is_empty() { status.to_string() } else { last.to_owned() })
        }
        Ok(Answered::InTime { out, .. }) => {
            // What imported packages print comes before.
            let last = out.rsplit(|&byte| byte == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
            match serde_json::from_slice::<Python>(last) {
                Ok(python) => Interpreter::Asked(Python { chosen_by: chosen.chosen_by.to_owned(), ..python }),
                Err(failure) => failed(failure.to_string()),
            }
        }
        Ok(Answered::TooLate) => failed(format!("no answer within {} seconds", PATIENCE.as_secs())),
        Err(failure) if failure.kind() == std::io::ErrorKind::NotFound => Interpreter::NotFound,
        Err(failure) => failed(failure.to_string()),
    }
}
