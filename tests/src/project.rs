//! A temporary project with programs, run folders and a state folder of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cublame::session::folder::RunFolder;
use cublame::session::place::Surroundings;
use cublame_core::Verdict;
use cublame_core::mode::Mode;
use cublame_core::run::{Exit, ProcessId, Report, Run, Watch};
use cublame_core::verdict::Place;
use tempfile::TempDir;

/// Removed when it is dropped.
pub struct Project {
    folder: TempDir,
    root: PathBuf,
}

/// How a run that a test writes went.
#[derive(Debug, Clone)]
pub struct Written {
    pub entry: &'static str,
    pub mode: Mode,
    pub exit: Exit,
    /// How long ago it started; it took a second.
    pub age: Duration,
    pub verdicts: Vec<Verdict>,
}

impl Project {
    /// A project with these files, by name and text. Its path has a space and letters that are not ASCII.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path().join("proj ä").canonicalize();
        let root = root.unwrap_or_else(|_| folder.path().canonicalize().expect("an existing folder").join("proj ä"));
        std::fs::create_dir_all(root.join(".cublame/runs")).expect("a folder");
        std::fs::create_dir_all(folder.path().join("state")).expect("a folder");
        let project = Self { folder, root };
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    /// The state folder stands in for the user's own.
    pub fn state_home(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn surroundings(&self) -> Surroundings {
        Surroundings { cwd: self.root.clone(), state_home: Some(self.state_home()), ..Surroundings::default() }
    }

    /// The line (from 1) of a program that ends in `# @fault`.
    pub fn fault_line(&self, name: &str) -> u32 {
        let text = self.read(name);
        let at = text.lines().position(|line| line.ends_with("# @fault")).expect("a line with `# @fault`");
        u32::try_from(at).expect("a small number") + 1
    }

    /// A verdict at the marked line of a program.
    pub fn verdict(&self, name: &str) -> Verdict {
        let verdict = include_str!("../fixtures/verdicts/device-assert.json");
        let mut verdict: Verdict = serde_json::from_str(verdict).expect("a verdict");
        let place = Place {
            file: name.to_owned(),
            path: Some(self.path(name).display().to_string()),
            line: self.fault_line(name),
            column: None,
            end_column: None,
            function: None,
        };
        verdict.place = Some(place);
        verdict.reported = None;
        verdict.frames.clear();
        verdict.asserts.clear();
        verdict
    }

    /// A run of a program that failed just now at its marked line.
    pub fn failure(&self, entry: &'static str) -> Written {
        let exit = Exit { code: Some(1), signal: None };
        Written { entry, mode: Mode::Off, exit, age: Duration::ZERO, verdicts: vec![self.verdict(entry)] }
    }

    /// A run of a program that did well just now.
    pub fn success(&self, entry: &'static str) -> Written {
        let exit = Exit { code: Some(0), signal: None };
        Written { entry, mode: Mode::Off, exit, age: Duration::ZERO, verdicts: Vec::new() }
    }

    /// The folder of a run that has started, and ends with [`Self::finish`].
    pub fn start(&self, run: &Written, runner: Option<ProcessId>) -> RunFolder {
        let started = SystemTime::now() - run.age;
        let folder = RunFolder::create(&self.surroundings(), started).expect("a run folder").folder;
        folder
            .write_run(&Run {
                schema: 1,
                id: folder.id().to_owned(),
                watch: Watch::Supervised,
                mode: run.mode,
                argv: vec!["python3".into(), run.entry.into()],
                cwd: self.root.display().to_string(),
                entry: Some(self.path(run.entry).display().to_string()),
                started: unix(started),
                host: cublame::os::processes::host_name(),
                runner,
                child: runner,
                blocking: run.mode == Mode::Blocking,
                env: BTreeMap::new(),
            })
            .expect("run.json");
        folder
    }

    pub fn finish(&self, folder: &RunFolder, run: &Written) {
        let finished = unix(SystemTime::now() - run.age) + 1.0;
        folder
            .write_report(&Report {
                schema: 1,
                run: folder.id().to_owned(),
                finished,
                exit: run.exit,
                partial: Vec::new(),
                verdicts: run.verdicts.clone(),
                telemetry: Vec::new(),
            })
            .expect("report.json");
    }

    /// A whole run.
    pub fn ran(&self, run: &Written) -> RunFolder {
        let folder = self.start(run, None);
        self.finish(&folder, run);
        folder
    }
}

impl Written {
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub fn age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }

    pub fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

fn unix(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970").as_secs_f64()
}
