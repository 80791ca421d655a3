//! What the GPUs of a run did over time, as the supervisor sampled it: `telemetry.jsonl`, one [`Record`] a line.

mod rise;

use serde::{Deserialize, Serialize};

pub use rise::{Rise, rise};

/// A line of `telemetry.jsonl`. Times are Unix seconds; a device goes by the driver's number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    Gpu(Gpu),
    Sample(Sample),
    /// What the driver reports of a GPU in its log, by NVIDIA's number.
    Xid {
        time: f64,
        device: u32,
        code: u64,
    },
    Processes {
        time: f64,
        device: u32,
        processes: Vec<GpuProcess>,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gpu {
    pub device: u32,
    pub name: String,
    pub uuid: String,
    /// Bytes.
    pub memory: u64,
}

/// One look at one GPU. What a device does not tell is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sample {
    pub time: f64,
    pub device: u32,
    /// Bytes in use by all processes.
    pub memory: Option<u64>,
    /// Bytes that the GPU has.
    pub capacity: Option<u64>,
    /// Per cent of the last sampling period in which a kernel ran.
    pub utilisation: Option<u32>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Watts.
    pub power: Option<f64>,
    /// Why its clocks are below what they could be: `power-cap`, `power-brake`, `thermal`, `hardware`.
    pub throttled: Vec<String>,
    /// Uncorrected memory errors since the driver was loaded.
    pub ecc_errors: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GpuProcess {
    pub pid: u32,
    pub bytes: Option<u64>,
}

/// The records around a failure that belong into its report: the GPUs, a minute before it and a little after.
pub fn around(records: &[Record], failure: f64) -> Vec<Record> {
    const BEFORE: f64 = 60.0;
    const AFTER: f64 = 10.0;
    let near = |time: f64| (failure - BEFORE..=failure + AFTER).contains(&time);
    let belongs = |record: &&Record| match record {
        Record::Gpu(_) | Record::Processes { .. } => true,
        Record::Sample(sample) => near(sample.time),
        Record::Xid { time, .. } => near(*time),
    };
    records.iter().filter(belongs).cloned().collect()
}

/// The memory in use on a GPU over time.
pub fn used(records: &[Record], device: u32) -> Vec<(f64, u64)> {
    let of_device = records.iter().filter_map(|record| match record {
        Record::Sample(sample) if sample.device == device => Some((sample.time, sample.memory?)),
        _ => None,
    });
    of_device.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_before_the_failure_is_kept() {
        let sample = |time: f64| Record::Sample(Sample { time, memory: Some(time as u64), ..Sample::default() });
        let mut records = vec![Record::Gpu(Gpu::default()), Record::Xid { time: 1.0, device: 0, code: 13 }];
        records.extend((0..400).map(|at| sample(f64::from(at) / 2.0)));
        records.push(Record::Xid { time: 101.0, device: 0, code: 31 });
        let kept = around(&records, 100.0);
        assert_eq!(kept.len(), 1 + 141 + 1);
        let series = used(&kept, 0);
        assert_eq!((series[0].0, series[series.len() - 1].0), (40.0, 110.0));
        assert_eq!(used(&kept, 1), []);
    }
}
