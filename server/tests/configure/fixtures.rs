//! Every committed file: our entries go in, nothing else changes, twice is once, and it all comes out again.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cublame_core::config::{Place, launch_json, run_xml};

use crate::project::{Project, fixtures, is_kept};

#[test]
fn there_are_enough_of_them() {
    let kinds = ["launch", "tasks", "workspace", "run_xml", "notebook", "profile"];
    let refused = ["refused/launch", "refused/run_xml", "refused/notebook", "refused/profile"];
    let count: usize = kinds.iter().chain(&refused).map(|kind| fixtures(kind).len()).sum();
    assert!(count >= 40, "{count}");
}

#[test]
fn launch_json() {
    for (name, original) in fixtures("launch") {
        check_vscode(&name, &original, ".vscode/launch.json", ".", Place::OwnFile);
    }
}

#[test]
fn tasks_json() {
    for (name, original) in fixtures("tasks") {
        let project = Project::new();
        project.write(".vscode/tasks.json", &original);
        project.configured(&["vscode"]);
        let once = project.read(".vscode/tasks.json");
        assert!(is_kept(&original, &once) && once.len() > original.len(), "{name}");
        project.configured(&["vscode"]);
        assert_eq!(project.read(".vscode/tasks.json"), once, "{name}: twice is once");
        project.configured(&["vscode", "--remove"]);
        if !original.is_empty() {
            assert_eq!(project.read(".vscode/tasks.json"), original, "{name}");
        }
    }
}

#[test]
fn code_workspace() {
    for (name, original) in fixtures("workspace") {
        check_vscode(&name, &original, "a.code-workspace", "a.code-workspace", Place::Section);
    }
}

fn check_vscode(name: &str, original: &[u8], file: &str, dir: &str, place: Place) {
    let project = Project::new();
    let path = project.write(file, original);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = project.files();
    let words = ["vscode", "--dir", dir, "--mode", "blocking", "--mode", "trace"];

    let dry = project.configured(&[&words[..], &["--dry-run"]].concat());
    assert!(dry.stdout.contains("\n+++ b/"), "{name}: {}", dry.stdout);
    assert_eq!(project.files(), before, "{name}: a dry run writes nothing");

    project.configured(&words);
    let once = project.read(file);
    assert!(is_kept(original, &once) && once.len() > original.len(), "{name}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640, "{name}");
    let entries = launch_json::list(std::str::from_utf8(&once).unwrap(), place).unwrap();
    for mode in ["blocking", "trace"] {
        let ours = format!("cublame: current file ({mode})");
        assert_eq!(entries.iter().filter(|entry| entry.name == ours).count(), 1, "{name}");
    }
    assert!(project.configured(&words).stderr.contains("nothing to change"), "{name}: twice is once");

    project.configured(&["vscode", "--dir", dir, "--remove"]);
    let text = std::str::from_utf8(original).unwrap();
    let theirs = launch_json::list(text, place).unwrap();
    if theirs.is_empty() || theirs.iter().any(|entry| entry.ours) {
        let left = launch_json::list(&project.text(file), place).unwrap();
        assert!(left.iter().all(|entry| !entry.ours), "{name}");
    } else if place == Place::OwnFile {
        assert_eq!(project.read(file), original, "{name}: removal gives the file back");
    }

    project.write(file, original);
    for entry in theirs.iter().filter(|entry| !entry.ours) {
        let switch = project.configure(&["vscode", "--dir", dir, "--switch", &entry.name]);
        if theirs.iter().filter(|other| other.name == entry.name).count() > 1 {
            assert!(switch.code == 2 && switch.stderr.contains("several"), "{name}: {}", switch.stderr);
            continue;
        }
        assert_eq!(switch.code, 0, "{name}: {}", switch.stderr);
        assert!(project.text(file).contains(r#""CUBLAME_MODE": "blocking""#), "{name}");
        project.configured(&["vscode", "--dir", dir, "--switch-back", &entry.name]);
        assert_eq!(project.read(file), original, "{name}: {}", entry.name);
        project.configured(&["vscode", "--dir", dir, "--twin", &entry.name]);
        assert!(is_kept(original, &project.read(file)));
        project.configured(&["vscode", "--dir", dir, "--remove"]);
        assert_eq!(project.read(file), original, "{name}: twin of {}", entry.name);
    }
}

#[test]
fn run_configurations() {
    for (name, original) in fixtures("run_xml") {
        let text = std::str::from_utf8(&original).unwrap();
        let theirs = run_xml::read(text).unwrap();
        for folder in [".run", ".idea/runConfigurations"] {
            let project = Project::new();
            let file = if folder == ".run" {
                format!(".run/{name}")
            } else {
                format!("{folder}/{}", name.replace(".run", ""))
            };
            project.write(&file, &original);
            let before = project.files();
            let dry = project.configured(&["pycharm", "--mode", "blocking", "--dry-run"]);
            assert!(dry.stdout.starts_with("--- /dev/null\n+++ b/"), "{name}: {}", dry.stdout);
            assert_eq!(project.files(), before, "{name}: a dry run writes nothing");

            project.configured(&["pycharm", "--mode", "blocking"]);
            assert_eq!(project.read(&file), original, "{name}: their file stays");
            let copies: Vec<_> = project.files().into_iter().filter(|entry| !before.contains(entry)).collect();
            let [(_, copy)] = &copies[..] else { panic!("{name}: {copies:?}") };
            let copy = std::str::from_utf8(copy).unwrap();
            let ours = run_xml::read(copy).unwrap();
            assert_eq!(ours.name, format!("cublame: {} (blocking)", theirs.name));
            assert_eq!(ours.env("CUDA_LAUNCH_BLOCKING"), Some("1"));
            assert_eq!((&ours.options, &ours.module), (&theirs.options, &theirs.module));
            assert_eq!(run_xml::strictly(copy).is_ok(), run_xml::strictly(text).is_ok(), "{name}");
            assert!(project.configured(&["pycharm", "--mode", "blocking"]).stderr.contains("nothing to change"));

            project.configured(&["pycharm", "--switch", &theirs.name, "--mode", "trace"]);
            assert_eq!(run_xml::read(&project.text(&file)).unwrap().env("CUBLAME_MODE"), Some("trace"));
            project.configured(&["pycharm", "--remove"]);
            assert_eq!(project.read(&file), original, "{name}: switched back");
            let left = project.files().into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "xml"));
            assert_eq!(left.collect::<Vec<_>>(), before, "{name}: the copy is gone");
        }
    }
}

#[test]
fn most_run_configurations_are_what_pycharm_writes() {
    let strict = |(name, bytes): (String, Vec<u8>)| {
        let read = run_xml::strictly(std::str::from_utf8(&bytes).unwrap());
        read.err().map(|refused| format!("{name}: {refused}"))
    };
    let refused: Vec<String> = fixtures("run_xml").into_iter().filter_map(strict).collect();
    assert_eq!(refused, ["hand-edited.run.xml: line 4, column 2: the option PARAMETERS is missing"]);
}

#[test]
fn notebooks() {
    for (name, original) in fixtures("notebook") {
        let project = Project::new();
        project.write(&name, &original);
        let words = ["notebook", "--program", &name];
        assert!(project.configured(&[&words[..], &["--dry-run"]].concat()).stdout.contains("+++ b/"));
        assert_eq!(project.read(&name), original, "{name}: a dry run writes nothing");
        project.configured(&words);
        let once = project.read(&name);
        assert!(is_kept(&original, &once), "{name}");
        let value: serde_json::Value = serde_json::from_slice(&once).unwrap();
        assert_eq!(value["cells"][0]["metadata"]["tags"][0], "cublame", "{name}");
        assert!(project.configured(&words).stderr.contains("nothing to change"), "{name}");
        project.configured(&[&words[..], &["--mode", "trace"]].concat());
        assert!(project.text(&name).contains(r#"\"CUBLAME_MODE\": \"trace\""#), "{name}");
        project.configured(&[&words[..], &["--remove"]].concat());
        assert_eq!(project.read(&name), original, "{name}");
    }
}

#[test]
fn shell_profiles() {
    for (name, original) in fixtures("profile") {
        let (shell, file) = match name.rsplit('.').next().unwrap() {
            "bashrc" => ("bash", ".bashrc"),
            "zshrc" => ("zsh", ".zshrc"),
            _ => ("fish", ".config/fish/config.fish"),
        };
        let project = Project::new();
        project.write(file, &original);
        let said = project.configured(&["shell", "--shell", shell]);
        assert_eq!(
            said.stderr.contains(&format!("{file}:2 switches blocking on")),
            name.starts_with("global"),
            "{}",
            said.stderr
        );
        assert!(is_kept(&original, &project.read(file)) && project.text(file).contains("pydebug"), "{name}");
        project.configured(&["shell", "--shell", shell, "--mode", "trace"]);
        assert_eq!(
            project.read(&format!("{file}.cublame-backup")),
            original,
            "{name}: the backup is without our lines"
        );
        assert!(
            project.configured(&["shell", "--shell", shell, "--mode", "trace"]).stderr.contains("nothing to change")
        );
        project.configured(&["shell", "--shell", shell, "--remove"]);
        assert_eq!(project.read(file), original, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place_and_nothing_is_written() {
    let check = |kind: &str, file: &dyn Fn(&str) -> String, words: &[&str]| {
        for (name, original) in fixtures(&format!("refused/{kind}")) {
            let project = Project::new();
            let path = project.write(&file(&name), &original);
            let words: Vec<&str> =
                words.iter().map(|&word| if word == "FILE" { name.as_str() } else { word }).collect();
            let before = project.files();
            let said = project.configure(&words);
            assert_eq!(said.code, 2, "{name}: {}", said.stderr);
            let place = format!("{}:", path.file_name().unwrap().to_str().unwrap());
            let has_place =
                said.stderr.split_once(&place).is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()));
            assert!(has_place || said.stderr.contains("from byte"), "{name}: {}", said.stderr);
            assert!(said.stderr.contains("nothing was written"), "{name}: {}", said.stderr);
            assert_eq!(project.files(), before, "{name}");
        }
    };
    check("launch", &|_| ".vscode/launch.json".to_owned(), &["vscode"]);
    check("run_xml", &|name| format!(".run/{name}"), &["pycharm"]);
    check("notebook", &str::to_owned, &["notebook", "--program", "FILE"]);
    check("profile", &|_| ".bashrc".to_owned(), &["shell", "--shell", "bash"]);
}
