//! Results of TensorRT's trtexec: its log, the times of every query (`--exportTimes`), and the times of every layer
//! (`--exportProfile`), which are recognized but are no result of a network.
//!
//! A query is one enqueue, a whole minibatch: queries a second become samples a second only where the minibatch is known.

mod log;

use super::Fault;
use super::draft::Draft;
use super::entry::{Entry, Measured, Phase};
use super::number::Decimals;
use super::row::Row;
use super::text::stem;
use crate::bench::record::Clock;

pub(super) use log::{is_log, read as read_log};

/// Whether an object holds the times of a query.
pub(super) fn is_times(row: &Row) -> bool {
    ["computeMs", "latencyMs"].into_iter().any(|key| row.fields.contains_key(key))
}

/// Whether an object holds the times of a layer.
pub(super) fn is_profile(row: &Row) -> bool {
    row.fields.contains_key("timeMs") && row.fields.contains_key("averageMs")
}

/// Reads the objects of `--exportTimes`; of `--exportProfile` it only says what they are.
pub(super) fn read_objects(rows: Vec<Row>, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let mut decimals = Decimals::default();
    if !rows.iter().any(is_times) {
        let mut total_ms = 0.0;
        for row in &rows {
            total_ms += row.number("averageMs", &mut decimals)?.unwrap_or(0.0);
        }
        let n = rows.iter().filter(|row| is_profile(row)).count();
        draft.notes.push(format!(
            "times of {n} layers, {total_ms:.3} ms together, which are no result of the network; import its log or \
             --exportTimes"
        ));
        draft.holds_no_result = true;
        return Ok(());
    }
    let (mut compute_ms, mut latency_ms) = (Vec::new(), Vec::new());
    for row in &rows {
        compute_ms.extend(row.number("computeMs", &mut decimals)?);
        latency_ms.extend(row.number("latencyMs", &mut decimals)?);
    }
    // Never the differences of its time stamps, which have six digits whatever their size.
    let (samples_ms, clock, remark) = if compute_ms.is_empty() {
        (latency_ms, Clock::Host, "the times of whole queries, copies included")
    } else {
        (compute_ms, Clock::Device, "the times of computing, without copies to and from the device")
    };
    let mean_ms = samples_ms.iter().sum::<f64>() / samples_ms.len().max(1) as f64;
    let model = stem(&draft.title).to_owned();
    let mut entry = Entry::new(&model, Phase::Inference, "ms_per_query", mean_ms, Measured::Samples(samples_ms, clock));
    entry.engine = "TensorRT".to_owned();
    entry.notes.push(remark.to_owned());
    entry.notes.push("named after its file, which does not name the network".to_owned());
    draft.add(entry);
    Ok(())
}

#[cfg(test)]
mod tests;
