//! Realistic training code, each with the line that failed and the frames of where it surfaced.
//!
//! A case starts with `=== name; kind; kernel`. Its files start with `--- name`. In the code, `# @fault` marks the line
//! that must rank first, and `# @1`, `# @2`... the frames of the trace, outermost first; `# @2 expr` gives the frame
//! the columns of `expr`. The markers are taken out before anything is ranked.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::source::Source;

#[test]
fn indexing() {
    check_all(include_str!("cases/indexing.txt"));
}

#[test]
fn losses_and_probabilities() {
    check_all(include_str!("cases/losses.txt"));
}

#[test]
fn custom_kernels() {
    check_all(include_str!("cases/kernels.txt"));
}

#[test]
fn the_shapes_of_programs() {
    check_all(include_str!("cases/programs.txt"));
}

#[test]
fn further_programs() {
    check_all(include_str!("cases/second.txt"));
}

struct Case {
    query: Query,
    sources: Sources,
    faults: Vec<(String, u32)>,
}

fn check_all(cases: &str) {
    let mut wrong = String::new();
    let mut count = 0;
    for text in cases.split("=== ").skip(1) {
        let (header, body) = text.split_once('\n').unwrap();
        count += 1;
        let case = case(header, body);
        let ranking = rank(&case.query, &case.sources);
        let got: Vec<(String, u32)> = ranking.places.iter().map(|s| (s.place.file.clone(), s.place.line)).collect();
        let right = if case.faults.is_empty() { got.is_empty() } else { got.first() == case.faults.first() };
        if !right {
            let reasons: Vec<&str> = ranking.places.iter().map(|s| s.why).collect();
            wrong += &format!("{header}: wanted {:?}, got {got:?} {reasons:?}\n", case.faults);
        }
        for suspect in &ranking.places {
            assert!(REASONS.contains(&suspect.why));
        }
    }
    assert!(wrong.is_empty(), "of {count}:\n{wrong}");
}

fn case(header: &str, body: &str) -> Case {
    let mut header = header.split(';').map(str::trim).skip(1);
    let kind = header.next().unwrap().to_owned();
    let kernel = header.next().filter(|kernel| !kernel.is_empty()).map(str::to_owned);
    let family = kernel.as_deref().and_then(|kernel| kernels::operations(kernel).first()).map(|o| o.family());
    let mut files: Vec<(String, String)> = vec![("train.py".to_owned(), String::new())];
    let mut frames: Vec<(u32, Frame)> = Vec::new();
    let mut faults = Vec::new();
    for line in body.lines() {
        if let Some(name) = line.strip_prefix("--- ") {
            files.push((name.to_owned(), String::new()));
            continue;
        }
        let (name, text) = files.last_mut().unwrap();
        let number = u32::try_from(text.lines().count()).unwrap() + 1;
        let (code, markers) = line.split_once("# @").unwrap_or((line, ""));
        for marker in markers.split("# @").map(str::trim).filter(|marker| !marker.is_empty()) {
            let (what, columns) = marker.split_once(' ').unwrap_or((marker, ""));
            if what == "fault" {
                faults.push((name.clone(), number));
                continue;
            }
            let start = code.find(columns).filter(|_| !columns.is_empty());
            let column = |at: usize| u32::try_from(code[..at].chars().count()).unwrap() + 1;
            let frame = Frame {
                file: name.clone(),
                path: None,
                line: number,
                column: start.map(column),
                end_column: start.map(|start| column(start + columns.len())),
                function: None,
                user: true,
            };
            frames.push((what.parse().unwrap(), frame));
        }
        text.push_str(code.trim_end());
        text.push('\n');
    }
    frames.sort_by_key(|(order, _)| *order);
    let mut sources = Sources::new(Vec::new());
    for (name, text) in files.into_iter().filter(|(_, text)| !text.is_empty()) {
        sources.insert(name.clone(), Some(Source { path: format!("/home/dev/proj/{name}"), text: Arc::from(text) }));
    }
    let frames = frames.into_iter().map(|(_, frame)| frame).collect();
    Case { query: Query { frames, kind, family, kernel, ..Query::default() }, sources, faults }
}

fn single(text: &str, line: u32, kind: &str) -> Ranking {
    let mut sources = Sources::new(Vec::new());
    sources.insert("train.py", Some(Source { path: "/home/dev/proj/train.py".into(), text: Arc::from(text) }));
    let reported = Place { file: "train.py".into(), path: None, line, column: None, end_column: None, function: None };
    rank(&Query { reported: Some(reported), kind: kind.into(), ..Query::default() }, &sources)
}

#[test]
fn a_place_has_the_columns_of_its_expression_in_code_points() {
    let ranking = single("import torch\nдлина = 5; y = torch.take(х, номера)  # 名\nprint(y)\n", 3, "device-assert");
    let place = &ranking.places[0].place;
    assert_eq!((place.line, place.column, place.end_column), (2, Some(16), Some(37)));
    assert_eq!(place.function.as_deref(), Some("<module>"));
    assert_eq!(place.path.as_deref(), Some("/home/dev/proj/train.py"));
    assert_eq!(ranking.places[0].why, "suspect.take");
    assert!(ranking.places[0].strong);
}

#[test]
fn a_call_over_several_lines_is_where_the_interpreter_reports_it() {
    let text = "import torch\ny = (x\n     .float()\n     .gather(1, i)\n)\nprint(y)\n";
    let place = &single(text, 6, "device-assert").places[0].place;
    assert_eq!((place.line, place.column, place.end_column), (4, Some(7), Some(19)));
}

#[test]
fn two_that_fit_equally_are_not_strong() {
    let text = "import torch\na = x.gather(1, i)\nb = y.gather(1, j)\nprint(b)\n";
    let ranking = single(text, 4, "device-assert");
    assert_eq!(ranking.places.iter().map(|s| s.place.line).collect::<Vec<_>>(), [3, 2]);
    assert!(ranking.places.iter().all(|suspect| !suspect.strong));
}

#[test]
fn modules_that_are_imported_and_called_are_wanted() {
    let text = "import torch, model\nfrom lib.layers import block\nimport unused_by_the_line\ny = block(model.net(x))\nprint(y)\n";
    let wanted = single(text, 5, "device-assert").wanted;
    assert!(wanted.contains(&"model.py".to_owned()), "{wanted:?}");
    assert!(wanted.contains(&"lib/layers.py".to_owned()), "{wanted:?}");
    assert!(!wanted.iter().any(|name| name.contains("torch") || name.contains("unused")), "{wanted:?}");
}

#[test]
fn a_file_that_was_asked_for_is_not_wanted_again() {
    let mut sources = Sources::new(Vec::new());
    let text = "import model\nmodel.run()\nprint(1)\n";
    sources.insert("train.py", Some(Source { path: "/home/dev/proj/train.py".into(), text: Arc::from(text) }));
    sources.insert("model.py", None);
    sources.insert("model/__init__.py", None);
    let reported =
        Place { file: "train.py".into(), path: None, line: 3, column: None, end_column: None, function: None };
    let query = Query { reported: Some(reported), kind: "illegal-address".into(), ..Query::default() };
    assert_eq!(rank(&query, &sources).wanted, Vec::<String>::new());
}

#[test]
fn nothing_is_suspected_where_nothing_fits() {
    assert_eq!(single("x = 1\ny = x + 1\nprint(y)\n", 3, "device-assert"), Ranking::default());
    assert_eq!(single("", 1, "device-assert"), Ranking::default());
    assert_eq!(single("x = 1\n", 99, "device-assert"), Ranking::default());
}

#[test]
fn code_that_calls_itself_and_deep_code_end() {
    let mutual = "def f(x):\n    return g(x)\ndef g(x):\n    return f(x)[i]\nf(1)\nprint(1)\n";
    single(mutual, 6, "device-assert");
    let cycle = "class A(A):\n    def forward(self, x):\n        return self.forward(self.x)\n    x = x\nm = A()\nm(m)\nprint(m)\n";
    single(cycle, 7, "device-assert");
    let deep = format!("x = {}1{}\nprint(x)\n", "(".repeat(5000), ")".repeat(5000));
    single(&deep, 2, "device-assert");
    let chain = format!("y = x{}\nprint(y)\n", ".f(1)".repeat(20_000));
    single(&chain, 2, "device-assert");
    let sum = format!("y = x{}\nprint(y)\n", " + x[i]".repeat(20_000));
    single(&sum, 2, "device-assert");
}

#[test]
fn reading_takes_time_in_proportion_to_the_code() {
    // Every function calls the next one twice: followed naively, two to the power of sixty calls.
    let mut text = String::from("import torch\n");
    for n in 0..60 {
        text += &format!("def f{n}(x):\n    return f{}(f{}(x))\n", n + 1, n + 1);
    }
    text += "def f60(x):\n    return x.gather(1, i)\ny = f0(x)\nprint(y)\n";
    let last = u32::try_from(text.lines().count()).unwrap();
    single(&text, last, "device-assert");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn half_written_code_never_panics(
        cut in 0usize..4000,
        noise in "[\\[\\](){}:.,=\n\t \"'a-z@*]{0,12}",
        line in 1u32..120,
    ) {
        for text in [include_str!("cases/indexing.txt"), include_str!("cases/programs.txt")] {
            let cut = text.floor_char_boundary(cut.min(text.len()));
            let torn = format!("{}{noise}{}", &text[..cut], &text[cut..]);
            for kind in ["device-assert", "illegal-address"] {
                single(&torn, line, kind);
            }
        }
    }
}
