//! Snippets, each with the findings that it must have and no others, and its text after the fixes.
//!
//! A case starts with `=== what it shows; file name`. A line ends with `«rule»` where a rule must fire; the marks are taken
//! out before anything is checked. After `--- fixed` comes the text when every fix has been applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::config::apply;
use crate::python::Module;

macro_rules! corpus {
    ($($name:ident: $file:literal),* $(,)?) => {
        $(#[test] fn $name() { check_all(include_str!(concat!("cases/", $file))); })*

        const CORPUS: &[&str] = &[$(include_str!(concat!("cases/", $file))),*];
    };
}

corpus! {
    environment: "environment.txt",
    devices: "devices.txt",
    code: "code.txt",
    other_languages: "other_languages.txt",
}

fn check_all(cases: &str) {
    let mut wrong = String::new();
    for case in cases.split("=== ").skip(1) {
        let (header, body) = case.split_once('\n').unwrap();
        let (what, path) = header.split_once("; ").unwrap();
        let (marked, fixed) = body.split_once("--- fixed\n").map_or((body, None), |(text, fixed)| (text, Some(fixed)));
        let (text, wanted) = unmarked(marked);
        let findings = findings(path, &text);
        let lines = LineIndex::new(text.as_str());
        let mut got: Vec<(u32, String)> =
            findings.iter().map(|f| (lines.line_of(f.range.start), f.rule.to_owned())).collect();
        got.sort();
        if got != wanted {
            wrong += &format!("{what}: wanted {wanted:?}, got {got:?}\n");
        }
        if let Some(fixed) = fixed {
            let after = self::fixed(path, &text);
            if after != fixed {
                wrong += &format!("{what}: fixed to\n{after}instead of\n{fixed}");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn unmarked(marked: &str) -> (String, Vec<(u32, String)>) {
    let mut text = String::new();
    let mut wanted = Vec::new();
    for (number, line) in (1..).zip(marked.lines()) {
        let (code, marks) = line.split_once('«').unwrap_or((line, ""));
        wanted.extend(
            marks.split(['«', '»']).filter(|mark| !mark.trim().is_empty()).map(|mark| (number, mark.to_owned())),
        );
        text.push_str(code.trim_end());
        text.push('\n');
    }
    wanted.sort();
    (text, wanted)
}

fn findings(path: &str, text: &str) -> Vec<Finding> {
    let kind = FileKind::of(path).unwrap_or_else(|| panic!("{path} is of no kind"));
    lint(&LintFile { path, text: Arc::from(text), kind }, &Settings::default())
}

/// The text after all fixes that go together. Code that parsed must parse after them.
fn fixed(path: &str, text: &str) -> String {
    let after = apply(text, &fix_all(&findings(path, text)));
    if path.ends_with(".py") {
        let errors = |text: &str| Module::parse("a.py", None, text).parsed().errors().len();
        assert!(errors(&after) <= errors(text), "a fix that breaks the code:\n{after}");
    }
    after
}

#[test]
fn every_rule_of_the_contract_is_there_and_in_order() {
    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    let contract = "blocking-dataparallel capture-sync dsa-env env-bad-value env-left-on env-scoped env-too-late fork-cuda \
                    hardcoded-device index-literal-out-of-range launch-unchecked load-no-map-location missing-record \
                    set-device-late swallowed-cuda-error unregistered-tensor";
    assert_eq!(names.join(" "), contract);
}

#[test]
fn every_rule_fires_on_its_own_example_and_is_in_the_corpus() {
    for rule in RULES {
        let (path, text) = example(rule);
        let fired: BTreeSet<&str> = findings(path, &text).into_iter().map(|finding| finding.rule).collect();
        assert!(fired.contains(rule.name), "{}: {text} gives {fired:?}", rule.name);
        assert!(CORPUS.iter().any(|cases| cases.contains(&format!("«{}»", rule.name))), "{}", rule.name);
        for part in [rule.what, rule.why, rule.fix, rule.quiet] {
            assert!(part.ends_with('.') || part.ends_with('`'), "{}: {part}", rule.name);
            assert!(!part.contains("  "), "{}: {part}", rule.name);
        }
        assert!(rule.documentation().starts_with(&format!("# {}\n", rule.name)));
    }
}

/// A rule's example as a whole file: with the imports that it leaves out.
fn example(rule: &Rule) -> (&'static str, String) {
    let example = rule.example;
    if example.starts_with("ENV") {
        return ("Dockerfile", example.to_owned());
    }
    if example.starts_with("export") {
        return ("run.sh", example.to_owned());
    }
    if example.contains("<<<") {
        return ("k.cu", example.to_owned());
    }
    let imports = "import os, torch\nimport torch.nn as nn\nimport torch.distributed as dist\n\
                   from torch.utils.data import Dataset, DataLoader\nlocal_rank = int(os.environ[\"LOCAL_RANK\"])\n";
    ("train.py", format!("{imports}{example}\n"))
}

#[test]
fn a_comment_silences_a_rule_or_all_of_them() {
    let check = |comment: &str, count| {
        let text = format!("import os\nos.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"true\"{comment}\n");
        assert_eq!(findings("a.py", &text).len(), count, "{comment}");
    };
    check("", 1);
    check("  # cublame: ignore", 0);
    check("  # cublame: ignore[env-bad-value]", 0);
    check("  # cublame: ignore[env-left-on, env-bad-value]", 0);
    check("  # cublame: ignore[env-left-on]", 1);
    check("  # noqa", 1);
}

#[test]
fn rules_are_selected_and_ignored() {
    let text: Arc<str> = Arc::from(
        "import os\nos.environ[\"CUDA_LAUNCH_BLOCKING\"] = \"1\"\nos.environ[\"TORCH_USE_CUDA_DSA\"] = \"1\"\n",
    );
    let file = LintFile { path: "a.py", text, kind: FileKind::Python };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    let rules = |settings: &Settings| lint(&file, settings).iter().map(|f| f.rule).collect::<Vec<_>>();
    assert_eq!(rules(&Settings::default()), ["env-left-on", "dsa-env"]);
    assert_eq!(rules(&Settings { select: Some(set(&["dsa-env"])), ..Settings::default() }), ["dsa-env"]);
    assert_eq!(rules(&Settings { ignore: set(&["dsa-env"]), ..Settings::default() }), ["env-left-on"]);
}

#[test]
fn a_switched_entry_is_not_left_on() {
    let text = r#"{"version": "0.2.0", "configurations": [
        {"name": "mine", "type": "debugpy", "request": "launch", "env": {"CUDA_LAUNCH_BLOCKING": "1"}}]}"#;
    let file = LintFile { path: ".vscode/launch.json", text: Arc::from(text), kind: FileKind::LaunchJson };
    assert_eq!(lint(&file, &Settings::default()).len(), 1);
    let switched = Settings { switched: ["mine".to_owned()].into(), ..Settings::default() };
    assert_eq!(lint(&file, &switched), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn half_typed_files_never_panic(cut in 0usize..6000, length in 0usize..40, noise in "[\\[\\](){}<>:.,=\n\t \"'a-z@*\\\\é😀]{0,8}") {
        for cases in CORPUS {
            let start = cases.floor_char_boundary(cut.min(cases.len()));
            let end = cases.floor_char_boundary((start + length).min(cases.len()));
            let torn: Arc<str> = Arc::from(format!("{}{noise}{}", &cases[..start], &cases[end..]));
            for path in ["a.py", "Dockerfile", "compose.yml", "run.sh", ".env", ".vscode/launch.json", "a.run.xml", "k.cu"] {
                let file = LintFile { path, text: Arc::clone(&torn), kind: FileKind::of(path).unwrap() };
                for finding in lint(&file, &Settings::default()) {
                    prop_assert!(torn.get(finding.range).is_some());
                    for edit in finding.fix.iter().flat_map(|fix| &fix.edits) {
                        let (rule, range) = (finding.rule, edit.start..edit.end);
                        prop_assert!(torn.get(range.clone()).is_some(), "{path}, {rule}: {range:?} of {}", torn.len());
                    }
                }
            }
        }
    }
}
