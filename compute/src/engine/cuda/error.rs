//! What the driver reports, in this program's terms.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use crate::engine::EngineError;

/// An error of the driver at `what`.
pub(super) fn driver_error(what: &str, error: DriverError) -> EngineError {
    let reason = reason(error);
    match error.0 {
        // The context is unusable after these; the driver gives no other way back than a new process.
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | CUresult::CUDA_ERROR_LAUNCH_FAILED
        | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
        | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
        | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUresult::CUDA_ERROR_INVALID_PC
        | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
        | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
        | CUresult::CUDA_ERROR_DEINITIALIZED
        | CUresult::CUDA_ERROR_ASSERT
        | CUresult::CUDA_ERROR_UNKNOWN => EngineError::DeviceLost { reason: format!("{what}: {reason}") },
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => EngineError::OutOfMemory { requested_bytes: 0, what: what.to_owned() },
        _ => EngineError::Failed { what: what.to_owned(), reason },
    }
}

fn reason(error: DriverError) -> String {
    match error.error_string() {
        Ok(text) => format!("{} ({:?})", text.to_string_lossy(), error.0),
        Err(_) => format!("{:?}", error.0),
    }
}
