//! The life of a run's diagnostic, from the report on disk to the line in the editor and away again.

use std::time::Duration;

use cublame_core::mode::Mode;
use cublame_core::run::Exit;
use cublame_tests::client::{able, uri};
use cublame_tests::{Project, TestServer};
use tower_lsp::ls_types::notification::Initialized;
use tower_lsp::ls_types::request::Initialize;
use tower_lsp::ls_types::{Diagnostic, DiagnosticSeverity, InitializedParams, Position};

const TRAIN: &str = "import torch\nz = emb(tok)  # @fault\nprint(z)\n";

fn project() -> Project {
    Project::new(&[("train.py", TRAIN), ("eval.py", "import torch\nrun()  # @fault\n")])
}

fn severity(diagnostics: &[Diagnostic]) -> Option<DiagnosticSeverity> {
    diagnostics.first().and_then(|diagnostic| diagnostic.severity)
}

#[test]
fn a_failure_is_shown_at_its_line_and_cleared_by_success_in_the_same_mode() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    // The file is not open.
    project.ran(&project.failure("train.py"));
    let diagnostics = server.diagnostics(&train);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!((diagnostics[0].range.start, diagnostics[0].range.end), (Position::new(1, 0), Position::new(1, 22)));
    assert_eq!(severity(&diagnostics), Some(DiagnosticSeverity::ERROR));
    project.ran(&project.success("train.py"));
    assert_eq!(server.diagnostics(&train), []);
}

#[test]
fn a_running_run_shows_nothing_until_its_report_is_there() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    let run = project.failure("train.py");
    let folder = project.start(&run, Some(cublame::os::processes::this_process()));
    project.finish(&folder, &run);
    assert_eq!(server.diagnostics(&project.path("train.py")).len(), 1);
}

#[test]
fn success_in_another_mode_keeps_it_as_not_reproduced() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    project.ran(&project.failure("train.py"));
    assert_eq!(severity(&server.diagnostics(&train)), Some(DiagnosticSeverity::ERROR));
    project.ran(&project.success("train.py").mode(Mode::Blocking));
    let diagnostics = server.diagnostics(&train);
    assert_eq!(severity(&diagnostics), Some(DiagnosticSeverity::INFORMATION));
    assert!(diagnostics[0].message.contains("Not reproduced: a later run in mode blocking did well"));
}

#[test]
fn a_newer_failure_replaces_and_an_interrupted_run_changes_nothing() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    project.ran(&project.failure("train.py"));
    let first = server.diagnostics(&train);
    project.ran(&project.success("train.py").exit(Exit { code: None, signal: Some(2) }));
    project.ran(&project.failure("train.py").mode(Mode::Blocking));
    // Had the interrupted run cleared it, an empty list would have come in between.
    let second = server.diagnostics(&train);
    assert_eq!(second.len(), 1);
    assert_ne!(first[0].data, second[0].data);
}

#[test]
fn an_edited_line_is_information_and_goes_when_it_is_saved() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    server.open(&train, 1, TRAIN);
    project.ran(&project.failure("train.py"));
    assert_eq!(server.diagnostics_of(&uri(&train)).1, Some(1));
    // A line above moves it along.
    server.insert(&train, 2, Position::new(0, 0), "# a line\n");
    let (moved, version) = server.diagnostics_of(&uri(&train));
    assert_eq!((moved[0].range.start.line, version), (2, Some(2)));
    assert_eq!(severity(&moved), Some(DiagnosticSeverity::ERROR));
    server.insert(&train, 3, Position::new(2, 8), "x + ");
    let (edited, _) = server.diagnostics_of(&uri(&train));
    assert_eq!(severity(&edited), Some(DiagnosticSeverity::INFORMATION));
    assert!(edited[0].message.contains("edited since the run"));
    // Undoing the edit brings it back.
    server.rewrite(&train, 4, TRAIN);
    assert_eq!(severity(&server.diagnostics(&train)), Some(DiagnosticSeverity::ERROR));
    server.insert(&train, 5, Position::new(1, 8), "x + ");
    assert_eq!(severity(&server.diagnostics(&train)), Some(DiagnosticSeverity::INFORMATION));
    server.save(&train);
    assert_eq!(server.diagnostics(&train), []);
}

#[test]
fn a_file_that_is_not_open_and_changes_on_disk_is_treated_as_saved() {
    let project = project();
    let train = project.path("train.py");
    let mut server = TestServer::start(&project, able(&project));
    project.ran(&project.failure("train.py"));
    assert_eq!(server.diagnostics(&train).len(), 1);
    project.write("train.py", &TRAIN.replace("emb(tok)", "emb(tok % 7)"));
    assert_eq!(server.diagnostics(&train), []);
}

#[test]
fn a_starting_server_shows_what_still_stands() {
    let project = project();
    let hour = Duration::from_secs(3600);
    // Written after the files, so that these are not taken for changed since.
    project.ran(&project.failure("train.py").age(hour));
    project.ran(&project.failure("eval.py").age(25 * hour));
    age_files(&project, 30 * hour);
    let mut server = TestServer::start(&project, able(&project));
    assert_eq!(server.diagnostics(&project.path("train.py")).len(), 1);
}

#[test]
fn a_starting_server_is_silent_where_the_line_was_edited_since() {
    let project = project();
    project.ran(&project.failure("train.py").age(Duration::from_secs(3600)));
    project.ran(&project.failure("eval.py"));
    // train.py is newer than its run: what its line was is not known.
    let mut server = TestServer::start(&project, able(&project));
    assert_eq!(server.diagnostics(&project.path("eval.py")).len(), 1);
}

#[test]
fn a_dismissed_failure_is_gone_for_every_server() {
    let project = project();
    let train = project.path("train.py");
    let mut first = TestServer::start(&project, able(&project));
    let mut second = TestServer::start(&project, able(&project));
    let folder = project.ran(&project.failure("train.py"));
    assert_eq!((first.diagnostics(&train).len(), second.diagnostics(&train).len()), (1, 1));
    first.command("cublame.dismiss", serde_json::json!({ "run": folder.id() })).expect("a dismissal");
    assert_eq!((first.diagnostics(&train), second.diagnostics(&train)), (vec![], vec![]));
    drop((first, second));
    let mut third = TestServer::start(&project, able(&project));
    project.ran(&project.failure("eval.py"));
    assert_eq!(third.diagnostics(&project.path("eval.py")).len(), 1);
}

#[test]
fn a_removed_run_folder_takes_its_diagnostic_with_it() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    let folder = project.ran(&project.failure("train.py"));
    assert_eq!(server.diagnostics(&project.path("train.py")).len(), 1);
    folder.delete().expect("to remove it");
    assert_eq!(server.diagnostics(&project.path("train.py")), []);
}

#[test]
fn a_damaged_report_is_said_once_and_shows_nothing() {
    let project = project();
    let mut server = TestServer::start(&project, able(&project));
    let folder = project.start(&project.failure("train.py"), None);
    std::fs::write(folder.report_path(), "{ \"schema\": 1, ").expect("a file");
    let said = server.notification::<tower_lsp::ls_types::notification::ShowMessage>();
    assert!(said.message.contains("report.json is damaged"), "{}", said.message);
}

#[test]
fn a_run_that_does_not_concern_the_workspace_is_not_shown() {
    let project = project();
    let elsewhere = Project::new(&[("train.py", TRAIN)]);
    let mut foreign = elsewhere.failure("train.py");
    foreign.verdicts[0].place.as_mut().expect("a place").path = Some("/etc/hostname".to_owned());
    let mut server = TestServer::start(&project, able(&project));
    // Its folder is here, and neither its program nor its lines are.
    let folder = elsewhere.ran(&foreign);
    let here = project.path(".cublame/runs").join(folder.id());
    std::fs::rename(folder.path(), here).expect("to move a run folder");
    project.ran(&project.failure("train.py"));
    assert_eq!(server.diagnostics(&project.path("train.py")).len(), 1);
}

/// As under a debugger with the mode's variables only: no report will ever be written.
#[test]
fn a_run_that_nobody_supervised_is_judged_by_the_server() {
    let project = project();
    let train = project.path("train.py");
    let folder = project.start(&project.failure("train.py"), None);
    let run = folder.run().whole().expect("run.json");
    let ended = cublame_core::run::ProcessId { pid: 4_000_000, start: 1 };
    let run = cublame_core::run::Run { watch: cublame_core::run::Watch::Adopted, child: Some(ended), ..run };
    folder.write_run(&run).expect("run.json");
    let mut line = serde_json::json!({ "v": 1, "time": 1.0, "pid": 7 });
    let event = exception("z = emb(tok)  # @fault").to_string().replace("TRAIN", train.to_str().expect("text"));
    let event: serde_json::Value = serde_json::from_str(&event).expect("an event");
    line.as_object_mut().expect("an object").extend(event.as_object().expect("an object").clone());
    std::fs::write(folder.path().join("events/7-a.jsonl"), format!("{line}\n")).expect("a file");
    let mut server = TestServer::start(&project, able(&project));
    assert_eq!(server.diagnostics(&train)[0].range.start.line, 1);
}

/// As of a container that has the project at another place, with the run folder on a shared disk.
#[test]
fn a_run_of_another_machine_is_shown_in_the_files_of_this_one() {
    let project = project();
    let mut run = project.failure("train.py");
    let place = run.verdicts[0].place.as_mut().expect("a place");
    place.path = Some("/srv/job/train.py".to_owned());
    let mut server = TestServer::start(&project, able(&project));
    project.ran(&run);
    let diagnostics = server.diagnostics(&project.path("train.py"));
    assert_eq!(diagnostics[0].range.start.line, 1);
}

#[test]
fn path_mappings_decide_between_files_of_one_name() {
    let project = Project::new(&[("a/train.py", "x = 1\n"), ("b/train.py", TRAIN), ("train.py", TRAIN)]);
    let mut run = project.failure("train.py");
    run.verdicts[0].place.as_mut().expect("a place").path = Some("/srv/job/train.py".to_owned());
    let mappings = serde_json::json!([{ "localRoot": project.path("b"), "remoteRoot": "/srv/job" }]);
    let mut initialize = able(&project);
    initialize["initializationOptions"] = serde_json::json!({ "settings": { "pathMappings": mappings } });
    let mut server = TestServer::start(&project, initialize);
    project.ran(&run);
    assert_eq!(server.diagnostics(&project.path("b/train.py")).len(), 1);
}

/// A file that was touched since, and is the same by its content hash or by the line that the hook saw.
#[test]
fn what_the_hook_recorded_counts_more_than_the_age_of_a_file() {
    for (events, shown) in [
        (serde_json::json!({ "event": "exit", "hashes": { "TRAIN": "HASH" } }), true),
        (serde_json::json!({ "event": "exit", "hashes": { "TRAIN": "0000" } }), false),
        (exception("z = emb(tok)  # @fault"), true),
        (exception("z = emb(other)"), false),
    ] {
        let project = project();
        let train = project.path("train.py");
        let folder = project.start(&project.failure("train.py").age(Duration::from_secs(60)), None);
        let mut line = serde_json::json!({ "v": 1, "time": 1.0, "pid": 7 });
        line.as_object_mut().expect("an object").extend(events.as_object().expect("an object").clone());
        let line = line.to_string().replace("TRAIN", train.to_str().expect("text")).replace("HASH", &sha256(TRAIN));
        std::fs::write(folder.path().join("events/7-a.jsonl"), line + "\n").expect("a file");
        project.finish(&folder, &project.failure("train.py").age(Duration::from_secs(60)));
        project.ran(&project.failure("eval.py"));
        let mut server = TestServer::start(&project, able(&project));
        if shown {
            assert_eq!(severity(&server.diagnostics(&train)), Some(DiagnosticSeverity::ERROR));
        }
        // Where it is not shown, an unclaimed message would fail the test at its end.
        assert_eq!(server.diagnostics(&project.path("eval.py")).len(), 1);
    }
}

fn exception(source: &str) -> serde_json::Value {
    let frame = serde_json::json!({
        "file": "train.py", "path": "TRAIN", "line": 2, "function": "<module>", "source": source });
    serde_json::json!({
        "event": "exception", "hook": "excepthook", "thread": "MainThread", "main_thread": true,
        "chain": [{ "type": "RuntimeError", "message": "CUDA error", "frames": [frame] }] })
}

/// Of coreutils, so that the test does not check the product with the product's own code.
fn sha256(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("text");
    std::fs::write(&path, text).expect("a file");
    let output = std::process::Command::new("sha256sum").arg(path).output().expect("sha256sum");
    String::from_utf8(output.stdout).expect("text").split(' ').next().expect("a word").to_owned()
}

#[test]
fn folders_come_and_go() {
    let (one, other) = (project(), project());
    let folder = |project: &Project| serde_json::json!({ "uri": uri(project.root()), "name": "it" });
    let change = |added: &[&Project], removed: &[&Project]| {
        serde_json::from_value(serde_json::json!({ "event": {
            "added": added.iter().map(|it| folder(it)).collect::<Vec<_>>(),
            "removed": removed.iter().map(|it| folder(it)).collect::<Vec<_>>() } }))
        .expect("parameters")
    };
    one.ran(&one.failure("train.py"));
    other.ran(&other.failure("train.py"));
    let mut server = TestServer::start(&one, able(&one));
    assert_eq!(server.diagnostics(&one.path("train.py")).len(), 1);
    server.notify::<tower_lsp::ls_types::notification::DidChangeWorkspaceFolders>(change(&[&other], &[&one]));
    assert_eq!(server.diagnostics(&one.path("train.py")), []);
    assert_eq!(server.diagnostics(&other.path("train.py")).len(), 1);
}

/// Sets the files of the project back, as if they had not been touched for a while.
fn age_files(project: &Project, age: Duration) {
    for name in ["train.py", "eval.py"] {
        let file = std::fs::File::options().append(true).open(project.path(name)).expect("a file");
        file.set_modified(std::time::SystemTime::now() - age).expect("to set its time");
    }
}

#[test]
fn what_is_found_before_the_client_is_initialized_is_kept_for_it() {
    let project = project();
    project.ran(&project.failure("train.py"));
    let mut server = TestServer::start_silent(&project);
    let parameters = serde_json::from_value(able(&project)).unwrap();
    server.request::<Initialize>(parameters).unwrap();
    // Long enough for the survey of one run.
    server.nothing_comes(Duration::from_millis(500));
    server.notify::<Initialized>(InitializedParams {});
    assert_eq!(server.diagnostics(&project.path("train.py")).len(), 1);
}
