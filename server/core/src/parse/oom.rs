//! The numbers of an out-of-memory message, in the wordings of torch 0.4 to today and of others, in bytes.

use std::sync::LazyLock;

use regex::Regex;

use crate::verdict::{Memory, OtherProcess};

/// What the message says, None where it says no number at all.
pub fn memory(message: &str) -> Option<Memory> {
    let size = |regex: &Regex| {
        regex.captures(message).and_then(|found| bytes(found.iter().skip(1).flatten().next()?.as_str()))
    };
    let others = OTHERS.captures_iter(message).filter_map(|found| {
        Some(OtherProcess { pid: found.get(1)?.as_str().parse().ok()?, bytes: bytes(found.get(2)?.as_str())? })
    });
    let memory = Memory {
        requested: size(&REQUESTED),
        capacity: size(&CAPACITY),
        free: size(&FREE),
        allocated: size(&ALLOCATED),
        reserved_unallocated: size(&UNALLOCATED),
        reserved: size(&RESERVED),
        process: size(&PROCESS),
        private_pools: size(&POOLS),
        others: others.collect(),
        ..Memory::default()
    };
    (memory != Memory::default()).then_some(memory)
}

/// The device that ran out: `GPU 0`.
pub fn device(message: &str) -> Option<u32> {
    DEVICE.captures(message)?.get(1)?.as_str().parse().ok()
}

/// `12.50 MiB`, `149.01GiB`, `6291456 bytes`, `8,000 bytes`, `160000000000`.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.replace(',', "");
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit: f64 = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 1.0,
        "kib" | "kb" | "k" => 1024.0,
        "mib" | "mb" | "m" => 1024.0 * 1024.0,
        "gib" | "gb" | "g" => 1024.0 * 1024.0 * 1024.0,
        "tib" | "tb" | "t" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let product = number * unit;
    (product.is_finite() && (0.0..9e18).contains(&product)).then_some(product.round() as u64)
}

/// A pattern in which SIZE stands for a size, captured.
fn sized(pattern: &str) -> Regex {
    super::regex(&pattern.replace("SIZE", r"([\d.,]*\d ?(?:[KMGT]i?B|bytes?|B)?)"))
}

static REQUESTED: LazyLock<Regex> = LazyLock::new(|| {
    sized(
        "(?:[Tt]ried to allocate|trying to allocate|[Ff]ailed to allocate|emory allocating|Unable to allocate|Requested *:) SIZE",
    )
});
static CAPACITY: LazyLock<Regex> =
    LazyLock::new(|| sized("total capaci?ty of SIZE|SIZE total capacity|Device limit *: SIZE"));
static FREE: LazyLock<Regex> =
    LazyLock::new(|| sized(r"of which SIZE is free|SIZE free;|Free \(according to CUDA\): SIZE"));
static ALLOCATED: LazyLock<Regex> = LazyLock::new(|| {
    sized(
        "allocated memory SIZE is allocated|SIZE already allocated|allocated so far: SIZE|Currently allocated *: SIZE",
    )
});
static UNALLOCATED: LazyLock<Regex> = LazyLock::new(|| sized("and SIZE is reserved by PyTorch but unallocated"));
static RESERVED: LazyLock<Regex> = LazyLock::new(|| sized(r"SIZE reserved in total|SIZE cached\)"));
static PROCESS: LazyLock<Regex> = LazyLock::new(|| sized("this process has SIZE memory in use"));
static POOLS: LazyLock<Regex> = LazyLock::new(|| sized("with SIZE allocated in private pools"));
static OTHERS: LazyLock<Regex> = LazyLock::new(|| sized(r"Process (\d+) has SIZE memory in use"));
static DEVICE: LazyLock<Regex> = LazyLock::new(|| super::regex(r"\bGPU (\d+)\b"));
