//! Device memory.

use std::sync::Arc;

use cudarc::driver::{CudaContext, result};

use super::error::driver_error;
use crate::engine::EngineError;

/// Memory of a device, freed when dropped.
pub(super) struct DeviceMemory {
    context: Arc<CudaContext>,
    address: u64,
    bytes: u64,
}

impl DeviceMemory {
    /// Allocates `bytes` (at least one) for `what` and fills them with zeros.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`], and what else the driver reports.
    pub(super) fn zeroed(context: &Arc<CudaContext>, bytes: u64, what: &str) -> Result<Self, EngineError> {
        let bytes = bytes.max(1);
        context.bind_to_thread().map_err(|error| driver_error("binding the context", error))?;
        // SAFETY: the context is bound to this thread; the address is freed once, by drop.
        let address = unsafe { result::malloc_sync(bytes as usize) }.map_err(|error| match error.0 {
            cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                EngineError::OutOfMemory { requested_bytes: bytes, what: what.to_owned() }
            }
            _ => driver_error(&format!("allocating {bytes} bytes for {what}"), error),
        })?;
        let memory = Self { context: Arc::clone(context), address, bytes };
        memory.clear(what)?;
        Ok(memory)
    }

    /// Fills all of it with zeros.
    pub(super) fn clear(&self, what: &str) -> Result<(), EngineError> {
        let failed = |error| driver_error(&format!("clearing {what}"), error);
        self.context.bind_to_thread().map_err(failed)?;
        // SAFETY: the range is this allocation, which lives.
        unsafe { result::memset_d8_sync(self.address, 0, self.bytes as usize) }.map_err(failed)?;
        // The driver clears on a stream of its own, for which the engine's does not wait by itself.
        self.context.synchronize().map_err(failed)
    }

    pub(super) const fn address(&self) -> u64 {
        self.address
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies to the device and waits.
    pub(super) fn write(&self, offset: u64, bytes: &[u8], what: &str) -> Result<(), EngineError> {
        assert!(offset + bytes.len() as u64 <= self.bytes, "{what} exceeds its memory");
        self.context.bind_to_thread().map_err(|error| driver_error("binding the context", error))?;
        // SAFETY: the range lies in this allocation, which lives.
        unsafe { result::memcpy_htod_sync(self.address + offset, bytes) }
            .map_err(|error| driver_error(&format!("writing {what}"), error))?;
        // The driver may return once it has read the host's memory.
        self.context.synchronize().map_err(|error| driver_error(&format!("writing {what}"), error))
    }

    /// Copies from the device; what is to be read must be finished.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8], what: &str) -> Result<(), EngineError> {
        assert!(offset + bytes.len() as u64 <= self.bytes, "{what} exceeds its memory");
        self.context.bind_to_thread().map_err(|error| driver_error("binding the context", error))?;
        // SAFETY: the range lies in this allocation, which lives; the copy is synchronous.
        unsafe { result::memcpy_dtoh_sync(bytes, self.address + offset) }
            .map_err(|error| driver_error(&format!("reading {what}"), error))
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // Memory of a context that is lost is given back with it.
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: allocated by `zeroed` and freed here only. After a device fault this reports an error, which is
            // of no use to anyone: the next allocation reports it again.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}
