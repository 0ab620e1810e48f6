//! Caffe: the log of `caffe time`, with the network printed above its times.

use super::{Draft, Entry, FROM_FILE_NAME, Fact, Measured, Phase, entry, from_file_name};
use crate::bench::record::Clock;
use crate::import::networks;

/// What the printed network says.
#[derive(Default)]
struct Printed {
    name: Option<String>,
    /// Minibatch, channels, height, width.
    dimensions: Vec<usize>,
    /// Filters of the first convolution: 64 in the AlexNet with one tower, 96 in Caffe's own.
    first_filters: Option<usize>,
}

/// The pass and the milliseconds of a line such as `Average Forward pass: 42.405 ms.`
pub(super) fn result(line: &str) -> Option<(Phase, f64)> {
    let phases = [
        ("Average Forward pass: ", Phase::Forward),
        ("Average Backward pass: ", Phase::Backward),
        ("Average Forward-Backward: ", Phase::ForwardBackward),
    ];
    phases.into_iter().find_map(|(mark, phase)| Some((phase, millis(line, mark)?)))
}

fn millis(line: &str, mark: &str) -> Option<f64> {
    let (_, rest) = line.split_once(mark)?;
    rest.trim().strip_suffix("ms.")?.trim().parse().ok().filter(|ms: &f64| ms.is_finite())
}

/// Reads every result. Where the log has the time of each iteration, those count and not their mean.
pub(super) fn read(text: &str, draft: &mut Draft<'_>) {
    let mut printed = Printed::default();
    let mut iterations_ms = Vec::new();
    for line in text.lines() {
        if line.contains("Initializing net from parameters") {
            (printed, iterations_ms) = (Printed::default(), Vec::new());
        }
        printed.read(line);
        if line.contains("Iteration: ") {
            iterations_ms.extend(millis(line, "forward-backward time: "));
        }
        if let Some((phase, ms)) = result(line) {
            let mut entry = printed.entry(phase, ms, draft);
            if phase == Phase::ForwardBackward && !iterations_ms.is_empty() {
                entry.measured = Measured::Samples(std::mem::take(&mut iterations_ms), Clock::Host);
            }
            draft.add(entry);
        }
    }
}

impl Printed {
    fn read(&mut self, line: &str) {
        let value = |key: &str| line.trim().strip_prefix(key).map(|value| value.trim().trim_matches('"'));
        if let Some(name) = value("name:").filter(|_| self.name.is_none()) {
            self.name = Some(name.to_owned());
        }
        let dimension = value("input_dim:").or_else(|| value("dim:")).and_then(|text| text.parse().ok());
        if let Some(dimension) = dimension.filter(|_| self.dimensions.len() < 4) {
            self.dimensions.push(dimension);
        }
        if let Some(filters) = value("num_output:").and_then(|text| text.parse().ok()) {
            self.first_filters = self.first_filters.or(Some(filters));
        }
    }

    fn entry(&self, phase: Phase, ms: f64, draft: &Draft<'_>) -> Entry {
        let known = from_file_name(&draft.title).map(|(name, _)| name);
        let name = self.name.as_deref().or(known).unwrap_or("unknown network");
        let mut entry = entry(name, phase, ms, draft);
        if self.name.is_none() {
            let remark = if known.is_some() {
                FROM_FILE_NAME
            } else {
                "neither the log nor the file's name says which network it is"
            };
            entry.notes.push(remark.to_owned());
        }
        if let [minibatch, _, height, width] = self.dimensions[..] {
            entry.input = Some(format!("{height}x{width}"));
            entry.minibatch = if minibatch > 0 { Fact::Stated(minibatch) } else { Fact::Unknown };
            let network = networks::convnet_benchmarks(name, Some((height, width)));
            let has_one_tower = self.first_filters == Some(64);
            entry.network = network.filter(|_| has_one_tower || !name.to_ascii_lowercase().contains("alexnet"));
        }
        entry.engine = "Caffe".to_owned();
        entry
    }
}
