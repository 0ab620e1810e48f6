//! Workgroups folded into the dimensions of a dispatch, and dispatches gathered into submissions.

use std::ops::Range;

use super::launch::Launch;
use crate::engine::{DeviceKind, EngineError};

/// Folds a linear count of workgroups into `x` and `y`, both at most `max_per_dimension`. `x · y` may exceed the count
/// by less than `y`; kernels ignore what is past the end.
///
/// # Errors
/// [`EngineError::ExceedsDeviceLimit`] when two dimensions don't suffice.
pub(super) fn fold(workgroups: u64, max_per_dimension: u32) -> Result<(u32, u32), EngineError> {
    let max = u64::from(max_per_dimension);
    let y = workgroups.div_ceil(max).max(1);
    if y > max {
        return Err(EngineError::ExceedsDeviceLimit {
            what: "one dispatch".into(),
            needed: workgroups,
            limit: "max_compute_workgroups_per_dimension (squared)".into(),
            allowed: max * max,
        });
    }
    Ok((workgroups.div_ceil(y) as u32, y as u32))
}

/// Rates that a device surely reaches: they bound the time of a dispatch before anything was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    /// Floating-point operations a second in the slowest kernel.
    pub flop_per_sec: f64,
    /// Bytes a second.
    pub bytes_per_sec: f64,
}

/// Time that one dispatch and one submission are kept below, with a factor of two to the 200 ms that leave room to
/// Windows' two-second watchdog.
const TARGET_SECS: f64 = 0.1;

/// Time that no dispatch should exceed.
const MOST_SECS: f64 = 0.2;

impl Rates {
    /// Conservative assumption by the kind of device.
    pub(super) const fn assumed(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Software | DeviceKind::Cpu => Self { flop_per_sec: 1e10, bytes_per_sec: 4e9 },
            DeviceKind::Integrated => Self { flop_per_sec: 5e10, bytes_per_sec: 1e10 },
            DeviceKind::Virtual | DeviceKind::Other => Self { flop_per_sec: 2e11, bytes_per_sec: 3e10 },
            DeviceKind::Discrete => Self { flop_per_sec: 1e12, bytes_per_sec: 1e11 },
        }
    }

    /// Floating-point operations that one dispatch may hold.
    pub(super) fn flops_per_dispatch(&self) -> u64 {
        (self.flop_per_sec * TARGET_SECS) as u64
    }

    /// Bytes that one dispatch may move.
    pub(super) fn bytes_per_dispatch(&self) -> u64 {
        (self.bytes_per_sec * TARGET_SECS) as u64
    }

    /// Seconds that a launch takes at most at these rates.
    pub(super) fn seconds(&self, launch: &Launch) -> f64 {
        launch.flops as f64 / self.flop_per_sec + launch.bytes as f64 / self.bytes_per_sec
    }
}

/// What to say of the longest of some dispatches, by entry point and seconds, when it may be too long for a watchdog.
pub(super) fn too_long<'a>(dispatches: impl Iterator<Item = (&'a str, f64)>) -> Option<String> {
    let (entry, secs) = dispatches.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (secs > MOST_SECS).then(|| {
        format!(
            "one dispatch of {entry} is estimated to take {secs:.2} s: a driver that stops a device after two seconds, as \
             on Windows, may do so under load; a smaller minibatch takes less"
        )
    })
}

/// Cuts launches that take `seconds` each into submissions that stay below the target where they can.
pub(super) fn submissions(seconds: &[f64]) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let (mut first, mut sum) = (0, 0.0);
    for (idx, &secs) in seconds.iter().enumerate() {
        if idx > first && sum + secs > TARGET_SECS {
            cuts.push(first..idx);
            (first, sum) = (idx, 0.0);
        }
        sum += secs;
    }
    cuts.push(first..seconds.len());
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R30: one dimension ends at 4,194,240 elements.
    #[test]
    fn workgroups_fold_at_the_limit() {
        // 64 threads a workgroup: 4,194,240 elements are the last that fit into one dimension.
        for (elements, y) in [(1u64, 1), (4_194_240, 1), (4_194_241, 2), (10_000_000, 3)] {
            let workgroups = elements.div_ceil(64);
            let (x, rows) = fold(workgroups, 65_535).unwrap();
            assert_eq!(rows, y, "{elements} elements");
            assert!(x <= 65_535 && u64::from(x) * u64::from(rows) >= workgroups, "{elements} elements: {x}");
            assert!(u64::from(x) * u64::from(rows) < workgroups + u64::from(rows), "{elements} elements: {x}");
        }
        assert!(matches!(fold(1 << 33, 65_535), Err(EngineError::ExceedsDeviceLimit { .. })));
    }

    /// R25: work that turns out slower than assumed is told before a watchdog does.
    #[test]
    fn a_dispatch_that_takes_too_long_is_told() {
        for (seconds, told) in [(vec![], None), (vec![0.1, 0.2], None), (vec![0.1, 0.35, 0.3], Some("0.35 s"))] {
            let note = too_long(seconds.iter().map(|&secs| ("conv2d_forward", secs)));
            assert_eq!(note.is_some(), told.is_some(), "{note:?}");
            assert!(note.is_none_or(|note| note.contains(told.unwrap()) && note.contains("conv2d_forward")));
        }
    }

    #[test]
    fn submissions_stay_below_the_target() {
        let seconds = [0.04, 0.04, 0.04, 0.3, 0.01, 0.01];
        assert_eq!(submissions(&seconds), [0..2, 2..3, 3..4, 4..6]);
        assert_eq!(submissions(&[]), [Range::default()]);
        let scaled: Vec<f64> = seconds.iter().map(|s| s / 100.0).collect();
        assert_eq!(submissions(&scaled).len(), 1);
    }
}
