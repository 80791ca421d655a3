//! `cublame run` and the run folder, with real processes, pipes and terminals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails the test")]

mod project;
mod terminal;

mod crashes;
mod daemons;
mod disk;
mod exit_codes;
mod faults;
mod folder;
mod orphans;
mod signals;
mod streams;
mod telemetry;
mod terminals;
mod trace;
