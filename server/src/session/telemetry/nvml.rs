//! NVML, loaded at run time: which GPUs a program sees, and what they say of themselves.

use std::ffi::OsStr;

use cublame_core::telemetry::{Gpu, GpuProcess, Record, Sample};
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet, Nvml};

/// The name that the driver installs. The one without a number comes with development packages only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The GPUs that a program sees.
pub struct Gpus<'nvml> {
    all: Vec<(u32, Device<'nvml>)>,
    events: Option<EventSet<'nvml>>,
}

/// Loads NVML and does something with the GPUs; None where there is no NVML, or no GPU that the program sees.
pub fn with_gpus<T>(visible: Option<&str>, work: impl FnOnce(&Gpus<'_>) -> T) -> Option<T> {
    let nvml = Nvml::builder().lib_path(OsStr::new(LIBRARY)).init().ok()?;
    let all = seen(&nvml, visible);
    if all.is_empty() {
        return None;
    }
    let events = listen(&nvml, &all);
    Some(work(&Gpus { all, events }))
}

/// CUDA_VISIBLE_DEVICES names GPUs by number, or by the start of their UUID; what comes after a name that there is none of
/// is not seen. The numbers are CUDA's, which are NVML's unless GPUs of several models are in one machine.
fn seen<'nvml>(nvml: &'nvml Nvml, visible: Option<&str>) -> Vec<(u32, Device<'nvml>)> {
    let count = nvml.device_count().unwrap_or(0);
    let devices = (0..count).filter_map(|number| Some((number, nvml.device_by_index(number).ok()?)));
    let devices: Vec<(u32, Device<'nvml>, String)> =
        devices.map(|(number, device)| (number, device, device_uuid(number, nvml))).collect();
    let Some(visible) = visible else {
        return devices.into_iter().map(|(number, device, _)| (number, device)).collect();
    };
    let numbers =
        select(visible, &devices.iter().map(|(number, _, uuid)| (*number, uuid.as_str())).collect::<Vec<_>>());
    devices
        .into_iter()
        .filter(|(number, ..)| numbers.contains(number))
        .map(|(number, device, _)| (number, device))
        .collect()
}

fn device_uuid(number: u32, nvml: &Nvml) -> String {
    nvml.device_by_index(number).and_then(|device| device.uuid()).unwrap_or_default()
}

fn select(visible: &str, gpus: &[(u32, &str)]) -> Vec<u32> {
    let find = |name: &str| match name.parse::<u32>() {
        Ok(wanted) => gpus.iter().find(|(number, _)| *number == wanted),
        Err(_) if name.starts_with("GPU-") => gpus.iter().find(|(_, uuid)| uuid.starts_with(name)),
        Err(_) => None,
    };
    visible.split(',').map(str::trim).map_while(find).map(|(number, _)| *number).collect()
}

/// Has the driver report its errors; None where it does not, as in some containers.
fn listen<'nvml>(nvml: &'nvml Nvml, gpus: &[(u32, Device<'nvml>)]) -> Option<EventSet<'nvml>> {
    let mut set = nvml.create_event_set().ok()?;
    for (_, device) in gpus {
        set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set).ok()?;
    }
    Some(set)
}

impl Gpus<'_> {
    pub fn described(&self) -> Vec<Record> {
        let describe = |(gpu, device): &(u32, Device<'_>)| {
            Record::Gpu(Gpu {
                device: *gpu,
                name: device.name().unwrap_or_default(),
                uuid: device.uuid().unwrap_or_default(),
                memory: device.memory_info().map_or(0, |memory| memory.total),
            })
        };
        self.all.iter().map(describe).collect()
    }

    pub fn sample(&self, time: f64) -> Vec<Record> {
        let sample = |(gpu, device): &(u32, Device<'_>)| {
            let memory = device.memory_info().ok();
            Record::Sample(Sample {
                time,
                device: *gpu,
                memory: memory.as_ref().map(|memory| memory.used),
                capacity: memory.map(|memory| memory.total),
                utilisation: device.utilization_rates().ok().map(|rates| rates.gpu),
                temperature: device.temperature(TemperatureSensor::Gpu).ok(),
                power: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1000.0),
                throttled: device.current_throttle_reasons().map_or_else(|_| Vec::new(), words),
                ecc_errors: device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok(),
            })
        };
        self.all.iter().map(sample).collect()
    }

    /// What the driver has reported since this was asked last. It does not wait.
    pub fn reported(&self, time: f64) -> Vec<Record> {
        const MOST_AT_ONCE: usize = 64;
        let Some(events) = &self.events else { return Vec::new() };
        let mut reported = Vec::new();
        while let Ok(event) = events.wait(0) {
            let code = match event.event_data {
                Some(XidError::Value(code)) => Some(code),
                Some(XidError::Unknown) | None => None,
            };
            let uuid = event.device.uuid().unwrap_or_default();
            let gpu = self.all.iter().find(|(_, device)| device.uuid().is_ok_and(|it| it == uuid)).map(|(gpu, _)| *gpu);
            if let (Some(code), Some(device)) = (code, gpu) {
                reported.push(Record::Xid { time, device, code });
            }
            if reported.len() >= MOST_AT_ONCE {
                break;
            }
        }
        reported
    }

    pub fn processes(&self, time: f64) -> Vec<Record> {
        let list = |(gpu, device): &(u32, Device<'_>)| -> Result<Record, NvmlError> {
            let processes = device.running_compute_processes()?;
            let process = processes.into_iter().map(|process| GpuProcess {
                pid: process.pid,
                bytes: match process.used_gpu_memory {
                    UsedGpuMemory::Used(bytes) => Some(bytes),
                    UsedGpuMemory::Unavailable => None,
                },
            });
            Ok(Record::Processes { time, device: *gpu, processes: process.collect() })
        };
        self.all.iter().filter_map(|gpu| list(gpu).ok()).collect()
    }
}

/// Only what holds a GPU back: being idle, or set to a clock, is no trouble.
fn words(reasons: ThrottleReasons) -> Vec<String> {
    let named = [
        (ThrottleReasons::SW_POWER_CAP, "power-cap"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power-brake"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN, "thermal"),
        (ThrottleReasons::HW_SLOWDOWN, "hardware"),
    ];
    named.into_iter().filter(|(reason, _)| reasons.intersects(*reason)).map(|(_, word)| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_are_chosen_as_cuda_chooses_them() {
        let gpus = [(0, "GPU-aa11"), (1, "GPU-aa22"), (2, "GPU-bb33")];
        for (visible, expected) in [
            ("0", &[0][..]),
            ("2, 0", &[2, 0]),
            ("GPU-bb", &[2]),
            ("1,GPU-aa11", &[1, 0]),
            ("1,7,0", &[1]),
            ("-1", &[]),
            ("", &[]),
            ("NoDevFiles", &[]),
            ("MIG-GPU-aa11/1/0", &[]),
        ] {
            assert_eq!(select(visible, &gpus), expected, "{visible}");
        }
    }

    #[test]
    fn an_idle_gpu_is_not_held_back() {
        assert_eq!(words(ThrottleReasons::GPU_IDLE), [""; 0]);
        let hot = ThrottleReasons::HW_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        assert_eq!(words(hot), ["thermal", "hardware"]);
    }
}
