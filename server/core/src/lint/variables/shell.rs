//! Assignments of shell scripts and profiles, and the lines of dotenv files.

use crate::config::Edit;

use super::{Setting, Variable, is_computed, is_name, lines_of, unquoted, whole_line};

/// `NAME=value` lines; `export` before the name is allowed, as most readers do.
pub fn dotenv(text: &str) -> Vec<Variable> {
    let mut found = Vec::new();
    for (start, line) in lines_of(text) {
        let trimmed = line.trim_start();
        let body = trimmed.strip_prefix("export ").map_or(trimmed, str::trim_start);
        let at = start + line.len() - body.len();
        if let Some(variable) = assignment(body, at, Setting::Everything) {
            found.push(Variable { removal: Some(whole_line(text, start)), ..variable });
        }
    }
    found
}

/// `export NAME=value`, `NAME=value command`, and fish's `set -x NAME value`. A plain `NAME=value` sets a variable of
/// the shell alone, unless the script exports that name; in a profile it is left alone too.
pub fn variables(text: &str) -> Vec<Variable> {
    let mut found = Vec::new();
    let mut heredoc: Option<String> = None;
    for (start, line) in lines_of(text) {
        if let Some(end) = &heredoc {
            if line.trim() == end {
                heredoc = None;
            }
            continue;
        }
        heredoc = heredoc_end(line);
        let trimmed = line.trim_start();
        if trimmed.starts_with('#') {
            continue;
        }
        let at = start + line.len() - trimmed.len();
        let indented = trimmed.len() != line.len();
        let export = ["export ", "declare -x ", "typeset -x "].iter().find_map(|word| trimmed.strip_prefix(word));
        if let Some(rest) = export {
            exported(text, rest, at + trimmed.len() - rest.len(), indented, &mut found);
        } else if let Some(rest) = trimmed.strip_prefix("set ") {
            fish(text, rest, start, at, &mut found);
        } else if !indented && is_exported_later(text, trimmed) {
            exported(text, trimmed, at, false, &mut found);
        } else {
            for (offset, command) in commands(trimmed) {
                before_command(command, at + offset, &mut found);
            }
        }
    }
    found
}

/// `NAME=value` alone, with an `export NAME` somewhere.
fn is_exported_later(text: &str, line: &str) -> bool {
    let name = line.split_once('=').map(|(name, _)| name).filter(|name| is_name(name));
    name.is_some_and(|name| {
        !line.contains(' ') && text.lines().any(|line| line.trim().strip_prefix("export ").map(str::trim) == Some(name))
    })
}

/// The commands of a line, each with its offset: between `&&`, `||`, `;` and `|` outside of quotes.
pub fn commands(line: &str) -> Vec<(usize, &str)> {
    let mut quote: Option<char> = None;
    let mut starts = vec![0];
    let mut ends = Vec::new();
    for (at, character) in line.char_indices() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '&' | '|' | ';') => {
                ends.push(at);
                starts.push(at + 1);
            }
            _ => {}
        }
    }
    ends.push(line.len());
    let command = |(start, end): (usize, usize)| {
        let command = &line[start..end];
        (start + command.len() - command.trim_start().len(), command.trim_start())
    };
    starts.into_iter().zip(ends).map(command).filter(|(_, command)| !command.is_empty()).collect()
}

fn exported(text: &str, rest: &str, at: usize, indented: bool, found: &mut Vec<Variable>) {
    let before = found.len();
    let mut offset = 0;
    for word in rest.split(' ') {
        if let Some(variable) =
            assignment(word, at + offset, if indented { Setting::CodeSometimes } else { Setting::Everything })
        {
            found.push(variable);
        } else if word.starts_with('#') || word.contains("&&") || word.contains(';') {
            break;
        }
        offset += word.len() + 1;
    }
    let only = found.len() == before + 1 && !rest.trim().contains(' ');
    if only && let Some(variable) = found.last_mut() {
        variable.removal = Some(whole_line(text, at));
    }
}

/// `set -gx NAME value`
fn fish(text: &str, rest: &str, start: usize, at: usize, found: &mut Vec<Variable>) {
    let mut words = rest.split_whitespace();
    let exports =
        words.next().is_some_and(|flags| flags == "--export" || flags.starts_with('-') && flags.contains('x'));
    let (Some(name), Some(value), None) = (words.next(), words.next(), words.next()) else { return };
    if exports && is_name(name) {
        let (inner, _) = unquoted(value);
        found.push(Variable {
            name: name.to_owned(),
            value: (!is_computed(inner)).then(|| inner.to_owned()),
            range: at..at + "set ".len() + rest.trim_end().len(),
            value_range: text[at..].find(value).map(|found| at + found..at + found + value.len()),
            removal: Some(whole_line(text, start)),
            setting: Setting::Everything,
        });
    }
}

/// `NAME=value NAME=value command`, also after `env`.
fn before_command(line: &str, at: usize, found: &mut Vec<Variable>) {
    let mut assigned = Vec::new();
    let mut offset = 0;
    let mut command = false;
    for word in line.split(' ') {
        match assignment(word, at + offset, Setting::OneCommand) {
            Some(variable) => {
                let end = offset + word.len() + 1;
                let removal = (end < line.len()).then(|| vec![Edit::delete(at + offset, at + end)]);
                assigned.push(Variable { removal, ..variable });
            }
            None if word == "env" || word == "sudo" || word.is_empty() => {}
            None => {
                command = !word.starts_with('#') && word != "\\";
                break;
            }
        }
        offset += word.len() + 1;
    }
    if command {
        found.extend(assigned);
    }
}

fn assignment(word: &str, at: usize, setting: Setting) -> Option<Variable> {
    let (name, written) = word.split_once('=')?;
    if !is_name(name) {
        return None;
    }
    let written = match written.find(" #") {
        Some(comment) => written[..comment].trim_end(),
        None => written.trim_end().trim_end_matches(';'),
    };
    let (inner, quote) = unquoted(written);
    let value_at = at + name.len() + 1;
    Some(Variable {
        name: name.to_owned(),
        value: (!is_computed(inner)).then(|| inner.to_owned()),
        range: at..value_at + written.len(),
        value_range: Some(value_at + quote..value_at + quote + inner.len()),
        removal: None,
        setting,
    })
}

/// The word that ends a here-document which starts on this line.
fn heredoc_end(line: &str) -> Option<String> {
    let (_, after) = line.split_once("<<")?;
    let word = after.trim_start_matches('-').split_whitespace().next()?;
    let word = word.trim_matches(['"', '\'']);
    is_name(word).then(|| word.to_owned())
}
