//! Where a file that a run names is here: the run may have been in a container, or on a cluster.

use std::path::{Path, PathBuf};

use cublame_core::Verdict;

use crate::sources::Finder;

/// A folder of the run's machine and the same folder here, as debugpy's `pathMappings` have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub remote: String,
    pub local: PathBuf,
}

/// Finds the files of one workspace.
pub struct Paths<'a> {
    roots: &'a [PathBuf],
    mappings: &'a [Mapping],
    finder: Finder<'a>,
}

impl<'a> Paths<'a> {
    pub fn new(roots: &'a [PathBuf], mappings: &'a [Mapping]) -> Self {
        Self { roots, mappings, finder: Finder::new(roots, None) }
    }

    /// The file of the workspace that this path means, with symbolic links resolved.
    ///
    /// It is the path itself where that exists, mapped or not; else the one file of the workspace that shares its
    /// longest end. None where there is none, where two fit equally well, or where it lies outside of the workspace.
    pub fn here(&mut self, path: &str) -> Option<PathBuf> {
        let mapped = self.mapped(path);
        let candidate = mapped.as_deref().unwrap_or(Path::new(path));
        let found = match candidate.canonicalize() {
            Ok(found) => Some(found),
            Err(_) => self.finder.find(&candidate.to_string_lossy())?.canonicalize().ok(),
        };
        found.filter(|found| found.is_file() && self.is_within(found))
    }

    pub fn is_within(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// The verdict with the paths that its places have here.
    pub fn localized(&mut self, verdict: &Verdict) -> Verdict {
        let mut verdict = verdict.clone();
        let Verdict { place, reported, candidates, frames, memory, .. } = &mut verdict;
        let sites = memory.iter_mut().flat_map(|memory| &mut memory.sites).map(|site| &mut site.place);
        let places = place.iter_mut().chain(reported).chain(candidates).chain(sites).map(|place| &mut place.path);
        for path in places.chain(frames.iter_mut().map(|frame| &mut frame.path)) {
            if let Some(remote) = path.take() {
                let here = self.here(&remote).map(|here| here.display().to_string());
                // A file outside of the workspace can still be gone to where it exists.
                *path = here.or_else(|| Some(remote).filter(|remote| Path::new(remote).is_file()));
            }
        }
        verdict
    }

    fn mapped(&self, path: &str) -> Option<PathBuf> {
        self.mappings.iter().find_map(|mapping| {
            let rest = path.strip_prefix(mapping.remote.trim_end_matches(['/', '\\']))?;
            let parts = rest.strip_prefix(['/', '\\'])?.split(['/', '\\']);
            Some(parts.fold(mapping.local.clone(), |folder, part| folder.join(part)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[&str], mapping: Option<(&str, &str)>, path: &str, expected: Option<&str>) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("an existing folder").join("proj");
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, "x = 1\n").expect("a file");
        }
        let mappings: Vec<Mapping> = mapping
            .map(|(remote, local)| Mapping { remote: remote.to_owned(), local: root.join(local) })
            .into_iter()
            .collect();
        let path = path.replace("ROOT", root.to_str().expect("text"));
        let roots = [root.clone()];
        let here = Paths::new(&roots, &mappings).here(&path);
        assert_eq!(here, expected.map(|file| root.join(file)));
    }

    #[test]
    fn a_path_that_exists_is_itself_and_only_within_the_workspace() {
        check(&["train.py"], None, "ROOT/train.py", Some("train.py"));
        check(&["passwd"], None, "/etc/passwd", None);
        check(&["train.py"], None, "ROOT/../proj/train.py", Some("train.py"));
    }

    #[test]
    fn a_path_of_another_machine_is_found_by_its_longest_end() {
        check(&["src/model.py"], None, "/srv/job/src/model.py", Some("src/model.py"));
        check(&["a/model.py", "b/model.py"], None, "/srv/job/model.py", None);
    }

    #[test]
    fn a_mapping_decides() {
        check(&["a/model.py", "b/model.py"], Some(("/srv/job/", "a")), "/srv/job/model.py", Some("a/model.py"));
        check(&["a/sub/model.py"], Some(("C:\\work", "a")), "C:\\work\\sub\\model.py", Some("a/sub/model.py"));
        check(&["a/model.py"], Some(("/srv", "a")), "/srv/job/other.py", None);
    }
}
