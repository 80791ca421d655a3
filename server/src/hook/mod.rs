//! The Python hook: files that `cublame run` puts first on the child's PYTHONPATH.
//!
//! `sitecustomize.py` loads `_cublame_hook.py` and then the sitecustomize that it shadows; `_cublame_report.py` describes
//! an exception, and `_cublame_locals.py` the tensors in its frames; `_cublame_torch.py` asks torch for more where that is wished; `_cublame_adopt.py` creates the run folder where nobody
//! did; `_cublame_capture.py` keeps the inputs of one call for a reproducer, and `_cublame_reduce.py` makes a program of
//! them; the rest is the guard of mode guard, loaded when the program imports torch. They are embedded in the binary and
//! written once, by content hash, into the user's cache.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::os::embedded::{Embedded, has_colon};

/// Writes the hook's files where they are not there yet, and returns their folder, to be put first on PYTHONPATH.
pub fn install() -> Result<PathBuf> {
    HOOK.install().map_err(|failure| {
        Error::environment("the Python hook cannot be written")
            .because(failure)
            .hint("set XDG_CACHE_HOME or TMPDIR to a folder of your own that you can write and whose path has no colon")
    })
}

/// As `install`, in a folder of the caller's choice and nowhere else.
pub fn install_in(cache: &Path) -> std::io::Result<PathBuf> {
    HOOK.install_in(cache)
}

const HOOK: Embedded = Embedded {
    name: "hook",
    files: &[
        ("sitecustomize.py", include_bytes!("sitecustomize.py")),
        ("_cublame_hook.py", include_bytes!("_cublame_hook.py")),
        ("_cublame_report.py", include_bytes!("_cublame_report.py")),
        ("_cublame_locals.py", include_bytes!("_cublame_locals.py")),
        ("_cublame_torch.py", include_bytes!("_cublame_torch.py")),
        ("_cublame_adopt.py", include_bytes!("_cublame_adopt.py")),
        ("_cublame_capture.py", include_bytes!("_cublame_capture.py")),
        ("_cublame_reduce.py", include_bytes!("_cublame_reduce.py")),
        // The guard is a part of the Python package, and goes along so that mode guard needs nothing installed.
        ("_cublame_guard_say.py", include_bytes!("../../python/cublame/guard_say.py")),
        ("_cublame_guard_errors.py", include_bytes!("../../python/cublame/guard_errors.py")),
        ("_cublame_guard_rules.py", include_bytes!("../../python/cublame/guard_rules.py")),
        ("_cublame_guard_check.py", include_bytes!("../../python/cublame/guard_check.py")),
        ("_cublame_guard_late.py", include_bytes!("../../python/cublame/guard_late.py")),
        ("_cublame_guard_kernel.py", include_bytes!("../../python/cublame/guard_kernel.py")),
        ("_cublame_guard_ops.py", include_bytes!("../../python/cublame/guard_ops.py")),
        ("_cublame_guarding.py", include_bytes!("../../python/cublame/guarding.py")),
    ],
    others: &["__pycache__", "sitecustomize.pyc", "sitecustomize.pyo"],
    refuse: has_colon,
};

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

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
        let folder = HOOK.install_in(cache.path()).unwrap();
        damage(&folder);
        assert!(HOOK.verify(&folder).is_err());
        assert_eq!(HOOK.install_in(cache.path()).unwrap(), folder);
        HOOK.verify(&folder).unwrap();
        assert_eq!(names(cache.path()), [folder.file_name().unwrap()]);
    }

    #[test]
    fn a_second_install_keeps_the_first_ones_files() {
        let cache = cache();
        let folder = HOOK.install_in(cache.path()).unwrap();
        let written = folder.join("sitecustomize.py").metadata().unwrap().ino();
        fs::create_dir(folder.join("__pycache__")).unwrap();
        fs::set_permissions(folder.join("__pycache__"), PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(HOOK.install_in(cache.path()).unwrap(), folder);
        assert_eq!(folder.join("sitecustomize.py").metadata().unwrap().ino(), written);
    }

    #[test]
    fn the_folder_is_private() {
        let cache = cache();
        let folder = HOOK.install_in(&cache.path().join("new")).unwrap();
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
        let install = || HOOK.install_in(cache.path()).unwrap();
        let folders: Vec<PathBuf> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(install)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(folders.windows(2).all(|pair| pair[0] == pair[1]));
        HOOK.verify(&folders[0]).unwrap();
        assert_eq!(names(cache.path()), [folders[0].file_name().unwrap()]);
    }

    #[test]
    fn a_folder_that_cannot_be_on_a_path_or_written_is_refused() {
        let cache = cache();
        assert!(HOOK.install_in(&cache.path().join("a:b")).is_err());
        fs::write(cache.path().join("file"), "").unwrap();
        assert!(HOOK.install_in(&cache.path().join("file")).is_err());
        let fresh = HOOK.install_in_fresh_folder(cache.path()).unwrap();
        HOOK.verify(&fresh).unwrap();
    }

    #[test]
    fn the_hook_keeps_runs_out_of_git_in_the_same_words() {
        let text = crate::session::folder::IGNORE_ALL.replace('\n', "\\n");
        assert!(include_str!("_cublame_adopt.py").contains(&text));
    }
}
