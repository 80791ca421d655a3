//! VS Code's tasks.json: supervised runs, which see the streams and the exit status that F5 cannot give.
//!
//! A task's schema allows no key of ours, but has `detail`, the second line in the Run Task menu: our version stands there.

use jsonc_parser::ast::Object;
use serde::Serialize;

use super::edit::{Edit, Refused};
use super::entries::{self, ENTRY_VERSION, List, NAME_PREFIX, NewEntry, Place};
use super::jsonc::string;
use super::launch_json::Profile;

const LIST: List = List { key: "tasks", name: "label", format_version: "2.0.0", section: "tasks" };

/// The edits that put a task for each profile into the text of a tasks.json; an empty text becomes a whole file.
/// `cublame` is the command to run: a name on the PATH, since the file may be committed.
pub fn configure(text: &str, place: Place, cublame: &str, profiles: &[Profile]) -> Result<Vec<Edit>, Refused> {
    let new: Vec<Task> = profiles.iter().map(|profile| task(cublame, profile)).collect();
    entries::add(text, &LIST, place, &new)
}

/// The edits that take our tasks away.
pub fn remove(text: &str, place: Place) -> Result<Vec<Edit>, Refused> {
    entries::remove(text, &LIST, place, is_ours)
}

fn is_ours(label: &str, object: &Object) -> bool {
    label.starts_with(NAME_PREFIX) && string(object, "detail").is_some_and(|detail| detail.starts_with("cublame "))
}

fn task(cublame: &str, profile: &Profile) -> Task {
    // The interpreter that the Python extension has selected; the debugpy profiles take the same one.
    let run = ["run", "--mode", profile.mode.name(), "--", "${command:python.interpreterPath}"].map(str::to_owned);
    Task {
        label: profile.name(),
        detail: format!("cublame {ENTRY_VERSION}: {}", profile.mode.summary()),
        kind: "process",
        command: cublame.to_owned(),
        args: run.into_iter().chain(profile.launch.arguments()).collect(),
        presentation: Presentation { panel: "dedicated", clear: true },
        problem_matcher: [],
    }
}

/// A task of type `process`: its words reach the program as they are, with no shell between.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    label: String,
    detail: String,
    #[serde(rename = "type")]
    kind: &'static str,
    command: String,
    args: Vec<String>,
    presentation: Presentation,
    /// The language server publishes what is found; an empty list keeps VS Code from asking for a matcher.
    problem_matcher: [&'static str; 0],
}

impl NewEntry for Task {
    fn name(&self) -> &str {
        &self.label
    }
}

#[derive(Serialize)]
struct Presentation {
    panel: &'static str,
    clear: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::apply;
    use crate::config::launch_json::Launch;
    use crate::mode::Mode;

    #[test]
    fn a_task_for_each_profile_beside_the_users_own() {
        let profiles = [Profile { launch: Launch::Torchrun("train.py".to_owned()), mode: Mode::Trace }];
        let text =
            "{\n  // build things\n  \"version\": \"2.0.0\",\n  \"tasks\": [\n    { \"label\": \"make\" },\n  ],\n}\n";
        let once = apply(text, &configure(text, Place::OwnFile, "cublame", &profiles).unwrap());
        insta::assert_snapshot!(once, @r#"
        {
          // build things
          "version": "2.0.0",
          "tasks": [
            { "label": "make" },
            {
              "label": "cublame: torchrun train.py (trace)",
              "detail": "cublame 1: the failing line at full speed, from a journal of launches (Linux)",
              "type": "process",
              "command": "cublame",
              "args": [
                "run",
                "--mode",
                "trace",
                "--",
                "${command:python.interpreterPath}",
                "-m",
                "torch.distributed.run",
                "--standalone",
                "--nproc_per_node=auto",
                "${workspaceFolder}/train.py"
              ],
              "presentation": {
                "panel": "dedicated",
                "clear": true
              },
              "problemMatcher": []
            },
          ],
        }
        "#);
        assert_eq!(configure(&once, Place::OwnFile, "cublame", &profiles).unwrap(), []);
        assert_eq!(apply(&once, &remove(&once, Place::OwnFile).unwrap()), text);
    }
}
