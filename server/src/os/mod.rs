//! The only platform code.

pub mod files;
pub mod processes;
