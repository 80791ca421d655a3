//! The settings under `cublame`, as the client sends them: at the start, when they change, and when it is asked.

use std::path::PathBuf;

use cublame_core::catalog::Language;
use cublame_core::lint::RULES;
use cublame_core::mode::Mode;
use serde::Deserialize;
use serde_json::Value;

use crate::world::paths::Mapping;

/// What the server reads of them. A value that it cannot use is as good as none, and is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    pub mode: Option<Mode>,
    pub python: Option<PathBuf>,
    pub path_mappings: Vec<Mapping>,
    /// Names of rules, as in `[tool.cublame.lint]`.
    pub lint_select: Vec<String>,
    pub lint_ignore: Vec<String>,
    pub language: Language,
    /// No tensors at the ends of the failing lines.
    pub no_inlay_hints: bool,
    /// `cublame.hangSeconds`
    pub hang_seconds: Option<u32>,
    /// What could not be used, as whole sentences.
    pub complaints: Vec<String>,
}

/// `initializationOptions: { "settings": { "mode": "blocking", ... } }`; the locale is the client's.
pub fn of_initialize(options: Option<&Value>, locale: Option<&str>) -> Settings {
    of_section(options.and_then(|options| options.get("settings")), locale)
}

/// The settings of `workspace/didChangeConfiguration`: clients send the section itself, or all with the section in it.
pub fn of_notification(settings: &Value, locale: Option<&str>) -> Settings {
    of_section(Some(settings.get(SECTION).unwrap_or(settings)), locale)
}

/// What is read of the section. An editor's own settings may stand beside them.
pub const NAMES: [&str; 8] =
    ["mode", "python", "locale", "pathMappings", "hangSeconds", "lint.select", "lint.ignore", "inlayHints"];

/// The name of the section, which `workspace/configuration` asks for.
pub const SECTION: &str = "cublame";

pub fn of_section(section: Option<&Value>, locale: Option<&str>) -> Settings {
    let mut settings = Settings::default();
    let mut word = |name: &str| {
        let value = section.and_then(|section| section.get(name)).filter(|value| !value.is_null());
        let text = value.and_then(Value::as_str);
        if value.is_some() && text.is_none() {
            settings.complaints.push(format!("the setting {SECTION}.{name} is not a text and is left out"));
        }
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let (mode, python, chosen_locale) = (word("mode"), word("python"), word("locale"));
    settings.python = python.map(PathBuf::from);
    settings.language = chosen_locale.as_deref().or(locale).map_or(Language::English, Language::of_locale);
    settings.path_mappings = path_mappings(section, &mut settings.complaints);
    settings.hang_seconds = hang_seconds(section, &mut settings.complaints);
    settings.lint_select = rules(section, "select", &mut settings.complaints);
    settings.lint_ignore = rules(section, "ignore", &mut settings.complaints);
    settings.no_inlay_hints = !switch(section, "inlayHints", true, &mut settings.complaints);
    match mode.as_deref().map(str::parse::<Mode>) {
        Some(Ok(mode)) => settings.mode = Some(mode),
        Some(Err(unknown)) => settings.complaints.push(format!("the setting {SECTION}.mode: {unknown}")),
        None => {}
    }
    settings
}

fn switch(section: Option<&Value>, name: &str, usual: bool, complaints: &mut Vec<String>) -> bool {
    match section.and_then(|section| section.get(name)) {
        None | Some(Value::Null) => usual,
        Some(Value::Bool(on)) => *on,
        Some(_) => {
            complaints.push(format!("the setting {SECTION}.{name} is neither true nor false and is left out"));
            usual
        }
    }
}

/// None: a silent run is left in peace. So is one with 0 seconds.
fn hang_seconds(section: Option<&Value>, complaints: &mut Vec<String>) -> Option<u32> {
    let value = section.and_then(|section| section.get("hangSeconds")).filter(|value| !value.is_null())?;
    let seconds = value.as_u64().and_then(|seconds| u32::try_from(seconds).ok());
    if seconds.is_none() {
        complaints.push(format!("the setting {SECTION}.hangSeconds is not a whole number of seconds and is left out"));
    }
    seconds.filter(|seconds| *seconds > 0)
}

/// `{ "lint": { "ignore": ["hardcoded-device"] } }`
fn rules(section: Option<&Value>, name: &str, complaints: &mut Vec<String>) -> Vec<String> {
    let lint = section.and_then(|section| section.get("lint"));
    let Some(listed) = lint.and_then(|lint| lint.get(name)).filter(|value| !value.is_null()) else {
        return Vec::new();
    };
    let Ok(mut names) = Vec::<String>::deserialize(listed) else {
        complaints.push(format!("the setting {SECTION}.lint.{name} is a list of rules and is left out"));
        return Vec::new();
    };
    names.retain(|rule| {
        let known = RULES.iter().any(|known| known.name == rule);
        if !known {
            complaints.push(format!("the setting {SECTION}.lint.{name}: `{rule}` is no rule of the lint"));
        }
        known
    });
    names
}

/// As debugpy has them: `[{ "localRoot": "/home/dev/proj", "remoteRoot": "/srv/job" }]`.
fn path_mappings(section: Option<&Value>, complaints: &mut Vec<String>) -> Vec<Mapping> {
    let Some(listed) = section.and_then(|section| section.get("pathMappings")).filter(|value| !value.is_null()) else {
        return Vec::new();
    };
    let mapping = |entry: &Value| {
        let word = |name: &str| entry.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Mapping { remote: word("remoteRoot")?, local: word("localRoot")?.into() })
    };
    let mappings: Option<Vec<Mapping>> = listed.as_array().and_then(|entries| entries.iter().map(mapping).collect());
    mappings.unwrap_or_else(|| {
        complaints.push(format!(
            "the setting {SECTION}.pathMappings is a list of {{ localRoot, remoteRoot }} and is left out"
        ));
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_section_is_found_where_clients_put_it() {
        let expected = Settings { mode: Some(Mode::Blocking), ..Settings::default() };
        assert_eq!(of_notification(&json!({ "cublame": { "mode": "blocking" } }), None), expected);
        assert_eq!(of_notification(&json!({ "mode": "blocking" }), None), expected);
        assert_eq!(of_initialize(Some(&json!({ "settings": { "mode": "blocking", "python": "" } })), None), expected);
        assert_eq!(of_initialize(None, None), Settings::default());
    }

    #[test]
    fn path_mappings_are_those_of_debugpy() {
        let section = json!({ "pathMappings": [{ "localRoot": "/home/dev/proj", "remoteRoot": "/srv/job" }] });
        let expected = Mapping { remote: "/srv/job".to_owned(), local: "/home/dev/proj".into() };
        assert_eq!(of_section(Some(&section), None).path_mappings, [expected]);
    }

    #[test]
    fn a_silent_run_is_asked_only_where_the_user_says_after_how_long() {
        let of = |value: Value| of_section(Some(&json!({ "hangSeconds": value })), None);
        assert_eq!(of(json!(300)).hang_seconds, Some(300));
        assert_eq!((of(json!(0)).hang_seconds, of(json!(null)).hang_seconds), (None, None));
        assert_eq!((of(json!("soon")).hang_seconds, of(json!("soon")).complaints.len()), (None, 1));
    }

    #[test]
    fn rules_of_the_lint_are_known_by_name() {
        let settings =
            of_section(Some(&json!({ "lint": { "ignore": ["hardcoded-device", "no-rule"], "select": 3 } })), None);
        assert_eq!((settings.lint_select.len(), settings.lint_ignore), (0, vec!["hardcoded-device".to_owned()]));
        assert_eq!(settings.complaints.len(), 2, "{:?}", settings.complaints);
    }

    #[test]
    fn what_cannot_be_used_is_said_and_left_out() {
        let settings = of_section(
            Some(&json!({ "mode": "fast", "python": 3, "pathMappings": [{ "localRoot": "/a" }], "inlayHints": "no" })),
            Some("zh_CN"),
        );
        assert_eq!((settings.mode, settings.python, settings.language), (None, None, Language::SimplifiedChinese));
        assert_eq!(settings.complaints.len(), 4, "{:?}", settings.complaints);
        assert!(!settings.no_inlay_hints);
    }
}
