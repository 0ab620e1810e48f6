//! What a record says of what was measured: statistics of raw samples, rates from times, failures.

use super::entry::{Measured, Phase};
use super::networks;
use super::text::shorten;
use crate::bench::record::{Clock, Record, Status, Timing};
use crate::bench::statistics::Summary;
use crate::models::Model;

/// Turns what was measured into what the record says of it. `counts_samples` says whether an iteration has a minibatch,
/// `network` is known where one device computed it.
pub(super) fn conclude(
    record: &mut Record,
    measured: Measured,
    phase: Phase,
    counts_samples: bool,
    network: Option<Model>,
) {
    let iteration_ms = match measured {
        Measured::Failed(reason) => return fail(record, reason),
        Measured::Other => return,
        Measured::PerSec(rate) if rate > 0.0 => {
            record.throughput_per_sec = Some(rate);
            None
        }
        Measured::PerSec(rate) => {
            return fail(record, format!("its file gives {rate} samples/s, which is no measurement"));
        }
        Measured::Millis(ms) if ms > 0.0 => Some(ms),
        Measured::Millis(ms) => return fail(record, format!("its file gives {ms} ms, which is no measurement")),
        Measured::Samples(samples, clock) => match timing(&samples, clock, &mut record.notes) {
            Some(timing) => {
                let median_ms = timing.median_ms;
                record.timing = Some(timing);
                Some(median_ms)
            }
            None => return fail(record, "its file holds no time above zero".to_owned()),
        },
    };
    if phase == Phase::Backward {
        record.throughput_per_sec = None;
        record.notes.push("the time of the backward pass alone".to_owned());
    } else if let Some(ms) = iteration_ms.filter(|_| counts_samples) {
        if record.minibatch > 0 {
            record.throughput_per_sec = Some(record.minibatch as f64 * 1e3 / ms);
        } else {
            record.notes.push("its minibatch is not stated, so samples a second are not known".to_owned());
        }
    }
    if let (Some(rate), Some(model)) = (record.throughput_per_sec, network) {
        record.achieved_flop_per_sec = Some(rate * networks::facts(model).flops(record.pass));
    }
}

/// Statistics of raw samples; none when no sample is a time.
fn timing(samples: &[f64], clock: Clock, notes: &mut Vec<String>) -> Option<Timing> {
    let times: Vec<f64> = samples.iter().copied().filter(|ms| ms.is_finite() && *ms > 0.0).collect();
    let summary = Summary::of(&times).ok()?;
    if times.len() < samples.len() {
        let n = samples.len() - times.len();
        notes.push(format!("{n} of {} samples are no time above zero and are left out", samples.len()));
    }
    let drift = summary.drift.filter(|drift| drift.is_finite());
    Some(Timing { drift, ..Timing::of(clock, &times, &summary) })
}

/// Makes a record one of a failed run.
pub(super) fn fail(record: &mut Record, reason: String) {
    let is_memory = reason.to_ascii_lowercase().contains("out of memory");
    record.status = if is_memory { Status::OutOfMemory } else { Status::Failed };
    record.reason = Some(shorten(&reason, 300));
    record.timing = None;
    record.throughput_per_sec = None;
    record.achieved_flop_per_sec = None;
}
