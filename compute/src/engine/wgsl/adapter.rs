//! Which devices wgpu reaches, what they offer, and why one can't be used.

use std::collections::BTreeMap;

use crate::engine::{Device, DeviceKind, EngineKind, Listing};
use crate::shape::Precision;

/// Said when nothing at all is found.
const NOTHING_FOUND: &str = "no Vulkan, DX12, Metal or OpenGL adapter was found; install your GPU's driver (on Linux \
                             also the Vulkan loader, package libvulkan1)";

/// An adapter and what is known of it without opening it.
pub(super) struct Found {
    /// The adapter.
    pub adapter: wgpu::Adapter,
    /// How it is listed.
    pub device: Device,
    /// Why it can't be used, as far as is known before it is opened.
    pub problem: Option<String>,
}

/// What tells adapters apart, as the driver states it.
#[derive(Clone, Debug, PartialEq)]
struct Identity {
    backend: wgpu::Backend,
    name: String,
    kind: DeviceKind,
    pci_address: Option<String>,
    vendor: u32,
}

/// Every device, one listing each. Each is opened for a moment, which may take a second.
pub(super) fn listings() -> Vec<Listing> {
    let found = found();
    if found.is_empty() {
        return vec![Listing::nothing(EngineKind::Wgsl, NOTHING_FOUND.into())];
    }
    found.into_iter().map(listing).collect()
}

fn listing(found: Found) -> Listing {
    let precisions = precisions(found.adapter.features());
    let unavailable = found.problem.or_else(|| {
        pollster::block_on(found.adapter.request_device(&descriptor(&found.adapter)))
            .err()
            .map(|error| format!("it can't be opened: {error}"))
    });
    Listing { engine: EngineKind::Wgsl, device: found.device, precisions, unavailable }
}

/// Precisions that a device with these features computes.
pub(super) fn precisions(features: wgpu::Features) -> Vec<Precision> {
    let half = features.contains(wgpu::Features::SHADER_F16).then_some(Precision::F16);
    std::iter::once(Precision::F32).chain(half).collect()
}

/// What a device is asked for: everything the adapter offers that kernels and timing use.
pub(super) fn descriptor(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
    let wanted = wgpu::Features::SHADER_F16 | wgpu::Features::TIMESTAMP_QUERY;
    wgpu::DeviceDescriptor {
        label: Some("batchmark"),
        required_features: adapter.features() & wanted,
        required_limits: adapter.limits(),
        experimental_features: wgpu::ExperimentalFeatures::disabled(),
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        trace: wgpu::Trace::Off,
    }
}

/// Every adapter once: where several interfaces reach one device, the first of Vulkan, Metal, DX12, OpenGL.
pub(super) fn found() -> Vec<Found> {
    let mut seen = Vec::new();
    let mut all = Vec::new();
    for (backends, flags) in [
        (wgpu::Backends::VULKAN, wgpu::InstanceFlags::empty()),
        (wgpu::Backends::METAL, wgpu::InstanceFlags::empty()),
        (wgpu::Backends::DX12, wgpu::InstanceFlags::empty()),
        (wgpu::Backends::GL, wgpu::InstanceFlags::empty()),
        // What is seen only here was hidden before.
        (wgpu::Backends::VULKAN, wgpu::InstanceFlags::ALLOW_UNDERLYING_NONCOMPLIANT_ADAPTER),
    ] {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            flags,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        for (idx, adapter) in pollster::block_on(instance.enumerate_adapters(backends)).into_iter().enumerate() {
            let identity = identity(&adapter.get_info());
            if reached(&seen, &identity) {
                continue;
            }
            let hidden = !flags.is_empty();
            let problem = if hidden {
                Some("its driver does not claim to conform to Vulkan, so its results could not be trusted".into())
            } else {
                missing(&adapter)
            };
            let device = describe(&adapter, &identity, idx, hidden);
            seen.push(identity);
            all.push(Found { adapter, device, problem });
        }
    }
    all
}

fn identity(info: &wgpu::AdapterInfo) -> Identity {
    let kind = match info.device_type {
        _ if is_software(info.device_type, &info.name) => DeviceKind::Software,
        wgpu::DeviceType::DiscreteGpu => DeviceKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => DeviceKind::Integrated,
        wgpu::DeviceType::VirtualGpu => DeviceKind::Virtual,
        wgpu::DeviceType::Cpu | wgpu::DeviceType::Other => DeviceKind::Other,
    };
    Identity {
        backend: info.backend,
        name: info.name.clone(),
        kind,
        pci_address: Some(info.device_pci_bus_id.clone())
            .filter(|address| !address.is_empty() && kind != DeviceKind::Software),
        vendor: info.vendor,
    }
}

/// Whether the processor does the work.
fn is_software(kind: wgpu::DeviceType, name: &str) -> bool {
    let name = name.to_lowercase();
    kind == wgpu::DeviceType::Cpu
        || ["llvmpipe", "softpipe", "swiftshader", "basic render"].iter().any(|known| name.contains(known))
}

/// Whether an adapter is one of those seen, through another interface (or, with the same interface, in another search).
fn reached(seen: &[Identity], new: &Identity) -> bool {
    seen.iter().any(|old| match (&old.pci_address, &new.pci_address) {
        (Some(a), Some(b)) => a == b,
        // The same interface without addresses shows a device once a search: equal names are several devices there,
        // and the second search of Vulkan repeats all of the first.
        _ if old.backend == new.backend => old == new && new.backend == wgpu::Backend::Vulkan,
        _ => same_name(&old.name, &new.name),
    })
}

/// Whether two interfaces name one device: `NVIDIA H200` and `NVIDIA H200/PCIe/SSE2`, or
/// `AMD Radeon RX 6800 (RADV NAVI21)` and `AMD Radeon RX 6800 (radeonsi, navi21)`.
fn same_name(a: &str, b: &str) -> bool {
    let stem = |name: &str| name.split(['(', '/']).next().unwrap_or_default().trim().to_lowercase();
    let (a, b) = (stem(a), stem(b));
    !a.is_empty() && !b.is_empty() && (a.contains(&b) || b.contains(&a))
}

/// What the kernels need and the adapter lacks.
fn missing(adapter: &wgpu::Adapter) -> Option<String> {
    if !adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS) {
        return Some("it has no compute shaders".into());
    }
    let limits = adapter.limits();
    [
        ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup, 256),
        ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size, 16 << 10),
        ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage, 8),
    ]
    .into_iter()
    .find(|(_, offered, needed)| offered < needed)
    .map(|(name, offered, needed)| format!("its {name} is {offered}, the kernels need {needed}"))
}

fn describe(adapter: &wgpu::Adapter, identity: &Identity, idx: usize, hidden: bool) -> Device {
    let info = adapter.get_info();
    let driver = [info.driver.trim(), info.driver_info.trim()].join(" ").trim().to_owned();
    Device {
        id: identifier(identity, idx, hidden),
        name: info.name.clone(),
        kind: identity.kind,
        vendor: vendor(identity.vendor).map(str::to_owned),
        pci_address: identity.pci_address.clone(),
        driver: Some(driver).filter(|driver| !driver.is_empty()),
        api: Some(api(identity.backend).to_owned()),
        limits: limits(&adapter.limits()),
        ..Device::default()
    }
}

/// The PCI address where there is one, else the interface and the adapter's number in it.
fn identifier(identity: &Identity, idx: usize, hidden: bool) -> String {
    match &identity.pci_address {
        Some(address) => address.clone(),
        None => {
            let hidden = if hidden { "hidden-" } else { "" };
            format!("{}-{hidden}{idx}", api(identity.backend).to_lowercase())
        }
    }
}

const fn api(backend: wgpu::Backend) -> &'static str {
    match backend {
        wgpu::Backend::Vulkan => "Vulkan",
        wgpu::Backend::Metal => "Metal",
        wgpu::Backend::Dx12 => "DX12",
        wgpu::Backend::Gl => "OpenGL",
        wgpu::Backend::BrowserWebGpu => "WebGPU",
        wgpu::Backend::Noop => "none",
    }
}

/// Name behind a PCI vendor number.
///
/// Source: the PCI-SIG list of members; `0x10005` is Mesa's in Vulkan's registry.
const fn vendor(number: u32) -> Option<&'static str> {
    match number {
        0x1002 => Some("AMD"),
        0x1010 => Some("Imagination"),
        0x106b => Some("Apple"),
        0x10de => Some("NVIDIA"),
        0x13b5 => Some("Arm"),
        0x1414 => Some("Microsoft"),
        0x5143 => Some("Qualcomm"),
        0x8086 => Some("Intel"),
        0x1_0005 => Some("Mesa"),
        _ => None,
    }
}

fn limits(limits: &wgpu::Limits) -> BTreeMap<String, u64> {
    [
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
        ("max_buffer_size", limits.max_buffer_size),
        ("max_compute_workgroup_storage_size", limits.max_compute_workgroup_storage_size.into()),
        ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into()),
        ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into()),
        ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(backend: wgpu::Backend, kind: wgpu::DeviceType, name: &str, pci: &str) -> wgpu::AdapterInfo {
        wgpu::AdapterInfo {
            name: name.into(),
            device_pci_bus_id: pci.into(),
            vendor: 0x10de,
            ..wgpu::AdapterInfo::new(kind, backend)
        }
    }

    /// Identifiers of the adapters that are listed.
    fn check(adapters: &[(wgpu::Backend, wgpu::DeviceType, &str, &str)], expected: &[(&str, DeviceKind)]) {
        let mut seen: Vec<Identity> = Vec::new();
        let mut listed = Vec::new();
        for (idx, &(backend, kind, name, pci)) in adapters.iter().enumerate() {
            let identity = identity(&info(backend, kind, name, pci));
            if !reached(&seen, &identity) {
                listed.push((identifier(&identity, idx, false), identity.kind));
                seen.push(identity);
            }
        }
        let listed: Vec<_> = listed.iter().map(|(id, kind)| (id.as_str(), *kind)).collect();
        assert_eq!(listed, expected);
    }

    #[test]
    fn each_device_is_listed_once_under_its_address() {
        use wgpu::Backend::{Dx12, Gl, Vulkan};
        use wgpu::DeviceType::{Cpu, DiscreteGpu, IntegratedGpu, Other};
        // A laptop, seen through three interfaces.
        check(
            &[
                (Vulkan, IntegratedGpu, "Intel(R) UHD Graphics 620 (KBL GT2)", "0000:00:02.0"),
                (Vulkan, DiscreteGpu, "NVIDIA GeForce RTX 3060", "0000:01:00.0"),
                (Dx12, DiscreteGpu, "NVIDIA GeForce RTX 3060", ""),
                (Gl, Other, "NVIDIA GeForce RTX 3060/PCIe/SSE2", ""),
            ],
            &[("0000:00:02.0", DeviceKind::Integrated), ("0000:01:00.0", DeviceKind::Discrete)],
        );
        // Two equal cards.
        check(
            &[
                (Vulkan, DiscreteGpu, "NVIDIA H200", "0000:18:00.0"),
                (Vulkan, DiscreteGpu, "NVIDIA H200", "0000:2a:00.0"),
            ],
            &[("0000:18:00.0", DeviceKind::Discrete), ("0000:2a:00.0", DeviceKind::Discrete)],
        );
        // Software in every disguise.
        check(
            &[
                (Vulkan, Cpu, "llvmpipe (LLVM 15.0.6, 256 bits)", "0000:00:00.0"),
                (Gl, Other, "llvmpipe (LLVM 15.0.6, 256 bits)", ""),
                (Dx12, IntegratedGpu, "Microsoft Basic Render Driver", ""),
                (Vulkan, Other, "SwiftShader Device (LLVM 10.0.0)", ""),
            ],
            &[("vulkan-0", DeviceKind::Software), ("dx12-2", DeviceKind::Software), ("vulkan-3", DeviceKind::Software)],
        );
    }
}
