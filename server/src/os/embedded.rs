//! Files that the binary carries and that other programs need on disk: written once, by content hash, into the user's cache.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// A folder of files that the binary carries.
pub struct Embedded {
    /// The folder is called `<name>-<hash>`.
    pub name: &'static str,
    pub files: &'static [(&'static str, &'static [u8])],
    /// What others may add: Python's compiled files, in a folder or, of Python 2, beside the source.
    pub others: &'static [&'static str],
    /// Why a folder of the file system cannot hold them, where that is so.
    pub refuse: fn(&Path) -> Option<&'static str>,
}

impl Embedded {
    /// Writes the files where they are not there yet, and returns their folder.
    ///
    /// It is in `$XDG_CACHE_HOME/cublame` or `~/.cache/cublame`; where neither can be used, a fresh folder under the
    /// system's temporary one. Any number of processes may do this at once. The failure is that of the first choice.
    pub fn install(&self) -> io::Result<PathBuf> {
        let mut refused = None;
        for cache in cache_folders() {
            match self.install_in(&cache) {
                Ok(folder) => return Ok(folder),
                Err(failure) => refused = refused.or(Some(failure)),
            }
        }
        self.install_in_fresh_folder(&std::env::temp_dir()).map_err(|failure| refused.unwrap_or(failure))
    }

    pub fn install_in(&self, cache: &Path) -> io::Result<PathBuf> {
        let folder = cache.join(format!("{}-{}", self.name, self.content_hash()));
        self.require_usable(&folder)?;
        if self.verify(&folder).is_ok() {
            return self.checked(folder);
        }
        DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
        let aside = self.write_aside(cache)?;
        let placed = self.place(&aside, &folder, cache);
        if placed.is_err() {
            // The failure itself is what gets reported.
            fs::remove_dir_all(&aside).ok();
        }
        placed.and_then(|()| self.checked(folder))
    }

    pub fn install_in_fresh_folder(&self, temporary: &Path) -> io::Result<PathBuf> {
        self.require_usable(temporary)?;
        let folder = self.write_aside(temporary)?;
        self.checked(folder)
    }

    /// Is this folder exactly what this version would write, and can nobody but the user change it?
    ///
    /// Other programs load it before anything else, so a planted file in it would run in the user's name.
    pub fn verify(&self, folder: &Path) -> io::Result<()> {
        let refuse = |what: &str| Err(io::Error::other(format!("{} {what}", folder.display())));
        let metadata = folder.symlink_metadata()?;
        if !metadata.is_dir() || !is_private(&metadata) {
            return refuse("is not a private folder of this user");
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let metadata = entry.metadata()?;
            if !is_private(&metadata) {
                return refuse("holds something that others can change");
            }
            let expected = self.files.iter().find(|(expected, _)| name == *expected);
            let of_others = self.others.iter().any(|other| name == *other);
            let known = of_others && !metadata.is_symlink() || expected.is_some() && metadata.is_file();
            if !known {
                return refuse("holds something else");
            }
        }
        for (name, content) in self.files {
            if fs::read(folder.join(name))? != *content {
                return refuse("holds a file that was changed");
            }
        }
        Ok(())
    }

    /// The folder is there; can what is in it be used?
    fn checked(&self, folder: PathBuf) -> io::Result<PathBuf> {
        self.require_usable(&folder)?;
        Ok(folder)
    }

    fn require_usable(&self, folder: &Path) -> io::Result<()> {
        match (self.refuse)(folder) {
            Some(why) => Err(io::Error::other(format!("{} {why}", folder.display()))),
            None => Ok(()),
        }
    }

    /// Gives the finished folder its name. When somebody else was faster theirs is taken, unless it is damaged.
    fn place(&self, aside: &Path, folder: &Path, cache: &Path) -> io::Result<()> {
        if fs::rename(aside, folder).is_ok() {
            return self.verify(folder);
        }
        if self.verify(folder).is_ok() {
            return fs::remove_dir_all(aside);
        }
        // Damaged, or not ours to trust: it is moved out of the way whole, so that nobody sees half of it.
        let damaged = create_unique(cache, ".damaged")?;
        fs::rename(folder, damaged.join(self.name))?;
        fs::remove_dir_all(&damaged).ok();
        match fs::rename(aside, folder) {
            Ok(()) => self.verify(folder),
            Err(_) => self.verify(folder).and_then(|()| fs::remove_dir_all(aside)),
        }
    }

    /// A new private folder with all the files.
    fn write_aside(&self, parent: &Path) -> io::Result<PathBuf> {
        let folder = create_unique(parent, &format!("cublame-{}", self.name))?;
        for (name, content) in self.files {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
            file.write_all(content)?;
        }
        Ok(folder)
    }

    fn content_hash(&self) -> String {
        let mut hash = Sha256::new();
        for (name, content) in self.files {
            hash.update(name.len().to_le_bytes());
            hash.update(name);
            hash.update(content.len().to_le_bytes());
            hash.update(content);
        }
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What stands between the parts of a search path cannot stand in one.
pub fn has_colon(folder: &Path) -> Option<&'static str> {
    folder
        .as_os_str()
        .as_encoded_bytes()
        .contains(&b':')
        .then_some("has a colon, which separates the parts of a search path")
}

fn cache_folders() -> impl Iterator<Item = PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let xdg = absolute("XDG_CACHE_HOME");
    let home = absolute("HOME").map(|home| home.join(".cache"));
    xdg.into_iter().chain(home).map(|cache| cache.join("cublame"))
}

fn create_unique(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    loop {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let folder = parent.join(format!("{prefix}-{}-{}", std::process::id(), now.as_nanos()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(failure) if failure.kind() == io::ErrorKind::AlreadyExists => {}
            Err(failure) => return Err(failure),
        }
    }
}

fn is_private(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}
