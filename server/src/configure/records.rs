//! `.cublame/switched.json`: which of the user's configurations are switched, and what stood in them before.

use std::path::Path;

use cublame_core::config::launch_json::{Switched, SwitchedFile};

use super::files::{Change, Texts};
use crate::error::{Error, Result};
use crate::session::folder::IGNORE_ALL;

/// The records of a workspace, and the file that they are in.
#[derive(Debug)]
pub struct Records {
    file: Change,
    /// The project's folder stays out of the repository.
    ignore: Change,
    records: SwitchedFile,
}

impl Records {
    pub fn read(root: &Path, texts: &Texts) -> Result<Self> {
        let file = texts.of(root.join(".cublame/switched.json"))?;
        let ignore = texts.of(root.join(".cublame/.gitignore"))?;
        let records = if file.text().is_empty() {
            SwitchedFile::default()
        } else {
            serde_json::from_str(file.text()).map_err(|failure| {
                Error::user(format!("{} is damaged", file.path.display())).because(failure).hint(
                    "nothing was written; delete the file, and take the variables out of your configurations by hand",
                )
            })?
        };
        Ok(Self { file, ignore, records })
    }

    pub fn find(&self, file: &str, name: &str) -> Option<&Switched> {
        self.records.find(file, name)
    }

    /// The configurations of `file` that are switched.
    pub fn names(&self, file: &str) -> Vec<String> {
        let of_file = self.records.switched.iter().filter(|switched| switched.file == file);
        of_file.map(|switched| switched.name.clone()).collect()
    }

    /// `now` is None after a switch back.
    pub fn keep(&mut self, file: &str, name: &str, now: Option<Switched>) -> Result<()> {
        self.records = std::mem::take(&mut self.records).with(file, name, now);
        let json = serde_json::to_string_pretty(&self.records)
            .map_err(|failure| Error::internal("the record of switches has no JSON form").because(failure))?;
        self.file.after = Some(json + "\n");
        self.ignore.after.get_or_insert_with(|| IGNORE_ALL.to_owned());
        Ok(())
    }

    pub fn into_changes(self) -> [Change; 2] {
        [self.ignore, self.file]
    }
}

/// What to say of a name that has no record.
pub fn not_switched(name: &str) -> Error {
    Error::user(format!("`{name}` is not switched, so there is nothing to switch back"))
}
