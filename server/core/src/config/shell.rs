//! An env block in the words of each shell, and of what reads variables like a shell.

use std::fmt;
use std::str::FromStr;

use crate::mode::{EnvBlock, Half, Mode};

/// How an env block is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// sh, bash, dash, zsh, ksh.
    Sh,
    Fish,
    PowerShell,
    /// The Windows command prompt, as a batch file.
    Cmd,
    /// One JSON object.
    Json,
    /// A `.env` file, as docker compose, python-dotenv and VS Code's `envFile` read it.
    Dotenv,
    /// The source of a notebook's first cell.
    Notebook,
}

impl Format {
    pub const ALL: [Format; 7] =
        [Format::Sh, Format::Fish, Format::PowerShell, Format::Cmd, Format::Json, Format::Dotenv, Format::Notebook];

    pub fn name(self) -> &'static str {
        match self {
            Format::Sh => "sh",
            Format::Fish => "fish",
            Format::PowerShell => "powershell",
            Format::Cmd => "cmd",
            Format::Json => "json",
            Format::Dotenv => "dotenv",
            Format::Notebook => "notebook",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = || Format::ALL.map(Format::name).join(", ");
        let found = Format::ALL.into_iter().find(|format| format.name() == word);
        found.ok_or_else(|| format!("`{word}` is not a format; the formats are {}", known()))
    }
}

/// The text that puts `block` into force, with a final newline.
pub fn print(block: &EnvBlock, mode: Mode, format: Format) -> Result<String, Unwritable> {
    let pairs = || block.variables.iter().map(|variable| (variable.name, variable.value.as_str()));
    let lines = |line: fn(&str, &str) -> Result<String, &'static str>| -> Result<String, Unwritable> {
        pairs()
            .map(|(name, value)| {
                let line = line(name, value).map_err(|why| Unwritable { name: name.to_owned(), why })?;
                Ok(line + "\n")
            })
            .collect()
    };
    match format {
        Format::Sh => lines(|name, value| Ok(format!("export {name}={}", sh(value)))),
        Format::Fish => lines(|name, value| Ok(format!("set -gx {name} {}", fish(value)))),
        Format::PowerShell => lines(|name, value| Ok(format!("$env:{name} = {}", powershell(value)))),
        Format::Cmd => lines(cmd).map(|text| text.replace('\n', "\r\n")),
        Format::Dotenv => lines(|name, value| Ok(format!("{name}={}", dotenv(value)?))),
        Format::Json => Ok(json(pairs()) + "\n"),
        Format::Notebook => {
            // A running kernel is past its PYTHONPATH and LD_PRELOAD; what CUDA and torch read comes later.
            let takes_effect = block.variables.iter().filter(|variable| {
                variable.half == Half::Shared
                    || variable.name.starts_with("CUDA_")
                    || variable.name.starts_with("PYTORCH_")
            });
            let pairs: Vec<(&str, &str)> =
                takes_effect.map(|variable| (variable.name, variable.value.as_str())).collect();
            Ok(notebook_cell(mode, &pairs))
        }
    }
}

/// A value that the format has no way to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritable {
    pub name: String,
    pub why: &'static str,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value of {} cannot be written in this format: {}", self.name, self.why)
    }
}

impl std::error::Error for Unwritable {}

/// One word of a POSIX shell: in single quotes nothing is special but the single quote (POSIX, 2.2.2).
pub fn sh(value: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-./:,@%+=".contains(character);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// One word of fish: in single quotes `\\` and `\'` are the only escapes (fish, "Quotes").
pub fn fish(value: &str) -> String {
    format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
}

/// A PowerShell string: verbatim but for the quote, which is doubled.
/// The curly single quotes end such a string as well (about_Quoting_Rules, and CharTraits in its tokenizer).
pub fn powershell(value: &str) -> String {
    let mut quoted = String::from("'");
    for character in value.chars() {
        if matches!(character, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}') {
            quoted.push(character);
        }
        quoted.push(character);
    }
    quoted + "'"
}

/// A line of a batch file. Quotes keep `& | < > ^` from their meanings; a percent sign is doubled.
/// A value with quotes of its own is written without ours, each special character behind a caret.
fn cmd(name: &str, value: &str) -> Result<String, &'static str> {
    if value.contains(['\n', '\r']) {
        return Err("a batch file cannot hold a line break in a variable");
    }
    let value = value.replace('%', "%%");
    if !value.contains('"') {
        return Ok(format!("set \"{name}={value}\""));
    }
    let mut escaped = String::new();
    for character in value.chars() {
        if "\"&|<>^()".contains(character) {
            escaped.push('^');
        }
        escaped.push(character);
    }
    Ok(format!("set {name}={escaped}"))
}

/// A value that every reader of `.env` files takes in the same way.
/// They differ in escapes, so none is used, and python-dotenv replaces `${NAME}` in single quotes too.
pub fn dotenv(value: &str) -> Result<String, &'static str> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-./:,@%+=".contains(character);
    if value.contains(['\n', '\r']) {
        Err("the readers of .env files do not agree on line breaks")
    } else if !value.is_empty() && value.chars().all(is_plain) {
        Ok(value.to_owned())
    } else if !value.contains('\'') && !value.contains("${") && !value.contains(r"\\") && !value.ends_with('\\') {
        Ok(format!("'{value}'"))
    } else if !value.contains(['"', '$', '\\', '`']) {
        Ok(format!("\"{value}\""))
    } else {
        Err("the readers of .env files do not agree on its quotes, backslashes or dollar signs")
    }
}

fn json<'p>(pairs: impl Iterator<Item = (&'p str, &'p str)>) -> String {
    let members: Vec<String> =
        pairs.map(|(name, value)| format!("  {}: {}", json_string(name), json_string(value))).collect();
    format!("{{\n{}\n}}", members.join(",\n"))
}

/// The source of a first cell. JSON strings are Python strings as well.
pub fn notebook_cell(mode: Mode, pairs: &[(&str, &str)]) -> String {
    let members: String =
        pairs.iter().map(|(name, value)| format!("    {}: {},\n", json_string(name), json_string(value))).collect();
    format!(
        "# cublame, mode {mode}: run this cell first in a fresh kernel. After a CUDA error, restart the kernel.\n\
         import os, sys\n\
         os.environ.update({{\n{members}}})\n\
         if \"torch\" in sys.modules and sys.modules[\"torch\"].cuda.is_initialized():\n    \
         print(\"cublame: CUDA has already started in this kernel, so the mode has no effect. Restart the kernel and run this cell first.\")\n"
    )
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Variable;

    fn block(value: &str) -> EnvBlock {
        let variable = |name, value: &str, half| Variable { name, value: value.to_owned(), half, why: "" };
        EnvBlock {
            variables: vec![
                variable("CUBLAME_MODE", "blocking", Half::Shared),
                variable("PYTHONPATH", value, Half::Launch),
            ],
            left_out: Vec::new(),
        }
    }

    #[track_caller]
    fn check(format: Format, value: &str, second_line: &str) {
        let text = print(&block(value), Mode::Blocking, format).unwrap();
        let (_, second) = text.split_once('\n').unwrap();
        assert_eq!(second, second_line);
    }

    #[test]
    fn each_shell_has_its_quotes() {
        check(Format::Sh, "/a b", "export PYTHONPATH='/a b'\n");
        check(Format::Sh, "/a:b", "export PYTHONPATH=/a:b\n");
        check(Format::Sh, "", "export PYTHONPATH=''\n");
        check(Format::Sh, "it's $x", "export PYTHONPATH='it'\\''s $x'\n");
        check(Format::Fish, r"it's \$x", "set -gx PYTHONPATH 'it\\'s \\\\$x'\n");
        check(Format::PowerShell, "it's ’$x’", "$env:PYTHONPATH = 'it''s ’’$x’’'\n");
        check(Format::Cmd, r"C:\a b & 100%", "set \"PYTHONPATH=C:\\a b & 100%%\"\r\n");
        check(Format::Cmd, "\"a\" & (b)^", "set PYTHONPATH=^\"a^\" ^& ^(b^)^^\r\n");
        check(Format::Dotenv, "/a", "PYTHONPATH=/a\n");
        check(Format::Dotenv, "a b", "PYTHONPATH='a b'\n");
        check(Format::Dotenv, "it's", "PYTHONPATH=\"it's\"\n");
        check(Format::Json, "a\"\n", "  \"CUBLAME_MODE\": \"blocking\",\n  \"PYTHONPATH\": \"a\\\"\\n\"\n}\n");
    }

    #[test]
    fn what_a_format_cannot_hold_is_refused() {
        let refused = |format, value| print(&block(value), Mode::Off, format).unwrap_err().to_string();
        assert!(refused(Format::Cmd, "a\nb").contains("PYTHONPATH"));
        assert!(refused(Format::Dotenv, "a\nb").contains("line breaks"));
        assert!(refused(Format::Dotenv, "it's $5").contains("dollar"));
        assert!(refused(Format::Dotenv, "${HOME}/a b").contains("dollar"));
    }

    #[test]
    fn a_notebook_gets_what_still_takes_effect() {
        let cell = print(&block("/hook"), Mode::Blocking, Format::Notebook).unwrap();
        assert!(cell.contains("    \"CUBLAME_MODE\": \"blocking\",\n") && !cell.contains("PYTHONPATH"));
    }
}
