//! The rules, one file each with its own documentation.

use super::rule::Rule;

mod blocking_dataparallel;
mod capture_sync;
mod dsa_env;
mod env_bad_value;
mod env_left_on;
mod env_scoped;
mod env_too_late;
mod fork_cuda;
mod hardcoded_device;
mod index_literal_out_of_range;
mod launch_unchecked;
mod load_no_map_location;
mod missing_record;
mod set_device_late;
mod swallowed_cuda_error;
mod unregistered_tensor;

/// Every rule, by name.
pub const RULES: &[Rule] = &[
    blocking_dataparallel::RULE,
    capture_sync::RULE,
    dsa_env::RULE,
    env_bad_value::RULE,
    env_left_on::RULE,
    env_scoped::RULE,
    env_too_late::RULE,
    fork_cuda::RULE,
    hardcoded_device::RULE,
    index_literal_out_of_range::RULE,
    launch_unchecked::RULE,
    load_no_map_location::RULE,
    missing_record::RULE,
    set_device_late::RULE,
    swallowed_cuda_error::RULE,
    unregistered_tensor::RULE,
];

/// Is this a file of tests? What a test sets or breaks, it means to.
fn is_test(path: &str) -> bool {
    let path = path.replace('\\', "/");
    let name = path.rsplit('/').next().unwrap_or(&path);
    let in_tests = path.split('/').rev().skip(1).any(|folder| matches!(folder, "test" | "tests" | "testing"));
    in_tests || name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py"
}
