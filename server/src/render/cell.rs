//! A verdict below a notebook's cell: a few lines, since the traceback stands above them.

use std::path::Path;

use cublame_core::catalog::{Texts, facts};
use cublame_core::event::{Event, Exception, What};
use cublame_core::evidence::ProcessEvents;
use cublame_core::{Certainty, Evidence, Verdict};

use crate::sources::{Judged, judge};

/// What to say of the last failure of the cell with this execution count; None for everyday exceptions, and where it is
/// not known.
pub fn verdict(evidence: &Evidence, cell: u32, texts: &Texts) -> Option<String> {
    let process = evidence.processes.iter().find(|process| process.is_notebook())?;
    let failed = |event: &Event| match &event.what {
        What::Exception(exception) => count(exception) == Some(cell),
        What::Start(_) | What::Cell(_) | What::Exit(_) => false,
    };
    let last = process.events.iter().rposition(failed)?;
    let judged = judge_event(evidence, process, last, texts);
    let own = judged.verdicts.first()?;
    let mut text = head(own, &judged, texts);
    let (before, died) = (0..last)
        .find_map(|index| {
            let What::Exception(exception) = &process.events[index].what else { return None };
            let judged = judge_event(evidence, process, index, texts);
            judged.verdicts.first().filter(|verdict| kills_context(verdict))?;
            Some((count(exception), index))
        })
        .map_or((None, kills_context(own)), |(count, _)| (count, true));
    match before {
        Some(before) if before != cell => {
            let before = before.to_string();
            text.push_str(&format!("  {}.\n", texts.line("notebook.died-before", &[("cell", &before)])));
        }
        _ if died => text.push_str(&format!("  {}.\n", texts.line("notebook.died", &[]))),
        _ => {
            if let Some(advice) = own.advice.first() {
                text.push_str(&format!("  {}: {}\n", advice.title, advice.detail));
            }
        }
    }
    Some(text)
}

/// The verdicts on one exception, as if nothing else had happened.
fn judge_event(evidence: &Evidence, process: &ProcessEvents, index: usize, texts: &Texts) -> Judged {
    let start = process.events.iter().find(|event| matches!(event.what, What::Start(_)));
    let events = start.into_iter().chain(&process.events[index..=index]).cloned().collect();
    let alone = Evidence {
        processes: vec![ProcessEvents { pid: process.pid, events }],
        run: evidence.run.clone(),
        blocking: evidence.blocking,
        ..Evidence::default()
    };
    let cwd = evidence.run.as_ref().map(|run| Path::new(&run.cwd));
    judge(&alone, &[], cwd, texts)
}

fn head(verdict: &Verdict, judged: &Judged, texts: &Texts) -> String {
    let summary = format!("cublame: {} ({})\n", verdict.summary, verdict.kind);
    let Some(place) = verdict.place.as_ref() else { return summary };
    let certainty = match verdict.certainty {
        Certainty::Exact => "exact",
        Certainty::Likely => "likely",
        Certainty::Suspect => "suspect",
        Certainty::Unknown => "unknown",
    };
    let line = place.line.to_string();
    let place_of = texts.line(&format!("notebook.{certainty}"), &[("file", &place.file), ("line", &line)]);
    let source = judged.sources.get(&place.file).and_then(|source| source.text.lines().nth(place.line as usize - 1));
    let source = source.map(|source| format!("    {}\n", source.trim())).unwrap_or_default();
    format!("{summary}  {place_of}\n{source}")
}

fn kills_context(verdict: &Verdict) -> bool {
    facts().kind(&verdict.kind).sticky && !verdict.is_of_guard()
}

fn count(exception: &Exception) -> Option<u32> {
    exception.running_cell().map(|cell| cell.count)
}
