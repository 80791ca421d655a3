//! `telemetry.jsonl`: what the GPUs did during a run, a line a sample of one device.

use serde::{Deserialize, Serialize};

/// One look at one GPU. What a device does not tell is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sample {
    /// Unix seconds.
    pub time: f64,
    /// As the driver numbers it.
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
}
