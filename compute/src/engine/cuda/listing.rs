//! Which devices the driver reaches, what they compute, and why one can't be used.

use std::collections::BTreeMap;
use std::sync::Arc;

use cudarc::driver::CudaContext;

use super::driver::{self, DriverFault, Seen};
use super::error::driver_error;
use super::kernels;
use super::launch::Facts;
use super::library::{self, Version};
use crate::engine::{Device, DeviceKind, EngineError, EngineKind, Listing};
use crate::shape::Precision;

/// A device that is open.
pub(super) struct OpenDevice {
    /// The device's primary context.
    pub(super) context: Arc<CudaContext>,
    pub(super) facts: Facts,
    /// How it is listed.
    pub(super) listing: Listing,
}

/// Every device, one listing each, or one that says why there is none.
pub(super) fn listings() -> Vec<Listing> {
    match seen() {
        Ok(found) => found.into_iter().map(|(_, listing)| listing).collect(),
        Err(fault) => vec![Listing::nothing(EngineKind::Cuda, fault.to_string())],
    }
}

/// Opens the device of this identifier, which may also be given by its PCI address.
///
/// # Errors
/// [`EngineError::NotSupported`] without a driver, and for a device that is listed as not usable;
/// [`EngineError::NoSuchDevice`] with those there are; whatever the driver reports.
pub(super) fn open(id: &str) -> Result<OpenDevice, EngineError> {
    let found = seen().map_err(|fault| EngineError::NotSupported { reason: fault.to_string() })?;
    let available = found.iter().map(|(_, listing)| listing.device.id.as_str()).collect::<Vec<_>>().join(", ");
    let chosen = found.into_iter().find(|(_, Listing { device, .. })| {
        let address = device.pci_address.as_deref();
        [Some(device.id.as_str()), address].into_iter().flatten().any(|known| known.eq_ignore_ascii_case(id))
    });
    let Some((seen, listing)) = chosen else {
        return Err(EngineError::NoSuchDevice { id: id.to_owned(), available });
    };
    if let Some(reason) = listing.unavailable {
        return Err(EngineError::NotSupported { reason: format!("{} can't be used: {reason}", listing.device.name) });
    }
    let what = format!("opening {}", listing.device.name);
    let context = CudaContext::new(seen.ordinal).map_err(|error| driver_error(&what, error))?;
    Ok(OpenDevice { context, facts: seen.facts, listing })
}

fn seen() -> Result<Vec<(Seen, Listing)>, DriverFault> {
    let driver = driver::driver()?;
    let package = nvml_wrapper::Nvml::init().ok().and_then(|nvml| nvml.sys_driver_version().ok());
    let name = driver_name(package.as_deref(), driver.version);
    let remarks = library::load().remarks();
    let found = driver.devices()?.into_iter();
    Ok(found.map(|seen| (seen.clone(), listing(&seen, &name, &remarks))).collect())
}

/// Name and version of the driver, such as `"NVIDIA 580.159.04 (CUDA 13.0)"`.
fn driver_name(package: Option<&str>, (major, minor): Version) -> String {
    let package = package.map(|package| format!(" {package}")).unwrap_or_default();
    format!("NVIDIA{package} (CUDA {major}.{minor})")
}

fn listing(seen: &Seen, driver: &str, remarks: &[String]) -> Listing {
    let Facts { capability, multiprocessors, l2_bytes, shared_bytes } = seen.facts;
    let (major, minor) = capability;
    let id = identifier(seen);
    let limits = [
        ("compute_capability", u64::from(major * 10 + minor)),
        ("multiprocessors", multiprocessors.into()),
        ("l2_cache_bytes", l2_bytes),
        ("max_shared_memory_per_block_bytes", shared_bytes.into()),
    ];
    let device = Device {
        id: id.clone(),
        name: seen.name.clone(),
        kind: if seen.is_integrated { DeviceKind::Integrated } else { DeviceKind::Discrete },
        vendor: Some("NVIDIA".to_owned()),
        pci_address: seen.pci_address.clone(),
        uuid: Some(id),
        memory_bytes: Some(seen.memory_bytes),
        driver: Some(driver.to_owned()),
        api: Some("CUDA".to_owned()),
        limits: limits.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<BTreeMap<_, _>>(),
        ..Device::default()
    };
    let precisions = Precision::ALL.into_iter().filter(|&precision| kernels::computes(capability, precision)).collect();
    let (oldest_major, oldest_minor) = kernels::OLDEST_CAPABILITY;
    let unavailable = if capability < kernels::OLDEST_CAPABILITY {
        Some(format!(
            "its compute capability is {major}.{minor}, CUDA kernels need {oldest_major}.{oldest_minor} (Turing) or \
             later; use engine wgsl"
        ))
    } else if seen.is_prohibited {
        Some("its compute mode is prohibited; allow it by \"nvidia-smi --compute-mode=0\"".to_owned())
    } else {
        None
    };
    let slice = slice_of(&seen.name).map(|parent| format!("a slice (MIG) of {parent}"));
    let remarks = slice.into_iter().chain(remarks.iter().cloned()).collect();
    Listing { engine: EngineKind::Cuda, device, precisions, remarks, unavailable }
}

/// The UUID as NVIDIA's tools write it: `GPU-…`, for a slice of a GPU `MIG-…`.
fn identifier(seen: &Seen) -> String {
    let hex: String = seen.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let kind = if slice_of(&seen.name).is_some() { "MIG" } else { "GPU" };
    format!("{kind}-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Name of the GPU that a device is a slice of, when it is one: the driver calls a slice `"NVIDIA H200 MIG 1g.18gb"`.
fn slice_of(name: &str) -> Option<&str> {
    name.split_once(" MIG ").map(|(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(name: &str, first_byte: u8, capability: (u32, u32)) -> Seen {
        Seen {
            ordinal: 0,
            name: name.to_owned(),
            uuid: std::array::from_fn(|idx| first_byte + idx as u8),
            pci_address: Some("0000:3b:00.0".to_owned()),
            memory_bytes: 8 << 30,
            is_integrated: false,
            is_prohibited: false,
            facts: Facts { capability, multiprocessors: 72, l2_bytes: 6 << 20, shared_bytes: 64 << 10 },
        }
    }

    #[test]
    fn precisions_follow_the_compute_capability() {
        use Precision::{Bf16, F16, F32, Tf32};
        for (capability, precisions, reason) in [
            ((6, 1), &[][..], "7.5"),
            ((7, 0), &[][..], "engine wgsl"),
            ((7, 5), &[F32, F16][..], ""),
            ((8, 6), &[F32, Tf32, F16, Bf16][..], ""),
            ((12, 0), &[F32, Tf32, F16, Bf16][..], ""),
        ] {
            let listing = listing(&gpu("GPU", 0, capability), "NVIDIA", &[]);
            assert_eq!(listing.precisions, precisions, "{capability:?}");
            assert_eq!(listing.device.limits["compute_capability"], u64::from(capability.0 * 10 + capability.1));
            let said = listing.unavailable.unwrap_or_default();
            assert!(said.contains(reason) && said.is_empty() == reason.is_empty(), "{capability:?}: {said}");
        }
        let closed = Seen { is_prohibited: true, ..gpu("GPU", 0, (9, 0)) };
        assert!(listing(&closed, "NVIDIA", &[]).unavailable.is_some_and(|reason| reason.contains("--compute-mode=0")));
    }

    #[test]
    fn devices_and_slices_are_named_by_uuid() {
        let whole = listing(&gpu("NVIDIA H200", 0x10, (9, 0)), "NVIDIA 580 (CUDA 13.0)", &["cuDNN 9.14".to_owned()]);
        assert_eq!(whole.device.id, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
        assert_eq!(whole.device.uuid, Some(whole.device.id.clone()));
        assert_eq!(whole.remarks, ["cuDNN 9.14"]);
        let slice = listing(&gpu("NVIDIA H200 MIG 1g.18gb", 0x20, (9, 0)), "NVIDIA 580 (CUDA 13.0)", &[]);
        assert_eq!(slice.device.id, "MIG-20212223-2425-2627-2829-2a2b2c2d2e2f");
        assert_eq!(slice.remarks, ["a slice (MIG) of NVIDIA H200"]);
    }

    #[test]
    fn the_driver_is_named_with_its_package_where_that_is_known() {
        assert_eq!(driver_name(Some("580.159.04"), (13, 0)), "NVIDIA 580.159.04 (CUDA 13.0)");
        assert_eq!(driver_name(None, (12, 4)), "NVIDIA (CUDA 12.4)");
    }
}
