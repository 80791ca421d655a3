//! The language server as its clients see it.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on says so and stops")]

mod clients;
mod configurations;
mod debugging;
mod fixes;
mod hints;
mod life;
mod lint;
mod notebooks;
mod orders;
mod protocol;
mod requests;
mod rules;
