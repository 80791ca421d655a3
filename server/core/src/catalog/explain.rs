//! What the catalogue says of a kind as a whole: for hover, the report page and the link behind a diagnostic's code.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::Texts;
use super::facts::UNRECOGNISED;

/// The catalogue's entry of a kind, in one language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// One sentence without its final dot.
    pub summary: String,
    pub meaning: String,
    /// Most likely first.
    pub causes: Vec<String>,
    /// The one test that decides.
    pub check: String,
    pub fixes: Vec<String>,
    pub links: Vec<&'static str>,
}

/// Describes a kind; one that the catalogue does not know is described as `unrecognised`.
pub fn describe(kind: &str, texts: &Texts) -> Description {
    let kind = if is_known(kind) { kind } else { UNRECOGNISED };
    let line = |field: &str| texts.line(&format!("kinds.{kind}.{field}"), &[]);
    let list = |field: &str| texts.list(&format!("kinds.{kind}.{field}")).to_vec();
    Description {
        summary: line("summary"),
        meaning: line("meaning"),
        causes: list("causes"),
        check: line("check"),
        fixes: list("fixes"),
        links: links(kind).to_vec(),
    }
}

/// Where a diagnostic's code leads (`codeDescription.href`).
pub fn documentation_url(kind: &str) -> Option<&'static str> {
    links(kind).first().copied()
}

/// Has the catalogue an entry for this kind?
pub fn is_known(kind: &str) -> bool {
    Texts::get(super::Language::English).find(&format!("kinds.{kind}.summary")).is_some()
}

fn links(kind: &str) -> &'static [&'static str] {
    static LINKS: LazyLock<BTreeMap<&str, Vec<&str>>> =
        LazyLock::new(|| match toml::from_str(include_str!("links.toml")) {
            Ok(links) => links,
            Err(error) => {
                debug_assert!(false, "links.toml: {error}");
                BTreeMap::new()
            }
        });
    LINKS.get(kind).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Language, facts};

    /// The kinds that the contract promises.
    const PROMISED: &str = "\
        device-assert, illegal-address, misaligned-address, illegal-instruction, invalid-address-space, \
        launch-failure, launch-timeout, invalid-configuration, too-many-resources, invalid-argument, \
        invalid-resource-handle, no-kernel-image, invalid-kernel-image, unsupported-ptx, invalid-device-ordinal, \
        devices-unavailable, no-device, no-driver, driver-too-old, driver-mismatch, system-not-ready, \
        initialization-error, unknown-error, oom, oom-driver, oom-host, shm-exhausted, segfault, library-missing, \
        ecc, gpu-lost, nvlink, peer-access, mps, stream-capture, same-device, wrong-device, not-compiled-cuda, \
        deserialize-cuda, forked-subprocess, cublas-not-initialized, cublas-alloc-failed, cublas-execution-failed, \
        cublas-invalid-value, cublas, cudnn-execution-failed, cudnn-internal-error, cudnn-mapping-error, cudnn, \
        cufft-internal-error, cufft, cusparse, cusolver, nccl-unhandled-cuda, nccl-timeout, nccl, address-in-use, \
        child-failed, triton-out-of-resources, triton-compile, ptxas, jax-resource-exhausted, anomaly-nan, \
        blocking-hang, env-too-late, unrecognised";

    #[test]
    fn every_promised_kind_is_described_in_full_in_every_language() {
        let recognised = facts().kinds().iter().map(|kind| kind.id.as_str());
        for kind in PROMISED.split(", ").chain(recognised) {
            assert!(is_known(kind), "{kind}");
            for texts in Language::ALL.map(Texts::get) {
                let description = describe(kind, texts);
                assert!(!description.causes.is_empty(), "{kind} has no causes");
                assert!(!description.fixes.is_empty(), "{kind} has no fixes");
            }
            assert!(kind == UNRECOGNISED || documentation_url(kind).is_some(), "{kind} has no link");
        }
    }

    /// The verdict's sentence is put into others, so it ends without a stop.
    #[test]
    fn summaries_end_without_a_stop() {
        for texts in Language::ALL.map(Texts::get) {
            for kind in PROMISED.split(", ") {
                let summary = describe(kind, texts).summary;
                assert!(!summary.ends_with(['.', '。']) && !summary.contains('\n'), "{kind}: {summary}");
            }
        }
    }

    #[test]
    fn every_assertion_is_described_in_full() {
        let table: toml::Table = include_str!("asserts.en.toml").parse().unwrap();
        for (id, fields) in table {
            let fields: Vec<&str> = fields.as_table().unwrap().keys().map(String::as_str).collect();
            assert_eq!(fields, ["fixes", "meaning", "summary"], "{id}");
            for texts in Language::ALL.map(Texts::get) {
                let summary = texts.line(&format!("asserts.{id}.summary"), &[]);
                assert!(!summary.ends_with(['.', '。']), "{id}: {summary}");
                assert!(!texts.list(&format!("asserts.{id}.fixes")).is_empty(), "{id} has no fixes");
            }
        }
    }

    #[test]
    fn links_are_https_and_of_known_kinds() {
        let table: BTreeMap<String, Vec<String>> = toml::from_str(include_str!("links.toml")).unwrap();
        for (kind, links) in table {
            assert!(is_known(&kind), "{kind}");
            assert!(links.iter().all(|link| link.starts_with("https://")), "{kind}: {links:?}");
        }
    }

    #[test]
    fn an_unknown_kind_is_described_as_unrecognised() {
        let texts = Texts::get(Language::English);
        assert_eq!(describe("no-such-kind", texts), describe(UNRECOGNISED, texts));
        assert_eq!(documentation_url("no-such-kind"), None);
    }
}
