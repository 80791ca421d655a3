//! Evidence to verdicts: the one waist that every source comes into and every rendering leaves from.
//!
//! The failures of all sources are brought to one shape, the root cause is chosen among them (the first wins, a device
//! assertion overrides the exception that noticed it, followers and launchers are collateral), and then its line is
//! judged by one question: was this call proved to have failed, or did it only notice?

mod asserts;
mod context;
mod failure;
pub(crate) mod guard;
mod launches;
mod locals;
mod memory;
mod named;
mod nccl;
mod place;
mod root;
mod user_code;

pub use user_code::user_frame;

use std::collections::BTreeSet;

use asserts::Asserts;
use failure::{Failure, Told, failures};
use place::{Judgement, judge};
use root::{adopt_frames, choose, precedes};

use crate::catalog::facts::UNRECOGNISED;
use crate::catalog::{Texts, facts};
use crate::parse::{self, Findings, oom};
use crate::verdict::{Certainty, Collateral, ExceptionText, Verdict};
use crate::{Evidence, Sources};

/// Some evidence whose texts have been read. Reading is what takes time; after it every question is quick, and it can be
/// asked again when more sources are there.
#[derive(Debug)]
pub struct Reading<'e> {
    evidence: &'e Evidence,
    asserts: Asserts,
    failures: Vec<Failure>,
    /// The frames of the forward call that anomaly mode printed, and its function.
    forward: Vec<user_code::Spot>,
    forward_function: String,
}

impl<'e> Reading<'e> {
    pub fn of(evidence: &'e Evidence) -> Self {
        let findings = evidence.log.as_ref().map(parse::parse).unwrap_or_default();
        let (forward_function, forward) = forward_trace(&findings);
        let failures = failures(evidence, &findings);
        Self { evidence, asserts: Asserts::of(&findings), failures, forward, forward_function }
    }

    /// The source files that `blame` would like to read and has not been answered for, by their names in the evidence.
    pub fn wanted(&self, sources: &Sources) -> Vec<String> {
        let Some(case) = Case::of(self, sources) else { return Vec::new() };
        let failures = std::iter::once(&case.root).chain(case.in_other_threads());
        let frames = failures.flat_map(|failure| &failure.links).flat_map(|link| &link.spots).chain(&case.forward);
        let frames = frames.filter(|spot| !sources.asked(&spot.file) && spot.is_user(sources));
        let mut names: BTreeSet<String> = frames.map(|spot| spot.file.clone()).collect();
        names.extend(case.judge(self.evidence, sources).wanted);
        names.retain(|name| !sources.asked(name) && !is_no_file(name));
        names.into_iter().collect()
    }

    /// The verdicts, the root cause first. No failure, no verdict.
    pub fn blame(&self, sources: &Sources, texts: &Texts) -> Vec<Verdict> {
        let Some(case) = Case::of(self, sources) else { return Vec::new() };
        let mut verdicts = vec![case.verdict(self.evidence, sources, texts)];
        verdicts.extend(case.survived.iter().map(|failure| {
            let alone = Case { root: failure.clone(), noticed: false, asserts: Asserts::default(), ..Case::default() };
            Verdict { fatal: false, ..alone.verdict(self.evidence, sources, texts) }
        }));
        verdicts
    }
}

/// The verdicts on some evidence with the sources at hand, the root cause first.
pub fn blame(evidence: &Evidence, sources: &Sources, texts: &Texts) -> Vec<Verdict> {
    Reading::of(evidence).blame(sources, texts)
}

/// The source files that [`blame`] would like to read first.
pub fn wanted(evidence: &Evidence, sources: &Sources) -> Vec<String> {
    Reading::of(evidence).wanted(sources)
}

/// `<stdin>`, `Cell In[5]`: code that was never a file.
fn is_no_file(name: &str) -> bool {
    name.starts_with('<') || name.starts_with("Cell In") || name.starts_with("Input In")
}

/// A root cause with what belongs to it and what only followed.
#[derive(Debug, Default)]
struct Case {
    root: Failure,
    /// The exception was of another kind: it only noticed the device assertion.
    noticed: bool,
    asserts: Asserts,
    /// The frames of the forward call that anomaly mode printed, and its function.
    forward: Vec<user_code::Spot>,
    forward_function: String,
    /// Recognised failures before the root that the program went on after.
    survived: Vec<Failure>,
    collateral: Vec<Failure>,
}

impl Case {
    fn of(reading: &Reading, sources: &Sources) -> Option<Self> {
        let mut asserts = reading.asserts.clone();
        let mut all = reading.failures.clone();
        let chosen = choose(&all, &asserts);
        if chosen.is_none() && asserts.lines.is_empty() {
            return None;
        }
        let index = chosen.unwrap_or(0);
        let mut root = chosen.map_or_else(Failure::default, |index| all.remove(index));
        adopt_frames(&mut root, &mut all, sources);
        if precedes(&root, &asserts) {
            all.push(Failure { kind: facts().kind("device-assert"), ..Failure::default() });
            asserts = Asserts::default();
        }
        let noticed = !asserts.lines.is_empty() && root.kind.id != "device-assert";
        if noticed {
            // What survived or only followed is no exception of the assertion's.
            if root.survived || (root.weight() == 3 && root.told != Told::Finalizer) {
                all.insert(index.min(all.len()), std::mem::take(&mut root));
            }
            root.kind = facts().kind("device-assert");
            root.error = None;
        }
        if !asserts.lines.is_empty() {
            root.rank = root.rank.or(asserts.rank);
            root.error = root.error.take().or_else(|| root.kind.errors.first().map(|error| error.named(&error.name)));
        }
        let (forward, forward_function) = (reading.forward.clone(), reading.forward_function.clone());
        let later = all.split_off(index.min(all.len()));
        let (survived, mut collateral): (Vec<Failure>, Vec<Failure>) = all.into_iter().partition(|failure| {
            failure.weight() < 3 && failure.kind.id != UNRECOGNISED && failure.kind.id != root.kind.id
        });
        collateral.extend(later);
        Some(Self { root, noticed, asserts, forward, forward_function, survived: one_of_each(survived), collateral })
    }

    /// The same error in other threads: a dead context is found by all of them, in any order.
    fn in_other_threads(&self) -> impl Iterator<Item = &Failure> {
        self.collateral.iter().filter(|other| {
            other.kind.id == self.root.kind.id
                && other.told == Told::Exception
                && other.rank == self.root.rank
                && other.thread != self.root.thread
        })
    }

    fn judge(&self, evidence: &Evidence, sources: &Sources) -> Judgement {
        judge(self, evidence, sources)
    }

    fn verdict(&self, evidence: &Evidence, sources: &Sources, texts: &Texts) -> Verdict {
        let judgement = self.judge(evidence, sources);
        let root = &self.root;
        let link = root.link();
        let message = root.headline();
        let reported = root.reported(sources).map(|spot| spot.place(sources));
        let say = |(key, arguments): &place::Reason| {
            let arguments: Vec<(&str, &str)> = arguments.iter().map(|(name, value)| (*name, value.as_str())).collect();
            texts.line(&format!("because.{key}"), &arguments)
        };
        let exception = link.filter(|link| !link.type_name.is_empty() && root.told != Told::Exit);
        let spots = root.spots(sources);
        let frames = judgement.frames.unwrap_or_else(|| spots.iter().map(|spot| spot.frame(sources)).collect());
        let (tensors, objects) = locals::locals(&frames, spots);
        let memory = memory::memory(root, evidence, sources);
        let of_memory = memory::reasons(memory.as_ref(), evidence);
        let goes_on = root.told == Told::Hang && evidence.exit.is_none();
        let survived = root.survived || goes_on || evidence.exit.is_some_and(|exit| exit.success());
        Verdict {
            kind: root.kind.id.clone(),
            summary: self.summary(texts),
            error: root.error.clone(),
            exception: exception.map(|link| ExceptionText {
                type_name: link.type_name.clone(),
                message: link.message.trim_end().to_owned(),
            }),
            trace_trusted: judgement.trusted && reported.is_some(),
            certainty: if judgement.place.is_none() { Certainty::Unknown } else { judgement.certainty },
            place: judgement.place,
            reported,
            because: judgement.because.iter().chain(&of_memory).map(say).collect(),
            missing: judgement.missing.iter().map(say).chain(evidence.unread.iter().cloned()).collect(),
            phase: context::phase(root, &self.asserts, sources),
            asserts: self.asserts.entries(),
            memory,
            frames,
            tensors,
            objects,
            rank: root.rank.or(judgement.rank),
            device: self.asserts.device.or_else(|| oom::device(&message)),
            collateral: self.collateral(texts),
            advice: Vec::new(),
            fatal: !survived,
            candidates: judgement.candidates,
        }
    }

    fn summary(&self, texts: &Texts) -> String {
        if let Some(sentence) = guard::sentence(&self.root) {
            return sentence.to_owned();
        }
        let known = self.asserts.first().and_then(|(_, known)| known);
        if let Some(text) = known.and_then(|known| texts.find(&format!("asserts.{}.summary", known.id))) {
            return text.to_owned();
        }
        summary_of(&self.root, texts)
    }

    /// What followed, each once: the root's own error again is no news.
    fn collateral(&self, texts: &Texts) -> Vec<Collateral> {
        let mut seen: Vec<(Option<u32>, &str)> = vec![(self.root.rank, self.root.kind.id.as_str())];
        let mut collateral = Vec::new();
        for failure in &self.collateral {
            let same_process = failure.rank.is_none() || failure.rank == self.root.rank;
            let echo = same_process && failure.kind.id == self.root.kind.id;
            let key = (failure.rank, failure.kind.id.as_str());
            let unknown = failure.kind.id == UNRECOGNISED;
            if echo
                || failure.is_stack_alone()
                || (!unknown && seen.contains(&key))
                || collateral.len() >= MOST_COLLATERAL
            {
                continue;
            }
            seen.push(key);
            collateral.push(Collateral { rank: failure.rank, summary: summary_of(failure, texts) });
        }
        collateral
    }
}

const MOST_COLLATERAL: usize = 32;

/// The kind's sentence; of an unknown exception its own first line.
fn summary_of(failure: &Failure, texts: &Texts) -> String {
    let headline = failure.headline();
    let first = headline.lines().next().unwrap_or("").trim().trim_end_matches('.');
    if failure.kind.id == UNRECOGNISED && !first.is_empty() {
        return first.to_owned();
    }
    texts.line(&format!("kinds.{}.summary", failure.kind.id), &[])
}

fn forward_trace(findings: &Findings) -> (String, Vec<user_code::Spot>) {
    let trace = findings.found.iter().find_map(|finding| match &finding.what {
        parse::What::ForwardTrace { function, frames } => Some((function.clone(), frames)),
        _ => None,
    });
    trace.map_or_else(Default::default, |(function, frames)| {
        (function, frames.iter().map(user_code::Spot::of_text).collect())
    })
}

fn one_of_each(failures: Vec<Failure>) -> Vec<Failure> {
    let mut seen = BTreeSet::new();
    failures.into_iter().filter(|failure| seen.insert((failure.rank, failure.kind.id.clone()))).collect()
}
