//! Device memory.

use std::sync::Arc;

use cudarc::driver::{CudaStream, result};

use super::error::driver_error;
use crate::engine::EngineError;

/// Memory of a device, freed when dropped. What fills and copies it is queued on the engine's stream, behind what runs there
/// and before what comes: the driver's own stream would disturb another thread that captures a graph.
pub(super) struct DeviceMemory {
    stream: Arc<CudaStream>,
    address: u64,
    bytes: u64,
}

impl DeviceMemory {
    /// Allocates `bytes` (at least one) for `what` and fills them with zeros.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`], and what else the driver reports.
    pub(super) fn zeroed(stream: &Arc<CudaStream>, bytes: u64, what: &str) -> Result<Self, EngineError> {
        let bytes = bytes.max(1);
        bind(stream)?;
        // SAFETY: the context is bound to this thread; the address is freed once, by drop.
        let address = unsafe { result::malloc_sync(bytes as usize) }.map_err(|error| match error.0 {
            cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                EngineError::OutOfMemory { requested_bytes: bytes, what: what.to_owned() }
            }
            _ => driver_error(&format!("allocating {bytes} bytes for {what}"), error),
        })?;
        let memory = Self { stream: Arc::clone(stream), address, bytes };
        memory.clear(what)?;
        Ok(memory)
    }

    /// Fills all of it with zeros.
    pub(super) fn clear(&self, what: &str) -> Result<(), EngineError> {
        bind(&self.stream)?;
        // SAFETY: the range is this allocation; freeing it waits for the stream.
        unsafe { result::memset_d8_async(self.address, 0, self.bytes as usize, self.stream.cu_stream()) }
            .map_err(|error| driver_error(&format!("clearing {what}"), error))
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
        bind(&self.stream)?;
        // SAFETY: the range lies in this allocation; the copy is over when this returns.
        unsafe { result::memcpy_htod_async(self.address + offset, bytes, self.stream.cu_stream()) }
            .and_then(|()| self.stream.synchronize())
            .map_err(|error| driver_error(&format!("writing {what}"), error))
    }

    /// Copies from the device when everything queued before is done, and waits.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8], what: &str) -> Result<(), EngineError> {
        assert!(offset + bytes.len() as u64 <= self.bytes, "{what} exceeds its memory");
        bind(&self.stream)?;
        // SAFETY: the range lies in this allocation; the copy is over when this returns.
        unsafe { result::memcpy_dtoh_async(bytes, self.address + offset, self.stream.cu_stream()) }
            .and_then(|()| self.stream.synchronize())
            .map_err(|error| driver_error(&format!("reading {what}"), error))
    }
}

/// Makes a stream's context this thread's.
fn bind(stream: &CudaStream) -> Result<(), EngineError> {
    stream.context().bind_to_thread().map_err(|error| driver_error("binding the context", error))
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // Memory of a context that is lost is given back with it.
        if bind(&self.stream).is_ok() {
            // SAFETY: allocated by `zeroed` and freed here only. After a device fault this reports an error, which is
            // of no use to anyone: the next allocation reports it again.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}
