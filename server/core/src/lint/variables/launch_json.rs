//! The `env` blocks of a launch.json's configurations.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::config::{Place, launch_json};

use super::{Setting, Variable};

pub fn variables(text: &str) -> Vec<Variable> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = text.len() - body.len();
    let Ok(parsed) = parse_to_ast(body, &CollectOptions::default(), &ParseOptions::default()) else {
        return Vec::new();
    };
    let Some(Value::Object(root)) = &parsed.value else { return Vec::new() };
    let Some(configurations) = root.get_array("configurations") else { return Vec::new() };
    let ours: Vec<_> =
        launch_json::list(text, Place::OwnFile).unwrap_or_default().into_iter().filter(|e| e.ours).collect();
    let mut found = Vec::new();
    for configuration in configurations.elements.iter().filter_map(Value::as_object) {
        let start = configuration.range.start + mark;
        let is_ours = ours.iter().any(|entry| entry.start == start);
        let parts = ["linux", "osx", "windows"].into_iter().filter_map(|part| configuration.get_object(part));
        for part in [configuration].into_iter().chain(parts) {
            let Some(env) = part.get_object("env") else { continue };
            for property in &env.properties {
                let value = match &property.value {
                    Value::StringLit(value) => Some(value.value.to_string()),
                    Value::NumberLit(value) => Some(value.value.to_string()),
                    _ => None,
                };
                let (quoted, range) = (matches!(property.value, Value::StringLit(_)), property.value.range());
                let edge = usize::from(quoted);
                found.push(Variable {
                    name: property.name.as_str().to_owned(),
                    value: value.filter(|value| !value.contains("${")),
                    range: property.range.start + mark..property.range.end + mark,
                    value_range: Some(range.start + edge + mark..range.end - edge + mark),
                    removal: None,
                    setting: if is_ours { Setting::Ours } else { Setting::RunConfiguration },
                });
            }
        }
    }
    found
}

/// The name of the configuration that a byte of a launch.json lies in.
pub fn configuration_at(text: &str, offset: usize) -> Option<String> {
    let entries = launch_json::list(text, Place::OwnFile).ok()?;
    entries.into_iter().find(|entry| entry.start <= offset && offset < entry.end).map(|entry| entry.name)
}
