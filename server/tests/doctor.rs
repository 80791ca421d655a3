//! `cublame doctor` against libraries that are called libcuda and are none, or not whole; each is built here.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cublame_core::doctor::{Examination, Interpreter, Library};

/// A folder with a libcuda.so made of this C.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn with_libcuda(source: &str) -> Self {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        fs::write(machine.path("cuda.c"), source).unwrap();
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([machine.path("libcuda.so"), machine.path("cuda.c")])
            .status()
            .expect("a C compiler");
        assert!(built.success());
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn doctor(&self, arguments: &[&str]) -> String {
        doctor(arguments, &[("LD_LIBRARY_PATH", self.folder.path())])
    }

    fn library(&self) -> Library {
        let document = self.doctor(&["--json"]);
        serde_json::from_str::<Examination>(&document).expect(&document).facts.driver.library
    }
}

/// What `cublame doctor` prints. It succeeds, whatever it finds.
fn doctor(arguments: &[&str], variables: &[(&str, &Path)]) -> String {
    let project = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cublame"))
        .arg("doctor")
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(variables.iter().copied())
        .current_dir(&project)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_library_that_lacks_symbols_is_a_finding() {
    let empty = Machine::with_libcuda("int nothing;");
    assert_eq!(empty.library(), Library::Incomplete { what: "cuInit".to_owned() });
    let half = Machine::with_libcuda("int cuInit(unsigned flags) { return 0; }");
    assert_eq!(half.library(), Library::Incomplete { what: "cuDriverGetVersion".to_owned() });
    assert!(half.doctor(&[]).contains("a libcuda can be loaded, and it lacks cuDriverGetVersion"));
}

#[test]
fn an_error_of_the_driver_keeps_its_name() {
    let sick = Machine::with_libcuda("int cuInit(unsigned flags) { return 999; }");
    assert_eq!(sick.library(), Library::Refused { code: 999, name: "CUDA_ERROR_UNKNOWN".to_owned() });
}

#[test]
fn a_library_that_crashes_takes_nothing_with_it() {
    let crashing = Machine::with_libcuda("int cuInit(unsigned flags) { __builtin_trap(); }");
    assert!(matches!(crashing.library(), Library::Died { .. }));
    let leaving = Machine::with_libcuda("#include <stdlib.h>\nint cuInit(unsigned flags) { exit(0); }");
    assert!(matches!(leaving.library(), Library::Died { .. }));
}

#[test]
fn the_gpus_of_a_driver_are_listed_and_held_against_torch() {
    let machine = Machine::with_libcuda(TWO_GPUS);
    let torch = machine.path("torch");
    fs::create_dir(&torch).unwrap();
    fs::write(torch.join("__init__.py"), TORCH).unwrap();
    let said = doctor(&[], &[("LD_LIBRARY_PATH", machine.folder.path()), ("PYTHONPATH", machine.folder.path())]);
    for part in [
        "the NVIDIA driver runs programs of CUDA 12.8",
        "GPU 0 is Old GPU, with compute capability 6.1 and 8.00 GiB",
        "GPU 1 is New GPU, with compute capability 9.0 and 8.00 GiB",
        "GPU 1 lets one process in at a time",
        "torch 2.11.0+cu128 is built for CUDA 12.8 and has code for sm_75 sm_90",
        "torch 2.11.0+cu128 has no code for Old GPU, whose compute capability is 6.1",
        "--index-url https://download.pytorch.org/whl/cu126",
    ] {
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part), "{part}\n{said}");
    }
}

/// The compute modes and capabilities are those of the two; the attributes' numbers are those of cuda.h.
const TWO_GPUS: &str = r#"
#include <string.h>
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, device ? "New GPU" : "Old GPU", size); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 8ul << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 75: *value = device ? 9 : 6; return 0;
    case 76: *value = device ? 0 : 1; return 0;
    case 20: *value = device ? 3 : 0; return 0;
    }
    return 1;
}
"#;

const TORCH: &str = r#"
class version: cuda = "12.8"
class _C: _cuda_getArchFlags = staticmethod(lambda: "sm_75 sm_90")
__version__ = "2.11.0+cu128"
"#;

#[test]
fn a_file_of_the_working_directory_is_not_torch() {
    let project = tempfile::tempdir().unwrap();
    fs::write(project.path().join("torch.py"), "open('imported', 'w')").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cublame"))
        .args(["doctor", "--json", "--python", "python3"])
        .current_dir(&project)
        .output()
        .unwrap();
    let examination: Examination = serde_json::from_slice(&output.stdout).unwrap();
    assert!(matches!(examination.facts.interpreter, Interpreter::Asked(_)), "{examination:?}");
    assert!(!project.path().join("imported").exists());
}

#[test]
fn an_interpreter_that_is_none_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python");
    fs::write(&python, "#!/bin/sh\necho no modules >&2\nexit 9\n").unwrap();
    fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let document = doctor(&["--json", "--python", python.to_str().unwrap()], &[]);
    let examination: Examination = serde_json::from_str(&document).unwrap();
    let Interpreter::Failed { why, .. } = examination.facts.interpreter else { panic!("{examination:?}") };
    assert_eq!(why, "no modules");
}
