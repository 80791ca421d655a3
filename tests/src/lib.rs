//! What the end-to-end tests share: temporary projects, runs that failed in them, a client of the language server.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on says so and stops")]

pub mod client;
pub mod project;

pub use client::TestServer;
pub use project::Project;
