//! A configuration file from its text before to its text after: read, compared, replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cublame_core::config::{Edit, Refused, apply};
use cublame_core::text::LineIndex;
use similar::TextDiff;

use crate::error::{Error, Result};

/// The texts of files: as an editor has them where they are open there, else as they are on disk.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// By path with symbolic links resolved.
    pub open: BTreeMap<PathBuf, LineIndex>,
}

impl Texts {
    /// The file as it is.
    pub fn of(&self, path: PathBuf) -> Result<Change> {
        let resolved = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let Some(text) = self.open.get(&resolved) else { return Change::of(path) };
        let before = Some(text.text().to_owned());
        Ok(Change { path, open: Some(resolved), after: before.clone(), before })
    }

    /// The names in a folder, sorted, with those that an editor has not saved yet.
    pub fn names_in(&self, folder: &Path) -> Vec<String> {
        let resolved = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let open = self.open.keys().filter(|path| path.parent() == Some(&resolved));
        let unsaved = open.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let names: BTreeSet<String> = names_in(folder).into_iter().chain(unsaved).collect();
        names.into_iter().collect()
    }
}

/// One file that is to be written or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: PathBuf,
    /// Where the file is open in an editor: its path with symbolic links resolved. `before` is the editor's text then.
    pub open: Option<PathBuf>,
    /// None: there is no such file yet.
    pub before: Option<String>,
    /// None: the file is to go.
    pub after: Option<String>,
}

impl Change {
    /// The file as it is.
    pub fn of(path: PathBuf) -> Result<Self> {
        let before = read(&path)?;
        Ok(Self { path, open: None, after: before.clone(), before })
    }

    pub fn text(&self) -> &str {
        self.after.as_deref().unwrap_or_default()
    }

    /// Makes edits, of which the place in the file is told where they are refused.
    pub fn edit(&mut self, edits: impl FnOnce(&str) -> std::result::Result<Vec<Edit>, Refused>) -> Result<()> {
        let edits = edits(self.text()).map_err(|refused| self.refuse(&refused))?;
        if !edits.is_empty() {
            self.after = Some(apply(self.text(), &edits));
        }
        Ok(())
    }

    pub fn refuse(&self, refused: &Refused) -> Error {
        let Refused { line, column, what } = refused;
        Error::user(format!("{}:{line}:{column}: {what}", self.path.display()))
            .hint("nothing was written; correct that place and run the command again")
    }

    pub fn is_one(&self) -> bool {
        self.before != self.after
    }

    /// The same change the other way round.
    pub fn undone(self) -> Self {
        Self { before: self.after, after: self.before, ..self }
    }

    /// A unified diff, as `diff -u` and git print it.
    pub fn diff(&self) -> String {
        let name = |side: &str, text: &Option<String>| match text {
            Some(_) => format!("{side}/{}", self.path.display().to_string().trim_start_matches('/')),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (self.before.as_deref().unwrap_or_default(), self.after.as_deref().unwrap_or_default());
        let diff = TextDiff::from_lines(before, after);
        diff.unified_diff().header(&name("a", &self.before), &name("b", &self.after)).to_string()
    }

    /// Replaces the file in one step, with its permissions, or deletes it.
    pub fn write(&self) -> Result<()> {
        let cannot = |failure: io::Error| {
            Error::environment(format!("{} cannot be written", self.path.display())).because(failure)
        };
        let place = behind_links(&self.path).map_err(cannot)?;
        if read(&place)? != self.before {
            if self.open.is_some() {
                let what = format!("{} is open and has changes that are not saved", self.path.display());
                return Err(Error::user(what).hint("nothing was written to it; save it and run the command again"));
            }
            let what = format!("{} was changed by somebody else in the meantime", self.path.display());
            return Err(Error::environment(what).hint("nothing was written to it; run the command again"));
        }
        let Some(after) = &self.after else { return fs::remove_file(&place).map_err(cannot) };
        if fs::metadata(&place).is_ok_and(|metadata| metadata.permissions().readonly()) {
            let what = format!("{} is read-only", self.path.display());
            return Err(Error::environment(what).hint(format!("allow writing with `chmod u+w {}`", place.display())));
        }
        replace(&place, after.as_bytes()).map_err(cannot)
    }
}

/// The text of a file, None if there is none.
pub fn read(path: &Path) -> Result<Option<String>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(failure) if failure.kind() == ErrorKind::NotFound => return Ok(None),
        Err(failure) => {
            return Err(Error::environment(format!("{} cannot be read", path.display())).because(failure));
        }
    };
    let text = String::from_utf8(bytes).map_err(|failure| {
        let at = failure.utf8_error().valid_up_to();
        Error::user(format!("{} is not UTF-8 (from byte {at} on)", path.display()))
            .hint("nothing was written; save the file as UTF-8 and run the command again")
    })?;
    Ok(Some(text))
}

/// The absolute path of a file or folder that must be there.
pub fn existing(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).map_err(|failure| {
        Error::user(format!("there is no {}", path.display()))
            .because(failure)
            .hint("give the path from where you are, or an absolute one")
    })
}

/// The names in a folder, sorted; none where there is no folder.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Writes aside and renames, so that a reader sees the old text or the new one, and a full disk loses neither.
fn replace(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = place.parent().ok_or(ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let before = fs::metadata(place).ok();
    let aside = folder.join(format!(".cublame-{}.tmp", std::process::id()));
    let written = (|| {
        let mode = before.as_ref().map_or(0o666, |before| before.mode() & 0o7777);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&aside)?;
        file.write_all(bytes)?;
        if let Some(before) = &before {
            // The umask has taken bits away, and root writes for others. What may not be kept is no reason to stop.
            rustix::fs::fchown(
                &file,
                Some(rustix::fs::Uid::from_raw(before.uid())),
                Some(rustix::fs::Gid::from_raw(before.gid())),
            )
            .ok();
            file.set_permissions(before.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&aside, place)
    })();
    if written.is_err() {
        fs::remove_file(&aside).ok();
    }
    written
}

/// The file that is meant by a chain of symbolic links, whether or not it exists: dotfiles are often kept elsewhere.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    const LONGEST_CHAIN: usize = 40;
    let mut place = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        match fs::read_link(&place) {
            Ok(target) => place = place.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(place),
        }
    }
    Err(io::Error::other("it is a symbolic link without end"))
}
