//! Which clock is quoted: the device's own where the host's confirms it, else the host's.

use super::timed::Samples;
use crate::bench::record::{Clock, Timing};
use crate::bench::statistics::{SampleError, Summary};

/// Ratios of device to host time at which the device's clock is believed: it can't show more than the host saw, but for
/// its resolution, and when it shows less than half, either its period is wrong or the device mostly waits for the
/// host.
///
/// Source: gfx-rs/wgpu pull request 1907, where an unapplied timestamp period made times 80 times too small.
const BELIEVED: std::ops::RangeInclusive<f64> = 0.5..=1.05;

/// The times to be quoted, with a remark when the device's clock is there and not believed.
///
/// # Errors
/// [`SampleError`] when the host's times are no measurement.
pub(super) fn quoted(samples: &Samples) -> Result<(Timing, Option<String>), SampleError> {
    let host = Summary::of(&samples.host_ms)?;
    if samples.device_ms.is_empty() {
        return Ok((timing(Clock::Host, &samples.host_ms, &host, samples), None));
    }
    let complete = samples.device_ms.len() == samples.host_ms.len();
    match Summary::of(&samples.device_ms) {
        Ok(device) if complete && BELIEVED.contains(&(device.median / host.median)) => {
            let mut timing = timing(Clock::Device, &samples.device_ms, &device, samples);
            timing.host_median_ms = Some(host.median);
            Ok((timing, None))
        }
        other => {
            let remark = match other {
                Ok(_) if !complete => "the device's clock was not always there, the host's is quoted".to_owned(),
                Ok(device) => format!(
                    "the device's clock shows {:.3} ms an iteration, the host's {:.3} ms; the host's is quoted",
                    device.median, host.median
                ),
                Err(error) => format!("the device's clock is not used: {error}; the host's is quoted"),
            };
            Ok((timing(Clock::Host, &samples.host_ms, &host, samples), Some(remark)))
        }
    }
}

fn timing(clock: Clock, samples_ms: &[f64], summary: &Summary, samples: &Samples) -> Timing {
    Timing { warm_up_iterations: samples.warm_up_iterations, ..Timing::of(clock, samples_ms, summary) }
}
