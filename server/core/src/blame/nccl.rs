//! Which rank a collective waited for: the one that enqueued less than the others.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::failure::Failure;
use crate::pattern::pattern;

/// The failure of the rank that is behind, None where all are equally far or the watchdogs do not say.
///
/// Each rank's watchdog tells the sequence number of the work that timed out and of the last that it enqueued
/// (ProcessGroupNCCL.cpp). The ranks that wait have enqueued more than the one that they wait for.
pub fn rank_behind(failures: &[Failure]) -> Option<usize> {
    let mut furthest: BTreeMap<u32, u64> = BTreeMap::new();
    for failure in failures.iter().filter(|failure| failure.kind.id == "nccl-timeout") {
        let (Some(rank), Some(number)) = (failure.rank, sequence_number(&failure.headline())) else { continue };
        let known = furthest.entry(rank).or_default();
        *known = number.max(*known);
    }
    let (behind, least) = furthest.iter().min_by_key(|(_, number)| **number)?;
    let alone = furthest.values().filter(|number| *number == least).count() == 1 && furthest.len() > 1;
    let of_it = |failure: &Failure| failure.kind.id == "nccl-timeout" && failure.rank == Some(*behind);
    if alone { failures.iter().position(of_it) } else { None }
}

fn sequence_number(message: &str) -> Option<u64> {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"SeqNum=(\d+)|last enqueued NCCL work: (\d+)"));
    NUMBER.captures_iter(message).filter_map(|found| found.iter().skip(1).flatten().next()?.as_str().parse().ok()).max()
}
