//! Which run a command means.

use std::path::Path;

use super::folder::runs_in;
use super::place::Surroundings;
use super::{RunFolder, State};
use crate::error::{Error, Result};

/// A run folder by its path, its id, or how its id begins; without any, the newest of the project.
pub fn choose(wanted: Option<&Path>, surroundings: &Surroundings) -> Result<RunFolder> {
    let Some(wanted) = wanted else { return newest(surroundings) };
    if wanted.components().count() > 1 || wanted.is_dir() {
        return RunFolder::open(std::path::absolute(wanted).unwrap_or_else(|_| wanted.to_owned()));
    }
    let id = wanted.to_string_lossy();
    let (project, runs) = runs_of(surroundings);
    let mut found = runs.into_iter().filter(|run| run.id().starts_with(&*id));
    match (found.next(), found.next()) {
        (Some(run), None) => Ok(run),
        (None, _) => Err(Error::user(format!("no run of {project} is called {id}"))
            .hint("give the path of its folder, or leave RUN out for the newest")),
        (Some(first), Some(second)) => {
            Err(Error::user(format!("{id} can be {} or {}", first.id(), second.id())).hint("write more of its id"))
        }
    }
}

/// The newest run that still goes on, else the newest.
pub fn choose_live(wanted: Option<&Path>, surroundings: &Surroundings) -> Result<RunFolder> {
    if wanted.is_some() {
        return choose(wanted, surroundings);
    }
    let (_, runs) = runs_of(surroundings);
    runs.into_iter().find(|run| run.state() == State::Live).map_or_else(|| newest(surroundings), Ok)
}

fn newest(surroundings: &Surroundings) -> Result<RunFolder> {
    let (project, runs) = runs_of(surroundings);
    runs.into_iter().next().ok_or_else(|| {
        Error::user(format!("no run is in {project}")).hint("run a program first: cublame run -- python train.py")
    })
}

/// Newest first, with the name of the place; where the project has none, those of the user's own folder.
fn runs_of(surroundings: &Surroundings) -> (String, Vec<RunFolder>) {
    let project = surroundings.project_folder(|path| path.exists());
    let mut runs = RunFolder::list(&runs_in(&project));
    if runs.is_empty() {
        runs = surroundings.state_folder().map(|state| RunFolder::list(&runs_in(&state))).unwrap_or_default();
    }
    (project.display().to_string(), runs)
}
