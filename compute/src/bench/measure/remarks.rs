//! What is remarkable about a measurement, one sentence each: it labels a result and deletes none, but for a rate that
//! no device reaches.

use crate::bench::record::Memory;
use crate::engine::Device;
use crate::shape::Precision;

/// Rate beyond every device's: ten times the densest half-precision rate of one GPU (NVIDIA B200, 2.25 PFLOP/s, data
/// sheet of 2024).
const IMPOSSIBLE_FLOP_PER_SEC: f64 = 2e16;
/// Relative change from which drift is remarkable.
const DRIFT: f64 = 0.03;
/// Relative change from the first window to the measurement that is remarkable.
const WARMING: f64 = 0.05;
/// Free memory that may be missing without a word: drivers keep small pools, an engine its context and its loaded
/// kernels (0.27 GiB after one network in one precision on an H200, 2026-11-30).
const MISSING_BYTES: u64 = 768 << 20;

/// Why a rate can't have been measured.
pub(super) fn impossible(achieved: f64) -> Option<String> {
    (!achieved.is_finite() || achieved > IMPOSSIBLE_FLOP_PER_SEC).then(|| {
        format!(
            "implausible: {:.1} PFLOP/s is more than any device computes, the timing must be wrong",
            achieved / 1e15
        )
    })
}

/// A rate above the device's peak, where `peak_flop_per_sec` of the device gives one for the precision.
pub(super) fn above_peak(achieved: f64, device: &Device, precision: Precision) -> Option<String> {
    let peak = device.extra.get("peak_flop_per_sec")?.get(precision.name())?.as_f64()?;
    (achieved > peak).then(|| {
        format!(
            "implausible unless an algorithm saves operations: {:.1} TFLOP/s achieved, the device's peak is {:.1}",
            achieved / 1e12,
            peak / 1e12
        )
    })
}

/// More allocated than the device has, or than was free.
pub(super) fn spilled(memory: &Memory, device: &Device) -> Option<String> {
    let peak = memory.peak_bytes?;
    let available = [device.memory_bytes, memory.free_before_bytes].into_iter().flatten().min()?;
    (peak > available).then(|| {
        format!(
            "spilled to system memory: {} allocated, {} there; the device waited for the bus",
            gib(peak),
            gib(available)
        )
    })
}

/// Less free memory than before the first run.
pub(super) fn less_free_memory(free: u64, first: u64) -> Option<String> {
    (free + MISSING_BYTES < first).then(|| {
        format!(
            "{} of device memory were free, {} before the first run: memory leaks or another program uses it",
            gib(free),
            gib(first)
        )
    })
}

/// Samples that change while they are taken.
pub(super) fn drifting(drift: f64) -> Option<String> {
    (drift.abs() >= DRIFT)
        .then(|| format!("drift: the last iterations took {:+.1}% compared with the first", drift * 100.0))
}

/// A measurement that differs from the cold device's.
pub(super) fn warmed(cold_ms: f64, steady_ms: f64) -> Option<String> {
    let change = steady_ms / cold_ms - 1.0;
    (cold_ms > 0.0 && change.abs() >= WARMING)
        .then(|| format!("cold {cold_ms:.3} ms an iteration, measured {steady_ms:.3} ms ({:+.1}%)", change * 100.0))
}

/// Warm-up that ran into its bound.
pub(super) fn not_settled(iterations: usize) -> String {
    format!("warm-up ended by its time bound after {iterations} iterations, before two windows agreed")
}

/// A measurement that ran into its bound.
pub(super) fn cut_short(measured: usize, asked: usize, max_seconds: f64) -> String {
    format!("{measured} of {asked} iterations were measured, the bound was {max_seconds} s")
}

/// A session that does not wait.
pub(super) fn returned_early() -> String {
    "the engine returned before the device had finished; times include a read that waits for it".to_owned()
}

fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30))
}
