//! What a machine must know of failures: the kinds with their CUDA error values and wordings, the known device-side
//! assertions, and the names by which a library's file is told from the user's.
//!
//! All of it is data in `kinds.toml`, `asserts.toml` and `library_roots.toml`; the values of the errors come from
//! `driver_types.h` (cudaError_t), `cuda.h` (CUresult) and `hip_runtime_api.h` (hipError_t).

use std::collections::HashMap;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::{Regex, RegexSet};
use serde::Deserialize;

use crate::pattern;
use crate::verdict::CudaError;

/// The facts, compiled once.
pub fn facts() -> &'static Facts {
    static FACTS: LazyLock<Facts> = LazyLock::new(Facts::compile);
    &FACTS
}

/// The kind of a failure that no entry of the catalogue describes.
pub const UNRECOGNISED: &str = "unrecognised";

#[derive(Debug)]
pub struct Facts {
    kinds: Vec<Kind>,
    asserts: Vec<Assert>,
    /// One pattern after the other, with the index of its kind beside it.
    patterns: RegexSet,
    kind_of_pattern: Vec<usize>,
    /// `cudaErrorAssert`, `CUDA_ERROR_ASSERT`, `hipErrorAssert` to kind and error.
    by_name: HashMap<String, (usize, usize)>,
    by_code: HashMap<u32, (usize, usize)>,
    texts: Option<AhoCorasick>,
    of_text: Vec<(usize, usize, bool)>,
    installed: RegexSet,
    library: RegexSet,
    unrecognised: Kind,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    pub id: String,
    pub reporting: Reporting,
    /// The CUDA context is dead afterwards.
    #[serde(default)]
    pub sticky: bool,
    /// Usually only a consequence of another failure.
    #[serde(default)]
    pub follows: bool,
    #[serde(default)]
    patterns: Vec<String>,
    #[serde(default)]
    pub errors: Vec<ErrorValue>,
}

/// How an error reaches the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reporting {
    /// The call that failed raises it.
    Synchronous,
    /// A later call raises it.
    Asynchronous,
    /// Raised by the call itself, but often only the echo of an earlier asynchronous failure.
    Echo,
    /// The trace is right, but its line is not what has to change.
    Elsewhere,
}

/// One value of cudaError_t with its twins in the other APIs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorValue {
    pub name: String,
    #[serde(default)]
    pub driver: Option<String>,
    #[serde(default)]
    pub hip: Option<String>,
    pub code: u32,
    #[serde(default)]
    pub legacy: Option<u32>,
    pub text: String,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    ambiguous: bool,
}

impl ErrorValue {
    /// The error as a verdict shows it, under the name that the evidence used.
    pub fn named(&self, name: &str) -> CudaError {
        CudaError { name: name.to_owned(), code: Some(self.code), legacy_code: self.legacy, text: self.text.clone() }
    }
}

/// A device-side assertion that a framework is known to fire.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assert {
    pub id: String,
    #[serde(rename = "family")]
    pub subject: Subject,
    #[serde(deserialize_with = "regex")]
    condition: Regex,
    #[serde(default, deserialize_with = "optional_regex")]
    kernel: Option<Regex>,
    /// Functions one of which encloses the assertion where it stands in a lambda: every kernel that can fire it has the
    /// name of one in its own.
    #[serde(default)]
    pub functions: Vec<String>,
}

/// What is wrong where an assertion fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    Index,
    Label,
    Probability,
    /// The offsets of an embedding bag.
    Offset,
    Mask,
    /// A number of repeats.
    Repeat,
    Other,
}

/// A CUDA error as a text spells it.
#[derive(Debug, Clone, Copy)]
pub struct Spelled<'a> {
    pub kind: &'a Kind,
    pub error: &'a ErrorValue,
}

impl Facts {
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The kind of that name, else the unrecognised one.
    pub fn kind(&self, id: &str) -> &Kind {
        self.kinds.iter().find(|kind| kind.id == id).unwrap_or(&self.unrecognised)
    }

    /// The first kind, in the order of the catalogue, one of whose wordings stands in the text.
    pub fn kind_worded(&self, text: &str) -> Option<&Kind> {
        let first = self.patterns.matches(text).into_iter().next()?;
        self.kinds.get(*self.kind_of_pattern.get(first)?)
    }

    /// The error of a name in any of the three APIs.
    pub fn error_named(&self, name: &str) -> Option<Spelled<'_>> {
        self.spelled(*self.by_name.get(name)?)
    }

    /// The error of a code of today.
    pub fn error_coded(&self, code: u32) -> Option<Spelled<'_>> {
        self.spelled(*self.by_code.get(&code)?)
    }

    /// The first text of cudaGetErrorString for which `stands` holds: it gets the byte where the text begins, and
    /// whether the text is one that also stands in sentences about something else.
    pub fn error_told(&self, text: &str, stands: impl Fn(usize, bool) -> bool) -> Option<Spelled<'_>> {
        self.texts.as_ref()?.find_iter(text).find_map(|found| {
            let &(kind, error, ambiguous) = self.of_text.get(found.pattern().as_usize())?;
            if stands(found.start(), ambiguous) { self.spelled((kind, error)) } else { None }
        })
    }

    /// The known assertion of a condition and a kernel's name.
    pub fn assert(&self, condition: &str, kernel: &str) -> Option<&Assert> {
        self.asserts.iter().find(|assert| {
            assert.condition.is_match(condition) && assert.kernel.as_ref().is_none_or(|name| name.is_match(kernel))
        })
    }

    pub fn asserts(&self) -> &[Assert] {
        &self.asserts
    }

    /// Was the file put there by an installer? Forward slashes.
    pub fn is_installed(&self, path: &str) -> bool {
        self.installed.is_match(path)
    }

    /// Is the file known by its name to be a library's or the interpreter's? Forward slashes.
    pub fn is_library(&self, path: &str) -> bool {
        self.installed.is_match(path) || self.library.is_match(path)
    }

    fn spelled(&self, (kind, error): (usize, usize)) -> Option<Spelled<'_>> {
        let kind = self.kinds.get(kind)?;
        Some(Spelled { kind, error: kind.errors.get(error)? })
    }

    /// The files are part of the program and a test reads them, so a mistake in one shows there and not to a user.
    fn compile() -> Self {
        #[derive(Deserialize, Default)]
        struct Kinds {
            kind: Vec<Kind>,
        }
        #[derive(Deserialize, Default)]
        struct Asserts {
            assert: Vec<Assert>,
        }
        #[derive(Deserialize, Default)]
        struct Roots {
            installed: Vec<String>,
            library: Vec<String>,
        }
        let kinds = read::<Kinds>("kinds.toml", include_str!("kinds.toml")).kind;
        let asserts = read::<Asserts>("asserts.toml", include_str!("asserts.toml")).assert;
        let roots = read::<Roots>("library_roots.toml", include_str!("library_roots.toml"));

        let (mut patterns, mut kind_of_pattern) = (Vec::new(), Vec::new());
        let (mut texts, mut of_text) = (Vec::new(), Vec::new());
        let (mut by_name, mut by_code) = (HashMap::new(), HashMap::new());
        for (index, kind) in kinds.iter().enumerate() {
            for pattern in &kind.patterns {
                patterns.push(pattern.as_str());
                kind_of_pattern.push(index);
            }
            for (place, error) in kind.errors.iter().enumerate() {
                for name in [Some(&error.name), error.driver.as_ref(), error.hip.as_ref()].into_iter().flatten() {
                    by_name.insert(name.clone(), (index, place));
                }
                by_code.insert(error.code, (index, place));
                texts.push(error.text.as_str());
                of_text.push((index, place, error.ambiguous));
                for text in &error.also {
                    texts.push(text.as_str());
                    of_text.push((index, place, false));
                }
            }
        }
        let unrecognised = Kind {
            id: UNRECOGNISED.to_owned(),
            reporting: Reporting::Synchronous,
            sticky: false,
            follows: false,
            patterns: Vec::new(),
            errors: Vec::new(),
        };
        Self {
            patterns: pattern::patterns(&patterns),
            kind_of_pattern,
            by_name,
            by_code,
            texts: automaton(&texts),
            of_text,
            installed: pattern::patterns(&roots.installed),
            library: pattern::patterns(&roots.library),
            kinds,
            asserts,
            unrecognised,
        }
    }
}

fn read<T: serde::de::DeserializeOwned + Default>(name: &str, text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|error| {
        debug_assert!(false, "{name}: {error}");
        T::default()
    })
}

/// The longest of the texts that begin at a place wins: "operation not supported on global/shared address space" is not
/// "operation not supported".
fn automaton(texts: &[&str]) -> Option<AhoCorasick> {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts).ok()
}

fn regex<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    let text = String::deserialize(deserializer)?;
    Regex::new(&pattern::in_ascii(&text)).map_err(serde::de::Error::custom)
}

fn optional_regex<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Regex>, D::Error> {
    regex(deserializer).map(Some)
}
