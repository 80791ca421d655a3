//! `cublame report` over run folders that were recorded on a GPU, copied into a project.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// A project in which these recorded runs have been, each under its own id.
    fn with(names: &[&str]) -> Self {
        let project = Project { folder: tempfile::tempdir().unwrap() };
        for name in names {
            let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/sessions/h200/off").join(name);
            let run: Value = serde_json::from_slice(&fs::read(recorded.join("run.json")).unwrap()).unwrap();
            copy(&recorded, &project.run(run["id"].as_str().unwrap()));
        }
        project
    }

    fn run(&self, id: &str) -> PathBuf {
        self.folder.path().join(".cublame/runs").join(id)
    }

    /// Changes a file of a run as text.
    fn edit(&self, id: &str, file: &str, from: &str, to: &str) {
        let path = self.run(id).join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    fn report(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_cublame"))
            .arg("report")
            .args(arguments)
            .current_dir(&self.folder)
            .env("HOME", "/home/dev")
            .env("USER", "dev")
            .env("LC_ALL", "C")
            .output()
            .unwrap()
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = self.report(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.report(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

const LOOKUP: &str = "20261201T035021.756Z-d9041d3e";
const LEAK: &str = "20261201T035050.059Z-60803ee3";

#[test]
fn a_run_is_found_by_its_id_its_beginning_its_path_or_by_being_the_newest() {
    let project = Project::with(&["embedding_oob", "oom_leak"]);
    let is_lookup = |text: &str| text.contains("error[device-assert]");
    assert!(project.says(&[]).contains("error[oom]"));
    assert!(is_lookup(&project.says(&[LOOKUP])));
    assert!(is_lookup(&project.says(&["20261201T035021"])));
    assert!(is_lookup(&project.says(&[project.run(LOOKUP).to_str().unwrap()])));
    assert!(project.refuses(&["20261201T0350"]).contains("can be"));
    assert!(project.refuses(&["nothing"]).contains("is called nothing"));
    assert!(Project::with(&[]).refuses(&[]).contains("run a program first"));
    assert!(project.refuses(&["--html", "--json"]).contains("cannot be used with"));
}

#[test]
fn json_is_the_report_as_it_was_written() {
    let project = Project::with(&["embedding_oob"]);
    let written: Value = serde_json::from_slice(&fs::read(project.run(LOOKUP).join("report.json")).unwrap()).unwrap();
    let said: Value = serde_json::from_str(&project.says(&["--json"])).unwrap();
    assert_eq!(said["verdicts"][0]["place"], written["verdicts"][0]["place"]);
    assert_eq!((&said["schema"], &said["run"]), (&written["schema"], &written["run"]));
    fs::remove_file(project.run(LOOKUP).join("report.json")).unwrap();
    assert!(project.refuses(&["--json"]).contains("has no report"));
    // It was written to a moment ago, on another machine.
    assert!(project.says(&["--html"]).contains("<h1>The run is not over</h1>"));
}

#[test]
fn markdown_for_strangers_names_no_home_no_machine_and_no_secret() {
    let project = Project::with(&["embedding_oob"]);
    project.edit(LOOKUP, "run.json", "\"python3\",", "\"python3\", \"--hub-token\", \"s3cr3t\",");
    project.edit(LOOKUP, "report.json", "device-side assert triggered", "device-side assert triggered HF_TOKEN=hf_1");
    let text = project.says(&["--markdown"]);
    for private in ["/home/dev", "gpu-box", "s3cr3t", "hf_1", "hf\\_1"] {
        assert!(!text.contains(private), "{private}\n{text}");
    }
    assert!(text.contains("~/proj/embedding_oob.py:8") && text.contains("--hub-token [removed]"), "{text}");
}

#[test]
fn a_page_speaks_the_language_that_is_asked_for() {
    let project = Project::with(&["oom_leak"]);
    let page = project.says(&[LEAK, "--html", "--lang", "zh"]);
    assert!(page.contains("<html lang=\"zh-CN\">") && page.contains("为什么是这一行"), "{page}");
    // The report was written in English; what it says is said again.
    assert!(!page.contains("this error is raised by the call"), "{page}");
}

/// The lines round the culprit are shown from a file that still is what ran; else there is what the hook saw.
#[test]
fn a_source_that_was_changed_since_is_not_shown() {
    let project = Project::with(&["embedding_oob"]);
    let program = project.folder.path().join("embedding_oob.py");
    for file in ["run.json", "report.json"] {
        project.edit(LOOKUP, file, "/home/dev/proj", project.folder.path().to_str().unwrap());
    }
    for entry in fs::read_dir(project.run(LOOKUP).join("events")).unwrap() {
        let name = format!("events/{}", entry.unwrap().file_name().to_str().unwrap());
        project.edit(LOOKUP, &name, "/home/dev/proj", project.folder.path().to_str().unwrap());
    }
    fs::write(&program, include_str!("../src/demo/recorded/embedding_oob.py")).unwrap();
    let shown = |page: String| page.contains("<mark>self.emb(tok)</mark>") && page.contains("super().__init__()");
    assert!(shown(project.says(&["--html"])));
    assert!(project.says(&["--markdown"]).contains(">    8 |         x = self.emb(tok)"));
    fs::write(&program, "# another program\n".repeat(20)).unwrap();
    assert!(!project.says(&["--html"]).contains("another program"));
}

/// A run folder may come from anybody, and a report is handed on: nothing but programs is read for it.
#[test]
fn a_run_folder_cannot_have_any_file_shown() {
    let project = Project::with(&["embedding_oob"]);
    let secret = project.folder.path().join("secret.txt");
    fs::write(&secret, "do not tell\n".repeat(20)).unwrap();
    // Older than the run, so that its age is no reason.
    fs::File::options().append(true).open(&secret).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    project.edit(LOOKUP, "report.json", "/home/dev/proj/embedding_oob.py", secret.to_str().unwrap());
    for format in ["--html", "--markdown"] {
        assert!(!project.says(&[format]).contains("do not tell"));
    }
    let link = project.folder.path().join("link.py");
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    project.edit(LOOKUP, "report.json", secret.to_str().unwrap(), link.to_str().unwrap());
    assert!(!project.says(&["--html"]).contains("do not tell"));
}
