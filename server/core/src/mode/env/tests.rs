use super::*;
use crate::mode::prefix;

fn machine() -> Machine {
    Machine {
        hook: Some("/opt/cublame/hook".to_owned()),
        tracer: Some("/opt/cublame/libcublame_tracer.so".to_owned()),
        journal: Some("memfd:1:3".to_owned()),
        run: Some("/home/dev/proj/.cublame/runs/a1".to_owned()),
    }
}

fn current(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The value that `name` has in the block of `mode` on Linux for a user who has `pairs`.
fn value(mode: Mode, pairs: &[(&str, &str)], name: &str) -> Option<String> {
    env_block(mode, Os::Linux, &machine(), &current(pairs)).get(name).map(str::to_owned)
}

fn names(mode: Mode, os: Os, machine: &Machine) -> Vec<&'static str> {
    env_block(mode, os, machine, &BTreeMap::new()).variables.iter().map(|variable| variable.name).collect()
}

#[test]
fn each_mode_has_its_variables() {
    let hook = ["CUBLAME_RUN", "PYTHONPATH"];
    let with = |first: &[&'static str], last: &[&'static str]| [first, &hook, last].concat();
    let linux = |mode| names(mode, Os::Linux, &machine());
    assert_eq!(linux(Mode::Off), with(&["CUBLAME_MODE"], &[]));
    assert_eq!(linux(Mode::Blocking), with(&["CUBLAME_MODE", "CUDA_LAUNCH_BLOCKING"], &[]));
    assert_eq!(linux(Mode::Trace), with(&["CUBLAME_MODE"], &["CUBLAME_JOURNAL", "LD_PRELOAD"]));
    assert_eq!(linux(Mode::Guard), with(&["CUBLAME_MODE"], &[]));
    assert_eq!(linux(Mode::Sanitize), with(&["CUBLAME_MODE"], &["PYTORCH_NO_CUDA_MEMORY_CACHING"]));
    let dump = [
        "CUBLAME_JOURNAL",
        "LD_PRELOAD",
        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
        "CUDA_COREDUMP_FILE",
        "CUDA_COREDUMP_GENERATION_FLAGS",
    ];
    assert_eq!(linux(Mode::Core), with(&["CUBLAME_MODE"], &dump));
}

#[test]
fn only_two_variables_may_be_committed() {
    for mode in Mode::ALL {
        for os in [Os::Linux, Os::MacOs, Os::Windows] {
            let block = env_block(mode, os, &machine(), &current(&[("CUDA_LAUNCH_BLOCKING", "1")]));
            let shared: Vec<&str> = block.shared().map(|variable| variable.name).collect();
            assert!(shared.iter().all(|name| OUR_SHARED_VARIABLES.contains(name)), "{mode}: {shared:?}");
            assert!(block.variables.iter().all(|variable| variable.why.ends_with('.')));
            let with_a_path = |variable: &Variable| variable.half == Half::Shared && variable.value.contains('/');
            assert!(!block.variables.iter().any(with_a_path));
        }
    }
}

#[test]
fn without_the_machine_only_the_shared_half_is_left() {
    let nothing = Machine::default();
    assert_eq!(names(Mode::Blocking, Os::Linux, &nothing), ["CUBLAME_MODE", "CUDA_LAUNCH_BLOCKING"]);
    let trace = env_block(Mode::Core, Os::Linux, &nothing, &BTreeMap::new());
    let left_out: Vec<&str> = trace.left_out.iter().map(|left_out| left_out.name).collect();
    assert_eq!(left_out, ["LD_PRELOAD", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION"]);
}

#[test]
fn blocking_is_exactly_one_whatever_the_user_had() {
    for theirs in ["0", "", "true", "2", "1"] {
        let got = value(Mode::Blocking, &[("CUDA_LAUNCH_BLOCKING", theirs)], "CUDA_LAUNCH_BLOCKING");
        assert_eq!(got.as_deref(), Some("1"));
    }
}

#[test]
fn full_speed_modes_turn_it_off_and_off_leaves_it() {
    let on = [("CUDA_LAUNCH_BLOCKING", "1")];
    for mode in [Mode::Trace, Mode::Core, Mode::Guard, Mode::Sanitize] {
        assert_eq!(value(mode, &on, "CUDA_LAUNCH_BLOCKING").as_deref(), Some("0"), "{mode}");
        assert_eq!(value(mode, &[("CUDA_LAUNCH_BLOCKING", "0")], "CUDA_LAUNCH_BLOCKING"), None, "{mode}");
    }
    assert_eq!(value(Mode::Off, &on, "CUDA_LAUNCH_BLOCKING"), None);
}

#[test]
fn pythonpath_is_extended_once_and_has_no_empty_element() {
    let check = |theirs: &str, expected: &str| {
        assert_eq!(value(Mode::Off, &[("PYTHONPATH", theirs)], "PYTHONPATH").as_deref(), Some(expected), "{theirs:?}");
    };
    check("", "/opt/cublame/hook");
    check("src", "/opt/cublame/hook:src");
    check("src:lib", "/opt/cublame/hook:src:lib");
    // The empty element is the working directory, and stays it.
    check(":src", "/opt/cublame/hook:.:src");
    check("src:", "/opt/cublame/hook:src:.");
    check("/opt/cublame/hook:src", "/opt/cublame/hook:src");
    check("src:/opt/cublame/hook", "/opt/cublame/hook:src");
    check("src:src", "/opt/cublame/hook:src:src");
}

#[test]
fn ld_preload_keeps_theirs_before_ours_and_replaces_an_older_copy() {
    let check = |theirs: &str, expected: &str| {
        assert_eq!(
            value(Mode::Trace, &[("LD_PRELOAD", theirs)], "LD_PRELOAD").as_deref(),
            Some(expected),
            "{theirs:?}"
        );
    };
    let ours = "/opt/cublame/libcublame_tracer.so";
    check("", ours);
    check("libjemalloc.so", "libjemalloc.so:/opt/cublame/libcublame_tracer.so");
    check("liba.so  libb.so:", "liba.so:libb.so:/opt/cublame/libcublame_tracer.so");
    check(ours, ours);
    check("/tmp/old/libcublame_tracer.so:liba.so", "liba.so:/opt/cublame/libcublame_tracer.so");
}

#[test]
fn a_path_that_the_list_cannot_hold_is_left_out_and_said() {
    let odd = Machine {
        hook: Some("/opt/a:b".into()),
        tracer: Some("/opt/my tools/t.so".into()),
        journal: Some("run".into()),
        run: None,
    };
    let block = env_block(Mode::Trace, Os::Linux, &odd, &BTreeMap::new());
    assert_eq!(block.get("PYTHONPATH"), None);
    assert_eq!(block.get("PYTEST_PLUGINS"), None);
    assert_eq!(block.get("LD_PRELOAD"), None);
    assert_eq!(block.left_out.iter().map(|left_out| left_out.name).collect::<Vec<_>>(), ["PYTHONPATH", "LD_PRELOAD"]);
}

#[test]
fn windows_has_its_separator_and_takes_names_in_any_case() {
    let machine = Machine { hook: Some(r"C:\cublame\hook".to_owned()), ..Machine::default() };
    let block = env_block(Mode::Trace, Os::Windows, &machine, &current(&[("PythonPath", r"C:\proj;D:\lib")]));
    assert_eq!(block.get("PYTHONPATH"), Some(r"C:\cublame\hook;C:\proj;D:\lib"));
    assert_eq!(block.left_out[0].why, "the launch journal exists on Linux only");
}

#[test]
fn the_allocators_configuration_changes_only_for_the_sanitizer() {
    let conf = "max_split_size_mb:128,expandable_segments:True,roundup_power2_divisions:[256:1,512:2]";
    let without = "max_split_size_mb:128,expandable_segments:False,roundup_power2_divisions:[256:1,512:2]";
    for name in ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"] {
        assert_eq!(value(Mode::Sanitize, &[(name, conf)], name).as_deref(), Some(without));
        assert_eq!(value(Mode::Sanitize, &[(name, "max_split_size_mb:128")], name), None);
        assert_eq!(value(Mode::Blocking, &[(name, conf)], name), None);
    }
}

#[test]
fn the_users_own_core_dump_settings_stay() {
    let block = env_block(Mode::Core, Os::Linux, &machine(), &current(&[("CUDA_COREDUMP_FILE", "/tmp/mine")]));
    assert_eq!(block.get("CUDA_COREDUMP_FILE"), None);
    assert_eq!(block.get("CUDA_ENABLE_COREDUMP_ON_EXCEPTION"), None);
    assert!(block.left_out[0].why.contains("CUDA_COREDUMP_FILE"));
    // The variables of a run that contains this one are ours, and give way.
    let outer = [("CUDA_COREDUMP_FILE", "/tmp/outer/gpu/%h.%p.gpucore"), ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1")];
    let file = value(Mode::Core, &outer, "CUDA_COREDUMP_FILE");
    assert_eq!(file.as_deref(), Some("/home/dev/proj/.cublame/runs/a1/gpu/%h.%p.gpucore"));
}

#[test]
fn twice_is_once() {
    for mode in Mode::ALL {
        let mut environment = current(&[
            ("PYTHONPATH", "src:"),
            ("LD_PRELOAD", "liba.so"),
            ("PYTEST_PLUGINS", "a"),
            ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
            ("CUDA_LAUNCH_BLOCKING", "1"),
        ]);
        let apply = |environment: &mut BTreeMap<String, String>| {
            for variable in env_block(mode, Os::Linux, &machine(), environment).variables {
                environment.insert(variable.name.to_owned(), variable.value);
            }
        };
        apply(&mut environment);
        let once = environment.clone();
        apply(&mut environment);
        assert_eq!(environment, once, "{mode}");
    }
}

#[test]
fn only_sanitize_has_a_prefix() {
    for mode in Mode::ALL {
        assert_eq!(prefix(mode).is_empty(), mode != Mode::Sanitize);
    }
    assert_eq!(prefix(Mode::Sanitize)[0], "compute-sanitizer");
}
