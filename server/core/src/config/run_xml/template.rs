//! A new run configuration, in PyCharm's own element order.

use std::collections::BTreeMap;

use super::super::launch_json::{Launch, Profile};
use super::escape;
use crate::mode::{Machine, Os, env_block};

/// The text of a new file for `profile`, without a final newline, as PyCharm writes it.
/// None for the current file: PyCharm has a run configuration of its own for it.
///
/// `module` is the project's module, as other configurations name it; without it PyCharm takes the first Python module.
/// No interpreter is named: the module's is used, whatever the machine.
pub fn create(profile: &Profile, module: Option<&str>) -> Option<String> {
    let (kind, factory) = match &profile.launch {
        Launch::CurrentFile => return None,
        Launch::Pytest(_) => ("tests", "py.test"),
        Launch::Program(_) | Launch::Module(_) | Launch::Torchrun(_) | Launch::Accelerate(_) => {
            ("PythonConfigurationType", "Python")
        }
    };
    let mut lines = vec![
        "<component name=\"ProjectRunConfigurationManager\">".to_owned(),
        format!(
            "  <configuration default=\"false\" name=\"{}\" type=\"{kind}\" factoryName=\"{factory}\">",
            escape(&profile.name())
        ),
    ];
    lines.extend(module.map(|module| format!("    <module name=\"{}\" />", escape(module))));
    let option = |(name, value): (&str, String)| format!("    <option name=\"{name}\" value=\"{}\" />", escape(&value));
    let known = |pairs: &[(&'static str, &str)]| -> Vec<String> {
        pairs.iter().map(|&(name, value)| option((name, value.to_owned()))).collect()
    };
    lines.extend(known(&[("ENV_FILES", ""), ("INTERPRETER_OPTIONS", ""), ("PARENT_ENVS", "true")]));
    lines.push("    <envs>".to_owned());
    // PyCharm's own default, which its constructor would add all the same.
    lines.push("      <env name=\"PYTHONUNBUFFERED\" value=\"1\" />".to_owned());
    let block = env_block(profile.mode, Os::HERE, &Machine::default(), &BTreeMap::new());
    lines.extend(
        block
            .shared()
            .map(|variable| format!("      <env name=\"{}\" value=\"{}\" />", variable.name, escape(&variable.value))),
    );
    lines.push("    </envs>".to_owned());
    lines.extend(known(&[
        ("SDK_HOME", ""),
        ("WORKING_DIRECTORY", PROJECT),
        ("IS_MODULE_SDK", "true"),
        ("ADD_CONTENT_ROOTS", "true"),
        ("ADD_SOURCE_ROOTS", "true"),
    ]));
    lines.push("    <EXTENSION ID=\"PythonCoverageRunConfigurationExtension\" runner=\"coverage.py\" />".to_owned());
    lines.extend(what_is_run(&profile.launch).into_iter().map(option));
    lines.push("    <method v=\"2\" />".to_owned());
    lines.extend(["  </configuration>".to_owned(), "</component>".to_owned()]);
    Some(lines.join("\n"))
}

const PROJECT: &str = "$PROJECT_DIR$";

fn what_is_run(launch: &Launch) -> Vec<(&'static str, String)> {
    let script = |name: String, parameters: String, is_module: bool| {
        vec![
            ("SCRIPT_NAME", name),
            ("PARAMETERS", parameters),
            ("SHOW_COMMAND_LINE", "false".to_owned()),
            ("EMULATE_TERMINAL", "false".to_owned()),
            ("MODULE_MODE", is_module.to_string()),
            ("REDIRECT_INPUT", "false".to_owned()),
            ("INPUT_FILE", String::new()),
        ]
    };
    match launch {
        Launch::CurrentFile => Vec::new(),
        Launch::Program(path) => script(in_project(path), String::new(), false),
        Launch::Module(name) => script(name.clone(), String::new(), true),
        Launch::Torchrun(path) => {
            let parameters = format!("--standalone --nproc_per_node=auto {}", one_word(&in_project(path)));
            script("torch.distributed.run".to_owned(), parameters, true)
        }
        Launch::Accelerate(path) => script("accelerate.commands.launch".to_owned(), one_word(&in_project(path)), true),
        Launch::Pytest(target) => {
            // Each value is JSON inside the attribute.
            let json = |text: &str| super::super::jsonc::quote(text);
            let target = if target.is_empty() { PROJECT.to_owned() } else { in_project(target) };
            vec![
                ("_new_keywords", json("")),
                ("_new_parameters", json("")),
                ("_new_additionalArguments", json("")),
                ("_new_target", json(&target)),
                ("_new_targetType", json("PATH")),
            ]
        }
    }
}

fn in_project(path: &str) -> String {
    let is_absolute = path.starts_with(['/', '$']) || path.as_bytes().get(1) == Some(&b':');
    if is_absolute { path.to_owned() } else { format!("{PROJECT}/{path}") }
}

/// A parameter as IntelliJ's ParametersListUtil reads it: quoted where it holds a blank, quotes escaped.
fn one_word(parameter: &str) -> String {
    let escaped = parameter.replace('"', "\\\"");
    if parameter.contains([' ', '\t']) { format!("\"{escaped}\"") } else { escaped }
}
