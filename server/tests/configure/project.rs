//! A project in a temporary folder, and the command in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

pub struct Project {
    folder: TempDir,
}

/// What a run of the command said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Project {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// Runs `cublame configure` in the project, with the project as home folder.
    pub fn configure(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cublame"));
        command.arg("configure").args(words).current_dir(self.folder.path());
        for name in ["XDG_CONFIG_HOME", "ZDOTDIR", "SHELL", "CUBLAME_MODE"] {
            command.env_remove(name);
        }
        let Output { status, stdout, stderr } = command.env("HOME", self.folder.path()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: status.code().unwrap(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// As [`Project::configure`], which must succeed.
    #[track_caller]
    pub fn configured(&self, words: &[&str]) -> Said {
        let said = self.configure(words);
        assert_eq!(said.code, 0, "{words:?}: {}", said.stderr);
        said
    }

    /// Every file of the project with its bytes.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        collect(self.folder.path(), &mut found);
        found.sort();
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push((path.clone(), fs::read(&path).unwrap_or_default()));
        }
    }
}

/// The committed files of one kind: name and bytes.
pub fn fixtures(kind: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/configs").join(kind);
    let mut found: Vec<(String, Vec<u8>)> = fs::read_dir(&folder)
        .unwrap_or_else(|failure| panic!("{}: {failure}", folder.display()))
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
        })
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// Are all bytes of `part` in `whole`, in their order?
pub fn is_kept(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|byte| rest.any(|other| other == byte))
}
