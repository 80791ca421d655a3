//! Out of memory: the numbers of the message decide what would help.

use super::Step;
use super::case::{Case, Framework};
use super::platform::Os;
use crate::verdict::Memory;

/// The rules, in order of precedence; the first two leave no other explanation.
///
/// 1. A request above the GPU's capacity can never be served.
/// 2. More free than requested: something else than the lack of memory refused it.
/// 3. Most of the GPU belongs to other processes.
/// 4. Much of it lies in private pools, which only CUDA graphs can use. What is unallocated may be in them, so this comes
///    before the next.
/// 5. More reserved but unallocated than requested: the memory is there, in pieces.
pub(super) fn decide(case: &Case) -> Vec<Step> {
    if case.framework == Framework::TensorFlow {
        return vec![Step::new("grow-tensorflow-memory"), Step::new("find-gpu-holders"), Step::new("reduce-batch")];
    }
    let Some(memory) = &case.verdict.memory else { return shrink() };
    if let (Some(requested), Some(capacity)) = (memory.requested, memory.capacity)
        && requested > capacity
    {
        let step = Step::new("check-requested-shape").with("requested", size(requested));
        return vec![step.with("capacity", size(capacity)), Step::new("print-shapes")];
    }
    if let (Some(requested), Some(free)) = (memory.requested, memory.free)
        && free >= requested
    {
        let step = Step::new("find-memory-limit").with("requested", size(requested)).with("free", size(free));
        return vec![step, Step::new("find-gpu-holders")];
    }
    let special = [others(memory), private_pools(memory), pieces(case, memory)];
    special.into_iter().flatten().chain(shrink()).collect()
}

/// What helps when the memory is simply full.
fn shrink() -> Vec<Step> {
    let ids =
        ["reduce-batch", "checkpoint-activations", "lower-precision", "evaluate-without-grad", "find-memory-holder"];
    ids.map(Step::new).into()
}

/// Memory that is reserved but in pieces, and the setting against it under the name that this version of PyTorch uses.
///
/// Messages before 2.1 give two totals instead of the difference. Versions 2.2 and later name the variable and
/// `expandable_segments` in the message itself: PYTORCH_CUDA_ALLOC_CONF up to 2.8, PYTORCH_ALLOC_CONF since 2.9. Older
/// ones, and Windows, know only `max_split_size_mb`.
fn pieces(case: &Case, memory: &Memory) -> Option<Step> {
    let requested = memory.requested?;
    let pieces = memory.reserved_unallocated.or_else(|| memory.reserved?.checked_sub(memory.allocated?))?;
    if pieces < requested {
        return None;
    }
    let names = ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"];
    let named = names.into_iter().find(|name| case.said.any(name)).unwrap_or("PYTORCH_CUDA_ALLOC_CONF");
    let is_offered = case.said.any("expandable_segments") && case.platform.os != Some(Os::Windows);
    let id = if is_offered { "use-expandable-segments" } else { "limit-split-size" };
    Some(Step::new(id).with("variable", named).with("requested", size(requested)).with("pieces", size(pieces)))
}

fn others(memory: &Memory) -> Option<Step> {
    let capacity = memory.capacity?;
    let held: u64 = memory.others.iter().map(|other| other.bytes).sum();
    if held > capacity / 2 {
        let pids: Vec<String> = memory.others.iter().map(|other| other.pid.to_string()).collect();
        return Some(Step::new("free-other-processes").with("bytes", size(held)).with("pids", pids.join(", ")));
    }
    let own = memory.process.or(memory.reserved).or(memory.allocated)?;
    let outside = capacity.checked_sub(memory.free?)?.checked_sub(own)?.checked_sub(held)?;
    (outside > capacity / 2).then(|| Step::new("free-memory-outside").with("bytes", size(outside)))
}

fn private_pools(memory: &Memory) -> Option<Step> {
    let pools = memory.private_pools?;
    (pools > memory.capacity? / 4).then(|| Step::new("share-graph-pools").with("bytes", size(pools)))
}

/// As PyTorch writes sizes: `1.50 GiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => {
            let hundredths = (u128::from(bytes) * 100 + u128::from(unit) / 2) / u128::from(unit);
            format!("{}.{:02} {name}", hundredths / 100, hundredths % 100)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_written_as_pytorch_does() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (512, "512 bytes"),
            (16 << 20, "16.00 MiB"),
            (3 << 29, "1.50 GiB"),
            (u64::MAX, "17179869184.00 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
