//! The `launch` request of a debug session (Debug Adapter Protocol): what it starts, and a mode's variables put into it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::edit::{Refused, apply};
use super::jsonc::{Document, quote, set_properties};
use super::{Edit, jsonc};

/// What a launch request of debugpy says of the program (debugpy wiki, "Debug configuration settings").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// The word of `cublameMode`, else of CUBLAME_MODE in `env`.
    pub mode: Option<String>,
    /// `env`; None is a variable that is taken away.
    pub env: BTreeMap<String, Option<String>>,
    pub cwd: Option<String>,
    /// The command as a user would type it. Its first word is empty where the request names no interpreter.
    pub argv: Vec<String>,
}

impl LaunchRequest {
    /// Of the arguments of a request.
    pub fn of(arguments: &Value) -> Self {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let entries = arguments.get("env").and_then(Value::as_object).into_iter().flatten();
        let env: BTreeMap<String, Option<String>> =
            entries.map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned))).collect();
        let mode = text("cublameMode").or_else(|| env.get("CUBLAME_MODE").cloned().flatten());
        Self { mode, cwd: text("cwd"), argv: command(arguments), env }
    }

    /// What the program would start with, in an adapter that has `inherited`.
    pub fn environment(&self, mut inherited: BTreeMap<String, String>) -> BTreeMap<String, String> {
        for (name, value) in &self.env {
            match value {
                Some(value) => inherited.insert(name.clone(), value.clone()),
                None => inherited.remove(name),
            };
        }
        inherited
    }
}

/// The request with these variables in its `env`; every byte that they do not change is as it was.
pub fn with_variables<'v>(
    request: &str,
    variables: impl Iterator<Item = (&'v str, &'v str)>,
) -> Result<String, Refused> {
    let document = Document::parse_json(request)?;
    let arguments = document
        .root
        .as_ref()
        .and_then(|root| jsonc::last(root.as_object()?, "arguments")?.value.as_object())
        .ok_or_else(|| Refused::at(request, 0, "the request has no arguments"))?;
    let pairs: Vec<(&str, String)> = variables.map(|(name, value)| (name, quote(value))).collect();
    let present = jsonc::last(arguments, "env").map(|property| &property.value);
    let edits: Vec<Edit> = match present.and_then(|value| value.as_object()) {
        Some(env) => {
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, json)| (*name, json.as_str())).collect();
            set_properties(&document, env, &pairs, false)
        }
        None => {
            let members: Vec<String> = pairs.iter().map(|(name, json)| format!("{}: {json}", quote(name))).collect();
            set_properties(&document, arguments, &[("env", &format!("{{{}}}", members.join(", ")))], false)
        }
    };
    Ok(apply(request, &document.finish(edits)))
}

/// `python -m module args`, as far as the request names it.
fn command(arguments: &Value) -> Vec<String> {
    let words = |name: &str| -> Vec<String> {
        match arguments.get(name) {
            Some(Value::String(word)) => vec![word.clone()],
            Some(Value::Array(words)) => words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect(),
            _ => Vec::new(),
        }
    };
    let mut python = words("python");
    if python.is_empty() {
        python = words("pythonPath");
    }
    if python.is_empty() {
        python.push(String::new());
    }
    let target = match (words("program"), words("module"), words("code")) {
        (program, _, _) if !program.is_empty() => program,
        (_, module, _) if !module.is_empty() => [vec!["-m".to_owned()], module].concat(),
        (_, _, code) if !code.is_empty() => vec!["-c".to_owned(), code.join("\n")],
        _ => Vec::new(),
    };
    [python, words("pythonArgs"), target, words("args")].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(request: &str, variables: &[(&str, &str)], expected: &str) {
        let found = with_variables(request, variables.iter().copied());
        assert_eq!(found.as_deref().map_err(ToString::to_string), Ok(expected));
    }

    #[test]
    fn variables_go_into_the_env_and_nothing_else_changes() {
        let variables = [("CUBLAME_MODE", "blocking"), ("CUDA_LAUNCH_BLOCKING", "1")];
        check(
            r#"{"seq":2, "command":"launch","arguments":{"program" : "a.py","x":1e400,"env":{"A":"b"},"ü":"\u00fc"},"type":"request"}"#,
            &variables,
            r#"{"seq":2, "command":"launch","arguments":{"program" : "a.py","x":1e400,"env":{"A":"b", "CUBLAME_MODE": "blocking", "CUDA_LAUNCH_BLOCKING": "1"},"ü":"\u00fc"},"type":"request"}"#,
        );
        check(
            r#"{"arguments":{"program":"a.py"}}"#,
            &variables[..1],
            r#"{"arguments":{"program":"a.py", "env": {"CUBLAME_MODE": "blocking"}}}"#,
        );
        check(
            r#"{"arguments":{"env":{"CUDA_LAUNCH_BLOCKING":null,"CUBLAME_MODE":"trace"}}}"#,
            &variables,
            r#"{"arguments":{"env":{"CUDA_LAUNCH_BLOCKING":"1","CUBLAME_MODE":"blocking"}}}"#,
        );
        check(r#"{"arguments":{"env":null}}"#, &[("A", "\"")], r#"{"arguments":{"env":{"A": "\""}}}"#);
        check(r#"{"arguments":{}}"#, &[("A", "b")], r#"{"arguments":{"env": {"A": "b"}}}"#);
    }

    #[test]
    fn a_request_without_arguments_is_refused() {
        assert!(with_variables(r#"{"command":"launch"}"#, [("A", "b")].into_iter()).is_err());
        assert!(with_variables("[", [("A", "b")].into_iter()).is_err());
    }

    #[test]
    fn the_command_is_what_a_user_would_type() {
        let check = |arguments: Value, expected: &str| {
            assert_eq!(LaunchRequest::of(&arguments).argv.join(" "), expected);
        };
        check(
            json!({ "python": ["/venv/bin/python", "-u"], "program": "train.py", "args": ["--epochs", "3"] }),
            "/venv/bin/python -u train.py --epochs 3",
        );
        check(json!({ "pythonPath": "py", "pythonArgs": ["-O"], "module": "pkg", "args": "a b" }), "py -O -m pkg a b");
        check(json!({ "code": ["x = 1", "y()"] }), " -c x = 1\ny()");
        check(json!({}), "");
    }

    #[test]
    fn the_mode_is_named_by_the_entry_or_its_environment() {
        let of = |arguments: Value| LaunchRequest::of(&arguments).mode;
        assert_eq!(of(json!({ "env": { "CUBLAME_MODE": "trace" } })).as_deref(), Some("trace"));
        assert_eq!(of(json!({ "cublameMode": "core", "env": { "CUBLAME_MODE": "trace" } })).as_deref(), Some("core"));
        assert_eq!(of(json!({ "env": { "CUBLAME_MODE": null } })), None);
        let request = LaunchRequest::of(&json!({ "env": { "A": null, "B": "2" } }));
        let inherited = [("A", "1"), ("C", "3")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = request.environment(inherited.into());
        assert_eq!(environment.into_iter().map(|(name, value)| name + &value).collect::<Vec<_>>(), ["B2", "C3"]);
    }
}
