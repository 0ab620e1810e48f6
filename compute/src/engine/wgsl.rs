//! Compute shaders through wgpu, on any GPU that Vulkan, DX12, Metal or OpenGL reaches.
//!
//! [`adapter`] finds the devices, [`device`] opens one. Loading a plan turns each step into launches ([`lower`] and the
//! file of the step's operation), compiles their kernels from `shaders/` ([`pipeline`]) and allocates the plan's slots
//! ([`load`]); [`session`] runs them. [`layout`] says where elements lie, [`launch`] what a launch is.

mod adapter;
mod average_pool;
mod batch_norm;
mod cast;
mod clock;
mod conv2d;
mod device;
mod dispatch;
mod error;
mod header;
mod launch;
mod layout;
mod load;
mod lower;
mod max_pool;
mod pipeline;
mod profile;
mod session;
mod softmax;
#[cfg(test)]
mod tests;
mod timestamp;
mod transfer;

use super::{Engine, EngineError, Listing};

/// Every device that wgpu reaches, one listing each, with the reason where it can't be used; where there is none at
/// all, one listing that says so. Devices are opened for a moment, which may take a second each.
pub fn listings() -> Vec<Listing> {
    adapter::listings()
}

/// Opens the device that is listed under `device_id`.
///
/// # Errors
/// [`EngineError::NoSuchDevice`] with those there are, [`EngineError::NotSupported`] for one that is listed as not
/// usable, [`EngineError::Failed`] when the driver refuses.
pub fn open(device_id: &str) -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(device::open(device_id)?))
}
