//! What the CUDA driver says, asked in a process of its own.
//!
//! Loading a driver runs its code: a broken one crashes, a lost GPU never answers, and a stranger's libcuda does as it
//! likes. None of it may happen to the language server, and each of it is a value here.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cublame_core::doctor::{Driver, Library};

use crate::os::answers::{self, Answered};

pub const SUBCOMMAND: &str = "__driver";

/// The driver that a program started here would get, asked by the program `cublame`.
pub fn look(cublame: &Path) -> Driver {
    let module = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
    let gpus = std::fs::read_dir("/proc/driver/nvidia/gpus").ok();
    Driver {
        version: module.as_deref().and_then(module_version),
        installed: gpus.map(|gpus| gpus.flatten().count()),
        library: ask(cublame),
    }
}

/// `cublame __driver`: one JSON document.
pub fn main() {
    // Where nobody reads it there is nobody to tell.
    serde_json::to_writer(io::stdout(), &cublame_driver::look()).ok();
}

/// A driver that wakes a machine's GPUs one by one takes its time; one that takes longer is not coming back.
const PATIENCE: Duration = Duration::from_secs(30);

fn ask(cublame: &Path) -> Library {
    let died = |how: String| Library::Died { how };
    let mut command = Command::new(cublame);
    command.arg(SUBCOMMAND);
    match answers::ask(command, PATIENCE) {
        Ok(Answered::InTime { status, out, .. }) if status.success() => {
            serde_json::from_slice(&out).unwrap_or_else(|failure| died(failure.to_string()))
        }
        Ok(Answered::InTime { status, .. }) => died(status.to_string()),
        Ok(Answered::TooLate) => Library::Silent { seconds: PATIENCE.as_secs() },
        Err(failure) => died(failure.to_string()),
    }
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ...` or `... Open Kernel Module for x86_64  580...`
fn module_version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    let is_version = |word: &&str| {
        word.contains('.') && word.chars().all(|character| character.is_ascii_digit() || character == '.')
    };
    line.split_whitespace().find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_says_its_version() {
        for (text, version) in [
            (
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12.3.0",
                Some("535.104.05"),
            ),
            (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder@U22-I3)",
                Some("580.159.04"),
            ),
            ("GCC version:  gcc version 12.3.0\n", None),
        ] {
            assert_eq!(module_version(text).as_deref(), version);
        }
    }
}
