//! Evidence to verdicts: the one waist that every source comes into and every rendering leaves from.

use crate::catalog::Texts;
use crate::{Evidence, Sources, Verdict};

/// The source files that `blame` would like to read and has not been answered for, by their names in the evidence.
pub fn wanted(_evidence: &Evidence, _sources: &Sources) -> Vec<String> {
    Vec::new()
}

/// The verdicts on some evidence, the root cause first.
pub fn blame(_evidence: &Evidence, _sources: &Sources, _texts: &Texts) -> Vec<Verdict> {
    Vec::new()
}
