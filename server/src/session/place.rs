//! Where runs live.

use std::path::{Path, PathBuf};

/// What decides the place, as values: the caller looks at the environment once.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// CUBLAME_DIR, when set and not empty.
    pub cublame_dir: Option<PathBuf>,
    /// XDG_STATE_HOME, when set and absolute (the XDG base directory specification ignores a relative one).
    pub state_home: Option<PathBuf>,
    /// HOME, when set and absolute.
    pub home: Option<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_this_process() -> Self {
        Self::of(std::env::current_dir().unwrap_or_default())
    }

    /// Those of this process, had it been started in `cwd`.
    pub fn of(cwd: PathBuf) -> Self {
        let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| !path.as_os_str().is_empty());
        Self {
            cwd,
            cublame_dir: path("CUBLAME_DIR"),
            state_home: path("XDG_STATE_HOME").filter(|path| path.is_absolute()),
            home: path("HOME").filter(|path| path.is_absolute()),
        }
    }

    /// The folder of this project, `.cublame` by name unless CUBLAME_DIR names another.
    ///
    /// CUBLAME_DIR; else in the nearest ancestor of the working directory that has a `.cublame`;
    /// else in the nearest that looks like a project's root; else in the working directory.
    pub fn project_folder(&self, exists: impl Fn(&Path) -> bool) -> PathBuf {
        if let Some(folder) = &self.cublame_dir {
            return self.cwd.join(folder);
        }
        let has = |folder: &Path, names: &[&str]| names.iter().any(|name| exists(&folder.join(name)));
        let nearest = |names: &[&str]| self.cwd.ancestors().find(|folder| has(folder, names));
        nearest(&[FOLDER]).or_else(|| nearest(&ROOT_MARKS)).unwrap_or(&self.cwd).join(FOLDER)
    }

    /// The user's own folder, for the index and for runs whose project cannot be written. None without a home.
    pub fn state_folder(&self) -> Option<PathBuf> {
        let state_home = self.state_home.clone().or_else(|| Some(self.home.as_ref()?.join(".local/state")))?;
        Some(state_home.join("cublame"))
    }
}

/// The name of a project's folder.
pub const FOLDER: &str = ".cublame";

const ROOT_MARKS: [&str; 4] = [".vscode", ".idea", ".git", "pyproject.toml"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(there: &[&str], expected: &str) {
        let surroundings = Surroundings { cwd: "/home/dev/proj/train/deep".into(), ..Surroundings::default() };
        let found = surroundings.project_folder(|path| there.iter().any(|there| Path::new(there) == path));
        assert_eq!(found, Path::new(expected));
    }

    #[test]
    fn the_nearest_cublame_folder_wins_over_a_nearer_root_mark() {
        check(&["/home/dev/proj/.cublame", "/home/dev/proj/train/.git"], "/home/dev/proj/.cublame");
        check(&["/home/dev/.cublame", "/home/dev/proj/train/.cublame"], "/home/dev/proj/train/.cublame");
    }

    #[test]
    fn each_root_mark_counts() {
        for mark in ROOT_MARKS {
            check(&["/home/dev/.git", &format!("/home/dev/proj/{mark}")], "/home/dev/proj/.cublame");
        }
    }

    #[test]
    fn without_a_mark_it_is_the_working_directory() {
        check(&[], "/home/dev/proj/train/deep/.cublame");
    }

    #[test]
    fn the_variable_wins_over_everything_and_may_be_relative() {
        let mut surroundings = Surroundings { cwd: "/home/dev/proj".into(), ..Surroundings::default() };
        surroundings.cublame_dir = Some("/scratch/dev".into());
        assert_eq!(surroundings.project_folder(|_| true), Path::new("/scratch/dev"));
        surroundings.cublame_dir = Some("out/cublame".into());
        assert_eq!(surroundings.project_folder(|_| true), Path::new("/home/dev/proj/out/cublame"));
    }

    #[test]
    fn the_state_folder_follows_xdg() {
        let mut surroundings = Surroundings { cwd: "/".into(), ..Surroundings::default() };
        assert_eq!(surroundings.state_folder(), None);
        surroundings.home = Some("/home/dev".into());
        assert_eq!(surroundings.state_folder(), Some("/home/dev/.local/state/cublame".into()));
        surroundings.state_home = Some("/home/dev/state".into());
        assert_eq!(surroundings.state_folder(), Some("/home/dev/state/cublame".into()));
    }
}
