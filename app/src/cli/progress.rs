//! What `run` says on standard error while it measures: a bar on a terminal, and one line for each finished run.

use std::time::Duration;

use compute::bench::event::Phase;
use compute::bench::export::significant;
use compute::bench::record::{Record, Status};
use compute::bench::spec::RunSpec;
use indicatif::{ProgressBar, ProgressStyle};

use super::output::say;

/// Progress through a list of runs.
pub(super) struct Progress<'a> {
    specs: &'a [RunSpec],
    bar: ProgressBar,
    phase: Option<Phase>,
}

impl<'a> Progress<'a> {
    /// Nothing is done yet. The bar is drawn only where standard error is a terminal.
    pub(super) fn new(specs: &'a [RunSpec]) -> Self {
        let bar = ProgressBar::new(specs.len() as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {elapsed}  {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { specs, bar, phase: None }
    }

    /// A run was begun.
    pub(super) fn started(&mut self, index: usize) {
        self.phase = None;
        self.bar.set_message(name(&self.specs[index]));
    }

    /// A run entered a phase.
    pub(super) fn phase(&mut self, index: usize, phase: Phase) {
        self.phase = Some(phase);
        self.bar.set_message(format!("{}: {}", name(&self.specs[index]), phase.label()));
    }

    /// A run has done iterations of its phase.
    pub(super) fn iterations(&mut self, index: usize, done: usize, of: Option<usize>, latest_ms: f64) {
        let phase = self.phase.map_or("running", Phase::label);
        let of = of.map_or(String::new(), |of| format!(" of {of}"));
        let latest = significant(latest_ms);
        self.bar.set_message(format!("{}: {phase}, {done}{of}, {latest} ms", name(&self.specs[index])));
    }

    /// A run has its outcome.
    pub(super) fn finished(&mut self, index: usize, record: &Record, device: Option<&str>) {
        let on = device.map_or(String::new(), |device| format!(" on {device}"));
        self.line(index, &format!("{}{on}: {}", name(&self.specs[index]), outcome(record)));
    }

    /// A run was left out.
    pub(super) fn skipped(&mut self, index: usize, reason: &str) {
        self.line(index, &format!("{}: skipped, {reason}", name(&self.specs[index])));
    }

    /// Says something between the bar's pictures.
    pub(super) fn say(&self, text: &str) {
        self.bar.suspend(|| say(text));
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, index: usize, text: &str) {
        self.say(&format!("[{}/{}] {text}", index + 1, self.specs.len()));
        self.bar.inc(1);
    }
}

fn name(spec: &RunSpec) -> String {
    format!("{} {} {} minibatch {}, {}", spec.model, spec.pass, spec.precision, spec.minibatch, spec.engine)
}

fn outcome(record: &Record) -> String {
    match (record.status, record.throughput_per_sec, &record.timing) {
        (Status::Ok, Some(throughput), Some(timing)) => {
            format!("{} samples/s, {} ms", significant(throughput), significant(timing.median_ms))
        }
        _ => match &record.reason {
            Some(reason) => format!("{}, {}", record.status, reason.lines().next().unwrap_or_default()),
            None => record.status.to_string(),
        },
    }
}
