//! A failed run for somebody else: a bundle of all that is known, the failing call alone, the words of a bug report.

pub mod choose;

pub mod bundle;
pub mod machine;

pub mod minimal;

pub mod issue;
