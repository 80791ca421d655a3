//! Which run speaks for a program: the life of a run's diagnostic, as a function of the runs that are known.
//!
//! Nothing is remembered between two calls, so a server that starts anew says what one that was there all along says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cublame_core::Verdict;
use cublame_core::mode::Mode;
use cublame_core::run::{Exit, Run};

/// A run as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownRun {
    pub run: Run,
    pub folder: PathBuf,
    pub outcome: Outcome,
    pub verdicts: Vec<Arc<Verdict>>,
    pub dismissed: bool,
    /// A failure that was already a day old when the server started is not shown.
    pub stale: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Running,
    /// It runs, and a debugger holds it at its failure.
    Held,
    Succeeded,
    Failed,
    /// Ended by a signal of the user's, or the machine's: it says nothing about the program.
    Interrupted,
}

impl Outcome {
    pub fn is_running(self) -> bool {
        matches!(self, Outcome::Running | Outcome::Held)
    }
}

/// The failing run that speaks for a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing<'a> {
    pub run: &'a KnownRun,
    /// The mode of the newest later run that did well, when that mode was another.
    pub not_reproduced: Option<Mode>,
}

impl KnownRun {
    /// Milliseconds since the epoch at its start.
    pub fn generation(&self) -> u64 {
        // Negative and absurd times of a damaged file saturate.
        (self.run.started * 1000.0) as u64
    }

    /// What runs of the same program have in common, whatever their mode and arguments.
    fn identity(&self, roots: &[PathBuf]) -> Identity {
        let program = self.run.entry.clone().unwrap_or_else(|| program_words(&self.run.argv));
        let within = self.run.entry.as_deref().unwrap_or(&self.run.cwd);
        let root =
            roots.iter().filter(|root| Path::new(within).starts_with(root)).max_by_key(|root| root.as_os_str().len());
        Identity { program, root: root.cloned().unwrap_or_else(|| PathBuf::from(&self.run.cwd)) }
    }
}

/// How a run ended, from its exit and its verdicts.
///
/// A failure in a thread leaves exit code 0, so a fatal verdict counts whatever the code. Exit code 130 is what a
/// program returns that handles Ctrl-C itself; 129, 131 and 143 are the other signals that a user sends.
pub fn outcome(exit: Exit, verdicts: &[Arc<Verdict>]) -> Outcome {
    const HANGUP: i32 = 1;
    const INTERRUPT: i32 = 2;
    const QUIT: i32 = 3;
    const TERMINATE: i32 = 15;
    let signal = exit.signal.or_else(|| exit.code.map(|code| code - 128));
    let stopped = signal.is_some_and(|signal| [HANGUP, INTERRUPT, QUIT, TERMINATE].contains(&signal));
    match () {
        () if stopped => Outcome::Interrupted,
        () if verdicts.iter().any(|verdict| verdict.fatal) => Outcome::Failed,
        () if exit.success() => Outcome::Succeeded,
        // It failed, and nothing is known of why: that says nothing about an earlier failure either.
        () if verdicts.is_empty() => Outcome::Interrupted,
        () => Outcome::Failed,
    }
}

/// The failing run of each program that has one: the newest, unless a later run cleared it.
pub fn standing<'a>(runs: impl IntoIterator<Item = &'a KnownRun>, roots: &[PathBuf]) -> Vec<Standing<'a>> {
    let mut by_age: Vec<&KnownRun> = runs.into_iter().collect();
    by_age.sort_by(|a, b| (a.generation(), &a.run.id).cmp(&(b.generation(), &b.run.id)));
    let mut standing: BTreeMap<Identity, Standing<'a>> = BTreeMap::new();
    for run in by_age {
        let identity = run.identity(roots);
        match run.outcome {
            Outcome::Running | Outcome::Interrupted => {}
            Outcome::Failed | Outcome::Held => {
                standing.insert(identity, Standing { run, not_reproduced: None });
            }
            Outcome::Succeeded => match standing.get_mut(&identity) {
                Some(failure) if failure.run.run.mode != run.run.mode => failure.not_reproduced = Some(run.run.mode),
                _ => {
                    standing.remove(&identity);
                }
            },
        }
    }
    standing.into_values().filter(|standing| !standing.run.dismissed && !standing.run.stale).collect()
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    program: String,
    root: PathBuf,
}

/// The words of a command up to what it runs: `python -m package.train` of `python -m package.train --epochs 3`.
fn program_words(argv: &[String]) -> String {
    let end = match argv.iter().position(|word| word == "-m") {
        Some(at) => at + 2,
        None => argv.iter().skip(1).position(|word| !word.starts_with('-')).map_or(1, |at| at + 2),
    };
    argv[..end.min(argv.len())].join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::VERDICT;
    use super::*;
    use cublame_core::run::Watch;

    /// A run written as `entry mode exit`, such as `train.py off 1`; `dismissed` or `stale` may follow.
    fn known(at: usize, words: &str) -> KnownRun {
        let words: Vec<&str> = words.split(' ').collect();
        let (entry, mode, exit) = (words[0], words[1].parse().expect("a mode"), words[2]);
        let exit = match exit.strip_prefix("signal") {
            Some(signal) => Exit { code: None, signal: signal.parse().ok() },
            None => Exit { code: exit.parse().ok(), signal: None },
        };
        let verdicts = match exit {
            _ if words[2] == "running" => vec![],
            Exit { code: Some(0), .. } => vec![],
            _ => vec![Arc::new(serde_json::from_str(VERDICT).expect("a verdict"))],
        };
        KnownRun {
            run: run(at, entry, mode),
            folder: PathBuf::from(format!("/home/dev/proj/.cublame/runs/{at}")),
            outcome: if words[2] == "running" { Outcome::Running } else { outcome(exit, &verdicts) },
            verdicts,
            dismissed: words.contains(&"dismissed"),
            stale: words.contains(&"stale"),
        }
    }

    pub fn run(at: usize, entry: &str, mode: Mode) -> Run {
        Run {
            schema: 1,
            id: at.to_string(),
            watch: Watch::Supervised,
            mode,
            argv: vec!["python".into(), entry.into(), format!("--seed={at}")],
            cwd: "/home/dev/proj".into(),
            entry: Some(format!("/home/dev/proj/{entry}")),
            started: at as f64,
            host: "box".into(),
            runner: None,
            child: None,
            blocking: mode == Mode::Blocking,
            env: BTreeMap::new(),
        }
    }

    #[track_caller]
    fn check(runs: &[&str], expected: &[&str]) {
        let runs: Vec<KnownRun> = runs.iter().enumerate().map(|(at, words)| known(at, words)).collect();
        let roots = ["/home/dev/proj".into()];
        let said = |standing: &Standing<'_>| {
            let not = standing.not_reproduced.map(|mode| format!(", not reproduced in {mode}")).unwrap_or_default();
            format!("run {}{not}", standing.run.run.id)
        };
        let found: Vec<String> = standing(&runs, &roots).iter().map(said).collect();
        assert_eq!(found, expected);
        // The order in which folders are read must not matter.
        let backwards: Vec<String> = standing(runs.iter().rev(), &roots).iter().map(said).collect();
        assert_eq!(backwards, expected);
    }

    #[test]
    fn the_newest_failure_stands_whatever_its_mode() {
        check(&["train.py off 1", "train.py blocking 1"], &["run 1"]);
        check(&["train.py off 1", "eval.py off 1"], &["run 1", "run 0"]);
    }

    #[test]
    fn success_in_the_same_mode_clears() {
        check(&["train.py off 1", "train.py off 0"], &[]);
        check(&["train.py off 0", "train.py off 1"], &["run 1"]);
        check(&["train.py off 1", "eval.py off 0"], &["run 0"]);
    }

    #[test]
    fn success_in_another_mode_keeps_it_as_not_reproduced() {
        check(&["train.py off 1", "train.py blocking 0"], &["run 0, not reproduced in blocking"]);
        check(&["train.py off 1", "train.py blocking 0", "train.py off 0"], &[]);
        check(&["train.py off 1", "train.py blocking 0", "train.py blocking 1"], &["run 2"]);
    }

    #[test]
    fn an_interrupted_or_unfinished_run_changes_nothing() {
        for later in ["signal2", "signal15", "130", "143", "running"] {
            check(&["train.py off 1", &format!("train.py off {later}")], &["run 0"]);
        }
    }

    #[test]
    fn a_run_that_stands_still_is_shown_while_it_runs() {
        let stuck = KnownRun { outcome: Outcome::Held, ..known(0, "train.py off 1") };
        assert_eq!(standing(&[stuck], &["/home/dev/proj".into()]).len(), 1);
    }

    #[test]
    fn a_dismissed_or_old_failure_is_not_shown_and_brings_no_older_one_back() {
        check(&["train.py off 1", "train.py off 1 dismissed"], &[]);
        check(&["train.py off 1", "train.py off 1 stale"], &[]);
    }

    #[test]
    fn a_killed_run_with_a_verdict_is_a_failure() {
        check(&["train.py off signal9"], &["run 0"]);
        check(&["train.py off signal6"], &["run 0"]);
    }

    #[test]
    fn the_program_of_a_command() {
        let words = |command: &str| program_words(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(words("python -m package.train --epochs 3"), "python -m package.train");
        assert_eq!(words("python -u train.py --epochs 3"), "python -u train.py");
        assert_eq!(words("./train"), "./train");
        assert_eq!(program_words(&[]), "");
    }
}
