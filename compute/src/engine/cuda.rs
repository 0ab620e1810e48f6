//! NVIDIA GPUs through the CUDA driver: cuDNN and cuBLASLt where they are installed, and kernels of our own.
//!
//! [`library`] finds the driver and the libraries, [`listing`] the devices. The texts in `shaders/` ([`kernels`]) are
//! compiled for the device at hand by [`nvrtc`].

mod ahead;
mod average_pool;
mod batch_norm;
mod cast;
mod check;
mod columns;
mod conv2d;
mod cublaslt;
mod cudnn;
mod device;
mod driver;
mod dropout;
mod error;
#[cfg(test)]
mod fixture;
mod gradient_finish;
mod kernels;
mod launch;
mod layout;
mod library;
mod listing;
mod lower;
mod max_pool;
mod memory;
mod nvrtc;
mod session;
mod softmax;
mod stream;
#[cfg(test)]
mod tests;
mod tier;
mod tune;
mod vendor;

pub use tier::Tier;

use super::{Engine, EngineError, Listing};

/// Every device of the CUDA driver, one listing each, with the reason where it can't be used; where there is none at
/// all, one listing that says what is missing and what to do.
pub fn listings() -> Vec<Listing> {
    listing::listings()
}

/// See [`super::compile_ahead_of_time`].
///
/// # Errors
/// As there.
pub(super) fn compile_ahead_of_time() -> Result<Vec<u8>, EngineError> {
    let compiler = library::compiler().ok_or_else(|| EngineError::NotSupported {
        reason: "NVRTC was not found; name its folder in BATCHMARK_LIBRARIES".to_owned(),
    })?;
    ahead::make(compiler)
}

/// Opens the device that is listed under `device_id`, with no more of the libraries than `tier` says.
///
/// # Errors
/// [`EngineError::NoSuchDevice`] with those there are, [`EngineError::NotSupported`] for one that is listed as not
/// usable, [`EngineError::Failed`] when the driver refuses.
pub(super) fn open(device_id: &str, tier: Tier) -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(device::open(device_id, tier)?))
}
