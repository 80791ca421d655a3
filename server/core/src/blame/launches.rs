//! The launch journal's answer to the question of the line.

use super::Case;
use super::place::Judgement;
use super::user_code::Spot;
use crate::catalog::facts::Reporting;
use crate::evidence::TracedProcess;
use crate::journal::{Candidate, Narrowed, Question, narrow, short};
use crate::verdict::Certainty;
use crate::{Evidence, Sources};

/// Takes the place, its certainty and the reasons from the journal of the process that failed. False when there is no
/// such journal, or it has no line of Python to offer: then the text has to do.
pub fn by_journal(case: &Case, evidence: &Evidence, sources: &Sources, judgement: &mut Judgement) -> bool {
    let Some(process) = failed_process(case, evidence) else { return false };
    // A library's own error is an echo of a fault only if there was one.
    let faulted = process.journal.first_error.is_some() || !process.cores.is_empty();
    if case.root.kind.reporting == Reporting::Echo && !faulted {
        return false;
    }
    let kind = case.root.kind.id.as_str();
    let Narrowed { candidates, certainty, because, missing, .. } =
        narrow(&process.journal, &Question { kind, asserts: &case.asserts.lines, cores: &process.cores });
    judgement.because.extend(because);
    judgement.missing.extend(missing);
    let Some(best) = candidates.first() else { return false };
    judgement
        .wanted
        .extend(candidates.iter().flat_map(|candidate| user_spots(candidate, evidence, sources)).map(|spot| spot.file));
    let Some((spot, compiled)) = culprit(best, evidence, sources) else {
        let key = if best.frames.is_empty() { "journal-no-frames" } else { "journal-no-user-frame" };
        judgement.because.push((key, vec![("kernel", short(best.kernel.as_deref().unwrap_or_default()))]));
        return false;
    };
    judgement.place = Some(spot.place(sources));
    judgement.certainty = certainty.unwrap_or(Certainty::Likely);
    if let Some(function) = compiled {
        judgement.because.push(("journal-compiled", vec![("function", function)]));
        judgement.certainty = judgement.certainty.max(Certainty::Likely);
    }
    judgement.trusted = false;
    judgement.rank = rank_of(process, evidence);
    judgement.frames = Some(spots(best, evidence).map(|spot| spot.frame(sources)).collect());
    judgement.candidates = candidates[1..]
        .iter()
        .filter_map(|candidate| Some(culprit(candidate, evidence, sources)?.0.place(sources)))
        .filter(|place| {
            judgement.place.as_ref().is_none_or(|best| (&best.file, best.line) != (&place.file, place.line))
        })
        .take(crate::journal::MOST)
        .collect();
    true
}

/// The journal that saw the failure first: of the process with a sticky error, or with a core dump. Where none saw it (the
/// error came from a call that the tracer does not watch) the only process that used the GPU.
fn failed_process<'a>(case: &Case, evidence: &'a Evidence) -> Option<&'a TracedProcess> {
    let of_rank = |process: &&TracedProcess| {
        let rank = rank_of(process, evidence);
        case.root.rank.is_none() || rank.is_none() || rank == case.root.rank
    };
    let failed = |process: &&&TracedProcess| process.journal.first_error.is_some() || !process.cores.is_empty();
    let possible: Vec<&TracedProcess> = evidence.traced.iter().filter(of_rank).collect();
    if let [only] = possible[..] {
        return Some(only);
    }
    possible.iter().filter(failed).copied().min_by_key(|process| {
        let journal = &process.journal;
        // The clocks of one machine: nanoseconds since the journal began, after its wall-clock time.
        let error = journal.first_error.as_ref().map_or(u64::MAX, |error| error.time);
        error.saturating_sub(journal.monotonic).saturating_add(journal.realtime)
    })
}

fn rank_of(process: &TracedProcess, evidence: &Evidence) -> Option<u32> {
    evidence.processes.iter().find(|events| events.pid == process.journal.pid).and_then(|events| events.rank())
}

/// The innermost frame of the user's that has lines of its own, and the name of a compiled function inside it.
///
/// torch.compile replaces a function's code: while the new code runs its frame stands at the function's first line, or has
/// a name of Dynamo's own, and says nothing of the expression that was at fault.
fn culprit(candidate: &Candidate, evidence: &Evidence, sources: &Sources) -> Option<(Spot, Option<String>)> {
    let mut compiled = None;
    for (index, frame) in candidate.frames.iter().enumerate().rev() {
        let cell = evidence.cell_in(&frame.file);
        let Some(spot) = Spot::of_journal(frame, cell).filter(|spot| spot.is_user(sources)) else { continue };
        let caller = index.checked_sub(1).and_then(|outer| candidate.frames.get(outer));
        let by_dynamo = caller.is_some_and(|caller| caller.file.contains("/torch/_dynamo/"));
        let at_its_beginning = frame.location.is_some_and(|location| location.line == frame.first_line);
        if frame.function.starts_with("torch_dynamo_resume_in") || (by_dynamo && at_its_beginning) {
            compiled = Some(frame.function.clone());
            continue;
        }
        return Some((spot, compiled));
    }
    None
}

fn user_spots(candidate: &Candidate, evidence: &Evidence, sources: &Sources) -> Vec<Spot> {
    spots(candidate, evidence).filter(|spot| spot.is_user(sources)).collect()
}

fn spots(candidate: &Candidate, evidence: &Evidence) -> impl Iterator<Item = Spot> {
    candidate.frames.iter().filter_map(|frame| Spot::of_journal(frame, evidence.cell_in(&frame.file)))
}

#[cfg(test)]
mod tests {
    use crate::blame::blame;
    use crate::catalog::{Language, Texts};
    use crate::evidence::TracedProcess;
    use crate::gpu_core::{Exception, Fault, GpuCore, Grid};
    use crate::journal::tests::{A, Story};
    use crate::log::Log;
    use crate::run::Exit;
    use crate::{Certainty, Evidence, Sources, Verdict};

    const TEXT: &str = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered";

    fn verdict(evidence: &Evidence) -> Verdict {
        blame(evidence, &Sources::default(), Texts::get(Language::English)).into_iter().next().unwrap()
    }

    fn traced(story: &Story, cores: Vec<GpuCore>) -> Vec<TracedProcess> {
        vec![TracedProcess { journal: story.journal(), cores }]
    }

    #[test]
    fn the_journal_overrules_the_line_of_the_text() {
        let story = Story::new();
        story.launch(A, 7, "_Z3badv");
        story.fails(700);
        let log = Some(Log::from_text(&format!(
            "Traceback (most recent call last):\n  File \"/home/dev/proj/train.py\", line 30, in <module>\n    print(x.item())\n{TEXT}\n"
        )));
        let verdict = verdict(&Evidence { log, traced: traced(&story, vec![]), ..Evidence::default() });
        let place = verdict.place.unwrap();
        assert_eq!((place.file.as_str(), place.line), ("/home/dev/proj/model.py", 7));
        assert_eq!(verdict.reported.unwrap().line, 30);
        assert_eq!((verdict.certainty, verdict.frames.len()), (Certainty::Exact, 1));
        assert!(verdict.because.iter().any(|because| because.contains("(bad)")), "{:?}", verdict.because);
    }

    #[test]
    fn a_compiled_function_is_never_the_place() {
        let story = Story::new();
        let dynamo = "/home/dev/venv/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py";
        let frames = [("/home/dev/proj/train.py", 1, 8), (dynamo, 1000, 1024), ("/home/dev/proj/train.py", 3, 3)];
        story.launch_from(&frames, "triton_poi_fused_0");
        story.fails(700);
        let log = Some(Log::from_text(TEXT));
        let verdict = verdict(&Evidence { log, traced: traced(&story, vec![]), ..Evidence::default() });
        assert_eq!((verdict.place.unwrap().line, verdict.certainty), (8, Certainty::Likely));
        assert!(verdict.because.iter().any(|because| because.contains("torch.compile")), "{:?}", verdict.because);
    }

    #[test]
    fn a_core_dump_is_a_failure_without_any_text() {
        let story = Story::new();
        story.launch(A, 1, "_Z4goodv");
        story.launch(A, 2, "_Z3badv");
        let faults = vec![Fault { exception: Exception(14), ..Fault::default() }];
        let kernel = Some("_Z3badv".to_owned());
        let grid = Grid { id: 2, kernel, grid: [4, 1, 1], block: [64, 1, 1], faults, ..Grid::default() };
        let cores = vec![GpuCore { grids: vec![grid], ..GpuCore::default() }];
        let exit = Some(Exit { code: None, signal: Some(6) });
        let verdict = verdict(&Evidence { exit, traced: traced(&story, cores), ..Evidence::default() });
        assert_eq!(verdict.kind, "illegal-address");
        assert_eq!((verdict.place.unwrap().line, verdict.certainty), (2, Certainty::Exact));
        assert!(verdict.fatal);
    }

    #[test]
    fn an_error_that_the_program_swallowed_is_told() {
        let story = Story::new();
        story.launch(A, 2, "_Z3badv");
        story.fails(719);
        let exit = Some(Exit { code: Some(0), signal: None });
        let verdict = verdict(&Evidence { exit, traced: traced(&story, vec![]), ..Evidence::default() });
        assert_eq!((verdict.kind.as_str(), verdict.fatal), ("launch-failure", false));
        assert_eq!(verdict.place.unwrap().line, 2);
    }
}
