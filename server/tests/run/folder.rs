//! Run folders: where they are made, how they are read when damaged or hostile, how old ones go.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use cublame::os::processes;
use cublame::session::place::Surroundings;
use cublame::session::retention::{self, Limits};
use cublame::session::{RunFolder, State, Stored, folder};
use cublame_core::mode::Mode;
use cublame_core::run::{Exit, ProcessId, Report, Run, Watch};

#[test]
fn a_new_run_is_private_and_its_folder_ignores_itself() {
    let project = tempfile::tempdir().unwrap();
    let run = new_run(project.path());
    assert_eq!(run.siblings(), project.path().canonicalize().unwrap().join(".cublame/runs"));
    assert!(run.path().join("events").is_dir());
    assert_eq!(run.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(fs::read_to_string(project.path().join(".cublame/.gitignore")).unwrap().contains("\n*\n"));
}

#[test]
fn a_folder_that_the_user_names_is_not_ignored_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = Surroundings { cublame_dir: Some(folder.path().into()), ..Surroundings::default() };
    RunFolder::create(&surroundings, SystemTime::now()).unwrap();
    assert!(!folder.path().join(".gitignore").exists());
    assert!(folder.path().join("runs/.gitignore").exists());
}

#[test]
fn a_project_that_cannot_hold_runs_falls_back_and_says_so() {
    let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(project.path().join(".cublame"), "a file").unwrap();
    let surroundings = surroundings(project.path(), Some(home.path()));
    let created = RunFolder::create(&surroundings, SystemTime::now()).unwrap();
    assert!(created.folder.path().starts_with(home.path().canonicalize().unwrap().join(".local/state/cublame/runs")));
    assert!(created.notes[0].contains("cannot be used for run folders"), "{:?}", created.notes);

    let nowhere = Surroundings { home: None, ..surroundings };
    let failure = RunFolder::create(&nowhere, SystemTime::now()).unwrap_err();
    assert!(failure.hint.is_some_and(|hint| hint.contains("CUBLAME_DIR")));
}

#[test]
fn a_link_in_place_of_the_folder_is_not_followed() {
    for link in [".cublame", ".cublame/runs"] {
        let (project, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let link = project.path().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(elsewhere.path(), &link).unwrap();
        assert!(RunFolder::create(&surroundings(project.path(), None), SystemTime::now()).is_err());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }
}

#[test]
fn what_is_written_is_read_back() {
    let project = tempfile::tempdir().unwrap();
    let run = new_run(project.path());
    assert_eq!((run.run(), run.report()), (Stored::Absent, Stored::Absent));
    run.write_run(&run_json(&run)).unwrap();
    run.write_report(&report(&run)).unwrap();
    assert_eq!(run.run(), Stored::Whole(run_json(&run)));
    assert_eq!(run.report(), Stored::Whole(report(&run)));
    let evidence = run.evidence();
    assert!(evidence.blocking && evidence.unread.is_empty());
    assert_eq!(evidence.exit, Some(Exit { code: Some(1), signal: None }));
}

#[test]
fn damage_is_a_sentence_and_never_a_panic() {
    let whole = {
        let project = tempfile::tempdir().unwrap();
        let run = new_run(project.path());
        run.write_report(&report(&run)).unwrap();
        fs::read(run.report_path()).unwrap()
    };
    let cases: [(&[u8], &str); 5] = [
        (b"", "report.json is damaged"),
        (&whole[..whole.len() / 2], "report.json is damaged"),
        (b"\xff\xfe\x00", "report.json is damaged"),
        (b"{\"schema\":1,\"tool\":\"another\"}", "report.json is damaged"),
        (b"{\"schema\":99}", "report.json was written by a later version of cublame (schema 99)."),
    ];
    for (bytes, expected) in cases {
        let project = tempfile::tempdir().unwrap();
        let run = new_run(project.path());
        fs::write(run.report_path(), bytes).unwrap();
        let Stored::Damaged(sentence) = run.report() else { panic!("{bytes:?} was taken for a report") };
        assert!(sentence.starts_with(expected) && sentence.ends_with('.'), "{sentence}");
        assert_eq!(run.evidence().unread, [sentence]);
    }
}

#[test]
fn nothing_is_read_through_a_link_or_from_a_pipe() {
    let (project, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = new_run(project.path());
    let other = new_run(elsewhere.path());
    other.write_report(&report(&other)).unwrap();
    fs::write(other.path().join("events/1-a.jsonl"), "{}\n").unwrap();

    symlink(other.report_path(), run.report_path()).unwrap();
    assert!(matches!(run.report(), Stored::Damaged(_)));

    let pipe = run.path().join("events/2-b.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    assert!(run.events().1[0].contains("not a regular file"));

    fs::remove_dir_all(run.path().join("events")).unwrap();
    symlink(other.path().join("events"), run.path().join("events")).unwrap();
    let (processes, unread) = run.events();
    assert!(processes.is_empty() && unread[0].starts_with("events/ cannot be read"));

    let link = project.path().join("link");
    symlink(other.path(), &link).unwrap();
    assert!(RunFolder::open(&link).is_err());

    run.delete().unwrap();
    assert!(other.path().join("events/1-a.jsonl").exists() && other.report_path().exists());
}

#[test]
fn a_run_is_live_while_exactly_its_watcher_is_there() {
    let project = tempfile::tempdir().unwrap();
    let run = new_run(project.path());
    assert_eq!(run.state(), State::Interrupted);

    let this = processes::this_process();
    let mut facts = run_json(&run);
    let mut state = |watch, runner: Option<ProcessId>, child| {
        (facts.watch, facts.runner, facts.child) = (watch, runner, child);
        run.write_run(&facts).unwrap();
        run.state()
    };
    let reused = ProcessId { start: this.start + 1, ..this };
    assert_eq!(state(Watch::Supervised, Some(this), None), State::Live);
    assert_eq!(state(Watch::Supervised, Some(reused), Some(this)), State::Interrupted);
    assert_eq!(state(Watch::Adopted, None, Some(this)), State::Live);
    assert_eq!(state(Watch::Adopted, None, Some(reused)), State::Ended);

    run.write_report(&report(&run)).unwrap();
    assert_eq!(run.state(), State::Ended);
}

#[test]
fn a_run_of_another_machine_is_live_while_it_may_still_write() {
    let project = tempfile::tempdir().unwrap();
    let run = new_run(project.path());
    let facts = Run { host: "node17.cluster".into(), ..run_json(&run) };
    run.write_run(&facts).unwrap();
    assert_eq!(run.state(), State::Live);
    let long_ago = SystemTime::now() - Duration::from_secs(8 * 24 * 3600);
    for path in [run.path().to_owned(), run.path().join("events")] {
        fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
    }
    assert_eq!(run.state(), State::Interrupted);
}

#[test]
fn marks_are_kept_and_may_be_set_twice() {
    let project = tempfile::tempdir().unwrap();
    let run = new_run(project.path());
    assert!(!run.dismissed() && !run.pinned());
    for _ in 0..2 {
        run.dismiss().unwrap();
        run.pin().unwrap();
    }
    assert!(run.dismissed() && run.pinned());
}

#[test]
fn runs_are_listed_newest_first_without_what_is_foreign() {
    let project = tempfile::tempdir().unwrap();
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_557_400);
    let runs: Vec<RunFolder> =
        (0..3).map(|second| run_at(project.path(), start + Duration::from_secs(second))).collect();
    assert!(runs[0].id().starts_with("20251201T025000.000Z-"), "{}", runs[0].id());
    let folder = runs[0].siblings().to_owned();
    fs::create_dir(folder.join("notes")).unwrap();
    fs::write(folder.join("20251201T025000.000Z-00000000"), "a file").unwrap();
    symlink(runs[0].path(), folder.join("20261201T025000.000Z-00000000")).unwrap();
    let listed = RunFolder::list(&folder);
    assert_eq!(listed, runs.into_iter().rev().collect::<Vec<_>>());
    assert_eq!(RunFolder::list(Path::new("/does/not/exist")), []);
}

#[test]
fn retention_takes_the_oldest_and_leaves_pinned_and_live_ones() {
    let project = tempfile::tempdir().unwrap();
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_557_400);
    let runs: Vec<RunFolder> =
        (0..6).map(|second| run_at(project.path(), start + Duration::from_secs(second))).collect();
    runs[0].pin().unwrap();
    runs[1].write_run(&Run { runner: Some(processes::this_process()), ..run_json(&runs[1]) }).unwrap();
    let outside = project.path().join("precious");
    fs::write(&outside, "kept").unwrap();
    symlink(&outside, runs[2].path().join("link")).unwrap();

    let there = || runs.iter().map(|run| run.path().exists()).collect::<Vec<_>>();
    let folder = runs[0].siblings();
    assert_eq!(retention::apply(folder, Limits { runs: 2, bytes: u64::MAX }), [""; 0]);
    assert_eq!(there(), [true, true, false, false, true, true]);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");

    let cut_short = folder.join(".leaving-20251201T025000.000Z-00000000");
    fs::create_dir_all(cut_short.join("events")).unwrap();
    fs::write(runs[5].path().join("journal"), [0; 5000]).unwrap();
    assert_eq!(retention::apply(folder, Limits { runs: 20, bytes: 4000 }), [""; 0]);
    assert_eq!(there(), [true, true, false, false, false, true]);
    assert!(!cut_short.exists());
}

#[test]
fn a_foreign_run_json_is_said_in_the_evidence() {
    let project = tempfile::tempdir().unwrap();
    let run = new_run(project.path());
    fs::write(run.path().join("run.json"), folder::EVENTS).unwrap();
    let evidence = run.evidence();
    assert!(evidence.run.is_none() && evidence.unread[0].starts_with("run.json is damaged"));
}

fn surroundings(project: &Path, home: Option<&Path>) -> Surroundings {
    fs::create_dir_all(project.join(".git")).unwrap();
    Surroundings { cwd: project.into(), home: home.map(Into::into), ..Surroundings::default() }
}

fn new_run(project: &Path) -> RunFolder {
    run_at(project, SystemTime::now())
}

fn run_at(project: &Path, time: SystemTime) -> RunFolder {
    RunFolder::create(&surroundings(project, None), time).unwrap().folder
}

fn run_json(run: &RunFolder) -> Run {
    Run {
        schema: 1,
        id: run.id().into(),
        watch: Watch::Supervised,
        mode: Mode::Blocking,
        argv: vec!["python".into(), "train.py".into()],
        cwd: "/home/dev/proj".into(),
        entry: None,
        started: 1.5,
        host: processes::host_name(),
        runner: None,
        child: None,
        blocking: true,
        env: Default::default(),
    }
}

fn report(run: &RunFolder) -> Report {
    Report {
        schema: 1,
        run: run.id().into(),
        finished: 2.5,
        exit: Exit { code: Some(1), signal: None },
        partial: Vec::new(),
        verdicts: Vec::new(),
        telemetry: Vec::new(),
    }
}
