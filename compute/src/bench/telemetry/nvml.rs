//! Readings through NVML, NVIDIA's management library; without it there are none.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::struct_wrappers::device::MemoryInfo;

use super::{POWER, Reading, THERMAL, summarize};
use crate::bench::record::Telemetry;
use crate::engine::Device;

/// How often a device is asked.
const INTERVAL: Duration = Duration::from_millis(100);

/// A device that reports of itself.
#[derive(Debug)]
pub struct Monitor {
    nvml: Nvml,
    /// Of the GPU.
    index: u32,
    /// UUID of the slice of it (MIG), when the device is one: it has memory of its own, all else is the GPU's.
    slice: Option<String>,
}

/// Readings being taken on a thread of their own.
#[derive(Debug)]
pub struct Sampling {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Vec<Reading>>,
}

/// What identifies a device in the library.
#[derive(Debug)]
struct Identity {
    uuid: Option<String>,
    pci_address: Option<String>,
}

/// Adds what the library knows of a device and its engine does not: UUID and memory.
pub fn complete(device: &mut Device) {
    let Some(monitor) = Monitor::open(device) else { return };
    let Ok(handle) = monitor.nvml.device_by_index(monitor.index) else { return };
    device.uuid = device.uuid.take().or_else(|| handle.uuid().ok());
    device.memory_bytes = device.memory_bytes.or_else(|| Some(monitor.memory()?.total));
}

impl Monitor {
    /// Finds `device` in the library; absent without the library or when the device is not in it.
    pub fn open(device: &Device) -> Option<Self> {
        if device.uuid.is_none() && device.pci_address.is_none() {
            return None;
        }
        let nvml = Nvml::init().ok()?;
        let identities: Vec<Identity> = (0..nvml.device_count().ok()?)
            .map(|index| {
                let handle = nvml.device_by_index(index);
                Identity {
                    uuid: handle.as_ref().ok().and_then(|handle| handle.uuid().ok()),
                    pci_address: handle.ok().and_then(|handle| Some(handle.pci_info().ok()?.bus_id)),
                }
            })
            .collect();
        let index = find(&identities, device)? as u32;
        let slice = device.uuid.clone().filter(|uuid| is_slice(uuid));
        Some(Self { nvml, index, slice })
    }

    fn memory(&self) -> Option<MemoryInfo> {
        let device = match &self.slice {
            Some(uuid) => self.nvml.device_by_uuid(uuid.as_str()),
            None => self.nvml.device_by_index(self.index),
        };
        device.ok()?.memory_info().ok()
    }

    /// Free memory of the device in bytes.
    pub fn free_bytes(&self) -> Option<u64> {
        Some(self.memory()?.free)
    }

    /// Takes readings until [`Sampling::finish`].
    pub fn start(self) -> Sampling {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut readings = Vec::new();
            loop {
                readings.extend(self.read());
                match stopped.recv_timeout(INTERVAL) {
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return readings,
                }
            }
        });
        Sampling { stop, thread }
    }

    fn read(&self) -> Option<Reading> {
        let device = self.nvml.device_by_index(self.index).ok()?;
        Some(Reading {
            clock_mhz: device.clock_info(Clock::SM).ok().map(f64::from),
            utilization: device.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0),
            power_watt: device.power_usage().ok().map(|milliwatt| f64::from(milliwatt) / 1e3),
            temperature_celsius: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
            throttled: device.current_throttle_reasons().map(reasons).unwrap_or_default(),
        })
    }
}

impl Sampling {
    /// Ends the readings and summarizes them.
    pub fn finish(self) -> Option<Telemetry> {
        // The thread may have ended by itself; then nobody listens, which is as good.
        let _ = self.stop.send(());
        summarize(&self.thread.join().ok()?)
    }
}

fn reasons(mask: ThrottleReasons) -> Vec<&'static str> {
    let power = ThrottleReasons::SW_POWER_CAP | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
    let thermal = ThrottleReasons::SW_THERMAL_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN;
    let mut reasons = Vec::new();
    if mask.intersects(power) {
        reasons.push(POWER);
    }
    if mask.intersects(thermal) {
        reasons.push(THERMAL);
    }
    if reasons.is_empty() && mask.intersects(ThrottleReasons::HW_SLOWDOWN) {
        reasons.push("hardware");
    }
    reasons
}

/// Whether a UUID is that of a slice of a GPU (MIG).
fn is_slice(uuid: &str) -> bool {
    uuid.get(..4).is_some_and(|kind| kind.eq_ignore_ascii_case("MIG-"))
}

/// Place of `device` among `identities`, by UUID where both have one, else by PCI address. A slice of a GPU has a UUID of
/// its own that is not among them: its GPU is found by PCI address.
fn find(identities: &[Identity], device: &Device) -> Option<usize> {
    let uuid = device.uuid.as_ref().filter(|uuid| !is_slice(uuid));
    identities.iter().position(|identity| match (&identity.uuid, uuid) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        _ => match (&identity.pci_address, &device.pci_address) {
            (Some(a), Some(b)) => pci_numbers(a).is_some() && pci_numbers(a) == pci_numbers(b),
            _ => false,
        },
    })
}

/// Domain, bus and device of a PCI address, whose domain may be written with four or eight digits or left out. The
/// function is left out, since a GPU is function 0.
fn pci_numbers(address: &str) -> Option<(u32, u32, u32)> {
    let (rest, _function) = address.rsplit_once('.')?;
    let mut parts = rest.rsplit(':').map(|part| u32::from_str_radix(part, 16));
    let device = parts.next()?.ok()?;
    let bus = parts.next()?.ok()?;
    let domain = parts.next().unwrap_or(Ok(0)).ok()?;
    Some((domain, bus, device))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R22: two lists of the same devices in different order.
    #[test]
    fn a_device_is_found_by_identity_whatever_the_order() {
        let identity = |uuid: &str, pci: &str| Identity {
            uuid: (!uuid.is_empty()).then(|| uuid.to_owned()),
            pci_address: Some(pci.to_owned()),
        };
        let list = [
            identity("GPU-a", "00000000:3B:00.0"),
            identity("GPU-b", "00000000:86:00.0"),
            identity("", "00000001:3B:00.0"),
        ];
        let by_pci = |pci: &str| Device { pci_address: Some(pci.to_owned()), ..Device::default() };
        let by_uuid = |uuid: &str| Device { uuid: Some(uuid.to_owned()), ..Device::default() };
        let cases = [
            (by_pci("0000:86:00.0"), Some(1)),
            (by_pci("0000:3b:00.0"), Some(0)),
            (by_pci("0001:3b:00.0"), Some(2)),
            (by_pci("3b:00.0"), Some(0)),
            (by_pci("nonsense"), None),
            (by_uuid("gpu-B"), Some(1)),
            (by_uuid("GPU-c"), None),
            (Device { uuid: Some("MIG-a".to_owned()), ..by_pci("0000:86:00.0") }, Some(1)),
            (by_uuid("MIG-a"), None),
            (Device::default(), None),
        ];
        for (device, place) in cases {
            assert_eq!(find(&list, &device), place, "{device:?}");
        }
    }

    /// R22: CUDA lists the fastest device first, NVML the first on the bus. What a listing says finds its own device.
    #[test]
    fn a_device_that_cuda_lists_in_another_order_is_found_by_its_uuid() {
        let list = ["GPU-a", "GPU-b"].map(|uuid| Identity { uuid: Some(uuid.to_owned()), pci_address: None });
        let watts = [100.0, 300.0];
        let of_cuda = ["GPU-b", "GPU-a"].map(|id| Device {
            id: id.to_owned(),
            uuid: Some(id.to_owned()),
            api: Some("CUDA".to_owned()),
            ..Device::default()
        });
        let found = of_cuda.map(|device| find(&list, &device).map(|place| watts[place]));
        assert_eq!(found, [Some(300.0), Some(100.0)]);
    }

    #[test]
    fn limits_of_power_and_temperature_are_told_apart() {
        assert_eq!(reasons(ThrottleReasons::SW_POWER_CAP), [POWER]);
        assert_eq!(reasons(ThrottleReasons::HW_THERMAL_SLOWDOWN | ThrottleReasons::HW_SLOWDOWN), [THERMAL]);
        assert_eq!(reasons(ThrottleReasons::HW_SLOWDOWN), ["hardware"]);
        assert!(reasons(ThrottleReasons::GPU_IDLE).is_empty());
    }
}
