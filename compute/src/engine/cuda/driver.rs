//! The few functions of the driver that say which devices there are, taken from its library by name.
//!
//! Statuses are integers here: a newer driver may return one that no list knows.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use cudarc::driver::CudaEvent;
use libloading::Library;

use super::error::driver_error;
use super::launch::Facts;
use super::library::{self, Version};
use crate::engine::EngineError;

/// The driver, initialized.
pub(super) struct Driver {
    api: Api,
    /// Version of CUDA that it supports.
    pub(super) version: Version,
}

/// A device as the driver describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// Its place in the driver's list, good for nothing but opening it.
    pub(super) ordinal: usize,
    pub(super) name: String,
    /// 16 bytes; for a slice of a GPU, those of the slice.
    pub(super) uuid: [u8; 16],
    /// `domain:bus:device.function`; absent when the driver does not say.
    pub(super) pci_address: Option<String>,
    pub(super) memory_bytes: u64,
    pub(super) is_integrated: bool,
    /// Whether an administrator has closed it to computations.
    pub(super) is_prohibited: bool,
    pub(super) facts: Facts,
}

/// Why there is no device to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(super) struct DriverFault {
    reason: String,
}

struct Api {
    init: unsafe extern "C" fn(c_uint) -> c_int,
    device_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int,
    name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    uuid: unsafe extern "C" fn(*mut [u8; 16], c_int) -> c_int,
    pci_address: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    total_memory: unsafe extern "C" fn(*mut usize, c_int) -> c_int,
    attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int,
    error_string: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
    elapsed_time: unsafe extern "C" fn(*mut f32, *mut c_void, *mut c_void) -> c_int,
}

/// Numbers of attributes.
///
/// Source: `CUdevice_attribute` in cuda.h.
mod attribute {
    pub(super) const MULTIPROCESSORS: i32 = 16;
    pub(super) const INTEGRATED: i32 = 18;
    pub(super) const COMPUTE_MODE: i32 = 20;
    pub(super) const L2_BYTES: i32 = 38;
    pub(super) const CAPABILITY_MAJOR: i32 = 75;
    pub(super) const CAPABILITY_MINOR: i32 = 76;
    pub(super) const SHARED_BYTES_OPTED_IN: i32 = 97;
}

/// The driver of this process.
///
/// # Errors
/// Why it has no device, and what to do.
pub(super) fn driver() -> Result<&'static Driver, DriverFault> {
    static DRIVER: OnceLock<Result<Driver, DriverFault>> = OnceLock::new();
    let open = || match &library::load().driver {
        Ok(found) => Driver::new(found.library, found.version),
        Err(missing) => Err(DriverFault { reason: missing.to_string() }),
    };
    DRIVER.get_or_init(open).as_ref().map_err(Clone::clone)
}

/// Milliseconds between two events of one context; waits for the later one. The binding's own function would panic on a
/// driver before CUDA 12.8.
///
/// # Errors
/// What the driver reports.
pub(super) fn elapsed_ms(begin: &CudaEvent, end: &CudaEvent) -> Result<f64, EngineError> {
    let what = "reading the device's clock";
    let failed = |reason: String| EngineError::Failed { what: what.to_owned(), reason };
    let driver = driver().map_err(|fault| failed(fault.to_string()))?;
    end.synchronize().map_err(|error| driver_error(what, error))?;
    // SAFETY: both are events of the context that the wait made current, and a context's events have timing unless they
    // are made without, which the driver then reports.
    unsafe { driver.elapsed_ms(begin.cu_event(), end.cu_event()) }.map(f64::from).map_err(failed)
}

impl Driver {
    /// Initializes the driver of a library that stays loaded, for CUDA of this version.
    ///
    /// # Errors
    /// [`DriverFault`].
    pub(super) fn new(library: &'static Library, version: Version) -> Result<Self, DriverFault> {
        let api = Api::new(library).map_err(|reason| DriverFault { reason })?;
        // SAFETY: the function takes no flags and may be called at any time.
        let status = unsafe { (api.init)(0) };
        if status != 0 {
            return Err(DriverFault { reason: api.why_not(status, version) });
        }
        Ok(Self { api, version })
    }

    /// Every device.
    ///
    /// # Errors
    /// [`DriverFault`], also when there is none.
    pub(super) fn devices(&self) -> Result<Vec<Seen>, DriverFault> {
        let mut count = 0;
        // SAFETY: one integer is written.
        let status = unsafe { (self.api.device_count)(&raw mut count) };
        if status != 0 || count == 0 {
            let status = if status == 0 { NO_DEVICE } else { status };
            return Err(DriverFault { reason: self.api.why_not(status, self.version) });
        }
        (0..count)
            .map(|ordinal| {
                self.seen(ordinal).map_err(|status| {
                    let text = self.api.message(status);
                    DriverFault { reason: format!("device {ordinal} does not describe itself: {text}") }
                })
            })
            .collect()
    }

    fn seen(&self, ordinal: c_int) -> Result<Seen, c_int> {
        let check = |status: c_int| if status == 0 { Ok(()) } else { Err(status) };
        let mut device = 0;
        let (mut name, mut address, mut uuid, mut memory) = ([0u8; 256], [0u8; 32], [0u8; 16], 0usize);
        // SAFETY: each function writes what it is given room for, whose length it is told where it may differ.
        let address_status = unsafe {
            check((self.api.device)(&raw mut device, ordinal))?;
            check((self.api.name)(name.as_mut_ptr().cast(), name.len() as c_int, device))?;
            check((self.api.uuid)(&raw mut uuid, device))?;
            check((self.api.total_memory)(&raw mut memory, device))?;
            (self.api.pci_address)(address.as_mut_ptr().cast(), address.len() as c_int, device)
        };
        let attribute = |number: c_int| {
            let mut value = 0;
            // SAFETY: one integer is written.
            check(unsafe { (self.api.attribute)(&raw mut value, number, device) })?;
            Ok::<u32, c_int>(value.unsigned_abs())
        };
        let capability = (attribute(attribute::CAPABILITY_MAJOR)?, attribute(attribute::CAPABILITY_MINOR)?);
        /// `CU_COMPUTEMODE_PROHIBITED`.
        const PROHIBITED: u32 = 2;
        Ok(Seen {
            ordinal: ordinal.unsigned_abs() as usize,
            name: text(&name),
            uuid,
            pci_address: (address_status == 0).then(|| text(&address).to_lowercase()),
            memory_bytes: memory as u64,
            is_integrated: attribute(attribute::INTEGRATED)? != 0,
            is_prohibited: attribute(attribute::COMPUTE_MODE)? == PROHIBITED,
            facts: Facts {
                capability,
                multiprocessors: attribute(attribute::MULTIPROCESSORS)?,
                l2_bytes: attribute(attribute::L2_BYTES)?.into(),
                shared_bytes: attribute(attribute::SHARED_BYTES_OPTED_IN)?,
            },
        })
    }

    /// Milliseconds between two events that have happened, by whichever function this driver has: the newer one exists
    /// from CUDA 12.8 on.
    ///
    /// # Errors
    /// The driver's status and its text.
    ///
    /// # Safety
    /// Both must be events of the current context that were made with timing.
    pub(super) unsafe fn elapsed_ms(
        &self,
        begin: cudarc::driver::sys::CUevent,
        end: cudarc::driver::sys::CUevent,
    ) -> Result<f32, String> {
        let mut milliseconds = 0.0;
        // SAFETY: one number is written; the events are as demanded of the caller.
        let status = unsafe { (self.api.elapsed_time)(&raw mut milliseconds, begin.cast(), end.cast()) };
        if status == 0 { Ok(milliseconds) } else { Err(self.api.message(status)) }
    }
}

/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: c_int = 100;

impl Api {
    fn new(library: &'static Library) -> Result<Self, String> {
        // SAFETY: the signatures are those of cuda.h; both functions of elapsed time have the same.
        unsafe {
            Ok(Self {
                init: library::symbol(library, "cuInit")?,
                device_count: library::symbol(library, "cuDeviceGetCount")?,
                device: library::symbol(library, "cuDeviceGet")?,
                name: library::symbol(library, "cuDeviceGetName")?,
                uuid: library::symbol(library, "cuDeviceGetUuid_v2")?,
                pci_address: library::symbol(library, "cuDeviceGetPCIBusId")?,
                total_memory: library::symbol(library, "cuDeviceTotalMem_v2")?,
                attribute: library::symbol(library, "cuDeviceGetAttribute")?,
                error_string: library::symbol(library, "cuGetErrorString")?,
                elapsed_time: library::symbol(library, "cuEventElapsedTime_v2")
                    .or_else(|_| library::symbol(library, "cuEventElapsedTime"))?,
            })
        }
    }

    fn message(&self, status: c_int) -> String {
        let mut text = std::ptr::null();
        // SAFETY: one address is written, of a string that lives as long as the library, or none.
        let text = unsafe {
            let known = (self.error_string)(status, &raw mut text) == 0 && !text.is_null();
            known.then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        text.map_or_else(|| format!("status {status}"), |text| format!("{text} (status {status})"))
    }

    /// Why a driver for CUDA of this version gives no device, and what to do.
    fn why_not(&self, status: c_int, version: Version) -> String {
        let (major, minor) = version;
        match status {
            NO_DEVICE => format!(
                "the NVIDIA driver (CUDA {major}.{minor}) has no device; check that nvidia-smi lists the GPU and that \
                 CUDA_VISIBLE_DEVICES does not hide it"
            ),
            34 => "the NVIDIA driver found is a toolkit's stub and reaches no device; take the folder \"stubs\" out of \
                   LD_LIBRARY_PATH"
                .to_owned(),
            802 => "the NVIDIA driver is not ready; start the NVIDIA fabric manager (service nvidia-fabricmanager)".to_owned(),
            803 => "the NVIDIA driver's library and its kernel module are of different versions; restart the machine".to_owned(),
            804 => "the NVIDIA driver's compatibility library does not support this GPU; take it out of LD_LIBRARY_PATH or \
                    install a newer driver"
                .to_owned(),
            _ => format!(
                "the NVIDIA driver (CUDA {major}.{minor}) can't be initialized: {}; check that nvidia-smi lists the GPU, \
                 else restart the machine or install the driver again",
                self.message(status)
            ),
        }
    }
}

/// Text up to its zero byte.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).trim().to_owned()
}
