//! A log's readings in a few sentences, one a GPU.

use std::collections::BTreeMap;

use super::Reading;

/// Utilization in percent from which a clock that low is worth a remark.
const BUSY_PERCENT: f64 = 50.0;
/// Clock in MHz below which a GPU is at rest, whatever its utilization says.
const RESTING_MHZ: f64 = 400.0;
/// GPUs that are summed up.
const MOST_GPUS: usize = 64;

/// Remarks on every GPU.
pub(super) fn notes(readings: &[Reading]) -> Vec<String> {
    let mut of_gpu: BTreeMap<&str, Vec<&Reading>> = BTreeMap::new();
    for reading in readings {
        if of_gpu.len() < MOST_GPUS || of_gpu.contains_key(reading.gpu.as_str()) {
            of_gpu.entry(&reading.gpu).or_default().push(reading);
        }
    }
    of_gpu.into_iter().flat_map(|(gpu, readings)| of_one(gpu, &readings)).collect()
}

fn of_one(gpu: &str, readings: &[&Reading]) -> Vec<String> {
    let values = |name: &str| readings.iter().filter_map(|reading| reading.quantities.get(name).copied()).collect();
    let mean = |name: &str| {
        let values: Vec<f64> = values(name);
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let most = |name: &str| values(name).into_iter().reduce(f64::max);
    let spans = readings.iter().map(|reading| reading.at_secs);
    let secs = spans.clone().fold(0.0, f64::max) - spans.fold(f64::INFINITY, f64::min);
    let name = if gpu.is_empty() { "the GPU".to_owned() } else { format!("GPU {gpu}") };
    let utilization = mean("utilization_percent");
    let clock = mean("sm_clock_mhz");
    let parts = [
        utilization.map(|value| format!("utilization {value:.0}%")),
        clock.map(|value| format!("core clock {value:.0} MHz")),
        mean("power_watt").map(|value| format!("power {value:.1} W")),
        most("temperature_celsius").map(|value| format!("at most {value:.0} °C")),
        most("memory_used_bytes").map(|value| format!("at most {:.2} GiB used", value / (1u64 << 30) as f64)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let what = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let mut notes = vec![format!("{name}, {} readings over {secs:.0} s{what}", readings.len())];
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in readings.iter().flat_map(|reading| &reading.throttled) {
        *reasons.entry(reason).or_default() += 1;
    }
    for (reason, n) in reasons {
        notes.push(format!(
            "{name}: {reason} active in {:.0}% of the readings",
            100.0 * n as f64 / readings.len() as f64
        ));
    }
    if let (Some(utilization), Some(clock)) = (utilization, clock)
        && utilization >= BUSY_PERCENT
        && clock < RESTING_MHZ
    {
        notes.push(format!(
            "{name} is {utilization:.0}% utilized at {clock:.0} MHz: utilization says that something ran, not how fast"
        ));
    }
    notes
}
