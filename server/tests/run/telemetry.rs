//! The GPUs beside a run: NVML's real wrapper with a stand-in library, and without any.

use std::path::Path;
use std::process::Command;

use cublame_core::run::Report;
use cublame_core::telemetry::{Gpu, GpuProcess, Record, Sample};

use crate::project::{Project, stderr};

/// Builds the stand-in into a folder, which then goes on the loader's path. None where there is no C compiler.
fn stand_in(folder: &Path) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/nvml/nvml.c");
    let library = folder.join("libnvidia-ml.so.1");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(library).arg(source).status();
    let Ok(status) = built else {
        eprintln!("skipped: there is no C compiler for the stand-in of libnvidia-ml");
        return None;
    };
    assert!(status.success());
    Some(())
}

fn report(project: &Project) -> Report {
    project.only_run().report().whole().unwrap()
}

fn lines(project: &Project) -> Vec<Record> {
    let text = std::fs::read_to_string(project.only_run().path().join("telemetry.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn samples(records: &[Record]) -> Vec<Sample> {
    let of_record = |record: &Record| match record {
        Record::Sample(sample) => Some(sample.clone()),
        _ => None,
    };
    records.iter().filter_map(of_record).collect()
}

const FAILS: &str =
    "import time; time.sleep(1.6); raise RuntimeError('CUDA error: an illegal memory access was encountered')";

#[test]
fn every_gpu_is_sampled_and_what_the_driver_reports_is_told() {
    let (project, libraries) = (Project::new(), tempfile::tempdir().unwrap());
    let Some(()) = stand_in(libraries.path()) else { return };
    let output = project.run(&["python3", "-c", FAILS]).env("LD_LIBRARY_PATH", libraries.path()).output().unwrap();
    assert!(stderr(&output).contains("the driver reported Xid 31 on GPU 1"), "{}", stderr(&output));
    let records = lines(&project);
    let gpu = |device, uuid: &str| {
        Record::Gpu(Gpu { device, name: "Stand-in".to_owned(), uuid: uuid.to_owned(), memory: 1_000_000 })
    };
    assert_eq!(records[..2], [gpu(0, "GPU-aaaa"), gpu(1, "GPU-bbbb")]);
    let Record::Processes { device: 0, processes, .. } = &records[2] else { panic!("{:?}", records[2]) };
    assert_eq!(*processes, [GpuProcess { pid: 4321, bytes: Some(777) }]);
    let samples = samples(&records);
    assert!(samples.len() >= 6, "{samples:#?}");
    let first = Sample {
        time: samples[0].time,
        device: 0,
        memory: samples[0].memory,
        capacity: Some(1_000_000),
        utilisation: Some(55),
        temperature: Some(41),
        power: Some(300.0),
        throttled: vec!["power-cap".to_owned()],
        ecc_errors: None,
    };
    assert_eq!(samples[0], first);
    let of_first: Vec<u64> =
        samples.iter().filter(|sample| sample.device == 0).filter_map(|sample| sample.memory).collect();
    assert!(of_first.is_sorted_by(|before, after| before < after), "{of_first:?}");
    let xids: Vec<&Record> = records.iter().filter(|record| matches!(record, Record::Xid { .. })).collect();
    assert!(matches!(xids[..], [Record::Xid { device: 1, code: 31, .. }]), "{xids:?}");
    assert_eq!(report(&project).telemetry.len(), records.len());
}

#[test]
fn only_what_the_program_sees_is_sampled() {
    let libraries = tempfile::tempdir().unwrap();
    let Some(()) = stand_in(libraries.path()) else { return };
    for (visible, expected) in [("1", Some(1)), ("GPU-aa", Some(0)), ("", None)] {
        let project = Project::new();
        let mut run = project.run(&["python3", "-c", FAILS]);
        run.env("LD_LIBRARY_PATH", libraries.path()).env("CUDA_VISIBLE_DEVICES", visible).output().unwrap();
        let records = report(&project).telemetry;
        assert_eq!(samples(&records).is_empty(), expected.is_none(), "{visible}");
        assert!(samples(&records).iter().all(|sample| Some(sample.device) == expected), "{visible}: {records:?}");
    }
}

#[test]
fn without_nvml_a_run_is_as_ever() {
    let (project, libraries) = (Project::new(), tempfile::tempdir().unwrap());
    std::fs::write(libraries.path().join("libnvidia-ml.so.1"), "no library").unwrap();
    let output = project.run(&["python3", "-c", FAILS]).env("LD_LIBRARY_PATH", libraries.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!project.only_run().path().join("telemetry.jsonl").exists());
    assert_eq!(report(&project).telemetry, []);
}

#[test]
fn a_success_keeps_the_samples_and_its_report_has_none() {
    let (project, libraries) = (Project::new(), tempfile::tempdir().unwrap());
    let Some(()) = stand_in(libraries.path()) else { return };
    project.run(&["sleep", "1.2"]).env("LD_LIBRARY_PATH", libraries.path()).output().unwrap();
    assert!(!samples(&lines(&project)).is_empty());
    assert_eq!(report(&project).telemetry, []);
}
