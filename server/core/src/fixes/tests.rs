//! Snippets with a failure, and what the fixes make of them.
//!
//! A case starts with `=== what it shows; advice`, perhaps with settings of the verdict after further semicolons:
//! `because TEXT`, `kernel NAME`, `tensor NAME DEVICE`. The failing line ends in `# @fault`. Each `--- title` is a fix with
//! the text after it, in the order in which they are offered; a case without any has none.

use std::sync::Arc;

use super::*;
use crate::catalog::Language;
use crate::verdict::{Advice, DeviceAssert, Tensor};

macro_rules! corpus {
    ($($name:ident: $file:literal),* $(,)?) => {
        $(#[test] fn $name() { check_all(include_str!(concat!("cases/", $file))); })*

        const CORPUS: &[&str] = &[$(include_str!(concat!("cases/", $file))),*];
    };
}

corpus! {
    values: "values.txt",
    devices: "devices.txt",
    memory: "memory.txt",
    programs: "programs.txt",
}

fn check_all(cases: &str) {
    let mut wrong = String::new();
    for case in cases.split("=== ").skip(1) {
        let (header, body) = case.split_once('\n').unwrap();
        let (text, wanted) = body.split_once("--- ").map_or((body, ""), |(text, _)| (text, &body[text.len()..]));
        let got: String = shown(header, text);
        if got != wanted {
            wrong += &format!("{header}: wanted\n{wanted}got\n{got}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// The fixes of a case as its file has them. What they make must parse.
fn shown(header: &str, text: &str) -> String {
    let verdict = verdict(header);
    let text: Arc<str> = Arc::from(text);
    let line = text.lines().position(|line| line.ends_with("# @fault")).unwrap();
    let line = u32::try_from(line).unwrap() + 1;
    let failure = Failure { verdict: &verdict, path: "train.py", text: &text, line };
    let chinese = fixes(&failure, Texts::get(Language::SimplifiedChinese));
    let fixes = fixes(&failure, Texts::get(Language::English));
    assert_eq!(fixes.len(), chinese.len());
    let errors = |text: &str| Module::parse("a.py", None, text).parsed().errors().len();
    let one = |fix: &CodeFix| {
        let after = apply(&text, &fix.edits);
        assert_eq!(errors(&after), errors(&text), "{after}");
        format!("--- {}\n{after}", fix.title)
    };
    fixes.iter().map(one).collect()
}

fn verdict(header: &str) -> Verdict {
    let mut verdict: Verdict =
        serde_json::from_str(include_str!("../../../../tests/fixtures/verdicts/device-assert.json")).unwrap();
    verdict.frames.clear();
    verdict.tensors.clear();
    verdict.asserts.clear();
    verdict.advice.clear();
    for setting in header.split("; ").skip(1) {
        let words: Vec<&str> = setting.split(' ').collect();
        match words[..] {
            ["because", ..] => verdict.because.push(setting["because ".len()..].to_owned()),
            ["kernel", kernel] => verdict.asserts.push(DeviceAssert {
                file: "Loss.cu".to_owned(),
                line: 1,
                kernel: Some(kernel.to_owned()),
                condition: String::new(),
                count: 1,
            }),
            ["tensor", name, device] => verdict.tensors.push(Tensor {
                name: name.to_owned(),
                shape: Vec::new(),
                dtype: "float32".to_owned(),
                device: device.to_owned(),
                frame: 0,
                ..Tensor::default()
            }),
            [id] => verdict.advice.push(Advice {
                id: id.to_owned(),
                title: String::new(),
                detail: String::new(),
                command: None,
                edit: None,
            }),
            _ => panic!("{setting}"),
        }
    }
    verdict
}

#[test]
fn every_family_is_of_an_advice_and_shown_in_the_corpus() {
    let texts = Texts::get(Language::English);
    for (id, _) in FAMILIES {
        assert!(texts.find(&format!("advice.{id}.title")).is_some(), "{id} is no advice");
        assert!(CORPUS.iter().any(|cases| cases.contains(&format!("; {id}"))), "{id} is not shown");
    }
}

#[test]
fn half_typed_code_never_panics() {
    for case in CORPUS.iter().flat_map(|cases| cases.split("=== ").skip(1)) {
        let (header, body) = case.split_once('\n').unwrap();
        let text = body.split("--- ").next().unwrap();
        let verdict = verdict(header);
        let fault = text.lines().position(|line| line.ends_with("# @fault")).unwrap();
        for cut in (0..text.len()).step_by(11).filter(|cut| text.is_char_boundary(*cut)) {
            for torn in [text[..cut].to_owned(), format!("{}({}", &text[..cut], &text[cut..])] {
                let torn: Arc<str> = Arc::from(torn);
                for line in [u32::try_from(fault).unwrap() + 1, 1, 9_999] {
                    let failure = Failure { verdict: &verdict, path: "train.py", text: &torn, line };
                    for fix in fixes(&failure, Texts::get(Language::English)) {
                        apply(&torn, &fix.edits);
                    }
                }
            }
        }
    }
}
