//! An opened device: the engine itself.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cudarc::driver::CudaEvent;

use super::error::driver_error;
use super::session::{LoadedPlan, Pick};
use super::stream::Gpu;
use super::tune::Choices;
use crate::engine::{Device, Engine, EngineError, Session};
use crate::plan::Plan;
use crate::shape::Precision;

/// A device opened through the CUDA driver.
pub(super) struct CudaEngine {
    pub(super) device: Device,
    pub(super) precisions: Vec<Precision>,
    pub(super) gpu: Gpu,
    /// Candidates found fastest so far.
    pub(super) choices: Mutex<Choices>,
    /// Versions of the libraries, by name.
    pub(super) libraries: BTreeMap<String, String>,
    /// Remarks that belong to every result.
    pub(super) notes: Vec<String>,
}

impl CudaEngine {
    /// Milliseconds between two events that have happened.
    pub(super) fn elapsed_ms(&self, begin: &CudaEvent, end: &CudaEvent) -> Result<f64, EngineError> {
        begin.elapsed_ms(end).map(f64::from).map_err(|error| driver_error("reading the device's clock", error))
    }

    /// # Errors
    /// [`EngineError::OutOfMemory`] when `bytes` exceed what is free.
    pub(super) fn check_free(&self, bytes: u64) -> Result<(), EngineError> {
        let (free, _) = self.gpu.context.mem_get_info().map_err(|error| driver_error("asking for free memory", error))?;
        if bytes > free as u64 {
            return Err(EngineError::OutOfMemory {
                requested_bytes: bytes,
                what: format!("the plan's buffers ({free} are free)"),
            });
        }
        Ok(())
    }
}

impl Engine for CudaEngine {
    fn device(&self) -> &Device {
        &self.device
    }

    fn libraries(&self) -> BTreeMap<String, String> {
        self.libraries.clone()
    }

    fn load(&self, plan: &Plan) -> Result<Box<dyn Session + '_>, EngineError> {
        if !self.precisions.contains(&plan.precision) {
            return Err(EngineError::NotSupported {
                reason: format!("{} does not compute {}", self.device.name, plan.precision),
            });
        }
        Ok(Box::new(LoadedPlan::new(self, plan, Pick::Fastest)?))
    }
}
