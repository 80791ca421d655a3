//! Environment blocks of compose files and CI jobs: `NAME: value` under `environment`, `env`, `variables`, or
//! `- NAME=value` in a list of them.
//!
//! A light reading by indentation: no anchors, and flow style on one line only. What it does not see, it is quiet about.

use super::{Setting, Variable, is_computed, is_name, lines_of, shell, unquoted, whole_line};

const BLOCKS: &[&str] = &["environment", "env", "variables", "env_vars", "args"];

pub fn variables(text: &str) -> Vec<Variable> {
    let mut found = Vec::new();
    // The indentation of the block's key, and of the first line in it.
    let mut block: Option<(usize, Option<usize>)> = None;
    for (start, line) in lines_of(text) {
        let body = line.trim_start();
        let indentation = line.len() - body.len();
        if body.is_empty() || body.starts_with('#') {
            continue;
        }
        if let Some((key, _)) = block
            && (indentation < key || indentation == key && !body.starts_with("- "))
        {
            block = None;
        }
        let key = body.strip_prefix("- ").unwrap_or(body);
        if let Some((name, rest)) = key.split_once(':')
            && BLOCKS.contains(&name.trim())
            && let Some(inside) = flow(rest)
        {
            of_flow(inside, start + line.len() - rest.len() + (rest.len() - rest.trim_start().len()) + 1, &mut found);
            continue;
        }
        if let Some((name, rest)) = key.split_once(':')
            && BLOCKS.contains(&name.trim())
            && rest.split('#').next().unwrap_or("").trim().is_empty()
        {
            block = Some((indentation + body.len() - key.len(), None));
            continue;
        }
        let Some((_, inside)) = &mut block else { continue };
        if inside.get_or_insert(indentation) != &indentation {
            continue;
        }
        let at = start + indentation;
        if let Some(variable) = entry(body, at) {
            found.push(Variable { removal: Some(whole_line(text, start)), ..variable });
        }
    }
    found
}

/// What stands between the brackets of `{NAME: value}` or `["NAME=value"]`.
fn flow(rest: &str) -> Option<&str> {
    let rest = rest.trim();
    let end = if rest.starts_with('{') { '}' } else { ']' };
    rest.strip_prefix(['{', '['])?.strip_suffix(end)
}

fn of_flow(inside: &str, at: usize, found: &mut Vec<Variable>) {
    let mut offset = 0;
    for item in inside.split(',') {
        let body = item.trim_start();
        let start = at + offset + item.len() - body.len();
        let (unquoted, quote) = unquoted(body.trim_end());
        let variable = if quote > 0 || !body.contains(':') {
            entry(&format!("- {unquoted}"), 0).map(|variable| variable.moved(start + quote).back("- ".len()))
        } else {
            entry(body.trim_end(), start)
        };
        found.extend(variable);
        offset += item.len() + 1;
    }
}

/// What the scripts of a CI file set: the lines of `run` and `script`, and what is written into GITHUB_ENV.
pub fn scripts(text: &str) -> Vec<Variable> {
    let mut found = Vec::new();
    for (start, line) in lines_of(text) {
        let item = line.trim_start();
        let item = item.strip_prefix("- ").unwrap_or(item).trim_start();
        let command = ["run:", "script:"].iter().find_map(|key| item.strip_prefix(key)).unwrap_or(item).trim_start();
        let at = start + line.len() - command.len();
        let of_job = command.contains("GITHUB_ENV").then(|| command.strip_prefix("echo ")).flatten();
        if let Some(written) = of_job {
            let written = written.split(">>").next().unwrap_or(written).trim();
            let (assignment, quote) = unquoted(written);
            let at = at + "echo ".len() + quote;
            let lasting = shell::dotenv(assignment).into_iter().map(|variable| variable.moved(at));
            found.extend(lasting);
            continue;
        }
        found.extend(shell::variables(command).into_iter().map(|variable| variable.moved(at)));
    }
    found
}

fn entry(body: &str, at: usize) -> Option<Variable> {
    let (listed, item) = match body.strip_prefix("- ") {
        Some(item) => (true, item),
        None => (false, body),
    };
    let at = at + body.len() - item.len();
    let (item, outer) = if listed { unquoted(item.trim_end()) } else { (item, 0) };
    let (name, rest) = item.split_once(if listed { '=' } else { ':' })?;
    let name = name.trim();
    let written = rest.trim_start();
    let value_at = at + outer + item.len() - written.len();
    let written = written.find(" #").map_or(written, |comment| &written[..comment]).trim_end();
    if !is_name(name) {
        return None;
    }
    let (inner, quote) = unquoted(written);
    Some(Variable {
        name: name.to_owned(),
        value: (!is_computed(inner) && !inner.is_empty()).then(|| inner.to_owned()),
        range: at + outer..value_at + written.len(),
        value_range: Some(value_at + quote..value_at + quote + inner.len()),
        removal: None,
        setting: Setting::Everything,
    })
}
