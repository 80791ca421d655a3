//! Which run is meant.

use std::path::{Path, PathBuf};

use cublame_core::catalog::Texts;
use cublame_core::run::Run;

use crate::error::{Error, Result};
use crate::session::RunFolder;
use crate::session::choice::choose;
use crate::session::folder::runs_in;
use crate::session::place::Surroundings;
use crate::sources::{Judged, judge};

/// A run that has failed, judged anew from its evidence: what a report on disk says is not believed.
pub struct Failed {
    pub folder: RunFolder,
    pub run: Run,
    pub judged: Judged,
    /// The interpreter of the process that failed, where its hook told.
    pub python: Option<PathBuf>,
}

/// The run of this id or folder; without one, the newest of the project that has failed.
pub fn failed_run(wanted: Option<&Path>, texts: &Texts) -> Result<Failed> {
    match wanted {
        Some(wanted) => {
            let failed = open(choose(Some(wanted), &Surroundings::of_this_process())?, texts)?;
            if failed.judged.verdicts.is_empty() {
                return Err(Error::user(format!("the run {} has not failed", failed.folder.id())));
            }
            Ok(failed)
        }
        None => {
            let runs = project_runs();
            let newest = RunFolder::list(&runs).into_iter().filter_map(|folder| open(folder, texts).ok());
            newest.into_iter().find(|failed| !failed.judged.verdicts.is_empty()).ok_or_else(|| {
                Error::user(format!("no run under {} has failed", runs.display()))
                    .hint("run the program with `cublame run -- ` before its command, or name a run folder")
            })
        }
    }
}

fn project_runs() -> PathBuf {
    runs_in(&Surroundings::of_this_process().project_folder(|path| path.exists()))
}

fn open(folder: RunFolder, texts: &Texts) -> Result<Failed> {
    let evidence = folder.evidence();
    let Some(run) = evidence.run.clone() else {
        let unread = evidence.unread.join(" ");
        return Err(Error::user(format!("{} does not say what was run", folder.path().display())).because(unread));
    };
    let judged = judge(&evidence, &[], Some(Path::new(&run.cwd)), texts);
    let python = python_of(&evidence);
    Ok(Failed { folder, run, judged, python })
}

/// Of the first process that told of an exception.
fn python_of(evidence: &cublame_core::Evidence) -> Option<PathBuf> {
    use cublame_core::event::What;

    let failed = evidence
        .processes
        .iter()
        .find(|process| process.events.iter().any(|event| matches!(event.what, What::Exception(_))))?;
    let started = failed.events.iter().find_map(|event| match &event.what {
        What::Start(start) => Some(start),
        _ => None,
    })?;
    Some(PathBuf::from(&started.executable)).filter(|path| path.is_absolute() && path.is_file())
}
