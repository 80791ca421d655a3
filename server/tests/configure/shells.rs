//! The env block in real shells: hostile values arrive as they were.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use cublame_core::config::apply;
use cublame_core::config::shell::{Format, print};
use cublame_core::config::shell_profile::{Shell, add};
use cublame_core::mode::{EnvBlock, Half, Mode, Variable};

use crate::project::Project;

const HOSTILE: [&str; 16] = [
    "plain",
    "",
    " two  blanks ",
    "it's",
    "say \"hi\"",
    "$HOME `id` $(id) ${x}",
    "a\\b\\",
    "\\'",
    "line\nbreak\n",
    "100% !history! ^caret&|<>();*?[]{}~#",
    "#no comment",
    "-n",
    "Größe 训练 🚀",
    "‘curly’ “quotes”",
    "tab\there",
    "'\"'\"\\''$'\n",
];

fn block(value: &str) -> EnvBlock {
    let variable = Variable { name: "CUDA_HOSTILE", value: value.to_owned(), half: Half::Launch, why: "" };
    EnvBlock { variables: vec![variable], left_out: Vec::new() }
}

/// Runs `script` and returns what the program that it starts sees.
fn seen_by_a_child(shell: &str, script: &str) -> Option<String> {
    let script = format!("{script}\nexec env -0");
    let output =
        Command::new(shell).args(["-c", &script]).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).output();
    let output = output.ok()?;
    assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    let environment = String::from_utf8(output.stdout).unwrap();
    let variables: BTreeMap<&str, &str> = environment.split('\0').filter_map(|entry| entry.split_once('=')).collect();
    Some(variables["CUDA_HOSTILE"].to_owned())
}

#[test]
fn every_shell_reads_back_what_was_meant() {
    let shells = [
        ("bash", Format::Sh),
        ("dash", Format::Sh),
        ("zsh", Format::Sh),
        ("sh", Format::Sh),
        ("fish", Format::Fish),
        ("pwsh", Format::PowerShell),
    ];
    let mut read = 0;
    for (shell, format) in shells {
        if Command::new(shell)
            .arg("--help")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .status()
            .is_err()
        {
            println!("skipped: {shell} is not installed");
            continue;
        }
        for value in HOSTILE {
            let script = print(&block(value), Mode::Off, format).unwrap();
            if shell == "pwsh" && value.is_empty() {
                continue; // PowerShell knows no empty variable.
            }
            let seen = seen_by_a_child(shell, script.trim_end_matches('\n')).unwrap();
            assert_eq!(seen, value, "{shell}: {script}");
            read += 1;
        }
    }
    assert!(read >= HOSTILE.len(), "no shell was there");
}

#[test]
fn python_reads_back_the_cell_and_the_json() {
    for value in HOSTILE {
        let cell = print(&block(value), Mode::Off, Format::Notebook).unwrap();
        let program = format!("{cell}\nimport sys\nsys.stdout.buffer.write(os.environ['CUDA_HOSTILE'].encode())");
        let output = Command::new("python3").args(["-X", "utf8", "-c", &program]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), value);
        let json: BTreeMap<String, String> =
            serde_json::from_str(&print(&block(value), Mode::Off, Format::Json).unwrap()).unwrap();
        assert_eq!(json["CUDA_HOSTILE"], value);
    }
}

#[test]
fn pydebug_passes_its_words_on() {
    let project = Project::new();
    let fake = project.write("bin/cublame", b"#!/bin/sh\nfor word in \"$@\"; do printf '<%s>' \"$word\"; done\n");
    std::fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap());
    for shell in Shell::ALL {
        let profile = apply("", &add("", shell, Mode::Blocking).unwrap());
        let script = format!("{profile}\npydebug train.py 'a b' '$x'");
        let Ok(output) = Command::new(shell.name()).args(["-c", &script]).env("PATH", &path).output() else {
            println!("skipped: {} is not installed", shell.name());
            continue;
        };
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, "<run><--mode><blocking><--><python><train.py><a b><$x>", "{}", shell.name());
    }
}

#[test]
fn the_command_prints_what_a_shell_can_run() {
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_cublame")).arg("env").args(words).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, stdout, stderr) = run(&["--mode", "blocking", "--shared"]);
    assert_eq!(
        (code, stdout.as_str(), stderr.as_str()),
        (0, "export CUBLAME_MODE=blocking\nexport CUDA_LAUNCH_BLOCKING=1\n", "")
    );
    let (code, stdout, _) = run(&["--mode", "blocking", "--format", "json"]);
    let json: BTreeMap<String, String> = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, json["CUDA_LAUNCH_BLOCKING"].as_str()), (0, "1"));
    let (code, _, stderr) = run(&["--mode", "sanitize"]);
    assert!(code == 0 && stderr.contains("compute-sanitizer"), "{stderr}");
    assert_eq!(run(&["--mode", "slow"]).0, 2);
    assert_eq!(run(&["--mode", "off", "--format", "tcsh"]).0, 2);
}
