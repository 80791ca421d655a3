use super::*;
use crate::config::apply;

fn blocking(launch: Launch) -> Profile {
    Profile { launch, mode: Mode::Blocking }
}

fn train() -> Vec<Profile> {
    vec![blocking(Launch::Program("train.py".to_owned()))]
}

fn configured(text: &str, profiles: &[Profile]) -> String {
    apply(text, &configure(text, Place::OwnFile, profiles).unwrap())
}

fn removed(text: &str) -> String {
    apply(text, &remove(text, Place::OwnFile).unwrap())
}

/// Adds a profile, checks that twice is once and that removal gives the text back.
#[track_caller]
fn check(before: &str, after: &str) {
    let once = configured(before, &train());
    assert_eq!(once, after);
    assert_eq!(configured(&once, &train()), once, "twice is once");
    assert_eq!(removed(&once), before, "removal gives the text back");
}

const OURS: &str = r#"{
            "name": "cublame: train.py (blocking)",
            "type": "debugpy",
            "request": "launch",
            "program": "${workspaceFolder}/train.py",
            "console": "integratedTerminal",
            "justMyCode": true,
            "subProcess": true,
            "env": {
                "CUBLAME_MODE": "blocking",
                "CUDA_LAUNCH_BLOCKING": "1"
            },
            "presentation": {
                "group": "cublame-1"
            }
        }"#;

fn ours(indent: &str, unit: &str, newline: &str) -> String {
    OURS.lines()
        .enumerate()
        .map(|(nth, line)| {
            let depth = line.len() - line.trim_start().len();
            let steps = if nth == 0 { 0 } else { (depth - 8) / 4 };
            let indent = if nth == 0 { "" } else { indent };
            format!("{indent}{}{}", unit.repeat(steps), line.trim_start())
        })
        .collect::<Vec<_>>()
        .join(newline)
}

#[test]
fn an_empty_text_becomes_a_whole_file() {
    let expected = format!("{{\n    \"version\": \"0.2.0\",\n    \"configurations\": [\n        {OURS}\n    ]\n}}\n");
    assert_eq!(configured("", &train()), expected);
    assert_eq!(configured("\u{feff}", &train()), format!("\u{feff}{expected}"));
    assert_eq!(configured("// mine", &train()), format!("// mine\n{expected}"));
    assert_eq!(configured(&expected, &train()), expected);
    assert_eq!(removed(&expected), "{\n    \"version\": \"0.2.0\",\n    \"configurations\": []\n}\n");
}

#[test]
fn what_is_added_looks_like_the_rest() {
    let file = |entries: &str| format!("{{\n  \"version\": \"0.2.0\",\n  \"configurations\": [{entries}]\n}}\n");
    let two = ours("    ", "  ", "\n");
    check(&file("\n    { \"name\": \"a\" }\n  "), &file(&format!("\n    {{ \"name\": \"a\" }},\n    {two}\n  ")));
    check(&file("\n    { \"name\": \"a\" },\n  "), &file(&format!("\n    {{ \"name\": \"a\" }},\n    {two},\n  ")));
    check(&file(""), &file(&format!("\n    {two}\n  ")));
    check(&file("{ \"name\": \"a\" }"), &file(&format!("{{ \"name\": \"a\" }},\n    {two}")));
    check(
        &file("\n    { \"name\": \"a\" } // the best\n    // and no more\n  "),
        &file(&format!("\n    {{ \"name\": \"a\" }}, // the best\n    // and no more\n    {two}\n  ")),
    );
    check(
        &file("\n    { \"name\": \"a\" }, /* one */ /* two */\n  "),
        &file(&format!("\n    {{ \"name\": \"a\" }}, /* one */ /* two */\n    {two},\n  ")),
    );
    let tabs = "{\r\n\t\"configurations\": [\r\n\t\t{\r\n\t\t\t\"name\": \"a\"\r\n\t\t}\r\n\t]\r\n}";
    let with_tabs = tabs.replace("\t\t}\r\n", &format!("\t\t}},\r\n\t\t{}\r\n", ours("\t\t", "\t", "\r\n")));
    check(tabs, &with_tabs);
    check(&format!("\u{feff}{tabs}"), &format!("\u{feff}{with_tabs}"));
}

#[test]
fn a_file_without_the_list_gets_one() {
    let list = format!("\"configurations\": [\n        {OURS}\n    ]");
    assert_eq!(configured("{}", &train()), format!("{{\n    {list}\n}}"));
    assert_eq!(
        configured("{\n    \"version\": \"0.2.0\" // old\n}", &train()),
        format!("{{\n    \"version\": \"0.2.0\", // old\n    {list}\n}}")
    );
}

#[test]
fn a_code_workspace_has_its_own_section() {
    let workspace = "{\n\t\"folders\": [{ \"path\": \".\" }],\n\t\"settings\": {}\n}\n";
    let once = apply(workspace, &configure(workspace, Place::Section, &train()).unwrap());
    assert!(once.starts_with(
        "{\n\t\"folders\": [{ \"path\": \".\" }],\n\t\"settings\": {},\n\t\"launch\": {\n\t\t\"version\""
    ));
    assert_eq!(configure(&once, Place::Section, &train()).unwrap(), []);
    assert_eq!(list(&once, Place::Section).unwrap()[0].name, "cublame: train.py (blocking)");
    assert_eq!(list(&once, Place::OwnFile).unwrap(), []);
    let alone = apply("", &configure("", Place::Section, &train()).unwrap());
    assert_eq!(list(&alone, Place::Section).unwrap().len(), 1);
}

#[test]
fn what_the_user_changed_in_ours_stays_and_an_old_version_is_brought_up() {
    let mine = configured("", &train()).replace("\"justMyCode\": true", "\"justMyCode\": false, \"args\": [\"-v\"]");
    assert_eq!(configured(&mine, &train()), mine);
    let without = mine.replace("\"CUDA_LAUNCH_BLOCKING\": \"1\"", "\"MINE\": \"x\"");
    assert_eq!(configured(&without, &train()), without);
    let old = without.replace("cublame-1", "cublame-0");
    let new = configured(&old, &train());
    assert!(new.contains("\"cublame-1\"") && new.contains("\"MINE\": \"x\"") && new.contains("\"justMyCode\": false"));
    assert!(new.contains("\"CUDA_LAUNCH_BLOCKING\": \"1\""));
}

#[test]
fn an_entry_that_only_has_our_prefix_is_the_users() {
    let text = "{\"configurations\": [{\"name\": \"cublame: mine\", \"type\": \"debugpy\"}]}";
    assert_eq!(removed(text), text);
    assert!(!list(text, Place::OwnFile).unwrap()[0].ours);
}

#[test]
fn each_launch_has_its_words() {
    let check = |launch: Launch, title: &str, words: &[&str]| {
        assert_eq!(launch.title(), title);
        assert_eq!(launch.arguments(), words);
        let text = configured("", &[blocking(launch)]);
        assert_eq!(list(&text, Place::OwnFile).unwrap()[0].name, format!("cublame: {title} (blocking)"));
    };
    check(Launch::CurrentFile, "current file", &["${file}"]);
    let of_a_folder = "${workspaceFolder:api}/a.py";
    check(Launch::Program(of_a_folder.into()), "a.py", &[of_a_folder]);
    check(Launch::Program("/abs/a.py".into()), "/abs/a.py", &["/abs/a.py"]);
    check(Launch::Module("proj.train".into()), "module proj.train", &["-m", "proj.train"]);
    check(Launch::Pytest(String::new()), "pytest", &["-m", "pytest"]);
    check(Launch::Pytest("tests".into()), "pytest tests", &["-m", "pytest", "${workspaceFolder}/tests"]);
    let torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=auto", "${workspaceFolder}/t.py"];
    check(Launch::Torchrun("t.py".into()), "torchrun t.py", &torchrun);
    let accelerate = ["-m", "accelerate.commands.launch", "${workspaceFolder}/t.py"];
    check(Launch::Accelerate("t.py".into()), "accelerate t.py", &accelerate);
}

#[track_caller]
fn check_switch(before: &str, mode: Mode, after: &str) {
    let (edits, record) = switch(before, Place::OwnFile, ".vscode/launch.json", 0, mode, None).unwrap();
    let switched = apply(before, &edits);
    assert_eq!(switched, after);
    let again = switch(&switched, Place::OwnFile, ".vscode/launch.json", 0, mode, Some(&record)).unwrap();
    assert_eq!((apply(&switched, &again.0), &again.1), (switched.clone(), &record), "twice is once");
    assert_eq!(apply(&switched, &switch_back(&switched, Place::OwnFile, 0, &record).unwrap()), before);
}

#[test]
fn a_switch_changes_our_variables_and_can_be_undone() {
    let file = |entry: &str| format!("{{ \"configurations\": [\n  {entry}\n] }}");
    check_switch(
        &file(r#"{ "name": "train", "env": { "A": "b" /* mine */ } }"#),
        Mode::Blocking,
        &file(
            r#"{ "name": "train", "env": { "A": "b", /* mine */ "CUDA_LAUNCH_BLOCKING": "1", "CUBLAME_MODE": "blocking" } }"#,
        ),
    );
    check_switch(
        &file(r#"{ "name": "train" }"#),
        Mode::Trace,
        &file(r#"{ "name": "train", "env": { "CUBLAME_MODE": "trace" } }"#),
    );
    check_switch(
        &file(r#"{ "name": "train", "env": {"CUDA_LAUNCH_BLOCKING": "1"} }"#),
        Mode::Trace,
        &file(r#"{ "name": "train", "env": {"CUDA_LAUNCH_BLOCKING": "0", "CUBLAME_MODE": "trace"} }"#),
    );
    check_switch(
        &file(r#"{ "name": "train", "env": {"CUDA_LAUNCH_BLOCKING": 1, "A": null,} }"#),
        Mode::Blocking,
        &file(r#"{ "name": "train", "env": {"CUDA_LAUNCH_BLOCKING": "1", "A": null, "CUBLAME_MODE": "blocking",} }"#),
    );
    check_switch(
        &file(
            "{\n    \"name\": \"train\",\n    \"linux\": {\n      \"env\": {\n        \"A\": \"b\"\n      }\n    }\n  }",
        ),
        Mode::Off,
        &file(
            "{\n    \"name\": \"train\",\n    \"linux\": {\n      \"env\": {\n        \"A\": \"b\",\n        \"CUBLAME_MODE\": \"off\"\n      }\n    },\n    \"env\": {\n        \"CUBLAME_MODE\": \"off\"\n    }\n  }",
        ),
    );
}

#[test]
fn a_second_switch_keeps_the_first_record() {
    let text = r#"{"configurations": [{"name": "train", "env": {"CUDA_LAUNCH_BLOCKING": "0"}}]}"#;
    let file = ".vscode/launch.json";
    let (edits, first) = switch(text, Place::OwnFile, file, 0, Mode::Blocking, None).unwrap();
    let blocking = apply(text, &edits);
    let (edits, second) = switch(&blocking, Place::OwnFile, file, 0, Mode::Trace, Some(&first)).unwrap();
    let trace = apply(&blocking, &edits);
    assert!(trace.contains(r#""CUDA_LAUNCH_BLOCKING": "0", "CUBLAME_MODE": "trace""#), "{trace}");
    assert_eq!(apply(&trace, &switch_back(&trace, Place::OwnFile, 0, &second).unwrap()), text);
    let records = SwitchedFile::default().with(file, "train", Some(first)).with(file, "train", Some(second.clone()));
    assert_eq!(records.find(file, "train"), Some(&second));
    assert_eq!(records.with(file, "train", None).switched, []);
}

#[test]
fn a_switch_back_keeps_what_the_user_added_since() {
    let text = r#"{"configurations": [{"name": "train"}]}"#;
    let (edits, record) = switch(text, Place::OwnFile, "f", 0, Mode::Blocking, None).unwrap();
    let switched = apply(text, &edits).replace("\"CUBLAME_MODE\"", "\"MINE\": \"1\", \"CUBLAME_MODE\"");
    let back = apply(&switched, &switch_back(&switched, Place::OwnFile, 0, &record).unwrap());
    assert!(back.contains("\"MINE\": \"1\"") && !back.contains("CUDA") && !back.contains("CUBLAME"), "{back}");
}

#[test]
fn a_twin_is_a_copy_in_a_mode() {
    let text = "{\n  \"configurations\": [\n    {\n      // mine\n      \"name\": \"train\",\n      \"program\": \"a.py\"\n    }\n  ]\n}";
    let once = apply(text, &twin(text, Place::OwnFile, 0, Mode::Blocking).unwrap());
    let copy = "{\n      // mine\n      \"name\": \"train (cublame: blocking)\",\n      \"program\": \"a.py\",\n      \"env\": {\n        \"CUDA_LAUNCH_BLOCKING\": \"1\",\n        \"CUBLAME_MODE\": \"blocking\"\n      }\n    }";
    assert_eq!(once, text.replace("    }\n  ]", &format!("    }},\n    {copy}\n  ]")));
    assert_eq!(twin(&once, Place::OwnFile, 0, Mode::Blocking).unwrap(), []);
    assert!(list(&once, Place::OwnFile).unwrap()[1].ours);
    assert_eq!(removed(&once), text);
}

#[test]
fn the_old_type_is_recognised_and_upgraded() {
    let text = r#"{"configurations": [{"name": "a", "type": "python"}, {"name": "b", "type": "cppdbg"}]}"#;
    let entries = list(text, Place::OwnFile).unwrap();
    assert!(entries[0].has_old_type() && entries[0].is_python() && !entries[1].is_python());
    let upgraded = apply(text, &upgrade_type(text, Place::OwnFile, 0).unwrap());
    assert_eq!(upgraded, text.replace("\"python\"", "\"debugpy\""));
    assert_eq!(upgrade_type(text, Place::OwnFile, 1).unwrap(), []);
}

#[test]
fn of_two_lists_the_last_counts_as_in_vs_code() {
    let text = r#"{"configurations": [{"name": "a"}], "configurations": [{"name": "b"}]}"#;
    assert_eq!(list(text, Place::OwnFile).unwrap()[0].name, "b");
    assert_eq!(removed(&configured(text, &train())), text);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let check = |text: &str, expected: &str| {
        assert_eq!(configure(text, Place::OwnFile, &train()).unwrap_err().to_string(), expected);
    };
    check(
        "{\n  \"configurations\": [\n    { \"name\" \"a\" }\n  ]\n}",
        "line 3, column 14: this is not valid JSON: expected colon after the string or word in object property",
    );
    check("[]", "line 1, column 1: the file's top is not an object");
    check("{\"configurations\": null}", "line 1, column 20: `configurations` is not a list");
    check("{'configurations': []}", "line 1, column 2: this is not valid JSON: single-quoted strings are not allowed");
    let text = "{\"configurations\": [{\"name\": \"a\", \"env\": \"x\"}]}";
    let error = switch(text, Place::OwnFile, "f", 0, Mode::Off, None).unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 42: `env` is not an object of variables");
}

#[test]
fn a_record_can_put_back_a_value_and_nothing_else() {
    let text = r#"{"configurations": [{"name": "train", "env": {"CUDA_LAUNCH_BLOCKING": "0"}}]}"#;
    let (edits, mut record) = switch(text, Place::OwnFile, "f", 0, Mode::Blocking, None).unwrap();
    let switched = apply(text, &edits);
    for hostile in [r#""0"}, "python": "/tmp/evil", "x": {"y": "1""#, "{}", "", "// \n"] {
        record.before.insert("env.CUDA_LAUNCH_BLOCKING".to_owned(), Some(hostile.to_owned()));
        assert!(switch_back(&switched, Place::OwnFile, 0, &record).is_err());
        assert!(switch(&switched, Place::OwnFile, "f", 0, Mode::Off, Some(&record)).is_err());
    }
}
