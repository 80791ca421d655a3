//! PyCharm's shared run configurations, copied from the user's own or created.

use std::path::PathBuf;

use clap::Args;

use super::{Targets, Writing};
use crate::configure::files::Texts;
use crate::configure::{Plan, USUAL_MODES, Wish, pycharm};
use crate::error::Result;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The project's folder
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
    /// Copy only this configuration of yours [default: all that run Python]
    #[arg(long, value_name = "NAME", group = "theirs")]
    twin: Option<String>,
    #[command(flatten)]
    pub writing: Writing,
}

pub fn plan(arguments: &Arguments) -> Result<Plan> {
    pycharm::plan(&arguments.dir, &wish(arguments)?, &Texts::default())
}

fn wish(arguments: &Arguments) -> Result<Wish> {
    let targets = arguments.targets.named();
    let name = |name: &String| name.clone();
    Ok(match arguments {
        Arguments { writing, .. } if writing.remove => Wish::Remove,
        Arguments { switch: Some(own), .. } => Wish::Switch { name: name(own), mode: arguments.targets.one_mode()? },
        Arguments { switch_back: Some(own), .. } => Wish::SwitchBack { name: name(own) },
        Arguments { twin: Some(own), .. } if targets.names_nothing() => {
            let modes = if targets.modes.is_empty() { USUAL_MODES.to_vec() } else { targets.modes };
            Wish::Twin { name: name(own), modes }
        }
        _ => Wish::Write(targets),
    })
}
