//! What the machine says of itself: the host, the time, and what a GPU reports while it works.
//!
//! GPU readings come from NVML where it is installed. A device is found there by UUID or PCI address, never by its
//! place in a list, since two lists need not agree on the order.

mod nvml;
mod time;

use std::collections::BTreeMap;

use super::record::{Host, Telemetry};

pub use nvml::{Monitor, Sampling, complete};
pub use time::{now_utc, rfc3339};

/// One reading of a device; what it does not report is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Core clock in MHz.
    pub clock_mhz: Option<f64>,
    /// Utilization, 0 to 1.
    pub utilization: Option<f64>,
    /// Power in W.
    pub power_watt: Option<f64>,
    /// Temperature in °C.
    pub temperature_celsius: Option<f64>,
    /// Reasons that hold the clock down.
    pub throttled: Vec<&'static str>,
}

/// Reason of a power limit.
pub const POWER: &str = "power";
/// Reason of a temperature limit.
pub const THERMAL: &str = "thermal";

/// Summary of readings; absent when there is none.
pub fn summarize(readings: &[Reading]) -> Option<Telemetry> {
    if readings.is_empty() {
        return None;
    }
    let mean = |field: fn(&Reading) -> Option<f64>| {
        let values: Vec<f64> = readings.iter().filter_map(field).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let mut throttled = BTreeMap::new();
    for reason in readings.iter().flat_map(|reading| &reading.throttled) {
        *throttled.entry((*reason).to_owned()).or_insert(0.0) += 1.0 / readings.len() as f64;
    }
    Some(Telemetry {
        readings: readings.len(),
        clock_mhz: mean(|reading| reading.clock_mhz),
        utilization: mean(|reading| reading.utilization),
        power_watt: mean(|reading| reading.power_watt),
        temperature_celsius: readings.iter().filter_map(|reading| reading.temperature_celsius).reduce(f64::max),
        throttled,
        ..Telemetry::default()
    })
}

/// Remarks on a summary that a reader of the times should know.
pub fn notes(telemetry: &Telemetry) -> Vec<String> {
    /// Share of the readings from which a reason is worth a remark.
    const WORTH_SAYING: f64 = 0.05;
    let said = |reason: &str, text: &str| {
        let share = telemetry.throttled.get(reason).copied().unwrap_or(0.0);
        (share >= WORTH_SAYING).then(|| format!("{text} {:.0}% of the time", share * 100.0))
    };
    [said(POWER, "power-limited"), said(THERMAL, "held down by temperature")].into_iter().flatten().collect()
}

/// The machine, without a user's or host's name.
pub fn host() -> Host {
    let refresh = sysinfo::RefreshKind::nothing()
        .with_cpu(sysinfo::CpuRefreshKind::nothing())
        .with_memory(sysinfo::MemoryRefreshKind::nothing().with_ram());
    let system = sysinfo::System::new_with_specifics(refresh).ok();
    let cpu = system
        .as_ref()
        .and_then(|system| system.cpus().first())
        .map(|cpu| cpu.brand().trim().to_owned())
        .unwrap_or_default();
    let os = sysinfo::System::long_os_version().unwrap_or_else(|_| std::env::consts::OS.to_owned());
    Host {
        os: os.trim().to_owned(),
        cpu: if cpu.is_empty() { std::env::consts::ARCH.to_owned() } else { cpu },
        cores: std::thread::available_parallelism().ok().map(std::num::NonZero::get),
        memory_bytes: system.map(|system| system.total_memory()).filter(|&bytes| bytes > 0),
        ..Host::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_only_what_was_reported() {
        let reading = |watt: f64, celsius: f64, throttled: &[&'static str]| Reading {
            power_watt: Some(watt),
            temperature_celsius: Some(celsius),
            throttled: throttled.to_vec(),
            ..Reading::default()
        };
        let readings = [
            reading(100.0, 60.0, &[POWER]),
            reading(300.0, 70.0, &[POWER, THERMAL]),
            Reading::default(),
            Reading::default(),
        ];
        let summary = summarize(&readings).unwrap();
        assert_eq!((summary.readings, summary.clock_mhz, summary.power_watt), (4, None, Some(200.0)));
        assert_eq!(summary.temperature_celsius, Some(70.0));
        assert_eq!(notes(&summary), ["power-limited 50% of the time", "held down by temperature 25% of the time"]);
        assert_eq!(summarize(&[]), None);
    }

    #[test]
    fn the_host_is_described_without_names() {
        let host = host();
        assert!(!host.os.is_empty() && !host.cpu.is_empty());
        assert!(host.cores.is_some_and(|cores| cores > 0));
        assert_eq!(host.label, None);
    }
}
