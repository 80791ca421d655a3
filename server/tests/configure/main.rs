//! `cublame configure` and `cublame env` on real files, in real shells.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper of a test fails the test")]

mod files;
mod fixtures;
mod project;
mod shells;
