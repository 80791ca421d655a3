//! The product's words in each language, read from the TOML files beside this one.
//!
//! A key is the file's name and the path inside it: `kinds.device-assert.summary` is `summary` under `[device-assert]`
//! of `kinds.en.toml`. A text may hold `{placeholder}`s; a brace that encloses anything but a name is just a brace.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Language {
    #[default]
    English,
    SimplifiedChinese,
}

impl Language {
    pub const ALL: [Language; 2] = [Language::English, Language::SimplifiedChinese];

    /// The language of a locale (`LANG`, the LSP's `initialize`), English for one that has no texts here.
    pub fn of_locale(locale: &str) -> Self {
        locale.parse().unwrap_or_default()
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    /// Reads `en`, `zh`, `zh-cn`, `zh_CN.UTF-8`, `zh-Hans`, `C`: the part before the first `-`, `_`, `.` or `@` decides.
    fn from_str(locale: &str) -> Result<Self, Self::Err> {
        let primary = locale.split(['-', '_', '.', '@']).next().unwrap_or_default();
        match primary.to_ascii_lowercase().as_str() {
            "en" | "c" | "posix" => Ok(Language::English),
            "zh" => Ok(Language::SimplifiedChinese),
            _ => Err(UnknownLanguage(locale.to_owned())),
        }
    }
}

/// A locale whose language has no texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLanguage(pub String);

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there are no texts for `{}`; the languages are en and zh", self.0)
    }
}

impl std::error::Error for UnknownLanguage {}

/// All texts of one language.
#[derive(Debug)]
pub struct Texts {
    language: Language,
    lines: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
}

impl Texts {
    /// Parsed at the first call, once.
    pub fn get(language: Language) -> &'static Texts {
        static IN_ENGLISH: LazyLock<Texts> = LazyLock::new(|| Texts::parse(Language::English, ENGLISH));
        static IN_CHINESE: LazyLock<Texts> = LazyLock::new(|| Texts::parse(Language::SimplifiedChinese, CHINESE));
        match language {
            Language::English => &IN_ENGLISH,
            Language::SimplifiedChinese => &IN_CHINESE,
        }
    }

    pub fn language(&self) -> Language {
        self.language
    }

    /// The text of a key with its placeholders filled.
    ///
    /// A key that is nowhere, or a placeholder without a value, is a mistake of ours: debug builds, and so the tests,
    /// stop at it; a released build shows the English text, then the key itself.
    pub fn line(&self, key: &str, args: &[(&str, &str)]) -> String {
        match self.find(key) {
            Some(text) => fill(text, args),
            None => {
                debug_assert!(false, "the catalogue has no text `{key}`");
                key.to_owned()
            }
        }
    }

    /// The text of a key that may be absent, as it stands in the file.
    pub fn find(&self, key: &str) -> Option<&str> {
        self.lines.get(key).or_else(|| Texts::get(Language::English).lines.get(key)).map(String::as_str)
    }

    /// The list of a key, as it stands in the file. One that is nowhere is a mistake of ours, as in [`Texts::line`].
    pub fn list(&self, key: &str) -> &[String] {
        let found = self.lists.get(key).or_else(|| Texts::get(Language::English).lists.get(key));
        debug_assert!(found.is_some(), "the catalogue has no list `{key}`");
        found.map_or(&[], Vec::as_slice)
    }

    fn parse(language: Language, files: &[(&str, &str)]) -> Self {
        let mut texts = Texts { language, lines: BTreeMap::new(), lists: BTreeMap::new() };
        for (name, file) in files {
            match file.parse::<toml::Table>() {
                Ok(table) => texts.insert(name, &toml::Value::Table(table)),
                Err(error) => debug_assert!(false, "{name} of {language:?}: {error}"),
            }
        }
        texts
    }

    fn insert(&mut self, key: &str, value: &toml::Value) {
        match value {
            toml::Value::String(text) => {
                self.lines.insert(key.to_owned(), text.trim_end().to_owned());
            }
            toml::Value::Array(items) => {
                let items = items.iter().filter_map(toml::Value::as_str).map(|item| item.trim_end().to_owned());
                self.lists.insert(key.to_owned(), items.collect());
            }
            toml::Value::Table(table) => {
                for (name, value) in table {
                    self.insert(&format!("{key}.{name}"), value);
                }
            }
            other => debug_assert!(false, "{key} is neither a text nor a list of texts: {other}"),
        }
    }
}

type Files = &'static [(&'static str, &'static str)];

const ENGLISH: Files = &[
    ("because", include_str!("because.en.toml")),
    ("kinds", include_str!("kinds.en.toml")),
    ("asserts", include_str!("asserts.en.toml")),
    ("advice", include_str!("advice.en.toml")),
    ("fixes", include_str!("fixes.en.toml")),
    ("notebook", include_str!("notebook.en.toml")),
    ("doctor", include_str!("doctor.en.toml")),
    ("report", include_str!("report.en.toml")),
    ("editor", include_str!("editor.en.toml")),
];

const CHINESE: Files = &[
    ("because", include_str!("because.zh.toml")),
    ("kinds", include_str!("kinds.zh.toml")),
    ("asserts", include_str!("asserts.zh.toml")),
    ("advice", include_str!("advice.zh.toml")),
    ("fixes", include_str!("fixes.zh.toml")),
    ("notebook", include_str!("notebook.zh.toml")),
    ("doctor", include_str!("doctor.zh.toml")),
    ("report", include_str!("report.zh.toml")),
    ("editor", include_str!("editor.zh.toml")),
];

/// Fills the placeholders in one pass, so that a value with braces of its own stays as it is.
fn fill(text: &str, args: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, name, after)) = next_placeholder(rest) {
        filled.push_str(before);
        match args.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => filled.push_str(value),
            None => {
                debug_assert!(false, "no value for {{{name}}} in `{text}`");
                filled.push_str(&rest[before.len()..rest.len() - after.len()]);
            }
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// The text before the first placeholder, its name, and the text after it.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let name_end = text[open + 1..]
            .find(|character: char| !matches!(character, 'a'..='z' | '0'..='9' | '_'))
            .map_or(text.len(), |at| open + 1 + at);
        if name_end > open + 1 && text[name_end..].starts_with('}') {
            return Some((&text[..open], &text[open + 1..name_end], &text[name_end + 1..]));
        }
        from = open + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn locales_name_a_language() {
        for (locale, language) in [
            ("en", Ok(Language::English)),
            ("en-US", Ok(Language::English)),
            ("en_GB.UTF-8", Ok(Language::English)),
            ("C.UTF-8", Ok(Language::English)),
            ("POSIX", Ok(Language::English)),
            ("zh", Ok(Language::SimplifiedChinese)),
            ("zh-cn", Ok(Language::SimplifiedChinese)),
            ("zh_CN.UTF-8", Ok(Language::SimplifiedChinese)),
            ("zh-Hans-CN", Ok(Language::SimplifiedChinese)),
            ("fr", Err(UnknownLanguage("fr".to_owned()))),
            ("", Err(UnknownLanguage(String::new()))),
        ] {
            assert_eq!(locale.parse(), language, "{locale}");
        }
        assert_eq!(Language::of_locale("de_DE"), Language::English);
    }

    #[test]
    fn placeholders_are_filled_in_one_pass() {
        for (text, filled) in [
            ("nothing to fill", "nothing to fill"),
            ("{a} and {b}", "{b} and 2"),
            ("{ a } {} {A} {a", "{ a } {} {A} {a"),
            ("{{a}}", "{{b}}"),
            ("前{b}后", "前2后"),
        ] {
            assert_eq!(fill(text, &[("a", "{b}"), ("b", "2")]), filled);
        }
    }

    #[test]
    #[should_panic(expected = "no text `because.nowhere`")]
    fn a_missing_key_stops_a_test() {
        Texts::get(Language::English).line("because.nowhere", &[]);
    }

    #[test]
    #[should_panic(expected = "no value for {bytes}")]
    fn a_missing_value_stops_a_test() {
        fill("{bytes} were asked for", &[]);
    }

    /// Both languages have the same keys, lists of the same length and the same placeholders in each text.
    #[test]
    fn the_languages_say_the_same_things() {
        let [english, chinese] = Language::ALL.map(Texts::get);
        assert_eq!(shape(english), shape(chinese));
    }

    fn shape(texts: &Texts) -> BTreeMap<String, BTreeSet<String>> {
        let lines = texts.lines.iter().map(|(key, text)| (key.clone(), placeholders(text)));
        let items = texts.lists.iter().flat_map(|(key, list)| {
            list.iter().enumerate().map(move |(index, text)| (format!("{key}[{index}]"), placeholders(text)))
        });
        lines.chain(items).collect()
    }

    fn placeholders(mut text: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        while let Some((_, name, after)) = next_placeholder(text) {
            names.insert(name.to_owned());
            text = after;
        }
        names
    }

    #[test]
    fn no_text_is_empty() {
        for texts in Language::ALL.map(Texts::get) {
            let lines = texts.lines.iter();
            let items = texts.lists.iter().flat_map(|(key, list)| list.iter().map(move |text| (key, text)));
            for (key, text) in lines.chain(items) {
                assert!(!text.trim().is_empty(), "{key} of {:?} is empty", texts.language());
            }
        }
    }
}
