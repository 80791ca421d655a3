//! Device-side assertions: the lines of all threads brought to one entry each.

use crate::catalog::facts;
use crate::catalog::facts::Assert;
use crate::parse::{AssertLine, Findings, What};
use crate::verdict::DeviceAssert;

/// Assertions told apart: a program that fires more of them at once is one whose text was made up.
const MOST_ASSERTS: usize = 256;

/// The assertions of a log.
#[derive(Debug, Clone, Default)]
pub struct Asserts {
    /// In order of appearance, the first [`MOST_ASSERTS`] of them.
    pub lines: Vec<AssertLine>,
    /// Index into `Log::lines` of the first.
    pub line: Option<usize>,
    pub rank: Option<u32>,
    pub device: Option<u32>,
}

impl Asserts {
    pub fn of(findings: &Findings) -> Self {
        let mut asserts = Asserts::default();
        for finding in &findings.found {
            let What::Assert(line) = &finding.what else { continue };
            asserts.line = asserts.line.or(Some(finding.line));
            asserts.rank = asserts.rank.or(finding.rank);
            asserts.device = asserts.device.or(line.device);
            let full = asserts.lines.len() == MOST_ASSERTS;
            let known = asserts
                .lines
                .iter_mut()
                .find(|known| known.line == line.line && known.file == line.file && known.condition == line.condition);
            match known {
                Some(known) => {
                    known.count = known.count.saturating_add(line.count);
                    known.kernel = known.kernel.take().or_else(|| line.kernel.clone());
                    known.values = known.values.take().or_else(|| line.values.clone());
                }
                None if full => {}
                None => asserts.lines.push(line.clone()),
            }
        }
        asserts
    }

    /// The assertion that fired first, and what is known of it.
    pub fn first(&self) -> Option<(&AssertLine, Option<&'static Assert>)> {
        let line = self.lines.first()?;
        Some((line, facts().assert(&line.condition, line.kernel.as_deref().unwrap_or(""))))
    }

    pub fn entries(&self) -> Vec<DeviceAssert> {
        let entry = |line: &AssertLine| DeviceAssert {
            file: line.file.clone(),
            line: line.line,
            kernel: line.kernel.clone(),
            condition: line.condition.clone(),
            count: line.count,
        };
        self.lines.iter().map(entry).collect()
    }
}
