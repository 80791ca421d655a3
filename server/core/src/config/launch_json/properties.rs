//! For any launch.json: bytes that are not ours stay, twice is once, and what is undone is undone.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::config::apply;

proptest! {
    #[test]
    fn adding_only_inserts_and_removing_gives_the_text_back(text in file()) {
        let profiles = [
            Profile { launch: Launch::CurrentFile, mode: Mode::Blocking },
            Profile { launch: Launch::Program("train.py".to_owned()), mode: Mode::Trace },
        ];
        for place in [Place::OwnFile, Place::Section] {
            let edits = configure(&text, place, &profiles).unwrap();
            prop_assert!(edits.iter().all(|edit| edit.start == edit.end), "{edits:?}");
            let once = apply(&text, &edits);
            let names = list(&once, place).unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>();
            prop_assert!(names.ends_with(&[profiles[0].name(), profiles[1].name()]), "{names:?} in {once}");
            prop_assert_eq!(&apply(&once, &configure(&once, place, &profiles).unwrap()), &once);
            let back = apply(&once, &remove(&once, place).unwrap());
            if elements(&text, place) > 0 {
                prop_assert_eq!(&back, &text);
            } else {
                prop_assert_eq!(list(&back, place).unwrap(), []);
            }
        }
    }

    #[test]
    fn a_switch_touches_nothing_else_and_can_be_undone(text in file(), first in mode(), second in mode()) {
        for entry in list(&text, Place::OwnFile).unwrap() {
            let (edits, record) = switch(&text, Place::OwnFile, "f", entry.index, first, None).unwrap();
            prop_assert!(edits.iter().all(|edit| entry.start < edit.start && edit.end < entry.end));
            let switched = apply(&text, &edits);
            prop_assert_eq!(list(&switched, Place::OwnFile).unwrap()[position_of(&text, &entry)].mode, Some(first));
            let (edits, record) = switch(&switched, Place::OwnFile, "f", entry.index, second, Some(&record)).unwrap();
            let again = apply(&switched, &edits);
            let back = apply(&again, &switch_back(&again, Place::OwnFile, entry.index, &record).unwrap());
            prop_assert_eq!(&back, &text, "from {} over {}", switched, again);
        }
    }

    #[test]
    fn a_twin_only_inserts_and_can_be_removed(text in file(), mode in mode()) {
        for entry in list(&text, Place::OwnFile).unwrap() {
            let edits = twin(&text, Place::OwnFile, entry.index, mode).unwrap();
            prop_assert!(edits.iter().all(|edit| edit.start == edit.end));
            let once = apply(&text, &edits);
            prop_assert_eq!(&apply(&once, &twin(&once, Place::OwnFile, entry.index, mode).unwrap()), &once);
            prop_assert_eq!(&apply(&once, &remove(&once, Place::OwnFile).unwrap()), &text);
        }
    }
}

fn position_of(text: &str, entry: &Entry) -> usize {
    list(text, Place::OwnFile).unwrap().iter().position(|other| other.index == entry.index).unwrap()
}

fn elements(text: &str, place: Place) -> usize {
    let document = Document::parse(text).unwrap();
    entries::find(&document, &LIST, place).unwrap().map_or(0, |array| array.elements.len())
}

fn mode() -> impl Strategy<Value = Mode> {
    select(&Mode::ALL[..])
}

/// What may stand between two tokens.
fn gap() -> impl Strategy<Value = String> {
    let piece =
        select(vec![" ", "\n", "\r\n", "\t", "    ", "/* ] } , \" */", "// \" ] }, \n", "// c \r\n", "/**/", "\u{a0}"]);
    vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

fn word() -> impl Strategy<Value = String> {
    select(vec!["a", "é", "\\\"", "\\u00e9", "cublame", "//", "/*", "1", "", "${file}", "]"])
        .prop_map(|word| format!("\"{word}\""))
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![word(), select(vec!["null", "true", "-1.5e3", "0"]).prop_map(str::to_owned)]
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            joined('[', inner.clone().boxed(), ']'),
            object(vec![("k", inner.clone().boxed()), ("é", inner.boxed())])
        ]
    })
}

/// Values between brackets, with or without a trailing comma.
fn joined(open: char, item: BoxedStrategy<String>, close: char) -> BoxedStrategy<String> {
    (vec((gap(), item, gap()), 0..4), any::<bool>(), gap())
        .prop_map(move |(items, trailing, end)| {
            let items: Vec<String> = items.into_iter().map(|(before, item, after)| before + &item + &after).collect();
            let comma = if trailing && !items.is_empty() { "," } else { "" };
            format!("{open}{}{comma}{end}{close}", items.join(","))
        })
        .boxed()
}

/// Properties of these names, in any number and order, some of them twice.
fn object(known: Vec<(&'static str, BoxedStrategy<String>)>) -> BoxedStrategy<String> {
    let property = select((0..known.len()).collect::<Vec<_>>()).prop_flat_map(move |at| {
        let (name, value) = known[at].clone();
        (gap(), gap(), value).prop_map(move |(before, after, value)| format!("\"{name}\"{before}:{after}{value}"))
    });
    joined('{', property.boxed(), '}')
}

fn env() -> BoxedStrategy<String> {
    let names = ["A", "CUDA_LAUNCH_BLOCKING", "CUBLAME_MODE", "PYTHONPATH"];
    object(names.map(|name| (name, scalar().boxed())).to_vec())
}

fn entry() -> BoxedStrategy<String> {
    let part = object(vec![("env", env()), ("cwd", word().boxed())]);
    object(vec![
        ("name", word().boxed()),
        ("type", select(vec!["\"debugpy\"", "\"python\""]).prop_map(str::to_owned).boxed()),
        ("env", env()),
        ("linux", part),
        ("args", joined('[', value().boxed(), ']')),
    ])
}

fn file() -> impl Strategy<Value = String> {
    let entries = || joined('[', prop_oneof![8 => entry(), 1 => value().boxed()].boxed(), ']');
    let section = object(vec![("configurations", entries()), ("version", word().boxed())]);
    let top = object(vec![
        ("configurations", entries()),
        ("launch", section),
        ("inputs", value().boxed()),
        ("version", word().boxed()),
    ]);
    (any::<bool>(), gap(), prop_oneof![9 => top, 1 => Just(String::new()).boxed()], gap())
        .prop_map(|(mark, before, top, after)| format!("{}{before}{top}{after}", if mark { "\u{feff}" } else { "" }))
}
