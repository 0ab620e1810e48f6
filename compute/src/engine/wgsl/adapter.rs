//! Which devices wgpu reaches, what they offer, and why one can't be used.

use std::collections::BTreeMap;

use crate::engine::{Device, DeviceKind, EngineKind, Listing};
use crate::shape::Precision;

/// Said when nothing at all is found.
const NOTHING_FOUND: &str = "no Vulkan, DX12, Metal or OpenGL adapter was found; install your GPU's driver (on Linux \
                             also the Vulkan loader, package libvulkan1)";

/// Said of an adapter that is seen only when wgpu is asked for those it hides.
const NONCONFORMANT: &str = "its driver does not claim to conform to Vulkan, so its results could not be trusted";

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
    listed(found.device, precisions, found.problem, || {
        pollster::block_on(found.adapter.request_device(&descriptor(&found.adapter)))
            .err()
            .map(|error| error.to_string())
    })
}

/// Listing of a device with a known problem; one without is tried by `opening`, which returns the driver's refusal.
fn listed(
    device: Device,
    precisions: Vec<Precision>,
    problem: Option<String>,
    opening: impl FnOnce() -> Option<String>,
) -> Listing {
    let unavailable = problem.or_else(|| opening().map(|error| format!("it can't be opened: {error}")));
    Listing { engine: EngineKind::Wgsl, device, precisions, remarks: Vec::new(), unavailable }
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
            let hidden = !flags.is_empty();
            if reached(&seen, &identity, hidden) {
                continue;
            }
            let problem = if hidden { Some(NONCONFORMANT.into()) } else { missing(&adapter) };
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

/// Whether an adapter is one of those seen, through another interface or, in the search for what is `hidden`, through
/// the same.
fn reached(seen: &[Identity], new: &Identity, hidden: bool) -> bool {
    seen.iter().any(|old| match (&old.pci_address, &new.pci_address) {
        (Some(a), Some(b)) => a == b,
        // One search shows a device once: equal adapters are several cards, though only one processor. The search for
        // what is hidden repeats what was seen.
        _ if old.backend == new.backend => old == new && (hidden || new.kind == DeviceKind::Software),
        _ => same_vendor(old.vendor, new.vendor) && same_name(&old.name, &new.name),
    })
}

/// Whether two PCI vendor numbers may be one maker's. An interface that knows none states zero, or Mesa's.
fn same_vendor(a: u32, b: u32) -> bool {
    a == b || [a, b].iter().any(|number| [0, MESA].contains(number))
}

/// Whether two interfaces name one device: `NVIDIA H200` and `NVIDIA H200/PCIe/SSE2`, or
/// `AMD Radeon RX 6800 (RADV NAVI21)` and `AMD Radeon RX 6800 (radeonsi, navi21)`.
fn same_name(a: &str, b: &str) -> bool {
    let (a, b) = (stem(a), stem(b));
    !a.is_empty() && a == b
}

/// A device's name without marks, the driver in parentheses, and what OpenGL puts around it.
fn stem(name: &str) -> String {
    let name = name.to_lowercase().replace("(r)", " ").replace("(tm)", " ");
    let name = name.split(['(', '/']).next().unwrap_or_default();
    name.split_whitespace().skip_while(|&word| word == "mesa").collect::<Vec<_>>().join(" ")
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

/// Mesa's number in Vulkan's registry.
const MESA: u32 = 0x1_0005;

/// Name behind a PCI vendor number.
///
/// Source: the PCI-SIG list of members.
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
        MESA => Some("Mesa"),
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
            vendor: 0,
            ..wgpu::AdapterInfo::new(kind, backend)
        }
    }

    /// Identifiers of the adapters that are listed.
    fn check(adapters: &[(wgpu::Backend, wgpu::DeviceType, &str, &str)], expected: &[(&str, DeviceKind)]) {
        let mut seen: Vec<Identity> = Vec::new();
        let mut listed = Vec::new();
        for (idx, &(backend, kind, name, pci)) in adapters.iter().enumerate() {
            let identity = identity(&info(backend, kind, name, pci));
            if !reached(&seen, &identity, false) {
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
        // The same without addresses, and again through another interface.
        check(
            &[
                (Dx12, DiscreteGpu, "NVIDIA H200", ""),
                (Dx12, DiscreteGpu, "NVIDIA H200", ""),
                (Gl, Other, "NVIDIA H200/PCIe/SSE2", ""),
            ],
            &[("dx12-0", DeviceKind::Discrete), ("dx12-1", DeviceKind::Discrete)],
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

    #[test]
    fn interfaces_that_name_one_device_are_told_from_those_that_name_two() {
        for (a, b, same) in [
            ("NVIDIA H200", "NVIDIA H200/PCIe/SSE2", true),
            ("AMD Radeon RX 6800 (RADV NAVI21)", "AMD Radeon RX 6800 (radeonsi, navi21, LLVM 15.0.6)", true),
            ("Intel(R) UHD Graphics 620 (KBL GT2)", "Mesa Intel(R) UHD Graphics 620 (KBL GT2)", true),
            ("AMD Radeon(TM) Graphics", "AMD Radeon (TM) Graphics", true),
            ("Intel(R) UHD Graphics", "Intel(R) Arc(TM) A770 Graphics", false),
            ("AMD Radeon(TM) Graphics", "AMD Radeon RX 6800", false),
            ("NVIDIA GeForce RTX 3060", "NVIDIA GeForce RTX 3060 Ti", false),
            ("", "", false),
        ] {
            assert_eq!((same_name(a, b), same_name(b, a)), (same, same), "{a:?} and {b:?}");
        }
        for (a, b, same) in [(0x10de, 0x10de, true), (0, 0x10de, true), (MESA, 0x1002, true), (0x1002, 0x10de, false)] {
            assert_eq!((same_vendor(a, b), same_vendor(b, a)), (same, same), "{a:#x} and {b:#x}");
        }
    }

    /// R28: what only the search for hidden adapters shows is listed with the reason; what was seen is not repeated.
    #[test]
    fn a_hidden_adapter_is_listed_with_its_reason() {
        use wgpu::Backend::Vulkan;
        use wgpu::DeviceType::{Cpu, DiscreteGpu};
        let software = identity(&info(Vulkan, Cpu, "llvmpipe (LLVM 15.0.6, 256 bits)", ""));
        let gpu = identity(&info(Vulkan, DiscreteGpu, "AMD Radeon RX 6800 (RADV NAVI21)", ""));
        let seen = [software.clone()];
        assert!(reached(&seen, &software, true));
        assert!(!reached(&seen, &gpu, true));
        let id = identifier(&gpu, 1, true);
        assert_eq!(id, "vulkan-hidden-1");
        let device = || Device { id: id.clone(), name: gpu.name.clone(), ..Device::default() };
        let listing = listed(device(), vec![Precision::F32], Some(NONCONFORMANT.into()), || panic!("it was opened"));
        assert_eq!(listing.device.name, gpu.name);
        assert!(listing.unavailable.is_some_and(|reason| reason.contains("conform")));
        // One without a problem is listed as what opening it gives.
        let tried =
            |refusal: Option<&str>| listed(device(), Vec::new(), None, || refusal.map(str::to_owned)).unavailable;
        assert_eq!(tried(None), None);
        assert!(tried(Some("too old")).is_some_and(|reason| reason.contains("too old")));
    }
}
