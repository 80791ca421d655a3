//! `ENV NAME=value ...` and `ENV NAME value` of a Dockerfile (docs.docker.com, "Dockerfile reference").

use super::{Setting, Variable, is_computed, is_name, lines_of, shell, unquoted, whole_line};

pub fn variables(text: &str) -> Vec<Variable> {
    let mut found = Vec::new();
    let mut in_env = false;
    for (start, line) in lines_of(text) {
        let trimmed = line.trim_start();
        let goes_on = line.trim_end().ends_with('\\');
        let comment = trimmed.starts_with('#');
        let words_at = if in_env {
            Some(start + line.len() - trimmed.len())
        } else {
            let keyword =
                trimmed.get(..4).filter(|word| word.eq_ignore_ascii_case("env ") || word.eq_ignore_ascii_case("env\t"));
            keyword.map(|_| start + line.len() - trimmed.len() + 4)
        };
        if comment {
            continue;
        }
        if words_at.is_none() {
            of_commands(trimmed, start + line.len() - trimmed.len(), &mut found);
        }
        if let Some(at) = words_at {
            let body = text[at..start + line.len()].trim_end().trim_end_matches('\\');
            let alone = !in_env && !goes_on;
            pairs(text, body, at, alone, &mut found);
        }
        in_env = words_at.is_some() && goes_on;
    }
    found
}

/// `RUN NAME=value command` and what follows it; such a variable is gone with its command.
fn of_commands(line: &str, at: usize, found: &mut Vec<Variable>) {
    let runs = line.get(..4).filter(|word| word.eq_ignore_ascii_case("run ")).map_or(0, str::len);
    let body = line[runs..].trim_end().trim_end_matches('\\');
    for (offset, command) in shell::commands(body) {
        let of_command = shell::variables(command).into_iter();
        let moved = of_command.map(|variable| variable.moved(at + runs + offset));
        found.extend(moved.map(|variable| Variable { setting: Setting::OneCommand, ..variable }));
    }
}

fn pairs(text: &str, body: &str, at: usize, alone: bool, found: &mut Vec<Variable>) {
    let first = body.split_whitespace().next().unwrap_or("");
    let before = found.len();
    if !first.contains('=') {
        // The old form: one name, and the rest of the line is its value.
        let name_at = at + body.len() - body.trim_start().len();
        let rest = &body[body.len() - body.trim_start().len() + first.len()..];
        let value = rest.trim();
        if is_name(first) && !value.is_empty() {
            let value_at = name_at + first.len() + (rest.len() - rest.trim_start().len());
            found.push(variable(first, value, name_at, value_at));
        }
    } else {
        let mut offset = 0;
        for word in body.split(' ') {
            if let Some((name, value)) = word.trim().split_once('=')
                && is_name(name)
            {
                let name_at = at + offset + (word.len() - word.trim_start().len());
                found.push(variable(name, value, name_at, name_at + name.len() + 1));
            }
            offset += word.len() + 1;
        }
    }
    if alone
        && found.len() == before + 1
        && let Some(only) = found.last_mut()
    {
        only.removal = Some(whole_line(text, only.range.start));
    }
}

fn variable(name: &str, value: &str, name_at: usize, value_at: usize) -> Variable {
    let (inner, quote) = unquoted(value);
    Variable {
        name: name.to_owned(),
        value: (!is_computed(inner)).then(|| inner.to_owned()),
        range: name_at..value_at + value.len(),
        value_range: Some(value_at + quote..value_at + quote + inner.len()),
        removal: None,
        setting: Setting::Everything,
    }
}
