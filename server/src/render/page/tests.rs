//! A page is of the same shape whatever its texts hold, and its policy lets nothing in.

use cublame_core::Sources;
use cublame_core::event::Event;
use cublame_core::evidence::ProcessEvents;
use cublame_core::log::Log;
use cublame_core::run::{Exit, Run};
use cublame_core::source::Source;
use cublame_core::telemetry::Sample;
use serde_json::{Value, json};

use super::*;
use crate::session::State;

/// Everything that a page can show, each text replaced by `text`.
fn told(text: &str) -> Told {
    let place =
        |line: u32| json!({ "file": text, "path": text, "line": line, "column": 1, "end_column": 3, "function": text });
    let frame = |user: bool| json!({ "file": text, "path": text, "line": 2, "column": 1, "end_column": 3, "function": text, "user": user });
    let verdict = |fatal: bool| {
        json!({
            "kind": text, "summary": text, "certainty": "likely", "trace_trusted": false, "phase": "forward",
            "error": { "name": text, "code": 710, "legacy_code": 59, "text": text },
            "exception": { "type": text, "message": text },
            "place": place(2), "reported": place(40), "candidates": [place(2), place(3)],
            "because": [text], "missing": [text],
            "asserts": [{ "file": text, "line": 16, "kernel": text, "condition": text, "count": 96 }],
            "memory": { "requested": 1, "capacity": 100, "free": 10, "allocated": 80, "reserved_unallocated": 5,
                        "others": [{ "pid": 7, "bytes": 5 }] },
            "frames": [frame(true), frame(false), frame(true)],
            "tensors": [{ "name": text, "shape": [2, 3], "dtype": text, "device": text, "frame": 2,
                          "class": text, "strides": [1, 2], "layout": text, "requires_grad": true, "bytes": 24 }],
            "objects": [{ "name": text, "class": text, "kind": text, "frame": 2, "length": 7 }],
            "rank": 1, "device": 0,
            "collateral": [{ "rank": 0, "summary": text }],
            "advice": [{ "id": text, "title": text, "detail": text, "command": text, "edit": text }],
            "fatal": fatal
        })
    };
    let run = json!({
        "schema": 1, "id": text, "watch": "supervised", "mode": "trace", "argv": [text, text], "cwd": text, "entry": text,
        "started": 1796097021.0, "host": text, "runner": null, "child": null, "blocking": false, "env": { text: text }
    });
    let process = |rank: u32| ProcessEvents {
        pid: 40 + rank,
        events: vec![
            read(
                json!({ "v": 1, "time": 1796097021.5, "pid": 40, "event": "start", "ppid": 1, "argv": [text], "cwd": text,
                         "python": text, "executable": text, "rank": rank }),
            ),
            read::<Event>(
                json!({ "v": 1, "time": 1796097023.0, "pid": 40, "event": "exception", "hook": text, "thread": text,
                         "main_thread": true, "chain": [{ "type": text, "message": text, "frames": [] }] }),
            ),
        ],
    };
    let sample = |second: f64| Sample {
        time: 1_796_097_021.0 + second,
        memory: Some(1 << 30),
        capacity: Some(2 << 30),
        utilisation: Some(50),
        temperature: Some(60),
        power: Some(300.0),
        ..Sample::default()
    };
    let mut sources = Sources::new(Vec::new());
    let lines = format!("{text}\n").repeat(60);
    sources.insert(text, Some(Source { path: text.to_owned(), text: lines.into() }));
    let run: Run = read(run);
    let evidence = cublame_core::Evidence {
        log: Some(Log::from_text(&format!("Traceback (most recent call last):\nRuntimeError: CUDA error {text}\n"))),
        processes: vec![process(0), process(1)],
        ..Default::default()
    };
    Told {
        run: Some(run),
        state: Some(State::Ended),
        exit: Some(Exit { code: Some(1), signal: None }),
        finished: Some(1_796_097_024.0),
        partial: vec![text.to_owned()],
        verdicts: vec![read(verdict(true)), read(verdict(false))],
        evidence,
        telemetry: vec![sample(0.0), sample(1.0), sample(2.5)],
        sources,
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The tags of a page, in order, with their attributes.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).map(|rest| rest.split_once('>').map_or(rest, |(tag, _)| tag)).collect()
}

/// One title and two names of a plot are the only attributes with a text, and the text is the catalogue's.
#[test]
fn hostile_text_changes_nothing_of_the_page() {
    let texts = Texts::get(Language::English);
    let harmless = page(&told("harmless"), texts);
    for hostile in [
        "</title></style><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "<!-- ",
        "]]>",
        "&lt;script&gt;",
        "\u{202e}gpj.exe",
        "\u{0}\u{1b}]8;;http://h.example\u{7}",
        "<svg/onload=alert(1)>",
        "javascript:alert(1)",
    ] {
        let page = page(&told(hostile), texts);
        assert_eq!(tags(&page), tags(&harmless), "{hostile}");
        assert!(!page.contains(['\u{0}', '\u{1b}', '\u{202e}']), "{hostile}");
    }
}

#[test]
fn a_page_shows_all_that_there_is_in_both_languages() {
    for language in Language::ALL {
        let texts = Texts::get(language);
        let page = page(&told("harmless"), texts);
        for key in
            ["code", "because", "advice", "asserts", "memory", "frames", "over-time", "ranks", "log", "environment"]
        {
            let heading = format!("<h2>{}</h2>", texts.line(&format!("report.{key}"), &[]));
            assert!(page.contains(&heading), "{heading}");
        }
        assert!(page.matches("<figure").count() == 4 && page.contains("class=\"failure\""));
    }
}

#[test]
fn nothing_known_is_a_page_as_well() {
    let page = page(&Told::default(), Texts::get(Language::English));
    assert!(page.contains("No failure was found"));
}

/// The policy names the style by its hash: one that is changed on its way is not applied, and nothing else is let in.
#[test]
fn the_policy_knows_the_style() {
    let page = page(&told("x"), Texts::get(Language::English));
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    let hash = base64(&Sha256::digest(style));
    assert!(page.contains(&format!("default-src &#39;none&#39;; style-src &#39;sha256-{hash}&#39;")));
    assert!(!tags(&page).iter().any(|tag| tag.starts_with("script") || tag.contains(" style=") || tag.contains(" on")));
    assert_eq!(
        ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes())),
        ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
    );
}
