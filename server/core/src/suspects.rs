//! Which source lines could be the culprit of an asynchronous failure, read from the sources alone.
//!
//! The kernel ran some time before the line where its failure surfaced. So the code is read backwards from there, in the
//! order in which it ran: the statements before, what they call, then the callers' statements; and each expression is
//! weighed by how well it fits what the device said (an index assertion: embeddings, gathers, `x[i]`; an illegal address:
//! custom kernels). Nothing here is proof.

use crate::python::{Module, Program};
use crate::source::Sources;
use crate::verdict::{Frame, Phase, Place};

mod walk;

mod enter;
mod frames;

mod calls;
mod index;

mod fit;
mod kernels;

/// What is known of the failure.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The user's frames, outermost first; `file` is the name that [`Sources`] knows the file by.
    pub frames: Vec<Frame>,
    /// Where the failure surfaced; used where there are no frames.
    pub reported: Option<Place>,
    /// A kind of the catalogue, such as `device-assert`.
    pub kind: String,
    /// What the assertion was about.
    pub family: Option<Family>,
    /// The kernel that failed, or where its name says nothing (`operator()`) the file that it is in: see [`hints`].
    pub kernel: Option<String>,
    pub phase: Option<Phase>,
}

/// What a device assertion checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// An index into a tensor.
    Index,
    /// A class label.
    Label,
    /// A probability: in [0, 1], not NaN.
    Probability,
    /// The offsets of an embedding bag.
    Offset,
    /// A mask against the number of its sources.
    Mask,
    /// A number of repeats.
    Repeat,
    Other,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranking {
    /// Best first, one entry a line, at most [`MOST`].
    pub places: Vec<Suspect>,
    /// Files that would help: read those that exist, insert all of them into the sources, and ask again.
    pub wanted: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    pub place: Place,
    /// Why it is one: a key of [`REASONS`], for the catalogue's text.
    pub why: &'static str,
    /// It fits the evidence well and the next one does not.
    pub strong: bool,
}

/// How many suspects are worth showing.
pub const MOST: usize = 5;

/// Every reason that a suspect can have.
pub const REASONS: &[&str] = kernels::REASONS;

pub use kernels::hints;

/// Ranks the lines that could have caused the failure. Pure, and linear in the size of the sources.
pub fn rank(query: &Query, sources: &Sources) -> Ranking {
    let modules = load(query, sources);
    let program = Program::new(&modules, |name| sources.asked(name));
    let found = walk::Walk::new(&program, query).run();
    let places = choose(found, &program);
    Ranking { places, wanted: program.wanted().into_iter().take(MOST_WANTED).collect() }
}

/// A bound on what is asked for at once.
const MOST_WANTED: usize = 64;
const MOST_MODULES: usize = 64;

/// Parses the files of the frames, and of the modules at hand that they import.
fn load(query: &Query, sources: &Sources) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    let mut names: Vec<String> = query.frames.iter().rev().map(|frame| frame.file.clone()).collect();
    names.extend(query.reported.iter().map(|place| place.file.clone()));
    let mut next = 0;
    while next < names.len() && modules.len() < MOST_MODULES {
        let name = names[next].clone();
        next += 1;
        if modules.iter().any(|module| module.name == name) {
            continue;
        }
        let Some(source) = sources.get(&name) else { continue };
        let module = Module::parse(name, source.path().map(str::to_owned), source.text.clone());
        names.extend(frames::imports(&module).into_iter().filter(|candidate| sources.get(candidate).is_some()));
        modules.push(module);
    }
    modules
}

/// The best of what was found: one entry a line, the better first, of equals the later executed.
fn choose(mut found: Vec<walk::Found<'_>>, program: &Program<'_>) -> Vec<Suspect> {
    found.sort_by_key(|found| (std::cmp::Reverse(found.weight), found.order));
    let mut chosen: Vec<(Place, &'static str, u32)> = Vec::new();
    for found in found {
        let place = frames::place(&found, program);
        let known = chosen.iter().any(|(other, _, _)| other.file == place.file && other.line == place.line);
        if !known {
            chosen.push((place, found.why, found.weight));
        }
    }
    let second = chosen.get(1).map_or(0, |(_, _, weight)| *weight);
    let clear = chosen.first().is_some_and(|(_, _, first)| *first >= fit::PROBABLE && *first >= second + fit::CLEAR);
    chosen.truncate(MOST);
    chosen
        .into_iter()
        .enumerate()
        .map(|(index, (place, why, _))| Suspect { place, why, strong: clear && index == 0 })
        .collect()
}

#[cfg(test)]
mod tests;
