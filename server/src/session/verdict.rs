//! What a run that has ended says: its evidence judged, its files written.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cublame_core::Evidence;
use cublame_core::catalog::Texts;
use cublame_core::event::What;
use cublame_core::run::{self, Report, Run};
use cublame_core::telemetry::{Record, around};

use super::folder::RunFolder;
use super::supervise::Ran;
use super::telemetry;
use crate::sources::{Judged, judge};

/// The report of a run, and what its rendering needs beside it.
pub struct Concluded {
    pub report: Report,
    pub judged: Judged,
}

/// Judges the run and writes `log.jsonl` and `report.json`. What cannot be written is said in the report's `partial`.
pub fn conclude(folder: Option<&RunFolder>, run: Run, ran: Ran, telemetry: Vec<Record>, texts: &Texts) -> Concluded {
    let Ran { exit, recorded, mut partial } = ran;
    let mut log = None;
    if let Some(Err(failure)) = folder.map(|folder| telemetry::write(folder.path(), &telemetry)) {
        partial.push(format!("{} could not be written: {failure}.", telemetry::TELEMETRY));
    }
    match recorded {
        Some(recorded) => {
            if recorded.lost > 0 {
                let megabytes = recorded.lost.div_ceil(1 << 20);
                partial.push(format!(
                    "{megabytes} MB of output came faster than it could be read, and the log is without it."
                ));
            }
            if let Some(Err(failure)) = folder.map(|folder| folder.write_log(&recorded.log)) {
                partial.push(format!("log.jsonl could not be written: {failure}."));
            }
            log = Some(recorded.log);
        }
        None => partial.push("The output could not be condensed and is not in the report.".to_owned()),
    }
    // The tasks of a job write one report: each writes it anew, with what all have left so far.
    let job = folder.and_then(RunFolder::job);
    // Where it cannot be locked two tasks that end at once may write it without each other's log.
    let _locked = job.as_ref().and_then(|job| job.lock().ok());
    let mut evidence = job.as_ref().or(folder).map(RunFolder::evidence).unwrap_or_default();
    let mut exit = exit;
    if let Some(earlier) = job.as_ref().and_then(|job| job.report().whole()) {
        exit = if exit.success() { earlier.exit } else { exit };
        partial = earlier.partial.into_iter().chain(partial).collect();
    }
    let folder = job.as_ref().or(folder);
    let (id, cwd) = (folder.map_or(run.id.clone(), |folder| folder.id().to_owned()), PathBuf::from(&run.cwd));
    if job.is_none() || evidence.log.is_none() {
        evidence.log = log;
    }
    if evidence.telemetry.is_empty() {
        evidence.telemetry = telemetry;
    }
    let evidence = Evidence { exit: Some(exit), blocking: run.blocking, run: Some(run), ..evidence };
    let judged = judge(&evidence, &[], Some(&cwd), texts);

    let finished = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let failed_at = first_exception(&evidence).unwrap_or(finished);
    let failed = !judged.verdicts.is_empty();
    let telemetry = if failed { around(&evidence.telemetry, failed_at) } else { Vec::new() };
    let verdicts = judged.verdicts.clone();
    let mut report = Report { schema: run::SCHEMA, run: id, finished, exit, partial, verdicts, telemetry };
    if let Some(Err(failure)) = folder.map(|folder| folder.write_report(&report)) {
        report.partial.push(format!("report.json could not be written: {failure}."));
    }
    Concluded { report, judged }
}

/// When the first process told of an exception, in Unix seconds.
fn first_exception(evidence: &Evidence) -> Option<f64> {
    let events = evidence.processes.iter().flat_map(|process| &process.events);
    events.filter(|event| matches!(event.what, What::Exception(_))).map(|event| event.time).reduce(f64::min)
}

/// Writes the report once more, where `--report` asks for it.
pub fn write_copy(report: &Report, file: &Path) -> std::io::Result<()> {
    std::fs::write(file, serde_json::to_string_pretty(report)? + "\n")
}
