//! Changes of `os.environ` in Python code, in all their spellings.

use std::ops::Range;

use ruff_python_ast::{Expr, IpyEscapeKind, Stmt};
use ruff_text_size::Ranged;

use crate::python::tree;

use super::super::code::{Code, Site};
use super::super::edits;
use super::{Setting, Variable, is_computed, is_name, shell};

/// One change of the process's environment.
#[derive(Clone)]
pub struct Change<'a> {
    pub name: String,
    pub what: What,
    pub site: Site<'a>,
    /// The assignment's value.
    pub value: Option<&'a Expr>,
    /// The value of a notebook's `%env NAME=value`, and where it is written.
    pub magic: Option<(&'a str, usize)>,
    /// The change is all that its statement does.
    pub alone: bool,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Set,
    /// Only where it is not set yet: `setdefault`.
    SetDefault,
    /// For the time of a test or a block.
    SetForAWhile,
    Unset,
}

/// The changes of variables with a name that is written out, in source order.
pub fn changes<'a>(code: &Code<'_, 'a>) -> Vec<Change<'a>> {
    let mut found = Vec::new();
    for site in &code.sites {
        match site.stmt {
            Stmt::Assign(assign) => {
                if let [Expr::Subscript(target)] = &assign.targets[..]
                    && let Some(name) = tree::string(&target.slice)
                    && is_environment(code, &target.value, site)
                {
                    found.push(change(name, What::Set, site, Some(&assign.value), true, site.stmt.range()));
                }
            }
            Stmt::Delete(delete) => {
                for target in &delete.targets {
                    if let Expr::Subscript(target) = target
                        && let Some(name) = tree::string(&target.slice)
                        && is_environment(code, &target.value, site)
                    {
                        let alone = delete.targets.len() == 1;
                        found.push(change(name, What::Unset, site, None, alone, site.stmt.range()));
                    }
                }
            }
            Stmt::IpyEscapeCommand(command) if command.kind == IpyEscapeKind::Magic => {
                found.extend(magic(code, site));
            }
            Stmt::AugAssign(assign) if is_environment(code, &assign.target, site) => {
                in_mapping(&assign.value, What::Set, site, &mut found);
            }
            _ => {}
        }
    }
    for (index, call) in &code.calls {
        let site = &code.sites[*index];
        let first = call.arguments.args.first();
        let name = first.and_then(tree::string);
        let alone = matches!(site.stmt, Stmt::Expr(only) if only.value.range() == call.range());
        let second = call.arguments.args.get(1);
        let range = call.range();
        let Expr::Attribute(function) = call.func.as_ref() else {
            // `from os import putenv`, under whatever name.
            if let (Some(name), Some(_)) = (name, second)
                && code.path(&call.func, site).as_deref() == Some("os.putenv")
            {
                found.push(change(name, What::Set, site, second, alone, range));
            }
            continue;
        };
        match (function.attr.as_str(), name) {
            ("setdefault", Some(name)) if is_environment(code, &function.value, site) => {
                found.push(change(name, What::SetDefault, site, second, alone, range));
            }
            ("__setitem__", Some(name)) if is_environment(code, &function.value, site) => {
                found.push(change(name, What::Set, site, second, alone, range));
            }
            ("pop", Some(name)) if is_environment(code, &function.value, site) => {
                found.push(change(name, What::Unset, site, None, alone, range));
            }
            ("putenv", Some(name)) if code.path(&call.func, site).as_deref() == Some("os.putenv") => {
                found.push(change(name, What::Set, site, second, alone, range));
            }
            ("setenv", Some(name)) => found.push(change(name, What::SetForAWhile, site, second, alone, range)),
            ("update", _) if is_environment(code, &function.value, site) => {
                if let Some(mapping) = first {
                    in_mapping(mapping, What::Set, site, &mut found);
                }
                for keyword in &call.arguments.keywords {
                    if let Some(name) = &keyword.arg {
                        let range = keyword.range;
                        found.push(change(name.as_str(), What::Set, site, Some(&keyword.value), false, range));
                    }
                }
            }
            ("dict", _) if first.is_some_and(|first| is_environment(code, first, site)) => {
                if let Some(mapping) = second {
                    in_mapping(mapping, What::SetForAWhile, site, &mut found);
                }
            }
            _ => {}
        }
    }
    found.sort_by_key(|change| change.range.start);
    found
}

/// The same, as variables like those of other languages.
pub fn of_python(code: &Code<'_, '_>) -> Vec<Variable> {
    let set = changes(code).into_iter().filter(|change| change.what != What::Unset);
    let variables = set.map(|change| {
        let value_range = match change.value {
            None => change.magic.map(|(value, at)| at..at + value.len()),
            // The text between the quotes of a plain string.
            Some(value @ Expr::StringLiteral(string)) if string.value.as_slice().len() == 1 => {
                let source = code.source(value);
                let quote = source.chars().next().filter(|first| matches!(first, '"' | '\''));
                // A half-typed string has no closing quote.
                let closed = quote.filter(|&quote| source.len() > 1 && source.ends_with(quote));
                let plain = closed.filter(|quote| !source.starts_with(&quote.to_string().repeat(3)));
                plain.map(|_| value.start().to_usize() + 1..value.end().to_usize() - 1)
            }
            _ => None,
        };
        let sometimes =
            change.site.conditional || change.what == What::SetForAWhile || !runs_by_itself(code, &change.site);
        Variable {
            removal: change.alone.then(|| edits::delete(code, change.site.stmt, change.site.block)).flatten(),
            value: change.value.and_then(tree::string).or(change.magic.map(|(value, _)| value)).map(str::to_owned),
            name: change.name,
            range: change.range,
            value_range,
            setting: if sometimes { Setting::CodeSometimes } else { Setting::Code },
        }
    });
    variables.chain(of_shell_lines(code)).collect()
}

/// What a notebook's `!NAME=value command` lines set.
fn of_shell_lines(code: &Code<'_, '_>) -> Vec<Variable> {
    let mut found = Vec::new();
    for site in &code.sites {
        let Stmt::IpyEscapeCommand(command) = site.stmt else { continue };
        let source = code.source(site.stmt);
        let Some(line) = source.strip_prefix('!').filter(|_| command.kind == IpyEscapeKind::Shell) else { continue };
        let at = site.stmt.end().to_usize() - line.len();
        // Each line has a shell of its own, which ends with it.
        let of_line = shell::variables(line).into_iter();
        found.extend(of_line.map(|variable| Variable { setting: Setting::OneCommand, ..variable.moved(at) }));
    }
    found
}

/// `%env NAME=value`, `%env NAME value`, `%set_env NAME=value`
fn magic<'a>(code: &Code<'_, 'a>, site: &Site<'a>) -> Option<Change<'a>> {
    let source = code.source(site.stmt);
    let rest = ["%env ", "%set_env "].iter().find_map(|word| source.strip_prefix(word))?;
    let written = rest.trim_start();
    // As the magic itself splits it: at the first `=`, else at the first blank.
    let end = written.find('=').or_else(|| written.find(' '))?;
    let (name, value) = (written[..end].trim_end(), written[end + 1..].trim());
    if !is_name(name) || value.is_empty() || is_computed(value) {
        return None;
    }
    let at = site.stmt.end().to_usize() - written.len() + end + 1;
    let at = at + written[end + 1..].len() - written[end + 1..].trim_start().len();
    Some(Change { magic: Some((value, at)), ..change(name, What::Set, site, None, true, site.stmt.range()) })
}

/// Does the code run without being asked for: at the module's level, or in a function that the file calls itself?
fn runs_by_itself<'a>(code: &Code<'_, 'a>, site: &Site<'a>) -> bool {
    let Some(function) = code.scope(site).function() else { return true };
    let name = function.name.as_str();
    code.calls.iter().any(|(_, call)| tree::last_name(&call.func) == Some(name))
}

fn change<'a>(
    name: &str,
    what: What,
    site: &Site<'a>,
    value: Option<&'a Expr>,
    alone: bool,
    range: ruff_text_size::TextRange,
) -> Change<'a> {
    Change { name: name.to_owned(), what, site: *site, value, magic: None, alone, range: tree::byte_range(range) }
}

/// `{"NAME": value}` and `dict(NAME=value)`
fn in_mapping<'a>(mapping: &'a Expr, what: What, site: &Site<'a>, found: &mut Vec<Change<'a>>) {
    match mapping {
        Expr::Dict(dict) => {
            for item in &dict.items {
                if let Some(key) = &item.key
                    && let Some(name) = tree::string(key)
                {
                    let range = key.range().cover(item.value.range());
                    found.push(change(name, what, site, Some(&item.value), false, range));
                }
            }
        }
        Expr::List(pairs) => {
            for pair in &pairs.elts {
                if let Expr::Tuple(pair) = pair
                    && let [key, value] = &pair.elts[..]
                    && let Some(name) = tree::string(key)
                {
                    found.push(change(name, what, site, Some(value), false, pair.range()));
                }
            }
        }
        Expr::Call(call) if tree::last_name(&call.func) == Some("dict") => {
            for keyword in &call.arguments.keywords {
                if let Some(name) = &keyword.arg {
                    found.push(change(name.as_str(), what, site, Some(&keyword.value), false, keyword.range));
                }
            }
        }
        _ => {}
    }
}

fn is_environment<'a>(code: &Code<'_, 'a>, expr: &'a Expr, site: &Site<'a>) -> bool {
    matches!(expr, Expr::Name(_) | Expr::Attribute(_)) && code.path(expr, site).as_deref() == Some("os.environ")
}
