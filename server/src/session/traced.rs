//! Reads what the tracer and the GPU left in a run folder: launch journals and core dumps.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use cublame_core::evidence::TracedProcess;
use cublame_core::gpu_core::{self, GpuCore};

use crate::os::files;

pub const JOURNALS: &str = "journal";
pub const CORES: &str = "gpu";
/// As CUDA_COREDUMP_FILE has it in mode core: `HOST.PID.gpucore`.
const ENDING: &str = ".gpucore";
/// A journal is at most this long; a core dump without memory contents was never seen larger than 60 MB.
const LARGEST: u64 = 256 << 20;

/// One entry a process that used the GPU, and what could not be read.
pub fn read(run: &Path) -> (Vec<TracedProcess>, Vec<String>) {
    let mut unread = Vec::new();
    let mut cores: BTreeMap<u32, Vec<GpuCore>> = BTreeMap::new();
    for (name, bytes) in files_of(run, CORES, ENDING, &mut unread) {
        match gpu_core::read(&bytes) {
            Ok(core) => cores.entry(process_of(&name).unwrap_or(0)).or_default().push(core),
            Err(sentence) => unread.push(format!("{CORES}/{name}: {sentence}.")),
        }
    }
    let mut traced = Vec::new();
    for (name, bytes) in files_of(run, JOURNALS, ".journal", &mut unread) {
        match cublame_journal::read(&bytes) {
            Ok(journal) => {
                let cores = cores.remove(&journal.pid).unwrap_or_default();
                traced.push(TracedProcess { journal, cores });
            }
            Err(sentence) => unread.push(format!("{JOURNALS}/{name}: {sentence}.")),
        }
    }
    (traced, unread)
}

/// The whole contents of the files of a folder of the run, by name.
fn files_of(run: &Path, folder: &str, ending: &str, unread: &mut Vec<String>) -> Vec<(String, Vec<u8>)> {
    let names = match files::names_beneath(run, &[folder]) {
        Ok(names) => names,
        Err(failure) if failure.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(failure) => {
            unread.push(format!("{folder}/ cannot be read: {failure}."));
            return Vec::new();
        }
    };
    let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| name.ends_with(ending) && !name.starts_with('.'));
    names.sort_unstable();
    let mut contents = Vec::new();
    for name in names {
        match files::read_beneath(run, &[folder, &name], LARGEST) {
            Ok(bytes) => contents.push((name, bytes)),
            Err(failure) => unread.push(format!("{folder}/{name} cannot be read: {failure}.")),
        }
    }
    contents
}

/// The process in a dump's name, as CUDA_COREDUMP_FILE's `%p` writes it.
fn process_of(name: &str) -> Option<u32> {
    name.strip_suffix(ENDING)?.rsplit('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_in_the_name() {
        assert_eq!(process_of("node1.example.4711.gpucore"), Some(4711));
        assert_eq!(process_of("node1.gpucore"), None);
    }

    #[test]
    fn a_run_without_a_trace_has_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_file_that_is_no_journal_is_said() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(JOURNALS)).unwrap();
        std::fs::write(folder.path().join("journal/1.journal"), b"not one").unwrap();
        let (traced, unread) = read(folder.path());
        assert_eq!(traced, Vec::new());
        assert_eq!(unread, ["journal/1.journal: the file is not a launch journal."]);
    }
}
