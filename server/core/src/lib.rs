//! The pure core of cublame: what was observed becomes [`Evidence`], evidence becomes [`Verdict`]s.
//!
//! Nothing here reads a file, the environment or the clock, and nothing here fails:
//! a function returns what it could make of its input and what it could not read.
//! The modules are listed in reading order.

pub mod event;
pub mod log;
pub mod run;
pub mod source;
pub mod telemetry;
pub mod text;

mod pattern;

pub mod python;

pub mod parse;

pub mod gpu_core;
pub mod journal;

pub mod dap;
pub mod hang;

pub mod evidence;
pub mod verdict;

pub mod blame;
pub mod suspects;

pub mod lint;

pub mod catalog;
pub mod scrub;

pub mod advice;
pub mod doctor;
pub mod fixes;

pub mod config;
pub mod mode;

#[cfg(test)]
mod schema;

pub use evidence::Evidence;
pub use source::Sources;
pub use verdict::{Certainty, Place, Verdict};
