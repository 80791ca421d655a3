//! A command line with debugpy before its program.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::adapter::Debugpy;
use crate::error::{Error, Result};

/// The command that runs the same under debugpy, which connects to this port of this machine and waits there.
pub fn instrument(command: &[OsString], port: u16, cwd: &Path) -> Result<Vec<OsString>> {
    let Launch { python, flags, target } = launch_of(command)?;
    let debugpy = Debugpy::find(Some(&python), cwd)?;
    let ours = ["--connect".into(), format!("127.0.0.1:{port}").into(), "--wait-for-client".into()];
    let words = [vec![python.into_os_string()], flags, vec![debugpy.folder.into_os_string()]].into_iter().flatten();
    Ok(words.chain(ours).chain(target).collect())
}

/// A command that runs Python.
#[derive(Debug, PartialEq, Eq)]
struct Launch {
    python: PathBuf,
    /// The interpreter's own.
    flags: Vec<OsString>,
    /// The script, `-m` and a module, or `-c` and code, with the arguments.
    target: Vec<OsString>,
}

fn launch_of(command: &[OsString]) -> Result<Launch> {
    let Some((program, rest)) = command.split_first() else { return Err(Error::user("there is no command to debug")) };
    if is_python(program) {
        let (flags, target) = rest.split_at(length_of_flags(rest));
        if target.first().is_none_or(|word| word == "-") {
            return Err(Error::user("there is no program to debug: Python would read it from standard input")
                .hint("put it into a file and name that"));
        }
        return Ok(Launch { python: PathBuf::from(program), flags: flags.to_vec(), target: target.to_vec() });
    }
    // torchrun, pytest, accelerate: a script with its interpreter in its first line.
    let script = find_program(program).ok_or_else(|| {
        Error::user(format!("there is no command `{}`", Path::new(program).display()))
            .hint("check its spelling, or activate the environment that has it")
    })?;
    let mut head = [0; 1024];
    let read = std::fs::File::open(&script).and_then(|mut file| file.read(&mut head)).unwrap_or_default();
    let python = interpreter_of(&head[..read]).ok_or_else(|| {
        Error::user(format!("{} is no Python program, and debugpy can hold no other", script.display()))
            .hint("name the interpreter, as in `cublame debug -- python train.py`; `cublame run` runs any program")
    })?;
    let target = [vec![script.into_os_string()], rest.to_vec()].concat();
    Ok(Launch { python, flags: Vec::new(), target })
}

fn is_python(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b't'))
}

/// How many words are the interpreter's own options, with their values (`python --help`).
fn length_of_flags(words: &[OsString]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).map(|word| word.as_bytes()) {
        at += match word {
            b"-X" | b"-W" | b"--check-hash-based-pycs" => 2,
            b"-" | b"-m" | b"-c" => break,
            _ if word.starts_with(b"-") => 1,
            _ => break,
        };
    }
    at.min(words.len())
}

fn find_program(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The Python of a script's first line: `#!/venv/bin/python3`, `#!/usr/bin/env python3`, or what pip writes where the
/// path is too long for a first line.
fn interpreter_of(head: &[u8]) -> Option<PathBuf> {
    let mut lines = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n');
    let mut words = lines.next()?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = words.next()?;
    let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
    let python = match path(first).file_name()?.to_str()? {
        "env" => path(words.find(|word| !word.starts_with(b"-"))?),
        "sh" => path(lines.next()?.strip_prefix(b"'''exec' ")?.split(|byte| *byte == b' ').next()?.trim_ascii()),
        _ => path(first),
    };
    is_python(python.as_os_str()).then_some(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[track_caller]
    fn check(command: &str, flags: &str, target: &str) {
        let launch = launch_of(&words(command)).unwrap();
        assert_eq!((launch.flags, launch.target), (words(flags), words(target)));
    }

    #[test]
    fn the_interpreters_options_stay_before_debugpy() {
        check("python train.py --epochs 3", "", "train.py --epochs 3");
        check("/venv/bin/python3.12 -u -X dev -Wignore -W error -m pkg -x", "-u -X dev -Wignore -W error", "-m pkg -x");
        check("python3 -c pass", "", "-c pass");
    }

    #[test]
    fn what_is_no_python_program_is_said() {
        for command in ["python", "python -u -", "/bin/true", "nobody-has-this"] {
            let error = launch_of(&words(command)).unwrap_err();
            assert!(error.hint.is_some(), "{error}");
        }
        assert!(launch_of(&[]).is_err());
    }

    #[test]
    fn the_interpreter_of_a_script() {
        let of = |head: &str| interpreter_of(head.as_bytes()).map(|path| path.display().to_string());
        assert_eq!(of("#!/venv/bin/python\nimport x").as_deref(), Some("/venv/bin/python"));
        assert_eq!(of("#! /usr/bin/env -S python3 -u\n").as_deref(), Some("python3"));
        assert_eq!(of("#!/bin/sh\n'''exec' /very/long/python3 \"$0\" \"$@\"\n").as_deref(), Some("/very/long/python3"));
        for head in ["#!/bin/sh\necho\n", "#!/usr/bin/env bash\n", "\u{7f}ELF", ""] {
            assert_eq!(of(head), None);
        }
    }
}
