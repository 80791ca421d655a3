//! The line tables of real interpreters: every instruction of some real modules has the line and the columns that the
//! interpreter itself gives.

use std::path::PathBuf;
use std::process::Command;

use cublame_journal::lines::{Location, locate};

/// Prints a line for each code object of some modules of the standard library, and one for each of its instructions:
/// `code VERSION FIRST_LINE TABLE`, `at OFFSET LINE END_LINE COLUMN END_COLUMN` with `-` for what there is not.
const SCRIPT: &str = r#"
import ctypes, sys, argparse, ast, asyncio.tasks, contextlib, dataclasses, inspect, json.decoder
line_at = ctypes.pythonapi.PyCode_Addr2Line
line_at.argtypes, line_at.restype = [ctypes.py_object, ctypes.c_int], ctypes.c_int
version = sys.version_info[0] << 8 | sys.version_info[1]
def walk(code):
    table = code.co_lnotab if version < 0x30a else code.co_linetable
    print("code", version, code.co_firstlineno, table.hex() or "-")
    positions = list(code.co_positions()) if version >= 0x30b else []
    for offset in range(0, len(code.co_code), 2):
        line = line_at(code, offset)
        rest = positions[offset // 2][1:] if positions else (None,) * 3
        print("at", offset, "-" if line < 0 else line, *("-" if part is None else part for part in rest))
    for part in code.co_consts:
        if hasattr(part, "co_consts"): walk(part)
for module in (argparse, ast, asyncio.tasks, contextlib, dataclasses, inspect, json.decoder):
    with open(module.__file__, encoding="utf-8") as file: walk(compile(file.read(), module.__file__, "exec"))
"#;

#[test]
fn every_instruction_has_the_interpreters_own_location() {
    let interpreters = interpreters();
    assert!(!interpreters.is_empty(), "no Python of 3.9 to 3.14 was found");
    for interpreter in interpreters {
        let output = Command::new(&interpreter).args(["-c", SCRIPT]).output().unwrap();
        assert!(output.status.success(), "{}: {}", interpreter.display(), String::from_utf8_lossy(&output.stderr));
        let checked = check(&String::from_utf8(output.stdout).unwrap());
        assert!(checked > 10_000, "{} gave only {checked} instructions", interpreter.display());
    }
}

fn check(text: &str) -> usize {
    let mut code = (0, 0, Vec::new());
    let mut checked = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u32>().ok();
        if words[0] == "code" {
            let table = if words[3] == "-" { "" } else { words[3] };
            let bytes =
                (0..table.len()).step_by(2).map(|at| u8::from_str_radix(&table[at..at + 2], 16).unwrap()).collect();
            code = (number(1).unwrap(), number(2).unwrap(), bytes);
        } else {
            let expected =
                number(2).map(|line| Location { line, end_line: number(3), column: number(4), end_column: number(5) });
            assert_eq!(locate(code.0, &code.2, code.1, number(1).unwrap()), expected, "version {:x}: {line}", code.0);
            checked += 1;
        }
    }
    checked
}

/// The interpreters of this machine whose frames the tracer reads: `python3.N` on the path, and those of pyenv.
fn interpreters() -> Vec<PathBuf> {
    let home = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let installed = home.and_then(|home| std::fs::read_dir(home.join("versions")).ok()).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin/python3")).collect();
    found.extend((9..=14).map(|minor| PathBuf::from(format!("/usr/bin/python3.{minor}"))));
    found.retain(|path| {
        let supported = ["-c", "import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 15))"];
        path.is_file() && Command::new(path).args(supported).status().is_ok_and(|status| status.success())
    });
    found
}
