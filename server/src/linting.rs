//! The lint's configuration of a project, read from its pyproject.toml and its record of switches.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cublame_core::config::launch_json::SwitchedFile;
use cublame_core::lint::{Configuration, Settings};

use crate::error::{Error, Result};

/// What the project around a path says.
#[derive(Debug)]
pub struct Project {
    root: PathBuf,
    configuration: Configuration,
    switched: SwitchedFile,
}

impl Project {
    /// The folder of the nearest pyproject.toml above the path, else the working directory. `select` and `ignore` are
    /// names of rules from the command line or an editor: a selection stands instead, what is ignored is added.
    pub fn of(path: &Path, select: &[String], ignore: &[String]) -> Result<Self> {
        let first = std::path::absolute(path).unwrap_or_default();
        let file = first.ancestors().map(|folder| folder.join("pyproject.toml")).find(|file| file.is_file());
        let configuration = match &file {
            Some(file) => {
                let shown = file.display();
                let text = fs::read_to_string(file)
                    .map_err(|error| Error::environment(format!("cannot read {shown}")).because(error))?;
                Configuration::of_pyproject(&text)
                    .map_err(|what| Error::user(format!("{shown}: {what}")).hint("correct [tool.cublame.lint]"))?
            }
            None => Configuration::default(),
        };
        let configuration = configuration.with(select, ignore).map_err(Error::user)?;
        let root = match file.as_deref().and_then(Path::parent) {
            Some(folder) => folder.to_owned(),
            None => std::env::current_dir().unwrap_or_default(),
        };
        // A file of our own that is missing or damaged says that nothing is switched.
        let switched = fs::read_to_string(root.join(".cublame/switched.json")).ok();
        let switched = switched.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Self { root, configuration, switched })
    }

    pub fn settings(&self, path: &Path) -> Settings {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let relative = absolute.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        let mut settings = self.configuration.settings_for(&relative);
        let of_file = self.switched.switched.iter().filter(|switched| switched.file == relative);
        settings.switched = of_file.map(|switched| switched.name.clone()).collect::<BTreeSet<_>>();
        settings
    }
}
