//! A machine as JSON goes in, what is said of it comes out, in both languages.

use super::*;
use crate::catalog::Language;

/// A machine on which everything goes together; each test changes what it is about.
const HEALTHY: &str = r#"{
  "driver": {
    "version": "580.159.04", "installed": 1,
    "library": { "state": "works", "cuda": [13, 0],
      "gpus": [{ "name": "NVIDIA H200", "capability": "9.0", "memory": 150109880320, "exclusive": false }] }
  },
  "interpreter": {
    "state": "asked", "executable": "/home/dev/proj/.venv/bin/python", "chosen_by": "venv", "version": "3.12.3",
    "torch": "2.11.0+cu130", "torch_cuda": "13.0",
    "architectures": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"],
    "frameworks": { "triton": "3.6.0" }
  },
  "environment": {}, "container": false
}"#;

fn healthy() -> Facts {
    serde_json::from_str(HEALTHY).unwrap()
}

fn examined(facts: Facts, language: Language) -> String {
    let examination = examine(facts, Texts::get(language));
    let mut text = String::new();
    for finding in &examination.findings {
        text += &format!("{:?} {}: {}\n", finding.level, finding.id, finding.says);
        for line in finding.remedy.iter().chain(&finding.command).flat_map(|remedy| remedy.lines()) {
            text += &format!("  {line}\n");
        }
    }
    text
}

/// What is said beside what is good.
#[track_caller]
fn check(facts: Facts, expected: &str) {
    let examination = examine(facts, Texts::get(Language::English));
    let found = examination.findings.iter().filter(|finding| finding.level != Level::Good);
    let found: Vec<String> = found.map(|finding| format!("{:?} {}", finding.level, finding.id)).collect();
    assert_eq!(found.join(", "), expected);
}

fn with_library(library: Library) -> Facts {
    let mut facts = healthy();
    facts.driver.library = library;
    facts
}

fn with_variable(name: &str, value: &str) -> Facts {
    let mut facts = healthy();
    facts.environment.insert(name.to_owned(), value.to_owned());
    facts
}

fn with_python(change: impl FnOnce(&mut Python)) -> Facts {
    let mut facts = healthy();
    if let Interpreter::Asked(python) = &mut facts.interpreter {
        change(python);
    }
    facts
}

fn with_capability(capability: &str) -> Facts {
    let mut facts = healthy();
    if let Library::Works { gpus, .. } = &mut facts.driver.library {
        gpus[0].capability = capability.parse().unwrap();
    }
    facts
}

#[test]
fn a_healthy_machine_needs_nothing() {
    check(healthy(), "");
    insta::assert_snapshot!("healthy.en", examined(healthy(), Language::English));
    insta::assert_snapshot!("healthy.zh", examined(healthy(), Language::SimplifiedChinese));
}

#[test]
fn what_the_driver_does_instead_of_answering_is_told_apart() {
    let refused = |code, name: &str| Library::Refused { code, name: name.to_owned() };
    for (library, expected) in [
        // The kernel module is there and the library is not.
        (Library::Absent, "Fault no-driver"),
        (Library::Incomplete { what: "cuInit".to_owned() }, "Fault driver-mismatch"),
        (refused(34, "CUDA_ERROR_STUB_LIBRARY"), "Fault driver-mismatch"),
        (refused(100, "CUDA_ERROR_NO_DEVICE"), "Fault no-device"),
        (refused(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"), "Fault driver-mismatch"),
        (refused(802, "CUDA_ERROR_SYSTEM_NOT_READY"), "Fault system-not-ready"),
        (refused(999, "CUDA_ERROR_UNKNOWN"), "Fault unknown-error"),
        (refused(123_456, "CUDA_ERROR_OF_TOMORROW"), "Fault unknown-error"),
        (Library::Silent { seconds: 30 }, "Fault gpu-lost"),
        (Library::Died { how: "signal: 11 (SIGSEGV)".to_owned() }, "Fault driver-mismatch"),
    ] {
        check(with_library(library), expected);
    }
    let mut hidden = with_library(refused(100, "CUDA_ERROR_NO_DEVICE"));
    hidden.environment.insert("CUDA_VISIBLE_DEVICES".to_owned(), "-1".to_owned());
    check(hidden, "Note no-device, Warning CUDA_VISIBLE_DEVICES");
}

#[test]
fn a_machine_without_a_driver_is_no_fault() {
    let mut facts = healthy();
    facts.driver = Driver::default();
    check(facts.clone(), "Note no-driver");
    let remedy = |facts: Facts| examine(facts, Texts::get(Language::English)).findings[0].remedy.clone().unwrap();
    assert!(remedy(facts.clone()).starts_with("Install the NVIDIA driver"), "{}", remedy(facts));
    facts.container = true;
    assert!(remedy(facts.clone()).starts_with("Give the container"), "{}", remedy(facts));
}

#[test]
fn torch_is_held_against_the_gpu_and_the_driver() {
    check(with_capability("12.1"), "");
    check(with_capability("6.1"), "Fault no-kernel-image");
    check(with_python(|python| python.torch_cuda = None), "Fault not-compiled-cuda");
    check(with_python(|python| (python.torch, python.torch_cuda) = (None, None)), "Note no-torch");
    check(
        with_python(|python| {
            python.torch_failure =
                Some("ImportError: libcudart.so.13: cannot open shared object file: No such file or directory".into());
        }),
        "Fault library-missing",
    );
    let mut old = healthy();
    if let Library::Works { cuda, .. } = &mut old.driver.library {
        *cuda = (12, 4);
    }
    check(old.clone(), "Fault driver-too-old");
    insta::assert_snapshot!("driver_too_old.en", examined(old, Language::English));
    insta::assert_snapshot!("no_kernel_image.en", examined(with_capability("6.1"), Language::English));
    insta::assert_snapshot!("no_kernel_image.zh", examined(with_capability("6.1"), Language::SimplifiedChinese));
}

#[test]
fn two_equal_gpus_are_one_misfit() {
    let mut facts = with_capability("6.1");
    if let Library::Works { gpus, .. } = &mut facts.driver.library {
        gpus.push(gpus[0].clone());
    }
    check(facts, "Fault no-kernel-image");
}

#[test]
fn gpus_that_programs_do_not_see_are_counted() {
    let mut facts = healthy();
    facts.driver.installed = Some(8);
    check(facts, "Note hidden-gpus");
}

#[test]
fn a_python_that_is_not_asked_is_said() {
    for (interpreter, expected) in [
        (Interpreter::NotTrusted, "Note not-trusted"),
        (Interpreter::NotFound, "Note no-python"),
        (Interpreter::Failed { path: "/x".to_owned(), why: "exit status: 1".to_owned() }, "Warning python-failed"),
    ] {
        check(Facts { interpreter, ..healthy() }, expected);
    }
}

#[test]
fn variables_are_judged_by_their_values() {
    for (name, value, expected) in [
        ("CUDA_LAUNCH_BLOCKING", "1", "Warning CUDA_LAUNCH_BLOCKING"),
        ("CUDA_LAUNCH_BLOCKING", "true", "Warning CUDA_LAUNCH_BLOCKING"),
        ("CUDA_LAUNCH_BLOCKING", "0", ""),
        ("CUDA_VISIBLE_DEVICES", "0", "Note CUDA_VISIBLE_DEVICES"),
        ("CUDA_VISIBLE_DEVICES", "", "Warning CUDA_VISIBLE_DEVICES"),
        ("CUDA_VISIBLE_DEVICES", "0,1", "Warning CUDA_VISIBLE_DEVICES"),
        ("CUDA_VISIBLE_DEVICES", "GPU-2d8f", "Note CUDA_VISIBLE_DEVICES"),
        ("TORCH_USE_CUDA_DSA", "1", "Warning TORCH_USE_CUDA_DSA"),
        ("PYTORCH_ALLOC_CONF", "expandable_segments:True", "Note PYTORCH_ALLOC_CONF"),
        ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1", "Warning CUDA_ENABLE_COREDUMP_ON_EXCEPTION"),
        ("LD_LIBRARY_PATH", "/opt/lib:/usr/local/cuda-12.4/lib64", "Note LD_LIBRARY_PATH"),
        ("LD_LIBRARY_PATH", "/opt/lib", ""),
    ] {
        check(with_variable(name, value), expected);
    }
}

#[test]
fn every_finding_about_a_variable_has_words_in_both_languages() {
    for name in WATCHED {
        for value in ["", "0", "1", "/usr/local/cuda/lib64"] {
            for language in Language::ALL {
                examined(with_variable(name, value), language);
            }
        }
    }
}
