//! The commands, on the real binary: runs that are started, outlive the server, and are stopped.

use std::path::Path;
use std::time::{Duration, Instant};

use cublame::session::folder::{RunFolder, State, Stored};
use cublame_core::mode::Mode;
use cublame_core::run::{Exit, Report};
use cublame_tests::client::{able, uri};
use cublame_tests::{Project, TestServer};
use serde_json::{Value, json};
use tower_lsp::ls_types::notification::{LogMessage, Progress, ShowMessage};
use tower_lsp::ls_types::request::{ShowDocument, ShowMessageRequest, WorkDoneProgressCreate};
use tower_lsp::ls_types::{ProgressParamsValue, WorkDoneProgress};

/// Fails as a program with a bad index does, without a GPU.
const FAILS: &str = r#"import sys
def forward():
    raise RuntimeError("CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported "
                       "at some other API call, so the stacktrace below might be incorrect.\n")
if __name__ == "__main__":
    forward()  # @fault
"#;

/// Waits until it is told to go on, by a file beside it.
const WAITS: &str = r#"import os, time
here = os.path.dirname(os.path.abspath(__file__))
open(os.path.join(here, "started"), "w").close()
while not os.path.exists(os.path.join(here, "go")):
    time.sleep(0.02)
"#;

fn started(project: &Project) -> TestServer {
    let mut server = silent(project);
    server.initialize(able(project));
    server
}

fn silent(project: &Project) -> TestServer {
    TestServer::binary(project, Path::new(env!("CARGO_BIN_EXE_cublame-under-test")), &["lsp"])
}

pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The report of the newest run that has one.
fn newest_report(project: &Project) -> Option<(RunFolder, Report)> {
    let runs = RunFolder::list(&project.path(".cublame/runs"));
    runs.into_iter().find_map(|run| match run.report() {
        Stored::Whole(report) => Some((run, report)),
        Stored::Absent | Stored::Damaged(_) => None,
    })
}

/// Answers the request for a bar, and returns its token and its title.
fn bar_begins(server: &mut TestServer) -> (Value, String) {
    let (id, create) = server.server_request::<WorkDoneProgressCreate>();
    server.respond(id, json!(null));
    let progress = server.notification::<Progress>();
    let ProgressParamsValue::WorkDone(WorkDoneProgress::Begin(begin)) = progress.value else { panic!("{progress:?}") };
    assert_eq!(begin.cancellable, Some(true));
    (json!(create.token), begin.title)
}

fn bar_ends(server: &mut TestServer) {
    let progress = server.notification::<Progress>();
    assert!(matches!(progress.value, ProgressParamsValue::WorkDone(WorkDoneProgress::End(_))), "{progress:?}");
}

fn run(server: &mut TestServer, program: &Path) -> Option<Value> {
    server.command("cublame.run", json!({ "uri": uri(program), "mode": "off" })).expect("an answer")
}

#[test]
fn a_program_is_run_and_its_failure_is_shown() {
    let project = Project::new(&[("train.py", FAILS)]);
    let mut server = started(&project);
    server.ignore("window/logMessage");
    assert_eq!(run(&mut server, &project.path("train.py")), Some(json!({ "started": 1 })));
    let (_, title) = bar_begins(&mut server);
    assert!(title.ends_with("train.py"), "{title}");
    let diagnostics = server.diagnostics(&project.path("train.py"));
    assert_eq!(diagnostics.len(), 1);
    bar_ends(&mut server);
    let (_, report) = newest_report(&project).expect("a report");
    assert_eq!(report.exit, Exit { code: Some(1), signal: None });
}

#[test]
fn a_run_outlives_the_server_and_is_found_again_and_stopped() {
    let project = Project::new(&[("wait.py", WAITS)]);
    let mut first = started(&project);
    first.ignore("window/logMessage");
    run(&mut first, &project.path("wait.py"));
    bar_begins(&mut first);
    eventually("the program", || project.path("started").exists().then_some(()));
    drop(first);
    let folder = RunFolder::list(&project.path(".cublame/runs")).pop().expect("a run folder");
    assert_eq!(folder.state(), State::Live);
    let mut second = silent(&project);
    let mut initialize = able(&project);
    initialize["initializationOptions"] = json!({ "custom": ["cublame/runs"] });
    second.initialize(initialize);
    let runs = second.notification::<Runs>();
    assert_eq!((runs.runs[0].id.as_str(), runs.runs[0].state.as_str()), (folder.id(), "running"));
    let stopped = second.command("cublame.stop", json!({ "run": folder.id() })).expect("an answer");
    assert_eq!(stopped, Some(json!({ "run": folder.id() })));
    let ended = eventually("the end of the run", || folder.report().whole());
    assert!(!ended.exit.success(), "{:?}", ended.exit);
    assert_eq!(second.notification::<Runs>().runs[0].state, "interrupted");
    let again = second.command("cublame.stop", json!({ "run": folder.id() })).expect_err("it has ended");
    assert!(again.message.contains("is not running"), "{}", again.message);
}

#[test]
fn cancelling_the_bar_stops_the_run() {
    let project = Project::new(&[("wait.py", WAITS)]);
    let mut server = started(&project);
    server.ignore("window/logMessage");
    run(&mut server, &project.path("wait.py"));
    let (token, _) = bar_begins(&mut server);
    eventually("the program", || project.path("started").exists().then_some(()));
    server.send_raw(&json!({
        "jsonrpc": "2.0", "method": "window/workDoneProgress/cancel", "params": { "token": token } }));
    bar_ends(&mut server);
    eventually("the report", || newest_report(&project));
}

#[test]
fn a_rerun_shows_its_command_and_asks_once_for_always() {
    let project = Project::new(&[("train.py", FAILS)]);
    let train = project.path("train.py");
    let mut server = started(&project);
    let folder = project.ran(&project.failure("train.py"));
    server.diagnostics(&train);
    let rerun = json!({ "run": folder.id(), "mode": "blocking" });
    server.command("cublame.rerun", rerun.clone()).expect("an answer");
    let (id, asked) = server.server_request::<ShowMessageRequest>();
    assert!(asked.message.contains("python3 train.py") && asked.message.contains("mode blocking"), "{}", asked.message);
    // Nothing is run for a question that is turned down.
    server.respond(id, json!(null));
    server.command("cublame.rerun", rerun.clone()).expect("an answer");
    let (id, asked) = server.server_request::<ShowMessageRequest>();
    let choices = asked.actions.expect("choices");
    server.respond(id, json!(choices[1]));
    bar_begins(&mut server);
    assert_eq!(server.diagnostics(&train).len(), 1);
    bar_ends(&mut server);
    let (newest, _) = newest_report(&project).expect("a report");
    assert_eq!(newest.run().whole().map(|run| run.mode), Some(Mode::Blocking));
    assert_eq!(
        RunFolder::list(&project.path(".cublame/runs")).len(),
        2,
        "the question that was turned down ran nothing"
    );
    // It is remembered.
    let again = server.command("cublame.rerun", json!({ "run": newest.id(), "mode": "blocking" })).expect("an answer");
    assert_eq!(again, Some(json!({ "started": 2 })));
    bar_begins(&mut server);
    assert_eq!(server.diagnostics(&train).len(), 1);
    bar_ends(&mut server);
}

#[test]
fn a_terminal_of_the_editor_is_used_where_there_is_one() {
    let project = Project::new(&[("train.py", FAILS)]);
    let mut server = silent(&project);
    server.ignore("window/logMessage");
    let mut initialize = able(&project);
    initialize["initializationOptions"] = json!({ "custom": ["cublame/runInTerminal"] });
    server.initialize(initialize);
    assert_eq!(run(&mut server, &project.path("train.py")), Some(json!({ "inTerminal": true })));
    let asked = server.notification::<InTerminal>();
    let words: Vec<&str> = asked.argv.iter().skip(1).map(String::as_str).collect();
    assert_eq!(&words[..4], ["run", "--mode", "off", "--"]);
    assert!(words.ends_with(&[project.path("train.py").to_str().expect("text")]), "{words:?}");
    assert_eq!(asked.cwd, project.root().to_str().expect("text"));
}

/// Its command is shown before it is run, as for a rerun; the command line that then runs asks no more.
#[test]
fn the_failing_call_is_taken_out_in_a_terminal_of_the_editor() {
    let project = Project::new(&[("train.py", FAILS)]);
    let mut server = silent(&project);
    server.ignore("window/logMessage");
    server.ignore("textDocument/publishDiagnostics");
    let mut initialize = able(&project);
    initialize["initializationOptions"] = json!({ "custom": ["cublame/runInTerminal"] });
    server.initialize(initialize);
    let ran = project.ran(&project.failure("train.py"));
    let answer = eventually("the run to be known", || server.command("cublame.repro", json!({ "run": ran.id() })).ok());
    assert_eq!(answer, Some(json!({ "asked": true })));
    let (id, question) = server.server_request::<ShowMessageRequest>();
    assert!(question.message.starts_with("Run this again and take the failing call out of it"), "{}", question.message);
    let choices = question.actions.expect("choices");
    server.respond(id, json!(choices[0]));
    let asked = server.notification::<InTerminal>();
    let words: Vec<&str> = asked.argv.iter().skip(1).map(String::as_str).collect();
    assert_eq!(words, ["repro", "--minimal", "--yes", ran.path().to_str().expect("text")]);
}

/// Nothing of torch's fails here, so there is no call to take out: the program was run again, and that is said.
#[test]
fn a_call_that_cannot_be_taken_out_is_said() {
    let project = Project::new(&[("train.py", FAILS)]);
    let mut server = started(&project);
    server.ignore("window/logMessage");
    server.ignore("textDocument/publishDiagnostics");
    assert_eq!(run(&mut server, &project.path("train.py")), Some(json!({ "started": 1 })));
    bar_begins(&mut server);
    bar_ends(&mut server);
    let (ran, _) = newest_report(&project).expect("a report");
    server.command("cublame.repro", json!({ "run": ran.id() })).expect("an answer");
    let (id, question) = server.server_request::<ShowMessageRequest>();
    server.respond(id, json!(question.actions.expect("choices")[0]));
    bar_begins(&mut server);
    bar_ends(&mut server);
    let said = server.notification::<ShowMessage>().message;
    assert!(said.contains("could not be taken out: `cublame repro --minimal "), "{said}");
}

#[test]
fn the_editors_setting_is_for_projects_in_which_nobody_has_chosen_a_mode() {
    let project = Project::new(&[("train.py", FAILS)]);
    let mut server = silent(&project);
    server.ignore("window/logMessage");
    let mut initialize = able(&project);
    initialize["initializationOptions"] =
        json!({ "custom": ["cublame/runInTerminal"], "settings": { "mode": "blocking" } });
    server.initialize(initialize);
    let mut words_of_a_run = || {
        let program = json!({ "uri": uri(&project.path("train.py")) });
        server.command("cublame.run", program).expect("an answer");
        server.notification::<InTerminal>().argv[1..4].to_vec()
    };
    assert_eq!(words_of_a_run(), ["run", "--mode", "blocking"]);
    std::fs::create_dir_all(project.path(".cublame")).expect("a folder");
    std::fs::write(project.path(".cublame/mode"), "off\n").expect("a file");
    // `cublame run` reads the file itself.
    assert_eq!(words_of_a_run()[..2], ["run", "--"]);
}

#[test]
fn the_mode_is_written_for_all_front_ends() {
    let project = Project::new(&[]);
    let mut server = started(&project);
    server.command("cublame.setMode", json!({ "mode": "blocking" })).expect("an answer");
    assert!(server.notification::<ShowMessage>().message.contains("mode blocking"));
    assert_eq!(project.read(".cublame/mode"), "blocking\n");
    server.command("cublame.setMode", json!({ "mode": "off", "folder": uri(project.root()) })).expect("an answer");
    server.notification::<ShowMessage>();
    assert_eq!(project.read(".cublame/mode"), "off\n");
    let elsewhere = json!({ "mode": "off", "folder": "file:///home/dev/other" });
    assert!(server.command("cublame.setMode", elsewhere).is_err());
    assert!(project.read(".cublame/.gitignore").contains('*'), "what is written stays out of the repository");
}

#[test]
fn a_report_is_shown_and_copied() {
    let project = Project::new(&[("train.py", FAILS)]);
    let mut server = started(&project);
    let folder = project.ran(&project.failure("train.py"));
    server.diagnostics(&project.path("train.py"));
    server.command("cublame.openReport", json!({ "run": folder.id() })).expect("an answer");
    let (id, shown) = server.server_request::<ShowDocument>();
    server.respond(id, json!({ "success": true }));
    let page = folder.path().join("report.html");
    assert_eq!((&shown.uri, shown.external), (&uri(&page), Some(true)), "a page is for a browser");
    let text = std::fs::read_to_string(page).expect("the page");
    assert!(text.contains("<h1>Index out of range"), "{text}");
    // The newest failure, when none is named.
    let copied = server.command("cublame.copyReport", json!(null)).expect("an answer").expect("a text");
    assert!(copied.as_str().is_some_and(|text| text.starts_with("# cublame: index out of range")), "{copied}");
}

#[test]
fn a_client_that_cannot_show_a_document_is_told_where_it_is() {
    let project = Project::new(&[("train.py", FAILS)]);
    let mut server = silent(&project);
    server.initialize(json!({ "capabilities": {}, "rootUri": uri(project.root()) }));
    let folder = project.ran(&project.failure("train.py"));
    server.diagnostics(&project.path("train.py"));
    server.command("cublame.openReport", json!({ "run": folder.id() })).expect("an answer");
    let said = server.notification::<ShowMessage>().message;
    assert!(said.ends_with("report.html") && said.contains(folder.id()), "{said}");
}

#[test]
fn the_doctor_runs_no_interpreter_of_a_workspace_that_is_not_trusted() {
    let project = Project::new(&[("train.py", FAILS), ("python", "#!/bin/sh\necho no modules >&2\nexit 9\n")]);
    let python = project.path("python");
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let mut server = silent(&project);
    let mut client = able(&project);
    client["initializationOptions"]["settings"] = json!({ "python": python });
    server.initialize(client);
    for (trusted, expected) in [(false, "this workspace is not trusted"), (true, "could not be asked\\: no modules")] {
        server.command("cublame.doctor", json!({ "trusted": trusted })).expect("an answer");
        let (id, shown) = server.server_request::<ShowDocument>();
        server.respond(id, json!({ "success": true }));
        let page = shown.uri.to_file_path().expect("a file").into_owned();
        let text = std::fs::read_to_string(page).expect("the page");
        assert!(text.starts_with("# cublame doctor\n") && text.contains(expected), "{text}");
    }
    let said = server.notification::<LogMessage>().message;
    assert!(said.ends_with("/python, from setting"), "{said}");
}

#[test]
fn clearing_takes_everything_away_and_leaves_the_disk_alone() {
    let project = Project::new(&[("train.py", FAILS)]);
    let mut server = started(&project);
    let folder = project.ran(&project.failure("train.py"));
    server.diagnostics(&project.path("train.py"));
    server.command("cublame.clear", json!(null)).expect("an answer");
    assert_eq!(server.diagnostics(&project.path("train.py")), []);
    assert!(!folder.dismissed());
}

#[test]
fn a_pasted_log_is_shown_at_its_line_until_it_is_dismissed() {
    let project = Project::new(&[("train.py", FAILS)]);
    let train = project.path("train.py");
    let line = project.fault_line("train.py");
    let log = format!(
        "Traceback (most recent call last):\n  File \"/cluster/job/train.py\", line {line}, in <module>\n    forward()\n\
         RuntimeError: CUDA error: device-side assert triggered\n"
    );
    let mut server = started(&project);
    server.command("cublame.explainText", json!({ "text": log })).expect("an answer");
    let diagnostics = server.diagnostics(&train);
    assert_eq!(diagnostics[0].range.start.line + 1, line);
    assert!(server.notification::<ShowMessage>().message.contains("shown at its line"));
    let data = diagnostics[0].data.clone().expect("data");
    server.command("cublame.dismiss", json!({ "run": data["run"] })).expect("an answer");
    assert_eq!(server.diagnostics(&train), []);
    server.command("cublame.explainText", json!({ "text": "all is well\n" })).expect("an answer");
    assert!(server.notification::<ShowMessage>().message.contains("Nothing in the log"));
    // What a debugger stands at is shown in silence: the server that is shut down here has said nothing more.
    let answer = server.command("cublame.explainText", json!({ "text": log, "live": true }));
    let answer = answer.expect("an answer").expect("a name");
    assert_eq!(server.diagnostics(&train)[0].data.clone().expect("data")["run"], answer["run"]);
    server.command("cublame.delete", json!({ "run": answer["run"] })).expect("an answer");
    assert_eq!(server.diagnostics(&train), []);
}

/// As of a debugger that has stopped at an exception.
#[test]
fn a_live_log_is_shown_without_a_word_and_can_be_taken_away_at_any_time() {
    let project = Project::new(&[("train.py", FAILS)]);
    let train = project.path("train.py");
    let line = project.fault_line("train.py");
    let log = format!(
        "Traceback (most recent call last):\n  File \"{}\", line {line}, in <module>\n    forward()\n\
         RuntimeError: CUDA error: device-side assert triggered\n",
        train.display()
    );
    let mut server = started(&project);
    let argument = json!({ "text": log, "blocking": true, "live": true });
    let shown = server.command("cublame.explainText", argument.clone()).expect("an answer").expect("a name");
    assert_eq!(server.diagnostics(&train)[0].range.start.line + 1, line);
    server.command("cublame.dismiss", shown).expect("an answer");
    assert_eq!(server.diagnostics(&train), []);
    // Taken away before it can be shown, or just after.
    server.ignore("textDocument/publishDiagnostics");
    let shown = server.command("cublame.explainText", argument).expect("an answer").expect("a name");
    server.command("cublame.dismiss", shown.clone()).expect("an answer");
    assert!(server.command("cublame.openReport", shown).is_err());
}

#[test]
fn a_run_is_deleted_when_it_has_ended() {
    let project = Project::new(&[("train.py", FAILS), ("wait.py", WAITS)]);
    let mut server = started(&project);
    let ended = project.ran(&project.failure("train.py"));
    server.diagnostics(&project.path("train.py"));
    server.command("cublame.delete", json!({ "run": ended.id() })).expect("an answer");
    assert_eq!(server.diagnostics(&project.path("train.py")), []);
    assert!(!ended.path().exists());
    let live = project.start(&project.failure("train.py"), Some(cublame::os::processes::this_process()));
    let refused = eventually("the run to be known", || {
        let answer = server.command("cublame.delete", json!({ "run": live.id() })).expect_err("a refusal");
        answer.message.contains("is running").then_some(answer)
    });
    assert!(refused.message.contains("stop it first") && live.path().exists());
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence() {
    let project = Project::new(&[]);
    let mut server = started(&project);
    for (command, argument, words) in [
        ("cublame.rerun", json!({ "run": "20260101T000000.000Z-00000001" }), "no run of this workspace is called"),
        ("cublame.dismiss", json!({ "run": "../../etc" }), "no run of this workspace is called"),
        ("cublame.openReport", json!(null), "no run of this workspace has failed"),
        ("cublame.repro", json!(null), "no run of this workspace has failed"),
        ("cublame.stop", json!(null), "no run of this workspace is running"),
        ("cublame.setMode", json!({ "mode": "fast" }), "`fast` is not a mode"),
    ] {
        let refused = server.command(command, argument).expect_err(command);
        assert!(refused.message.contains(words), "{command}: {}", refused.message);
    }
}

enum Runs {}

impl tower_lsp::ls_types::notification::Notification for Runs {
    type Params = cublame::lsp::RunsParams;
    const METHOD: &'static str = "cublame/runs";
}

enum InTerminal {}

impl tower_lsp::ls_types::notification::Notification for InTerminal {
    type Params = cublame::lsp::RunInTerminal;
    const METHOD: &'static str = "cublame/runInTerminal";
}
