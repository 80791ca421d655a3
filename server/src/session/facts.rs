//! What a run records of itself before it starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The script that a command runs: its first word, or first argument, that names a Python file.
///
/// So `python -u train.py`, `torchrun --nproc-per-node 2 train.py` and `./train.py` have one, `python -m pkg` has none.
pub fn entry(argv: &[OsString], cwd: &Path) -> Option<PathBuf> {
    let script = argv.iter().map(Path::new).find(|word| word.extension().is_some_and(|end| end == "py"))?;
    std::path::absolute(cwd.join(script)).ok()
}

/// The variables that may be recorded: what decides about GPUs, frameworks and ranks, and nothing that looks secret.
pub fn recorded_variables(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .filter(|(name, _)| is_recorded(name))
        .collect()
}

fn is_recorded(name: &str) -> bool {
    let named = NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    named && !SECRETS.iter().any(|word| name.contains(word))
}

const PREFIXES: [&str; 18] = [
    "CUDA_",
    "CUBLAS_",
    "CUBLASLT_",
    "CUDNN_",
    "CUBLAME_",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_",
    "PYTORCH_",
    "TORCHELASTIC_",
    "NCCL_",
    "GLOO_",
    "JAX_",
    "XLA_",
    "TF_GPU_",
    "TRITON_",
    "CUPY_",
    "OMP_",
];
const NAMES: [&str; 12] = [
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NTASKS",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
];
const SECRETS: [&str; 5] = ["TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "KEY"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: Option<&str>) {
        let argv: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        assert_eq!(entry(&argv, Path::new("/home/dev/proj")), expected.map(PathBuf::from));
    }

    #[test]
    fn the_entry_is_the_script_that_is_run() {
        check("python -u train.py --data other.py", Some("/home/dev/proj/train.py"));
        check("./train.py", Some("/home/dev/proj/train.py"));
        check("torchrun --nproc-per-node 2 /opt/jobs/train.py", Some("/opt/jobs/train.py"));
        check("python -m pkg.train", None);
        check("make test", None);
    }

    #[test]
    fn only_what_decides_is_recorded_and_no_secret() {
        let all =
            [("CUDA_VISIBLE_DEVICES", "0"), ("RANK", "3"), ("HF_TOKEN", "x"), ("TORCH_API_KEY", "x"), ("HOME", "/")];
        let recorded = recorded_variables(all.into_iter().map(|(name, value)| (name.into(), value.into())));
        assert_eq!(recorded.into_keys().collect::<Vec<_>>(), ["CUDA_VISIBLE_DEVICES", "RANK"]);
    }
}
