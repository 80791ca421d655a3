//! Source files as values. The core says which files it wants; the caller reads them and asks again.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The sources that were asked for, by the name that the evidence gives them.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// None: looked for and not found, or found more than once.
    by_name: BTreeMap<String, Option<Source>>,
    /// Folders whose files are always the user's own code.
    roots: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Absolute; empty for what is no file of its own, such as a cell of a notebook.
    pub path: String,
    pub text: Arc<str>,
}

impl Source {
    /// Of a file.
    pub fn path(&self) -> Option<&str> {
        Some(self.path.as_str()).filter(|path| !path.is_empty())
    }
}

impl Sources {
    pub fn new(roots: Vec<String>) -> Self {
        Self { by_name: BTreeMap::new(), roots }
    }

    pub fn insert(&mut self, name: impl Into<String>, source: Option<Source>) {
        self.by_name.insert(name.into(), source);
    }

    pub fn get(&self, name: &str) -> Option<&Source> {
        self.by_name.get(name)?.as_ref()
    }

    /// Was this file looked for, found or not?
    pub fn asked(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    pub fn roots(&self) -> &[String] {
        &self.roots
    }
}
