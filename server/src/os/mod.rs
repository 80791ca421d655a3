//! The only platform code.

pub mod files;
pub mod liveness;
pub mod processes;
