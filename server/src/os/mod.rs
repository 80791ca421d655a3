//! The only platform code.

pub mod answers;
pub mod embedded;
pub mod files;
pub mod liveness;
pub mod memory;
pub mod processes;
pub mod signals;
pub mod terminal;
