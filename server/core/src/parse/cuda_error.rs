//! A CUDA error as a text spells it: by its name in one of three APIs, by its text, or by its number.

use std::sync::LazyLock;

use regex::Regex;

use crate::catalog::facts;
use crate::catalog::facts::Spelled;
use crate::verdict::CudaError;

/// A CUDA error and the kind it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub kind: &'static str,
    pub error: CudaError,
}

/// The error that a text tells of. A name wins over a text, a text over a number: numbers changed with CUDA 10.1, and
/// numba long called 700 an unknown error.
pub fn find(text: &str) -> Option<Found> {
    let facts = facts();
    let named = NAMES.find_iter(text).find_map(|name| Some((facts.error_named(name.as_str())?, name.as_str())));
    if let Some((spelled, name)) = named {
        return Some(found(spelled, name));
    }
    let told = facts.error_told(text, |at, ambiguous| !ambiguous || is_led(&text[..at]));
    if let Some(spelled) = told {
        let is_hip = text.contains("HIP error") || text.contains("hip error");
        let hip = spelled.error.hip.as_deref().filter(|_| is_hip);
        return Some(found(spelled, hip.unwrap_or(&spelled.error.name)));
    }
    let code = CODES.captures(text)?.iter().skip(1).flatten().next()?.as_str().parse().ok()?;
    let spelled = facts.error_coded(code)?;
    Some(found(spelled, &spelled.error.name))
}

/// Does a text speak of a CUDA error, be it one that the catalogue does not know?
pub fn is_named_in(text: &str) -> bool {
    SPEAKS.is_match(text)
}

fn found(spelled: Spelled<'static>, name: &str) -> Found {
    Found { kind: &spelled.kind.id, error: spelled.error.named(name) }
}

/// Do the words before a text say that a CUDA error follows?
fn is_led(before: &str) -> bool {
    let start = before.len().saturating_sub(LEAD);
    let start = (start..=before.len()).find(|at| before.is_char_boundary(*at)).unwrap_or(before.len());
    LEADS.is_match(&before[start..])
}

const LEAD: usize = 160;

static NAMES: LazyLock<Regex> =
    LazyLock::new(|| super::regex(r"\b(?:cudaError[A-Z]\w+|CUDA_ERROR_[A-Z0-9_]+|hipError[A-Z]\w+)\b"));

static SPEAKS: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(r"(?i)\b(?:cuda|hip)(?: \w+)? error\b|\bcudaError|\bCUDA_ERROR_|\bhipError|Triton Error")
});

static LEADS: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"(?i)(?:(?:\bcuda|\bhip)[ _-]?(?:runtime |driver |kernel |api )*(?:error|failure|failed|call failed)[^\n]{0,120}?[:'(\]] ?['(]?",
        r"|\berror ?=? ?\d+ ?\)? ?: ",
        r"|Triton Error \[(?:CUDA|HIP)\]: ",
        r"|GPUassert: ",
        r"|\bcuda\w+[^\n]{0,60}?(?:failed|returned|error)[^\n]{0,40}?[:('] ?",
        r"|\bwith error:? ",
        r"|^\s*error )$"
    ))
});

static CODES: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"(?i)\[(\d{1,3})\] Call to cu\w+ results in",
        r"|\bcuda (?:runtime )?error \(?(\d{1,3})\)?\b",
        r"|\bcuda failure (\d{1,3})\b",
        r"|\bcuda execution failed with error (\d{1,3})\b",
        r"|\bcudaError(?:_t)?[ (=:]+(\d{1,3})\b",
        r"|\bcall to cu\w+ (?:failed|results in)[^\n]*?\b(\d{3})\b"
    ))
});
