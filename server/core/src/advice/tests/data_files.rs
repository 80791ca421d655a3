//! The plans, the words and the facts agree with each other, and nothing in them advises what cannot work.

use std::collections::BTreeSet;

use super::*;
use crate::catalog::facts;
use crate::catalog::facts::Reporting;

/// A rerun with blocking launches tells nothing of an error that the failing call itself raised.
#[test]
fn only_what_surfaces_late_is_rerun_with_blocking() {
    for kind in facts().kinds() {
        let late = matches!(kind.reporting, Reporting::Asynchronous | Reporting::Echo);
        let reruns = plan(&kind.id).iter().any(|id| id == "rerun-blocking");
        assert!(late || !reruns, "{}", kind.id);
    }
}

#[test]
fn a_dead_context_is_said_to_be_dead() {
    for kind in facts().kinds().iter().filter(|kind| kind.sticky) {
        let renews = |id: &String| id == "restart-process" || id == "reset-gpu";
        assert!(plan(&kind.id).iter().any(renews), "{}", kind.id);
    }
}

/// Plans, decisions, words and commands name the same advice.
#[test]
fn plans_and_words_agree() {
    let named: BTreeSet<&str> = PLANS.kinds.values().flatten().map(String::as_str).collect();
    let decisions = concat!(include_str!("../decisions.rs"), include_str!("../memory.rs"));
    let quoted: BTreeSet<&str> = decisions.split('"').collect();
    let english = Texts::get(Language::English);
    let has_words = |id: &str| english.find(&format!("advice.{id}.title")).is_some();

    for id in named.iter().filter(|id| !id.starts_with('<')) {
        assert!(has_words(id) && english.find(&format!("advice.{id}.detail")).is_some(), "{id} has no words");
    }
    let worded: toml::Table = include_str!("../../catalog/advice.en.toml").parse().unwrap();
    for id in worded.keys() {
        let checks = PLANS.asserts.values().any(|check| check == id);
        let is_used = checks || named.contains(id.as_str()) || quoted.contains(id.as_str()) || id.starts_with("xid-");
        assert!(is_used, "no plan and no decision gives {id}");
    }
    assert!(PLANS.commands.keys().chain(PLANS.asserts.values()).all(|id| has_words(id)));
    for assertion in facts().asserts() {
        assert!(PLANS.asserts.contains_key(&assertion.id), "{} has no check", assertion.id);
        assert!(english.find(&format!("asserts.{}.summary", assertion.id)).is_some(), "{}", assertion.id);
    }
    let kinds: toml::Table = include_str!("../../catalog/kinds.en.toml").parse().unwrap();
    assert_eq!(kinds.keys().collect::<BTreeSet<_>>(), PLANS.kinds.keys().collect::<BTreeSet<_>>());
}

/// TORCH_USE_CUDA_DSA is a compile-time macro, and `skip_abort` lets a fault pass unseen.
#[test]
fn nothing_advises_what_cannot_work() {
    for text in [
        include_str!("../plans.toml"),
        include_str!("../../catalog/advice.en.toml"),
        include_str!("../../catalog/advice.zh.toml"),
        include_str!("../../catalog/kinds.en.toml"),
        include_str!("../../catalog/kinds.zh.toml"),
        include_str!("../../catalog/asserts.en.toml"),
        include_str!("../../catalog/asserts.zh.toml"),
    ] {
        for word in ["TORCH_USE_CUDA_DSA", "skip_abort", "cuda-memcheck", "last_error"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn titles_are_short_and_without_a_stop() {
    let english: toml::Table = include_str!("../../catalog/advice.en.toml").parse().unwrap();
    for (id, words) in english {
        let title = words["title"].as_str().unwrap().to_owned();
        assert!(title.len() <= 60 && !title.ends_with('.'), "{id}: {title}");
    }
}
