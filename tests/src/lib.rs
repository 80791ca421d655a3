//! What the end-to-end tests share: temporary projects, runs that failed in them, a client of the language server.

pub mod client;
pub mod project;

pub use client::TestServer;
pub use project::Project;
