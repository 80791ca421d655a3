//! A temporary project in which the binary under test runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cublame::session::RunFolder;
use cublame::session::folder::runs_in;
use rustix::process::Signal;
use tempfile::TempDir;

pub const CUBLAME: &str = env!("CARGO_BIN_EXE_cublame");

/// Far more than anything here takes; it only keeps a failure from hanging.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Project {
    folder: TempDir,
}

impl Project {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        Self { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// `cublame run --mode off -- words`.
    pub fn run(&self, words: &[&str]) -> Command {
        let mut command = self.command(CUBLAME);
        command.args(["run", "--mode", "off", "--"]).args(words);
        command
    }

    /// A shell script in which `$RUN` is `cublame run --mode off --`.
    pub fn bash(&self, script: &str) -> Command {
        let mut command = self.command("bash");
        command.args(["-c", script]);
        command
    }

    /// Any program, with this project as its working directory and home, and nothing inherited that decides.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path());
        command.env("LC_ALL", "C.UTF-8").env("RUN", format!("{CUBLAME} run --mode off --")).env("CUBLAME", CUBLAME);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The runs so far, newest first.
    pub fn runs(&self) -> Vec<RunFolder> {
        RunFolder::list(&runs_in(&self.path().join(".cublame")))
    }

    pub fn only_run(&self) -> RunFolder {
        let [run] = self.runs().try_into().unwrap();
        run
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn pid(child: &Child) -> rustix::process::Pid {
    rustix::process::Pid::from_child(child)
}

/// Looks again and again until it holds; fails the test when it never does.
#[track_caller]
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The living processes whose command line has this text.
pub fn processes_with(text: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
    })
    .collect()
}

/// The letter of /proc/PID/stat, such as T for stopped.
pub fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Was this signal ignored when the tests were started, as nohup does with SIGHUP? Every child then ignores it too.
pub fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}
