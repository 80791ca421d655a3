//! Which line, and how sure: CONTRACT's rules of certainty.

use std::sync::LazyLock;

use regex::Regex;

use super::Case;
use super::context::{ends_in_backward, is_jax, is_observer, is_of_engine, is_replay, phase};
use super::failure::{Failure, Told};
use super::guard;
use super::launches::by_journal;
use super::named::named_in_message;
use super::user_code::Spot;
use crate::catalog::facts::{Reporting, Subject, UNRECOGNISED};
use crate::parse::{cuda_error, jax};
use crate::pattern::pattern;
use crate::verdict::{Certainty, Frame, Place};
use crate::{Evidence, Sources, hang, suspects};

/// A key of the catalogue's `because` texts, with its values.
pub type Reason = (&'static str, Vec<(&'static str, String)>);

#[derive(Debug)]
pub struct Judgement {
    pub place: Option<Place>,
    pub certainty: Certainty,
    pub trusted: bool,
    pub candidates: Vec<Place>,
    pub because: Vec<Reason>,
    pub missing: Vec<Reason>,
    /// Source files that would make it better.
    pub wanted: Vec<String>,
    /// The call chain of the culprit, outermost first, where it is another than that of the exception.
    pub frames: Option<Vec<Frame>>,
    /// Of the process whose journal gave the place: one that a GPU core dump ends says nothing itself.
    pub rank: Option<u32>,
}

pub fn judge(case: &Case, evidence: &Evidence, sources: &Sources) -> Judgement {
    let root = &case.root;
    let reported = root.reported(sources);
    let mut judgement = Judgement {
        place: reported.map(|spot| spot.place(sources)),
        certainty: Certainty::Suspect,
        trusted: false,
        candidates: Vec::new(),
        because: Vec::new(),
        missing: Vec::new(),
        wanted: Vec::new(),
        frames: None,
        rank: None,
    };
    say_assertion(case, &mut judgement);
    match root.kind.reporting {
        _ if root.told == Told::Sanitizer => {
            judgement.because.push(("sanitizer", vec![("what", root.headline())]));
            judgement.certainty = Certainty::Exact;
        }
        _ if guard::is_of_guard(root) => guard::judge(case, sources, &mut judgement),
        // The call crashed, which is where memory was bad and not where it was made so.
        Reporting::Synchronous if root.told == Told::Stack && root.kind.id != UNRECOGNISED => {
            judgement.because.push(("crash", vec![]));
            judgement.certainty = Certainty::Likely;
            judgement.trusted = true;
        }
        Reporting::Synchronous if root.is_told_by_another(sources) => {
            judgement.because.push(("another-trace", vec![]));
            judgement.certainty = Certainty::Likely;
        }
        // A CUDA error that the catalogue does not know may be of the asynchronous ones.
        Reporting::Synchronous if root.kind.id == UNRECOGNISED && cuda_error::is_named_in(&root.headline()) => {
            echo(case, evidence, &mut judgement);
        }
        // The call that raised it is the engine's, for an operation of another line.
        Reporting::Synchronous if is_of_engine(root, sources) => in_backward(case, sources, &mut judgement),
        Reporting::Synchronous => {
            judgement.because.push(("synchronous", vec![]));
            judgement.certainty = Certainty::Exact;
            judgement.trusted = true;
            named_in_message(root, sources, &mut judgement);
        }
        _ if root.told == Told::Hang => stands_still(case, evidence, sources, &mut judgement),
        Reporting::Elsewhere => elsewhere(case, sources, &mut judgement),
        // The journal knows which launches can have failed; the text only knows where the failure surfaced.
        Reporting::Echo | Reporting::Asynchronous
            if !is_blocking(evidence) && by_journal(case, evidence, sources, &mut judgement) => {}
        Reporting::Echo if is_jax(root) => of_jax(case, sources, &mut judgement),
        Reporting::Echo => echo(case, evidence, &mut judgement),
        Reporting::Asynchronous => asynchronous(case, evidence, sources, &mut judgement),
    }
    let bad_address = matches!(root.kind.id.as_str(), "illegal-address" | "misaligned-address");
    if judgement.certainty == Certainty::Exact && bad_address && root.told != Told::Sanitizer {
        judgement.because.push(("bad-address", vec![]));
    }
    say_the_rest(case, evidence, reported, sources, &mut judgement);
    judgement
}

/// An error that the backward pass raised at once: at `backward()`, or where its forward call was made, if that was recorded.
fn in_backward(case: &Case, sources: &Sources, judgement: &mut Judgement) {
    judgement.because.push(("backward", vec![]));
    judgement.certainty = Certainty::Likely;
    match deepest_forward(case, sources) {
        Some(spot) => {
            judgement.because.push(("forward-trace", vec![("function", case.forward_function.clone())]));
            judgement.place = Some(spot.place(sources));
        }
        None => judgement.missing.push(("missing-forward-trace", vec![])),
    }
}

/// A call that raised the error itself: the culprit, unless a kernel before it failed unseen.
fn echo(case: &Case, evidence: &Evidence, judgement: &mut Judgement) {
    let blocking = blocking(case, evidence, judgement);
    judgement.certainty = if blocking { Certainty::Exact } else { Certainty::Likely };
    judgement.trusted = blocking;
    if !blocking {
        judgement.because.push(("echo", vec![]));
    }
}

fn asynchronous(case: &Case, evidence: &Evidence, sources: &Sources, judgement: &mut Judgement) {
    let root = &case.root;
    let Some(reported) = root.reported(sources) else { return };
    if is_jax(root) {
        return of_jax(case, sources, judgement);
    }
    let blocking = blocking(case, evidence, judgement);
    if is_replay(root, sources) {
        judgement.because.push(("replay", vec![]));
        judgement.certainty = if blocking { Certainty::Likely } else { Certainty::Suspect };
        suspects(case, sources, blocking, judgement);
    } else if ends_in_backward(root, sources) {
        judgement.because.push(("backward", vec![]));
        judgement.certainty = if blocking { Certainty::Likely } else { Certainty::Suspect };
        match deepest_forward(case, sources) {
            Some(spot) => {
                judgement.because.push(("forward-trace", vec![("function", case.forward_function.clone())]));
                judgement.place = Some(spot.place(sources));
                judgement.certainty = if blocking { Certainty::Exact } else { Certainty::Likely };
            }
            None => suspects(case, sources, blocking, judgement),
        }
    } else if blocking && is_observer(reported) {
        judgement.because.push(("blocking-observer", vec![]));
        suspects(case, sources, false, judgement);
    } else if blocking && another_thread_launched(case, sources) {
        judgement.because.push(("threads", vec![]));
        judgement.certainty = Certainty::Likely;
        suspects(case, sources, true, judgement);
    } else if blocking {
        judgement.certainty = Certainty::Exact;
        judgement.trusted = true;
    } else {
        judgement.because.push(("asynchronous", vec![]));
        if is_observer(reported) {
            judgement.because.push(("observer", vec![]));
        }
        suspects(case, sources, false, judgement);
    }
}

fn is_blocking(evidence: &Evidence) -> bool {
    evidence.blocking || evidence.run.as_ref().is_some_and(|run| run.blocking)
}

/// Did threads run into the error at launches of their own? Then the first to print it need not be the one that failed.
fn another_thread_launched(case: &Case, sources: &Sources) -> bool {
    let launched = case.in_other_threads().filter_map(|other| other.reported(sources)).any(|spot| !is_observer(spot));
    launched || (case.root.thread.is_some() && case.asserts.first().is_some() && fits_elsewhere(case, sources))
}

/// Is there one line that the assertion fits, and is it not the reported one?
fn fits_elsewhere(case: &Case, sources: &Sources) -> bool {
    let ranking = suspects::rank(&query(case, &case.root, sources), sources);
    let reported = case.root.reported(sources).map(|spot| (spot.file.as_str(), spot.line));
    let strong = ranking.places.first().filter(|first| first.strong);
    strong.is_some_and(|first| Some((first.place.file.as_str(), first.place.line)) != reported)
}

/// Was every launch of the failed process waited for? Proved by who put the variable in force, never by the text.
fn blocking(case: &Case, evidence: &Evidence, judgement: &mut Judgement) -> bool {
    if !is_blocking(evidence) {
        return false;
    }
    // Only the value 1 counts, and the process may have been given another one on its way.
    if let Some(value) = case.root.launch_blocking.as_deref().filter(|value| *value != "1") {
        judgement.because.push(("blocking-lost", vec![("value", value.to_owned())]));
        return false;
    }
    judgement.because.push(("blocking", vec![]));
    true
}

/// The run was asked where it stands. A rank that is in no collective, or in another one, is what the others wait for.
fn stands_still(case: &Case, evidence: &Evidence, sources: &Sources, judgement: &mut Judgement) {
    let all = || std::iter::once(&case.root).chain(case.collateral.iter().filter(|other| other.told == Told::Hang));
    let silent = evidence.hang.as_ref().map_or(0, |hang| hang.silent);
    judgement.because.push(("hang-silent", vec![("seconds", silent.to_string())]));
    let mut places: Vec<(String, Vec<u32>)> = Vec::new();
    for failure in all() {
        let Some(spot) = failure.reported(sources).or_else(|| failure.spots(sources).last()) else { continue };
        let within = collective_of(failure).map(|name| format!(" ({name})")).unwrap_or_default();
        let place = format!("{}:{}{within}", spot.file, spot.line);
        match places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, ranks)) => ranks.extend(failure.rank),
            None => places.push((place, failure.rank.into_iter().collect())),
        }
    }
    for (place, mut ranks) in places {
        ranks.sort_unstable();
        judgement.because.push(match ranks.is_empty() {
            true => ("hang-stands", vec![("place", place)]),
            false => ("hang-ranks", vec![("ranks", ranges(&ranks)), ("place", place)]),
        });
    }
    let alone = all().count() > 1 && collective_of(&case.root).is_none();
    if alone && case.root.rank.is_some() {
        judgement.because.push(("hang-waited-for", vec![("rank", case.root.rank.unwrap_or_default().to_string())]));
        judgement.certainty = Certainty::Likely;
    }
}

fn collective_of(failure: &Failure) -> Option<&str> {
    let spots = &failure.link()?.spots;
    let home = spots.iter().find(|spot| hang::is_collective(&spot.file))?;
    home.function.as_deref()
}

/// The trace is right, but what it shows is not what has to change.
fn elsewhere(case: &Case, sources: &Sources, judgement: &mut Judgement) {
    if case.root.kind.id == "env-too-late" {
        judgement.because.push(("elsewhere", vec![]));
        if let Some(place) = late_assignment(case, sources) {
            judgement.because.push(("late-assignment", vec![]));
            judgement.candidates.extend(judgement.place.replace(place));
            judgement.certainty = Certainty::Likely;
        }
    } else if case.root.kind.id != "anomaly-nan" {
        judgement.because.push(("elsewhere", vec![]));
    } else if let Some(spot) = deepest_forward(case, sources) {
        // Anomaly mode checks each backward function as it runs and recorded where its forward call was made.
        judgement.because.push(("forward-trace", vec![("function", case.forward_function.clone())]));
        judgement.place = Some(spot.place(sources));
        judgement.certainty = Certainty::Exact;
    } else {
        judgement.because.push(("backward", vec![]));
        judgement.missing.push(("missing-forward-trace", vec![]));
    }
}

/// The line that sets the allocator's variable, in the files of the trace.
fn late_assignment(case: &Case, sources: &Sources) -> Option<Place> {
    static ASSIGNMENT: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"environ.*PYTORCH_\w*ALLOC_CONF|putenv.*ALLOC_CONF"));
    case.root.spots(sources).iter().filter(|spot| spot.is_user(sources)).find_map(|spot| {
        let source = sources.get(&spot.file)?;
        let (index, line) = source.text.lines().enumerate().find(|(_, line)| ASSIGNMENT.is_match(line))?;
        let indent = line.chars().take_while(|character| character.is_whitespace()).count() as u32;
        Some(Place {
            file: spot.file.clone(),
            path: source.path().map(str::to_owned),
            line: index as u32 + 1,
            column: Some(indent + 1),
            end_column: Some(line.trim_end().chars().count() as u32 + 1),
            function: None,
        })
    })
}

fn of_jax(case: &Case, sources: &Sources, judgement: &mut Judgement) {
    judgement.because.push(("jax", vec![]));
    if let Some(frame) = jax::operation(&case.root.headline()) {
        judgement.because.push(("jax-operation", vec![]));
        judgement.candidates.extend(judgement.place.take());
        judgement.place = Some(Spot::of_text(&frame).place(sources));
        judgement.certainty = Certainty::Likely;
    }
}

fn deepest_forward<'a>(case: &'a Case, sources: &Sources) -> Option<&'a Spot> {
    case.forward.iter().rev().find(|spot| spot.is_user(sources))
}

/// Lines that could have launched the failed kernel, read from the sources. They never make a verdict exact; where the
/// reported line stands for something itself (`keep`), only a strong suspect moves the place.
fn suspects(case: &Case, sources: &Sources, keep: bool, judgement: &mut Judgement) {
    let mut ranking = suspects::rank(&query(case, &case.root, sources), sources);
    for other in case.in_other_threads() {
        if ranking.places.first().is_some_and(|first| first.strong) {
            break;
        }
        let other = suspects::rank(&query(case, other, sources), sources);
        ranking.wanted.extend(other.wanted);
        if other.places.first().is_some_and(|first| first.strong) {
            ranking.places = other.places;
        }
    }
    judgement.wanted = ranking.wanted;
    let mut places = ranking.places.into_iter();
    let Some(first) = places.next().filter(|first| first.strong || !keep) else {
        judgement.candidates.extend(places.map(|suspect| suspect.place));
        return;
    };
    judgement.because.push(("suspects", vec![]));
    judgement.because.push((first.why, vec![]));
    judgement.certainty = if first.strong { Certainty::Likely } else { Certainty::Suspect };
    judgement.place = Some(first.place);
    judgement.candidates.extend(places.map(|suspect| suspect.place));
}

fn query(case: &Case, failure: &Failure, sources: &Sources) -> suspects::Query {
    let (told, kernel) = suspects::hints(&case.asserts.entries());
    let known = case.asserts.first().and_then(|(_, known)| known);
    suspects::Query {
        frames: failure.spots(sources).iter().map(|spot| spot.frame(sources)).filter(|frame| frame.user).collect(),
        reported: failure.reported(sources).map(|spot| spot.place(sources)),
        kind: failure.kind.id.clone(),
        family: known.map(|known| known.subject.into()).or(told),
        kernel,
        phase: phase(failure, &case.asserts, sources),
    }
}

impl From<Subject> for suspects::Family {
    fn from(subject: Subject) -> Self {
        match subject {
            Subject::Index => Self::Index,
            Subject::Label => Self::Label,
            Subject::Probability => Self::Probability,
            Subject::Offset => Self::Offset,
            Subject::Mask => Self::Mask,
            Subject::Repeat => Self::Repeat,
            Subject::Other => Self::Other,
        }
    }
}

fn say_assertion(case: &Case, judgement: &mut Judgement) {
    let Some((line, _)) = case.asserts.first() else { return };
    let condition = line.condition.clone();
    judgement.because.push(match &line.kernel {
        Some(kernel) => ("assert-kernel", vec![("kernel", kernel.clone()), ("condition", condition)]),
        None => ("assert", vec![("condition", condition)]),
    });
    if let Some(values) = &line.values {
        judgement.because.push(("assert-values", vec![("values", values.clone())]));
    }
    if let Some(exception) = case.root.link().filter(|link| !link.type_name.is_empty() && case.noticed) {
        let first = exception.headline().lines().next().unwrap_or("").to_owned();
        judgement.because.push(("overridden", vec![("exception", first)]));
    }
}

fn say_the_rest(
    case: &Case,
    evidence: &Evidence,
    reported: Option<&Spot>,
    sources: &Sources,
    judgement: &mut Judgement,
) {
    if let Some(spot) = reported.filter(|spot| spot.has_changed(sources)) {
        judgement.because.push(("source-changed", vec![("file", spot.file.clone())]));
        judgement.certainty = judgement.certainty.max(Certainty::Likely);
    }
    if let Some(rank) = case.root.rank.or(judgement.rank).filter(|_| case.root.told != Told::Hang) {
        judgement.because.push(("rank", vec![("rank", rank.to_string())]));
    }
    if case.root.survived {
        judgement.because.push(("survived", vec![]));
    }
    if reported.is_none() && judgement.place.is_none() {
        judgement.missing.push(("missing-user-frame", vec![]));
    }
    if evidence.run.is_some() && evidence.processes.is_empty() {
        judgement.missing.push(("missing-hook", vec![]));
    }
    let silent = evidence.silent_ranks();
    if !silent.is_empty() {
        judgement.missing.push(("missing-ranks", vec![("ranks", ranges(&silent))]));
    }
}

/// `0, 2-5, 9`, at most eight of them.
fn ranges(numbers: &[u32]) -> String {
    const MOST: usize = 8;
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let more = if parts.len() > MOST { ", ..." } else { "" };
    let words = parts.iter().take(MOST).map(
        |(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        },
    );
    words.collect::<Vec<_>>().join(", ") + more
}
