//! The device's clock: ticks to seconds, and whether it is to be believed.

/// Seconds between two timestamps.
///
/// Formula: `(end − begin) · period`, the period in nanoseconds a tick.
pub(super) fn seconds(begin: u64, end: u64, period_nanos: f32) -> Option<f64> {
    // Counters may be narrower than 64 bits and wrap: such a pair says nothing.
    let ticks = end.checked_sub(begin)?;
    Some(ticks as f64 * f64::from(period_nanos) * 1e-9)
}

/// Why the device's clock can't be used, given one iteration that ran alone: its time on the device's clock and on the
/// host's, from submission to the end of the wait. `None`: it can.
pub(super) fn mistrust(device_secs: f64, host_secs: f64) -> Option<String> {
    // The host's time holds the submission and the wake-up, which outweigh the work where that is short.
    const OVERHEAD_SECS: f64 = 1e-3;
    let plausible =
        device_secs > 0.0 && device_secs <= 1.05 * host_secs && device_secs >= 0.5 * (host_secs - OVERHEAD_SECS);
    (!plausible).then(|| {
        format!(
            "the device's clock is not used: it counted {:.3} ms for an iteration that took {:.3} ms on the host's",
            device_secs * 1e3,
            host_secs * 1e3
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R31: ticks are multiplied by the period.
    #[test]
    fn period_is_applied() {
        // An Intel device counts in units of 83.3 ns.
        let secs = seconds(1_000, 13_000, 83.333_336).unwrap();
        assert!((secs - 1e-3).abs() < 1e-8, "{secs}");
        assert_eq!(seconds(5, 4, 1.0), None);
    }

    /// R31: a clock that the host's contradicts is not used.
    #[test]
    fn clock_must_agree_with_the_host() {
        for (device, host, trusted) in [
            (0.0100, 0.0101, true),
            (0.0060, 0.0101, true),
            (0.0001, 0.0100, false), // period not applied
            (0.0120, 0.0100, false), // faster than real time
            (0.0000, 0.0005, false), // nothing counted
            (0.0001, 0.0004, true),  // short work, host overhead
        ] {
            assert_eq!(mistrust(device, host).is_none(), trusted, "{device} on the device, {host} on the host");
        }
    }
}
