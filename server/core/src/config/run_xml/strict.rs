//! A strict reader of Python run configurations: what PyCharm itself would have written, and nothing else.
//!
//! The rules follow AbstractPythonRunConfiguration.writeExternal and its subclasses.
//! What we write must pass; a user's own file need not.

use roxmltree::Node;

use super::super::edit::Refused;
use super::{RunConfiguration, configuration, parse, read};

/// Elements in PyCharm's order; an `<option>` goes by its name. What stands on one line shares a place.
const ORDER: [&[&str]; 16] = [
    &["module"],
    &["ENV_FILES"],
    &["INTERPRETER_OPTIONS"],
    &["PARENT_ENVS"],
    &["envs"],
    &["SDK_HOME"],
    &["SDK_NAME"],
    &["WORKING_DIRECTORY"],
    &["IS_MODULE_SDK"],
    &["ADD_CONTENT_ROOTS"],
    &["ADD_SOURCE_ROOTS"],
    &["EXTENSION"],
    &["PathMappingSettings"],
    &SCRIPT,
    &TESTS,
    &["method"],
];

const SCRIPT: [&str; 7] = [
    "SCRIPT_NAME",
    "PARAMETERS",
    "SHOW_COMMAND_LINE",
    "EMULATE_TERMINAL",
    "MODULE_MODE",
    "REDIRECT_INPUT",
    "INPUT_FILE",
];

const TESTS: [&str; 5] =
    ["_new_keywords", "_new_parameters", "_new_additionalArguments", "_new_target", "_new_targetType"];

const BOOLEANS: [&str; 8] = [
    "PARENT_ENVS",
    "IS_MODULE_SDK",
    "ADD_CONTENT_ROOTS",
    "ADD_SOURCE_ROOTS",
    "SHOW_COMMAND_LINE",
    "EMULATE_TERMINAL",
    "MODULE_MODE",
    "REDIRECT_INPUT",
];

const ATTRIBUTES: [&str; 9] = [
    "default",
    "name",
    "type",
    "factoryName",
    "nameIsGenerated",
    "folderName",
    "editBeforeRun",
    "activateToolWindowBeforeRun",
    "singleton",
];

/// Reads a script, module or pytest configuration and refuses what PyCharm would not have written.
pub fn strictly(text: &str) -> Result<RunConfiguration, Refused> {
    let read = read(text)?;
    let document = parse(text)?;
    let configuration = configuration(text, &document)?;
    let refuse = |node: Node, what: String| Err(Refused::at(text, node.range().start, what));
    if let Some(unknown) = configuration.attributes().find(|attribute| !ATTRIBUTES.contains(&attribute.name())) {
        return refuse(configuration, format!("`{}` is not an attribute of a configuration", unknown.name()));
    }
    if configuration.attribute("default") != Some("false") || read.name.is_empty() {
        return refuse(configuration, "a shared configuration has a name and default=\"false\"".to_owned());
    }
    let wanted: &[&str] = match (read.kind.as_str(), read.factory.as_str()) {
        ("PythonConfigurationType", "Python") => &SCRIPT,
        ("tests", "py.test") => &TESTS,
        (kind, factory) => return refuse(configuration, format!("`{kind}` with `{factory}` is not a Python run")),
    };
    if let Some(missing) = wanted.iter().chain(&["WORKING_DIRECTORY"]).find(|name| !read.options.contains_key(**name)) {
        return refuse(configuration, format!("the option {missing} is missing"));
    }
    let mut place = (0, 0);
    for child in configuration.children().filter(Node::is_element) {
        let name = name_of(child);
        let Some(found) = place_of(name) else { return refuse(child, format!("`{name}` is not known to PyCharm")) };
        let may_repeat = name == "EXTENSION";
        if found < place || found == place && !may_repeat && place != (0, 0) {
            return refuse(child, format!("`{name}` stands in the wrong place, or twice"));
        }
        place = found;
        if let Err(what) = check_value(child, name) {
            return refuse(child, what);
        }
    }
    Ok(read)
}

fn place_of(name: &str) -> Option<(usize, usize)> {
    ORDER.iter().enumerate().find_map(|(row, names)| Some((row, names.iter().position(|other| *other == name)?)))
}

fn name_of<'d>(element: Node<'d, 'd>) -> &'d str {
    match element.tag_name().name() {
        "option" => element.attribute("name").unwrap_or("option"),
        other => other,
    }
}

fn check_value(element: Node, name: &str) -> Result<(), String> {
    let value = element.attribute("value");
    match name {
        "module" if element.attribute("name").is_none() => Err("a module has a name".to_owned()),
        "envs" => element.children().filter(Node::is_element).try_for_each(|env| {
            let is_whole = env.has_tag_name("env") && env.attribute("name").is_some_and(|name| !name.is_empty());
            let is_whole = is_whole && env.attribute("value").is_some() && env.attributes().len() == 2;
            if is_whole { Ok(()) } else { Err("an `env` has a name and a value".to_owned()) }
        }),
        "method" if element.attribute("v") != Some("2") => Err("`method` has v=\"2\"".to_owned()),
        "module" | "method" | "EXTENSION" | "PathMappingSettings" => Ok(()),
        _ => {
            let value = value.ok_or_else(|| format!("the option {name} has no value"))?;
            if BOOLEANS.contains(&name) && !["true", "false"].contains(&value) {
                return Err(format!("the option {name} is true or false, not `{value}`"));
            }
            if name.starts_with("_new_") {
                return check_json(name, value);
            }
            Ok(())
        }
    }
}

fn check_json(name: &str, value: &str) -> Result<(), String> {
    let json: serde_json::Value =
        serde_json::from_str(value).map_err(|_| format!("the value of {name} is JSON, not `{value}`"))?;
    let is_known = ["PATH", "PYTHON", "CUSTOM"].iter().any(|kind| json == *kind);
    if name == "_new_targetType" && !is_known { Err(format!("`{value}` is not a kind of target")) } else { Ok(()) }
}
