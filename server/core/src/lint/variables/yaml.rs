//! Environment blocks of compose files and CI jobs: `NAME: value` under `environment`, `env`, `variables`, or
//! `- NAME=value` in a list of them.
//!
//! A light reading by indentation: no anchors, no flow style. What it does not see, it is quiet about.

use super::{Setting, Variable, is_computed, is_name, lines_of, unquoted, whole_line};

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
