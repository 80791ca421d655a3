//! What the GPUs did during the run, one plot a quantity, the failure marked.

use std::collections::BTreeMap;

use cublame_core::advice::size;
use cublame_core::telemetry::Sample;

use super::Page;
use super::html::Html;
use super::plot::{Plot, plot};

/// A quantity of a sample, and how it is drawn.
struct Quantity {
    key: &'static str,
    of: fn(&Sample) -> Option<f64>,
    /// The most that it can be.
    full: fn(&Sample) -> Option<f64>,
    grain: f64,
    unit: fn(f64) -> String,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        key: "plot.memory",
        of: |sample| sample.memory.map(|bytes| bytes as f64),
        full: |sample| sample.capacity.map(|bytes| bytes as f64),
        grain: (1u64 << 30) as f64,
        unit: |bytes| size(bytes as u64),
    },
    Quantity {
        key: "plot.utilisation",
        of: |sample| sample.utilisation.map(f64::from),
        full: |_| Some(100.0),
        grain: 1.0,
        unit: |percent| format!("{percent:.0} %"),
    },
    Quantity {
        key: "plot.temperature",
        of: |sample| sample.temperature.map(f64::from),
        full: |_| Some(100.0),
        grain: 1.0,
        unit: |degrees| format!("{degrees:.0} °C"),
    },
    Quantity {
        key: "plot.power",
        of: |sample| sample.power,
        full: |_| None,
        grain: 1.0,
        unit: |watts| format!("{watts:.0} W"),
    },
];

impl Page<'_> {
    pub(super) fn gpu_over_time(&self) -> Html {
        let mut devices: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
        for sample in &self.told.telemetry {
            devices.entry(sample.device).or_default().push(sample);
        }
        let start = self.told.run.as_ref().map_or(0.0, |run| run.started);
        let failure = self.root().and_then(|_| self.told.failed_at()).map(|time| time - start);
        let failure_word = self.say("failure-at");
        let several = devices.len() > 1;
        let mut body = Html::default();
        for (device, samples) in devices {
            let mut plots = Html::default();
            for Quantity { key, of, full, grain, unit } in QUANTITIES {
                let points: Vec<(f64, f64)> =
                    samples.iter().filter_map(|sample| Some((sample.time - start, of(sample)?))).collect();
                let full = samples.iter().find_map(|sample| full(sample));
                let title = self.say(key);
                plot(
                    &mut plots,
                    &Plot { title: &title, points: &points, full, grain, failure, failure_word: &failure_word, unit },
                );
            }
            if plots.is_empty() {
                continue;
            }
            if several {
                body.inside("<h3>GPU ", &device.to_string(), "</h3>");
            }
            body.markup("<div class=\"plots\">").append(plots).markup("</div>");
        }
        self.section("over-time", body)
    }
}
