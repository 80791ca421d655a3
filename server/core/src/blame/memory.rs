//! Out of memory: the numbers of the message, the lines that hold it, and whether it rose until it was full.

use std::collections::BTreeSet;

use super::failure::Failure;
use super::place::Reason;
use super::user_code::Spot;
use crate::advice::size;
use crate::evidence::Evidence;
use crate::parse::{jax, oom};
use crate::source::Sources;
use crate::telemetry::{self, Record, Rise};
use crate::verdict::{Memory, MemoryRise, MemorySite};

/// What a failure tells of memory, None where it is of another kind.
pub fn memory(failure: &Failure, evidence: &Evidence, sources: &Sources) -> Option<Memory> {
    let message = failure.headline();
    let said = oom::memory(&message);
    let buffers = jax::buffers(&message);
    let (sites, elsewhere): (Vec<MemorySite>, Option<u64>) = match &failure.held {
        Some(held) => {
            let sites = held.sites.iter().map(|site| MemorySite {
                place: Spot::of_site(site).place(sources),
                bytes: site.bytes,
                blocks: site.blocks,
            });
            (sites.collect(), Some(held.elsewhere))
        }
        None => {
            let site = |buffer: &jax::Buffer| MemorySite {
                place: Spot::of_text(&buffer.frame).place(sources),
                bytes: buffer.bytes,
                blocks: 1,
            };
            (buffers.iter().map(site).collect(), None)
        }
    };
    let is_full = said.is_some() || failure.held.is_some() || OF_MEMORY.contains(&failure.kind.id.as_str());
    let rise = is_full.then(|| rise(failure, evidence, oom::device(&message).unwrap_or(0))).flatten();
    if said.is_none() && rise.is_none() && sites.is_empty() && elsewhere.is_none() {
        return None;
    }
    Some(Memory { sites, elsewhere, rise, ..said.unwrap_or_default() })
}

const OF_MEMORY: [&str; 4] = ["oom", "oom-driver", "jax-resource-exhausted", "cublas-alloc-failed"];

/// Live allocations that rise are a leak. What a GPU has in use may be kept by an allocator for later: only a suspicion.
fn rise(failure: &Failure, evidence: &Evidence, gpu: u32) -> Option<MemoryRise> {
    let of = |rise: Rise, allocated: bool| MemoryRise {
        bytes_per_second: rise.bytes_per_second as u64,
        seconds: rise.seconds as u64,
        allocated,
    };
    match &failure.held {
        Some(held) if !held.history.is_empty() => telemetry::rise(&held.history).map(|rise| of(rise, true)),
        _ => telemetry::rise(&telemetry::used(&evidence.telemetry, gpu)).map(|rise| of(rise, false)),
    }
}

/// What to say of it.
pub fn reasons(memory: Option<&Memory>, evidence: &Evidence) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if let Some(rise) = memory.and_then(|memory| memory.rise) {
        let key = if rise.allocated { "memory-leak" } else { "memory-rise" };
        reasons.push((key, vec![("rate", size(rise.bytes_per_second)), ("seconds", rise.seconds.to_string())]));
    }
    if let Some(site) = memory.and_then(|memory| memory.sites.first()) {
        let place = format!("{}:{}", site.place.file, site.place.line);
        reasons.push(("memory-holder", vec![("place", place), ("bytes", size(site.bytes))]));
    }
    // Each once: a fault is reported for every channel of the GPU, and other programs have theirs.
    let reported: BTreeSet<(u32, u64)> = evidence
        .telemetry
        .iter()
        .filter_map(|record| match record {
            Record::Xid { device, code, .. } => Some((*device, *code)),
            _ => None,
        })
        .collect();
    let xid = |(gpu, code): (u32, u64)| ("xid", vec![("code", code.to_string()), ("gpu", gpu.to_string())]);
    reasons.extend(reported.into_iter().map(xid));
    reasons
}
