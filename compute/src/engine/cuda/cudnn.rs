//! cuDNN 9 through its graph interface: convolutions with what is fused behind them, every plan that its engines offer.
//!
//! [`graph`] describes what is to be computed, [`plan`] asks the heuristics and builds plans, [`descriptor`] and [`api`]
//! wrap the C functions. Which plan is fastest is decided elsewhere, by timing.

mod api;
mod descriptor;
mod graph;
mod plan;
#[cfg(test)]
mod tests;

use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::{result, sys};

use self::api::Api;
use crate::engine::EngineError;

pub(super) use self::graph::{Accumulation, Convolution, Graph, Operation, Tensor, uid};
pub(super) use self::plan::{Choice, ExecutionPlan, Limits, Note};

/// cuDNN, opened for one stream.
#[derive(Debug)]
pub(super) struct Cudnn {
    api: &'static Api,
    /// That of the stream.
    handle: Mutex<Handle>,
    builders: Builders,
}

impl Cudnn {
    /// Opens cuDNN for a stream of the context that is bound to this thread. The stream must outlive the value.
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] where the library can't be loaded or is older than version 9,
    /// [`EngineError::Failed`] as it reports.
    pub(super) fn new(stream: sys::CUstream) -> Result<Self, EngineError> {
        let api = Api::get()?;
        let context = result::ctx::get_current().ok().flatten().ok_or_else(|| EngineError::Failed {
            what: "opening cuDNN".to_owned(),
            reason: "no context is bound to the thread".to_owned(),
        })?;
        let handle = Handle::new(api)?;
        // SAFETY: the handle is open and the caller vouches for the stream.
        api.check("cudnnSetStream", unsafe { (api.set_stream)(handle.raw, stream.cast()) })?;
        let builders = Builders { api, context: Context(context), idle: Mutex::default() };
        Ok(Self { api, handle: Mutex::new(handle), builders })
    }

    fn handle(&self) -> MutexGuard<'_, Handle> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Version as one number, such as 91400 for 9.14.0.
    pub(super) fn version(&self) -> u64 {
        // SAFETY: the function takes nothing and reads a constant.
        unsafe { (self.api.version)() as u64 }
    }
}

/// Handles for the threads that build plans: a handle serves one thread at a time.
#[derive(Debug)]
struct Builders {
    api: &'static Api,
    context: Context,
    idle: Mutex<Vec<Handle>>,
}

impl Builders {
    /// Lends `body` a handle of its own, with the context bound to the thread.
    fn lend<T>(&self, body: impl FnOnce(&Handle) -> Result<T, EngineError>) -> Result<T, EngineError> {
        // SAFETY: the context is alive as long as the stream that cuDNN was opened for.
        unsafe { result::ctx::set_current(self.context.0) }.map_err(|error| EngineError::Failed {
            what: "binding the context".to_owned(),
            reason: error.to_string(),
        })?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let handle = idle.map_or_else(|| Handle::new(self.api), Ok)?;
        let result = body(&handle);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        result
    }
}

/// The driver's context, bound to every thread that builds plans.
#[derive(Clone, Copy, Debug)]
struct Context(sys::CUcontext);

// SAFETY: the driver's contexts may be used from any thread that they are bound to.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// An open handle.
#[derive(Debug)]
struct Handle {
    api: &'static Api,
    raw: *mut c_void,
}

// SAFETY: a handle may be used from any thread, by one at a time: it is lent exclusively.
unsafe impl Send for Handle {}

impl Handle {
    fn new(api: &'static Api) -> Result<Self, EngineError> {
        let mut raw = ptr::null_mut();
        // SAFETY: the function writes one pointer.
        api.check("cudnnCreate", unsafe { (api.create)(&raw mut raw) })?;
        Ok(Self { api, raw })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and not used again; there is nobody to tell of a failure.
        unsafe { (self.api.destroy)(self.raw) };
    }
}
