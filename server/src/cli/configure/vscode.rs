//! launch.json and tasks.json, or the sections of a `.code-workspace` that hold them.

use std::path::PathBuf;

use clap::Args;

use super::{Targets, Writing};
use crate::configure::files::Texts;
use crate::configure::{Plan, Wish, vscode};
use crate::error::Result;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The workspace folder, or a .code-workspace file
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    targets: Targets,
    /// Make your own configuration run in the mode
    #[arg(long, value_name = "NAME", group = "theirs")]
    switch: Option<String>,
    /// Undo that
    #[arg(long, value_name = "NAME", group = "theirs")]
    switch_back: Option<String>,
    /// Add a copy of your own configuration that runs in the mode
    #[arg(long, value_name = "NAME", group = "theirs")]
    twin: Option<String>,
    /// Turn the old type `python` of your configurations into `debugpy`
    #[arg(long, group = "theirs")]
    upgrade: bool,
    #[command(flatten)]
    pub writing: Writing,
}

pub fn plan(arguments: &Arguments) -> Result<Plan> {
    vscode::plan(&arguments.dir, &wish(arguments)?, &Texts::default())
}

fn wish(arguments: &Arguments) -> Result<Wish> {
    let one_mode = || arguments.targets.one_mode();
    let name = |name: &String| name.clone();
    Ok(match arguments {
        Arguments { writing, .. } if writing.remove => Wish::Remove,
        Arguments { switch: Some(own), .. } => Wish::Switch { name: name(own), mode: one_mode()? },
        Arguments { switch_back: Some(own), .. } => Wish::SwitchBack { name: name(own) },
        Arguments { twin: Some(own), .. } => Wish::Twin { name: name(own), modes: vec![one_mode()?] },
        Arguments { upgrade: true, .. } => Wish::Upgrade,
        Arguments { targets, .. } => Wish::Write(targets.named()),
    })
}
