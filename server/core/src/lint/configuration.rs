//! `[tool.cublame.lint]` of a pyproject.toml: which rules, and where.

use std::collections::{BTreeMap, BTreeSet};

use globset::{Glob, GlobMatcher};
use serde::Deserialize;

use super::{RULES, Settings};

/// The rules that a project wants.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    select: Option<BTreeSet<String>>,
    ignore: BTreeSet<String>,
    per_file: Vec<(GlobMatcher, BTreeSet<String>)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Table {
    select: Option<BTreeSet<String>>,
    #[serde(default)]
    ignore: BTreeSet<String>,
    #[serde(default)]
    per_file_ignores: BTreeMap<String, BTreeSet<String>>,
}

impl Configuration {
    /// Reads the text of a pyproject.toml; one without our table is the default. The error is one sentence.
    pub fn of_pyproject(text: &str) -> Result<Self, String> {
        let document: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let lint = document.get("tool").and_then(|tool| tool.get("cublame")).and_then(|cublame| cublame.get("lint"));
        let Some(lint) = lint else { return Ok(Self::default()) };
        let table: Table = lint.clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        let named = table.select.iter().flatten().chain(&table.ignore).chain(table.per_file_ignores.values().flatten());
        for name in named {
            known(name)?;
        }
        let mut per_file = Vec::new();
        for (pattern, rules) in table.per_file_ignores {
            let glob = Glob::new(&pattern).map_err(|error| error.to_string())?;
            per_file.push((glob.compile_matcher(), rules));
        }
        Ok(Self { select: table.select, ignore: table.ignore, per_file })
    }

    /// The same with what the command line says: its selection stands instead, what it ignores is added.
    pub fn with(mut self, select: &[String], ignore: &[String]) -> Result<Self, String> {
        for name in select.iter().chain(ignore) {
            known(name)?;
        }
        if !select.is_empty() {
            self.select = Some(select.iter().cloned().collect());
        }
        self.ignore.extend(ignore.iter().cloned());
        Ok(self)
    }

    /// The rules for one file, by its path relative to the project.
    pub fn settings_for(&self, path: &str) -> Settings {
        let mut ignore = self.ignore.clone();
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        for (pattern, rules) in &self.per_file {
            if pattern.is_match(path) || pattern.is_match(name) {
                ignore.extend(rules.iter().cloned());
            }
        }
        Settings { select: self.select.clone(), ignore, switched: BTreeSet::new() }
    }
}

fn known(name: &str) -> Result<(), String> {
    if RULES.iter().any(|rule| rule.name == name) {
        return Ok(());
    }
    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    Err(format!("`{name}` is no rule; the rules are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_selects_and_ignores() {
        let text = "[tool.cublame.lint]\nselect = [\"dsa-env\", \"env-left-on\"]\nignore = [\"dsa-env\"]\n\
                    [tool.cublame.lint.per-file-ignores]\n\"docker/*\" = [\"env-left-on\"]\n";
        let configuration = Configuration::of_pyproject(text).unwrap();
        assert_eq!(configuration.settings_for("train.py").ignore.len(), 1);
        assert_eq!(configuration.settings_for("docker/Dockerfile").ignore.len(), 2);
        assert_eq!(configuration.settings_for("train.py").select.map(|select| select.len()), Some(2));
        let other = configuration.with(&["fork-cuda".to_owned()], &[]).unwrap();
        assert!(other.settings_for("train.py").select.is_some_and(|select| select.contains("fork-cuda")));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| Configuration::of_pyproject(text).unwrap_err();
        assert!(error("[tool.cublame.lint]\nselect = [\"env-to-late\"]\n").starts_with("`env-to-late` is no rule"));
        assert!(error("[tool.cublame.lint]\nselects = []\n").contains("selects"));
        assert!(!error("[tool").is_empty());
        assert!(Configuration::of_pyproject("[project]\nname = \"x\"\n").is_ok());
    }
}
