//! Which failure is the root cause: the first of those that are nearest to one.

use super::asserts::Asserts;
use super::failure::{Failure, Told};
use super::nccl;
use crate::Sources;
use crate::catalog::facts::Reporting;

/// The index of the root cause, None where there is no failure.
pub fn choose(failures: &[Failure], asserts: &Asserts) -> Option<usize> {
    let lightest = failures.iter().map(Failure::weight).min()?;
    let first = failures.iter().position(|failure| failure.weight() == lightest)?;
    // Peers run into their own errors while the rank of the assertion still unwinds.
    let asserted = |failure: &Failure| {
        failure.kind.id == "device-assert"
            && failure.weight() == 0
            && (asserts.rank.is_none() || failure.rank.is_none() || failure.rank == asserts.rank)
    };
    if !asserts.lines.is_empty() && !precedes(&failures[first], asserts) {
        return failures.iter().position(asserted).or(Some(first));
    }
    if failures[first].kind.id == "nccl-timeout" && failures[first].told != Told::Hang {
        return nccl::rank_behind(failures).or(Some(first));
    }
    // A parent says that its worker crashed; the worker's own stack says where.
    if failures[first].kind.id == "segfault" {
        let crashed = |failure: &Failure| failure.told == Told::Stack && failure.kind.id == "segfault";
        return failures.iter().position(crashed).or(Some(first));
    }
    // Of a launcher's own lines the account of its workers tells most: it names the rank that failed first.
    if failures[first].told == Told::Launcher || failures[first].kind.id == "child-failed" {
        let account = |failure: &Failure| {
            failure.told == Told::Launcher && failure.rank.is_some() && failure.weight() == lightest
        };
        return failures.iter().position(account).or(Some(first));
    }
    Some(first)
}

/// Did a call that failed on its own do so before any assertion was printed? Then the assertion is another failure.
pub fn precedes(root: &Failure, asserts: &Asserts) -> bool {
    let before = root.line.zip(asserts.line).is_some_and(|(root, assert)| root < assert);
    before && root.weight() == 0 && root.kind.reporting == Reporting::Synchronous
}

/// A line or a watchdog tells of a failure without its place; the traceback of the same failure has it.
pub fn adopt_frames(root: &mut Failure, others: &mut Vec<Failure>, sources: &Sources) {
    if root.reported(sources).is_some() {
        return;
    }
    let same = |other: &Failure| {
        let echo = root.kind.reporting == Reporting::Asynchronous && other.kind.reporting == Reporting::Echo;
        (other.kind.id == root.kind.id || echo || other.is_stack_alone())
            && (other.weight() < 3 || other.is_stack_alone())
            && (other.rank == root.rank || other.rank.is_none() || root.rank.is_none())
            && other.reported(sources).is_some()
    };
    let Some(index) = others.iter().position(same) else { return };
    let other = others.remove(index);
    root.rank = root.rank.or(other.rank);
    root.survived &= other.survived;
    root.hook = other.hook;
    root.launch_blocking.clone_from(&other.launch_blocking);
    root.error = root.error.take().or_else(|| other.error.clone());
    if !other.is_stack_alone() {
        root.root = other.root;
        root.told = other.told;
        root.links = other.links;
    } else if let (Some(link), Some(stack)) = (root.links.get_mut(root.root), other.links.into_iter().nth(other.root)) {
        link.spots = stack.spots;
    }
}
