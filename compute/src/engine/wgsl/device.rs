//! An opened device: the engine itself, and the waiting on its queue.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::adapter::{self, Found};
use super::dispatch::Rates;
use super::error::{Faults, explain};
use super::launch::Limits;
use super::pipeline::{Pipeline, PipelineKey};
use super::session::LoadedPlan;
use crate::engine::{Device, DeviceKind, Engine, EngineError, Session};
use crate::plan::Plan;
use crate::shape::Precision;

/// Version of wgpu that this program is built with; a test compares it with the lock file.
const WGPU_VERSION: &str = "30.0.2";

/// A device opened for compute shaders.
pub(super) struct WgslEngine {
    device: Device,
    precisions: Vec<Precision>,
    /// wgpu's device.
    pub gpu: wgpu::Device,
    /// Its only queue.
    pub queue: wgpu::Queue,
    /// Its limits, all that the adapter offers.
    pub gpu_limits: wgpu::Limits,
    /// What lowering must respect; tests make them smaller.
    pub limits: Limits,
    /// What its callbacks reported.
    pub faults: Arc<Faults>,
    /// Pipelines made so far; they outlive a session.
    pub pipelines: Mutex<HashMap<PipelineKey, Arc<Pipeline>>>,
}

/// Opens the device that is listed under `device_id`.
///
/// # Errors
/// [`EngineError::NoSuchDevice`] with those there are, [`EngineError::NotSupported`] for one that is listed as not
/// usable, [`EngineError::Failed`] when the driver refuses.
pub(super) fn open(device_id: &str) -> Result<WgslEngine, EngineError> {
    let found = adapter::found();
    let available = found.iter().map(|found| found.device.id.as_str()).collect::<Vec<_>>().join(", ");
    let Some(chosen) = found.into_iter().find(|found| found.device.id == device_id) else {
        let available = if available.is_empty() { "none".into() } else { available };
        return Err(EngineError::NoSuchDevice { id: device_id.to_owned(), available });
    };
    open_found(chosen)
}

/// Opens a device that was found.
///
/// # Errors
/// [`EngineError::NotSupported`] for one with a problem, [`EngineError::Failed`] when the driver refuses.
pub(super) fn open_found(Found { adapter, device, problem }: Found) -> Result<WgslEngine, EngineError> {
    if let Some(reason) = problem {
        return Err(EngineError::NotSupported { reason: format!("{} can't be used: {reason}", device.name) });
    }
    let descriptor = adapter::descriptor(&adapter);
    let (gpu, queue) = pollster::block_on(adapter.request_device(&descriptor))
        .map_err(|error| EngineError::Failed { what: format!("opening {}", device.name), reason: error.to_string() })?;
    let faults = Faults::watch(&gpu);
    let precisions = adapter::precisions(gpu.features());
    let gpu_limits = gpu.limits();
    let limits = limits(&gpu_limits, device.kind);
    Ok(WgslEngine { device, precisions, gpu, queue, gpu_limits, limits, faults, pipelines: Mutex::default() })
}

fn limits(gpu: &wgpu::Limits, kind: DeviceKind) -> Limits {
    let rates = Rates::assumed(kind);
    Limits {
        // Bindings are multiples of four bytes, and a kernel's elements are of sixteen at most.
        max_binding_bytes: gpu.max_storage_buffer_binding_size / 16 * 16,
        max_buffer_bytes: gpu.max_buffer_size,
        offset_alignment: u64::from(gpu.min_storage_buffer_offset_alignment).max(16),
        max_workgroup_bytes: gpu.max_compute_workgroup_storage_size,
        max_invocations: gpu.max_compute_invocations_per_workgroup,
        max_storage_bindings: gpu.max_storage_buffers_per_shader_stage,
        max_flops_per_dispatch: rates.flops_per_dispatch(),
        max_bytes_per_dispatch: rates.bytes_per_dispatch(),
        busy_workgroups: match kind {
            DeviceKind::Software | DeviceKind::Cpu => 4,
            DeviceKind::Integrated => 64,
            DeviceKind::Discrete | DeviceKind::Virtual | DeviceKind::Other => 256,
        },
    }
}

impl WgslEngine {
    /// Rates assumed before anything is measured.
    pub(super) fn rates(&self) -> Rates {
        Rates::assumed(self.device.kind)
    }

    /// Whether the device stamps times.
    pub(super) fn has_clock(&self) -> bool {
        self.gpu.features().contains(wgpu::Features::TIMESTAMP_QUERY)
    }

    /// Waits until `submission` is done, or all there are.
    ///
    /// # Errors
    /// [`EngineError::DeviceLost`], and what callbacks reported meanwhile.
    pub(super) fn wait(&self, submission: Option<wgpu::SubmissionIndex>) -> Result<(), EngineError> {
        loop {
            let poll =
                wgpu::PollType::Wait { submission_index: submission.clone(), timeout: Some(Duration::from_secs(1)) };
            // wgpu panics where waiting itself fails, which is how some drivers report a loss.
            let outcome = catch_unwind(AssertUnwindSafe(|| self.gpu.poll(poll))).map_err(|_| {
                self.faults.lose("waiting for the device failed");
                EngineError::DeviceLost { reason: "waiting for the device failed".into() }
            })?;
            self.faults.check()?;
            match outcome {
                Ok(_) => return Ok(()),
                Err(wgpu::PollError::Timeout) => {}
                Err(error) => {
                    return Err(EngineError::Failed {
                        what: "waiting for the device".into(),
                        reason: error.to_string(),
                    });
                }
            }
        }
    }
}

impl Engine for WgslEngine {
    fn device(&self) -> &Device {
        &self.device
    }

    fn libraries(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("wgpu".into(), WGPU_VERSION.into())])
    }

    fn load(&self, plan: &Plan) -> Result<Box<dyn Session + '_>, EngineError> {
        if !self.precisions.contains(&plan.precision) {
            return Err(EngineError::NotSupported {
                reason: format!("WGSL on {} does not compute {}", self.device.name, plan.precision),
            });
        }
        match LoadedPlan::new(self, plan) {
            Ok(loaded) => Ok(Box::new(loaded)),
            Err(error) => Err(explain(error, &self.faults, plan.bytes())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_wgpu_is_the_locked_one() {
        let lock = include_str!("../../../../Cargo.lock");
        let after = lock.split("name = \"wgpu\"\n").nth(1).unwrap();
        assert!(after.starts_with(&format!("version = \"{WGPU_VERSION}\"")), "WGPU_VERSION is out of date");
    }
}
