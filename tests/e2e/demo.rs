//! `cublame demo` as a new user meets it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::process::Command;

fn demo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cublame-under-test"))
        .arg("demo")
        .args(arguments)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_line_that_python_reports_is_not_the_line_that_is_blamed() {
    let story = demo(&["--lang", "en"]);
    let (full_speed, blocking) = story.split_once("$ cublame run --mode blocking").unwrap();
    assert!(full_speed.contains("File \"embedding_oob.py\", line 9, in forward"), "{story}");
    assert!(full_speed.contains("--> embedding_oob.py:8:13"), "{story}");
    assert!(full_speed.contains("^^^^^^^^^^^^^ most likely this"), "{story}");
    assert!(blocking.contains("^^^^^^^^^^^^^ this failed"), "{story}");
    assert!(!story.contains('\u{1b}'), "no colours when not on a terminal");
}

#[test]
fn it_speaks_chinese() {
    assert!(demo(&["--lang", "zh"]).contains("索引"));
}

#[test]
fn an_editor_would_get_the_diagnostic() {
    let transcript = demo(&["--lsp-transcript"]);
    assert!(transcript.contains("textDocument/publishDiagnostics"), "{transcript}");
    assert!(transcript.contains("\"code\": \"device-assert\""), "{transcript}");
    // Line 8 of the file; the protocol counts from 0.
    assert!(transcript.contains("\"line\": 7"), "{transcript}");
    // The rerun is the newer one, and proved.
    assert!(transcript.contains("Exact: "), "{transcript}");
}

#[test]
fn the_workspace_is_kept_where_it_is_asked_for_and_nobodys_files_are_mixed_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("demo");
    demo(&["--workspace", workspace.to_str().unwrap()]);
    assert!(workspace.join("embedding_oob.py").is_file());
    assert!(workspace.join(".cublame/runs/20261201T035021.756Z-d9041d3e/report.json").is_file());
    let again = Command::new(env!("CARGO_BIN_EXE_cublame-under-test"))
        .args(["demo", "--workspace", workspace.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"));
}
