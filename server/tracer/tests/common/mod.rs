//! What the tests share: the tracer and the stand-in driver, compiled once, and the interpreters of this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use cublame_journal::{Journal, read};

include!("../../compile.rs");

/// The tracer, and the stand-in driver as `libcuda.so.1`.
pub struct Libraries {
    pub tracer: PathBuf,
    pub driver: PathBuf,
}

pub fn libraries() -> &'static Libraries {
    static BUILT: OnceLock<Libraries> = OnceLock::new();
    BUILT.get_or_init(|| {
        // A folder for each test binary, because they run at the same time.
        let name = std::env::current_exe().unwrap().file_stem().unwrap().to_owned();
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&out).unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let rustc = std::env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from);
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let tracer = compile_tracer(&rustc, here.parent().unwrap(), &out, &target, &[]).unwrap();
        let driver = out.join("libcuda.so.1");
        let output = Command::new(&rustc)
            .args([
                "--edition=2024",
                "--crate-name=standin",
                "--crate-type=cdylib",
                "-Clink-arg=-Wl,-soname,libcuda.so.1",
                "-o",
            ])
            .arg(&driver)
            .arg(here.join("tests/programs/standin.rs"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Libraries { tracer, driver }
    })
}

/// A run of a program under the tracer.
pub struct Traced {
    pub output: Output,
    /// By process, in order of their numbers.
    pub journals: Vec<Journal>,
}

impl Traced {
    pub fn stdout(&self) -> String {
        String::from_utf8(self.output.stdout.clone()).unwrap()
    }

    /// The journal of a run in which one process used the driver.
    pub fn journal(&self) -> &Journal {
        assert_eq!(self.journals.len(), 1, "{:?}", self.output);
        &self.journals[0]
    }
}

/// Runs a command with the tracer preloaded and the stand-in at hand.
pub fn trace(command: &mut Command) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    let libraries = libraries();
    let output = command
        .env("LD_PRELOAD", &libraries.tracer)
        .env("CUBLAME_JOURNAL", format!("dir:{}", folder.path().display()))
        .env("STANDIN_LIBRARY", &libraries.driver)
        .output()
        .unwrap();
    let mut journals: Vec<Journal> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| read(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap())
        .collect();
    journals.sort_by_key(|journal| journal.pid);
    Traced { output, journals }
}

/// A Python program of `tests/programs`.
pub fn python(interpreter: &Path, program: &str) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(program));
    command
}

/// The interpreters of this machine whose frames the tracer reads: those of pyenv, and `python3.N` of the system.
pub fn interpreters() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let installed = root.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let mut found: Vec<PathBuf> =
        installed.into_iter().flatten().flatten().map(|entry| entry.path().join("bin/python3")).collect();
    found.extend((9..=14).map(|minor| PathBuf::from(format!("/usr/bin/python3.{minor}"))));
    found.retain(|path| {
        let supported = ["-c", "import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 15))"];
        path.is_file() && Command::new(path).args(supported).status().is_ok_and(|status| status.success())
    });
    assert!(!found.is_empty(), "no Python of 3.9 to 3.14 was found");
    found
}
