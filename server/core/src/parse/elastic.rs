//! torchrun's account of its workers: the block that ends in `Root Cause (first observed failure):`
//! (torch/distributed/elastic/multiprocessing/errors).

use std::sync::LazyLock;

use regex::Regex;

use super::{Clean, Taken, What};

/// The workers that failed, the root cause first where the block names one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    pub failures: Vec<Failure>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Failure {
    pub rank: Option<u32>,
    /// Negative for a signal.
    pub exit_code: Option<i32>,
    /// What `@record` wrote, when the program has it.
    pub traceback: Option<String>,
}

pub(super) fn take(lines: &[&Clean]) -> Option<Taken> {
    let first = lines.first()?.text.trim();
    if first != "Failures:" && !first.starts_with("Root Cause (first observed failure)") {
        return None;
    }
    let mut failures: Vec<Failure> = Vec::new();
    let (mut used, mut roots_from) = (0, None);
    for line in lines.iter().take(BLOCK_LINES) {
        let text = line.text.trim();
        let ruled = |rule: char| text.len() > 8 && text.chars().all(|character| character == rule);
        let of_block = text.is_empty()
            || ruled('-')
            || text == "<NO_OTHER_FAILURES>"
            || text.starts_with("Root Cause (first observed failure)")
            || NUMBER.is_match(text)
            || (!failures.is_empty() && text.contains(':'));
        if used > 0 && (!of_block || ruled('=')) {
            break;
        }
        used += 1;
        if text.starts_with("Root Cause (first observed failure)") {
            roots_from = Some(failures.len());
        } else if NUMBER.is_match(text) {
            failures.push(Failure::default());
        } else if let (Some(failure), Some((name, value))) = (failures.last_mut(), text.split_once(':')) {
            let number = || NUMERIC.find(value).and_then(|number| number.as_str().parse::<i32>().ok());
            match name.trim() {
                "rank" => failure.rank = number().and_then(|rank| rank.try_into().ok()),
                "exitcode" => failure.exit_code = number(),
                "traceback" if !value.contains("To enable traceback") => {
                    failure.traceback = Some(value.trim().to_owned());
                }
                _ => {}
            }
        }
    }
    if let Some(roots) = roots_from.filter(|roots| *roots <= failures.len()) {
        failures.rotate_left(roots);
    }
    if failures.is_empty() { None } else { Taken::one(used, What::Summary(Summary { failures })) }
}

/// Workers times lines of each; a larger block is cut.
const BLOCK_LINES: usize = 4096;

static NUMBER: LazyLock<Regex> = LazyLock::new(|| super::regex(r"^\[\d+\]:$"));
static NUMERIC: LazyLock<Regex> = LazyLock::new(|| super::regex(r"-?\d+"));
