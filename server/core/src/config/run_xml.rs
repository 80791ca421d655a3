//! PyCharm's shared run configurations: `.run/*.run.xml` and `.idea/runConfigurations/*.xml`.
//!
//! A library that writes XML would put its own blanks, quotes and entities into the user's file,
//! so roxmltree only reads, and gives the byte range of every element and attribute; the edits are made here.
//! PyCharm drops options that it does not know when it saves, so ours are known by their name alone.
//! `workspace.xml` holds the configurations that are not shared; it is PyCharm's own and is never edited.

mod strict;
mod template;

use std::collections::BTreeMap;
use std::str::FromStr;

use roxmltree::{Document, Node};

use super::edit::{Edit, Refused, apply};
use super::entries::NAME_PREFIX;
use super::launch_json::Switched;
use crate::mode::{Machine, Mode, OUR_SHARED_VARIABLES, Os, env_block};

pub use strict::strictly;
pub use template::create;

/// What a run configuration says, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunConfiguration {
    pub name: String,
    /// `PythonConfigurationType`, `tests`...
    pub kind: String,
    /// `Python`, `py.test`...
    pub factory: String,
    /// In the order of the file; of two with one name PyCharm takes the last.
    pub envs: Vec<(String, String)>,
    /// The `<option>`s with a value.
    pub options: BTreeMap<String, String>,
    /// The module's name, where it has one.
    pub module: Option<String>,
}

impl RunConfiguration {
    /// A script, a module or a Python test: what our variables are for.
    pub fn is_python(&self) -> bool {
        matches!(self.kind.as_str(), "PythonConfigurationType" | "tests")
    }

    pub fn is_ours(&self) -> bool {
        self.name.starts_with(NAME_PREFIX) && self.env("CUBLAME_MODE").is_some()
    }

    pub fn mode(&self) -> Option<Mode> {
        let named = self.env("CUBLAME_MODE").and_then(|word| Mode::from_str(word).ok());
        named.or_else(|| (self.env("CUDA_LAUNCH_BLOCKING") == Some("1")).then_some(Mode::Blocking))
    }

    pub fn env(&self, name: &str) -> Option<&str> {
        self.envs.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a shared run configuration of any kind; what is unknown is passed over.
pub fn read(text: &str) -> Result<RunConfiguration, Refused> {
    let document = parse(text)?;
    let configuration = configuration(text, &document)?;
    let attribute = |name: &str| configuration.attribute(name).unwrap_or_default().to_owned();
    let options = children(configuration, "option")
        .filter_map(|option| Some((option.attribute("name")?.to_owned(), option.attribute("value")?.to_owned())));
    let envs = envs(configuration)
        .into_iter()
        .flat_map(|envs| children(envs, "env"))
        .filter_map(|env| Some((env.attribute("name")?.to_owned(), env.attribute("value")?.to_owned())));
    Ok(RunConfiguration {
        name: attribute("name"),
        kind: attribute("type"),
        factory: attribute("factoryName"),
        envs: envs.collect(),
        options: options.collect(),
        module: children(configuration, "module").next().and_then(|module| module.attribute("name")).map(str::to_owned),
    })
}

/// The name of our copy of a configuration: `cublame: train (blocking)`.
pub fn name_of_copy(name: &str, mode: Mode) -> String {
    format!("{NAME_PREFIX}{name} ({mode})")
}

/// A copy of an existing configuration under our name, with the variables of a mode. Everything else stays.
pub fn copy(text: &str, mode: Mode) -> Result<String, Refused> {
    let document = parse(text)?;
    let configuration = configuration(text, &document)?;
    let name = name_of_copy(configuration.attribute("name").unwrap_or_default(), mode);
    let mut edits = env_edits(text, configuration, &target(mode, &variables_of(text, configuration)));
    let set = |attribute: &str, value: &str| {
        let range = configuration.attribute_node(attribute)?.range_value();
        Some(Edit::replace(range.start, range.end, escape(value)))
    };
    edits.extend(set("name", &name));
    edits.extend(set("default", "false"));
    // A generated name may be generated anew, and a temporary configuration is dropped: neither is meant for a copy.
    for attribute in ["nameIsGenerated", "temporary"] {
        let range = configuration.attribute_node(attribute).map(|attribute| attribute.range());
        edits.extend(range.map(|range| Edit::delete(text[..range.start].trim_end().len(), range.end)));
    }
    Ok(apply(text, &edits))
}

/// The edits that make a configuration run in `mode`, and the record that undoes them.
/// `earlier` is the record of a switch that is still in force.
pub fn switch(
    text: &str,
    file: &str,
    mode: Mode,
    earlier: Option<&Switched>,
) -> Result<(Vec<Edit>, Switched), Refused> {
    let document = parse(text)?;
    let configuration = configuration(text, &document)?;
    let now = variables_of(text, configuration);
    let mut before: BTreeMap<String, Option<String>> =
        OUR_SHARED_VARIABLES.iter().map(|&name| (name.to_owned(), now.get(name).cloned())).collect();
    if now.is_empty() {
        before.insert(WHOLE.to_owned(), envs(configuration).map(|envs| text[envs.range()].to_owned()));
    }
    if let Some(earlier) = earlier {
        before.clone_from(&earlier.before);
    }
    let users = before.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    let name = configuration.attribute("name").unwrap_or_default().to_owned();
    let edits = env_edits(text, configuration, &target(mode, &users));
    require_nothing_else_changed(text, &edits)?;
    Ok((edits, Switched { file: file.to_owned(), name, mode, before, added: Vec::new() }))
}

/// The edits that give a configuration a variable of the user's choice.
pub fn set_variable(text: &str, name: &'static str, value: &str) -> Result<Vec<Edit>, Refused> {
    let document = parse(text)?;
    let configuration = configuration(text, &document)?;
    Ok(env_edits(text, configuration, &vec![(name, Some(escape(value)))]))
}

/// The edits that undo a switch. What the user changed in other variables since then stays.
pub fn switch_back(text: &str, record: &Switched) -> Result<Vec<Edit>, Refused> {
    let document = parse(text)?;
    let configuration = configuration(text, &document)?;
    let is_ours = |name: &String| OUR_SHARED_VARIABLES.contains(&name.as_str());
    let edits = match (record.before.get(WHOLE), envs(configuration)) {
        (Some(whole), Some(envs)) if variables_of(text, configuration).keys().all(is_ours) => {
            let range = envs.range();
            vec![match whole {
                Some(source) => Edit::replace(range.start, range.end, source),
                None => Edit::delete(text[..range.start].trim_end().len(), range.end),
            }]
        }
        _ => {
            let old = |name: &'static str| record.before.get(name).map(|value| (name, value.clone()));
            env_edits(text, configuration, &OUR_SHARED_VARIABLES.into_iter().filter_map(old).collect::<Vec<_>>())
        }
    };
    require_nothing_else_changed(text, &edits)?;
    Ok(edits)
}

/// A record comes from the workspace, which nobody has to trust: it may put our variables back, and no more.
fn require_nothing_else_changed(text: &str, edits: &[Edit]) -> Result<(), Refused> {
    let shape = |text: &str| -> Result<_, Refused> {
        let document = parse(text)?;
        let is_ours = |node: &Node| node.attribute("name").is_some_and(|name| OUR_SHARED_VARIABLES.contains(&name));
        let elements =
            document.descendants().filter(|node| node.is_element() && !node.has_tag_name("envs") && !is_ours(node));
        let attributes = |node: Node| -> Vec<(String, String)> {
            node.attributes().map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned())).collect()
        };
        Ok(elements.map(|node| (node.tag_name().name().to_owned(), attributes(node))).collect::<Vec<_>>())
    };
    match shape(&apply(text, edits)) {
        Ok(after) if after == shape(text)? => Ok(()),
        _ => Err(Refused::at(text, 0, "the record of the switch would change more than cublame's variables")),
    }
}

/// In a record: the source of an `<envs>` that held nothing, null where there was none.
const WHOLE: &str = "<envs>";

/// What each of our variables is to be, as it stands in the file; None for "not there".
type Target = Vec<(&'static str, Option<String>)>;

fn target(mode: Mode, users: &BTreeMap<String, String>) -> Target {
    let block = env_block(mode, Os::HERE, &Machine::default(), users);
    let wanted =
        |name: &str| block.shared().find(|variable| variable.name == name).map(|variable| escape(&variable.value));
    OUR_SHARED_VARIABLES.into_iter().map(|name| (name, wanted(name).or_else(|| users.get(name).cloned()))).collect()
}

fn env_edits(text: &str, configuration: Node, target: &Target) -> Vec<Edit> {
    let layout = Layout::of(text, configuration);
    let Some(envs) = envs(configuration) else {
        let lines = lines(target.iter());
        if lines.is_empty() {
            return Vec::new();
        }
        let envs = layout.element("envs", &layout.child_indent, &lines);
        return vec![Edit::insert(place_for_envs(text, configuration), layout.line(&layout.child_indent) + &envs)];
    };
    let mut edits = Vec::new();
    let mut added = Vec::new();
    for (name, value) in target {
        let is_named = |env: &Node| env.attribute("name") == Some(name) && env.attribute("value").is_some();
        let present: Vec<Node> = children(envs, "env").filter(is_named).collect();
        match (value, present.last()) {
            (Some(value), Some(env)) => edits.extend(env.attribute_node("value").and_then(|attribute| {
                let range = attribute.range_value();
                (text[range.clone()] != **value).then(|| Edit::replace(range.start, range.end, value))
            })),
            (Some(_), None) => added.push((*name, value.clone())),
            (None, _) => edits.extend(present.iter().map(|env| {
                let range = env.range();
                Edit::delete(text[..range.start].trim_end().len(), range.end)
            })),
        }
    }
    let lines = lines(added.iter());
    if lines.is_empty() {
        return edits;
    }
    let range = envs.range();
    match envs.last_element_child() {
        Some(last) => {
            let indent = own_line_indent(text, last.range().start).unwrap_or(&layout.env_indent);
            let added: String = lines.iter().map(|line| layout.line(indent) + line).collect();
            edits.push(Edit::insert(last.range().end, added));
        }
        None => edits.push(Edit::replace(range.start, range.end, layout.element("envs", &layout.child_indent, &lines))),
    }
    edits
}

fn lines<'t>(pairs: impl Iterator<Item = &'t (&'static str, Option<String>)>) -> Vec<String> {
    let line = |(name, value): &(&'static str, Option<String>)| {
        Some(format!("<env name=\"{name}\" value=\"{}\" />", value.as_deref()?))
    };
    pairs.filter_map(line).collect()
}

/// `<envs>` follows PARENT_ENVS (AbstractPythonRunConfiguration.writeExternal).
fn place_for_envs(text: &str, configuration: Node) -> usize {
    let option = |name: &str| children(configuration, "option").find(|option| option.attribute("name") == Some(name));
    let before = ["PARENT_ENVS", "INTERPRETER_OPTIONS", "ENV_FILES"].into_iter().find_map(option);
    let before = before.or_else(|| children(configuration, "module").next());
    let start_tag_end = || {
        let first = configuration.first_child().map(|child| child.range().start);
        first.unwrap_or_else(|| configuration.range().start + text[configuration.range()].rfind("</").unwrap_or(0))
    };
    before.map_or_else(start_tag_end, |element| element.range().end)
}

/// How the file is laid out. PyCharm indents by two blanks.
struct Layout {
    newline: &'static str,
    child_indent: String,
    env_indent: String,
}

impl Layout {
    fn of(text: &str, configuration: Node) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let own = own_line_indent(text, configuration.range().start).unwrap_or("  ");
        let child = configuration.first_element_child().and_then(|child| own_line_indent(text, child.range().start));
        let child_indent = child.map_or_else(|| format!("{own}  "), str::to_owned);
        let unit = child_indent.strip_prefix(own).filter(|unit| !unit.is_empty()).unwrap_or("  ");
        Self { newline, env_indent: format!("{child_indent}{unit}"), child_indent }
    }

    fn line(&self, indent: &str) -> String {
        format!("{}{indent}", self.newline)
    }

    fn element(&self, name: &str, indent: &str, lines: &[String]) -> String {
        let inner: String = lines.iter().map(|line| self.line(&self.env_indent) + line).collect();
        format!("<{name}>{inner}{}</{name}>", self.line(indent))
    }
}

fn parse(text: &str) -> Result<Document<'_>, Refused> {
    Document::parse(text).map_err(|error| Refused {
        what: format!("this is not valid XML: {error}"),
        line: error.pos().row as usize,
        column: error.pos().col as usize,
    })
}

/// The one configuration of a shared file.
fn configuration<'d>(text: &str, document: &'d Document<'d>) -> Result<Node<'d, 'd>, Refused> {
    let root = document.root_element();
    if root.tag_name().name() != "component" || root.attribute("name") != Some("ProjectRunConfigurationManager") {
        let what = "this is not a shared run configuration (component ProjectRunConfigurationManager)";
        return Err(Refused::at(text, root.range().start, what));
    }
    let mut found = children(root, "configuration");
    match (found.next(), found.next()) {
        (Some(configuration), None) => Ok(configuration),
        (None, _) => Err(Refused::at(text, root.range().start, "the file holds no configuration")),
        (Some(_), Some(second)) => {
            Err(Refused::at(text, second.range().start, "the file holds more than one configuration"))
        }
    }
}

fn children<'d>(node: Node<'d, 'd>, name: &'static str) -> impl Iterator<Item = Node<'d, 'd>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

fn envs<'d>(configuration: Node<'d, 'd>) -> Option<Node<'d, 'd>> {
    children(configuration, "envs").next()
}

/// The variables by name, each value as it stands in the file.
fn variables_of(text: &str, configuration: Node) -> BTreeMap<String, String> {
    let variables = envs(configuration).into_iter().flat_map(|envs| children(envs, "env"));
    let pair = |env: Node| {
        Some((env.attribute("name")?.to_owned(), text[env.attribute_node("value")?.range_value()].to_owned()))
    };
    variables.filter_map(pair).collect()
}

/// As IntelliJ's JDOMUtil escapes attribute values.
fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            '\t' => escaped.push_str("&#9;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The blanks before `at`, if nothing else stands before it on its line.
fn own_line_indent(text: &str, at: usize) -> Option<&str> {
    let line_start = text[..at].rfind('\n')? + 1;
    let before = &text[line_start..at];
    before.bytes().all(|byte| byte == b' ' || byte == b'\t').then_some(before)
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
