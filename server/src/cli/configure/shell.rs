//! `pydebug` in a shell's profile.

use std::path::PathBuf;

use clap::Args;
use cublame_core::config::shell_profile::{self, Shell};
use cublame_core::mode::Mode;

use super::Writing;
use crate::configure::files::Change;
use crate::error::{Error, Result};

#[derive(Debug, Args)]
pub struct Arguments {
    /// bash, zsh or fish [default: the one that SHELL names]
    #[arg(long, value_name = "SHELL")]
    shell: Option<String>,
    /// The mode in which `pydebug` runs Python
    #[arg(long, value_name = "MODE", default_value = "blocking")]
    mode: Mode,
    #[command(flatten)]
    pub writing: Writing,
}

pub fn changes(arguments: &Arguments) -> Result<Vec<Change>> {
    let shell = shell(arguments)?;
    let mut profile = Change::of(profile_path(shell)?)?;
    let without_ours = profile.before.clone().filter(|text| !shell_profile::is_there(text));
    if arguments.writing.remove {
        profile.edit(shell_profile::remove)?;
    } else {
        profile.edit(|text| shell_profile::add(text, shell, arguments.mode))?;
    }
    for line in shell_profile::global_exports(profile.text()) {
        eprintln!(
            "cublame: {}:{line} switches blocking on for every program, which halves their speed; `pydebug` is for one",
            profile.path.display()
        );
    }
    let mut changes = Vec::new();
    if let Some(text) = without_ours.filter(|_| profile.is_one()) {
        // The backup is the profile as it was without our lines, whatever is changed in them later.
        let mut name = profile.path.clone().into_os_string();
        name.push(".cublame-backup");
        changes.push(Change { after: Some(text), ..Change::of(name.into())? });
    }
    changes.push(profile);
    Ok(changes)
}

fn shell(arguments: &Arguments) -> Result<Shell> {
    let known = || Shell::ALL.map(Shell::name).join(", ");
    let named = arguments.shell.clone().or_else(|| std::env::var("SHELL").ok());
    let named =
        named.ok_or_else(|| Error::user("SHELL is not set").hint(format!("name one with --shell: {}", known())))?;
    Shell::of_path(&named).ok_or_else(|| {
        Error::user(format!("`{named}` is not a shell that cublame has a profile for"))
            .hint(format!("name one with --shell: {}", known()))
    })
}

fn profile_path(shell: Shell) -> Result<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let moved = match shell {
        Shell::Bash => None,
        Shell::Zsh => folder("ZDOTDIR").map(|folder| folder.join(".zshrc")),
        Shell::Fish => folder("XDG_CONFIG_HOME").map(|folder| folder.join("fish/config.fish")),
    };
    let home = || folder("HOME").map(|home| home.join(shell.profile()));
    moved.or_else(home).ok_or_else(|| {
        Error::environment("there is no home folder to look for the profile in").hint("set HOME to an absolute path")
    })
}
