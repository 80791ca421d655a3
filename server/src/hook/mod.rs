//! The Python hook: files that `cublame run` puts first on the child's PYTHONPATH.
//!
//! `sitecustomize.py` loads `_cublame_hook.py` and then the sitecustomize that it shadows; `_cublame_report.py` describes
//! an exception; `_cublame_adopt.py` creates the run folder where nobody did. They are embedded in the binary and written
//! once, by content hash, into the user's cache.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Writes the hook's files where they are not there yet, and returns their folder, to be put first on PYTHONPATH.
///
/// It is `hook-<hash>` in `$XDG_CACHE_HOME/cublame` or `~/.cache/cublame`; where neither can be used, a fresh folder under
/// the system's temporary one. Any number of processes may do this at once.
pub fn install() -> Result<PathBuf> {
    let mut refused = None;
    for cache in cache_folders() {
        match install_in(&cache) {
            Ok(folder) => return Ok(folder),
            Err(failure) => refused = Some(failure),
        }
    }
    install_in_fresh_folder(&std::env::temp_dir()).map_err(|failure| {
        let failure = refused.unwrap_or(failure);
        Error::environment("the Python hook cannot be written")
            .because(failure)
            .hint("set XDG_CACHE_HOME or TMPDIR to a folder of your own that you can write and whose path has no colon")
    })
}

/// As `install`, in a folder of the caller's choice and nowhere else.
pub fn install_in(cache: &Path) -> io::Result<PathBuf> {
    let folder = cache.join(format!("hook-{}", content_hash()));
    require_usable_on_a_path(&folder)?;
    if verify(&folder).is_ok() {
        return Ok(folder);
    }
    DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
    let aside = write_aside(cache)?;
    let placed = place(&aside, &folder, cache);
    if placed.is_err() {
        // The failure itself is what gets reported.
        fs::remove_dir_all(&aside).ok();
    }
    placed.map(|()| folder)
}

const FILES: [(&str, &str); 4] = [
    ("sitecustomize.py", include_str!("sitecustomize.py")),
    ("_cublame_hook.py", include_str!("_cublame_hook.py")),
    ("_cublame_report.py", include_str!("_cublame_report.py")),
    ("_cublame_adopt.py", include_str!("_cublame_adopt.py")),
];

/// Python keeps its compiled files there; Python 2 beside the source.
const COMPILED: &str = "__pycache__";
const COMPILED_BY_PYTHON_2: [&str; 2] = ["sitecustomize.pyc", "sitecustomize.pyo"];

fn cache_folders() -> impl Iterator<Item = PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let xdg = absolute("XDG_CACHE_HOME");
    let home = absolute("HOME").map(|home| home.join(".cache"));
    xdg.into_iter().chain(home).map(|cache| cache.join("cublame"))
}

/// Gives the finished folder its name. When somebody else was faster theirs is taken, unless it is damaged.
fn place(aside: &Path, folder: &Path, cache: &Path) -> io::Result<()> {
    if fs::rename(aside, folder).is_ok() {
        return verify(folder);
    }
    if verify(folder).is_ok() {
        return fs::remove_dir_all(aside);
    }
    // Damaged, or not ours to trust: it is moved out of the way whole, so that nobody sees half of it.
    let damaged = create_unique(cache, ".damaged")?;
    fs::rename(folder, damaged.join("hook"))?;
    fs::remove_dir_all(&damaged).ok();
    match fs::rename(aside, folder) {
        Ok(()) => verify(folder),
        Err(_) => verify(folder).and_then(|()| fs::remove_dir_all(aside)),
    }
}

fn install_in_fresh_folder(temporary: &Path) -> io::Result<PathBuf> {
    require_usable_on_a_path(temporary)?;
    write_aside(temporary)
}

/// A new private folder with all the files.
fn write_aside(parent: &Path) -> io::Result<PathBuf> {
    let folder = create_unique(parent, "cublame-hook")?;
    for (name, content) in FILES {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(name))?;
        file.write_all(content.as_bytes())?;
    }
    Ok(folder)
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

/// Is this folder exactly what this version would write, and can nobody but the user change it?
///
/// The child imports from it before anything else, so a planted file in it would run in the user's name.
fn verify(folder: &Path) -> io::Result<()> {
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
        let mut files = FILES.iter().map(|(file, _)| *file).chain(COMPILED_BY_PYTHON_2);
        let known =
            if name == COMPILED { metadata.is_dir() } else { files.any(|file| name == file) && metadata.is_file() };
        if !known {
            return refuse("holds something else");
        }
    }
    for (name, content) in FILES {
        if fs::read(folder.join(name))? != content.as_bytes() {
            return refuse("holds a file that was changed");
        }
    }
    Ok(())
}

fn is_private(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

fn require_usable_on_a_path(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().as_encoded_bytes().contains(&b':') {
        return Err(io::Error::other(format!(
            "{} has a colon, which separates folders in PYTHONPATH",
            folder.display()
        )));
    }
    Ok(())
}

fn content_hash() -> String {
    let mut hash = Sha256::new();
    for (name, content) in FILES {
        hash.update(name.len().to_le_bytes());
        hash.update(name);
        hash.update(content.len().to_le_bytes());
        hash.update(content);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn cache() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    /// After `damage` the next install gives back the files as they should be, and leaves nothing aside.
    #[track_caller]
    fn check_repairs(damage: impl Fn(&Path)) {
        let cache = cache();
        let folder = install_in(cache.path()).unwrap();
        damage(&folder);
        assert!(verify(&folder).is_err());
        assert_eq!(install_in(cache.path()).unwrap(), folder);
        verify(&folder).unwrap();
        assert_eq!(names(cache.path()), [folder.file_name().unwrap()]);
    }

    #[test]
    fn a_second_install_keeps_the_first_ones_files() {
        let cache = cache();
        let folder = install_in(cache.path()).unwrap();
        let written = folder.join("sitecustomize.py").metadata().unwrap().ino();
        fs::create_dir(folder.join(COMPILED)).unwrap();
        fs::set_permissions(folder.join(COMPILED), PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(folder.join("sitecustomize.pyc"), "").unwrap();
        assert_eq!(install_in(cache.path()).unwrap(), folder);
        assert_eq!(folder.join("sitecustomize.py").metadata().unwrap().ino(), written);
    }

    #[test]
    fn the_folder_is_private() {
        let cache = cache();
        let folder = install_in(&cache.path().join("new")).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(folder.join("sitecustomize.py").metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_was_changed_or_planted_is_replaced() {
        check_repairs(|folder| fs::write(folder.join("sitecustomize.py"), "import evil").unwrap());
        check_repairs(|folder| fs::write(folder.join("torch.py"), "import evil").unwrap());
        check_repairs(|folder| fs::remove_file(folder.join("_cublame_hook.py")).unwrap());
        check_repairs(|folder| fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap());
        check_repairs(|folder| {
            fs::set_permissions(folder.join("_cublame_hook.py"), PermissionsExt::from_mode(0o666)).unwrap();
        });
        check_repairs(|folder| {
            fs::rename(folder.join("_cublame_hook.py"), folder.with_extension("elsewhere")).unwrap();
            symlink(folder.with_extension("elsewhere"), folder.join("_cublame_hook.py")).unwrap();
            fs::rename(folder.with_extension("elsewhere"), folder.join("elsewhere.py")).unwrap();
        });
        check_repairs(|folder| {
            fs::remove_dir_all(folder).unwrap();
            fs::write(folder, "").unwrap();
        });
    }

    #[test]
    fn many_installs_at_once_agree() {
        let cache = cache();
        let install = || install_in(cache.path()).unwrap();
        let folders: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(install)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(folders.windows(2).all(|pair| pair[0] == pair[1]));
        verify(&folders[0]).unwrap();
        assert_eq!(names(cache.path()), [folders[0].file_name().unwrap()]);
    }

    #[test]
    fn a_folder_that_cannot_be_on_a_path_or_written_is_refused() {
        let cache = cache();
        assert!(install_in(&cache.path().join("a:b")).is_err());
        fs::write(cache.path().join("file"), "").unwrap();
        assert!(install_in(&cache.path().join("file")).is_err());
        let fresh = install_in_fresh_folder(cache.path()).unwrap();
        verify(&fresh).unwrap();
    }

    #[test]
    fn the_hook_keeps_runs_out_of_git_in_the_same_words() {
        let text = crate::session::folder::IGNORE_ALL.replace('\n', "\\n");
        assert!(include_str!("_cublame_adopt.py").contains(&text));
    }
}
