//! The reference engine: every step on the processor, accumulated in f64.
//!
//! It is what the other engines are verified against, and the engine offered where there is no GPU. Buffers are f32 in
//! NCHW, the logical order of a plan; convolutions are im2col and an f64 GEMM; sums have a fixed order that depends on
//! shapes only, so that every machine with the same GEMM kernel gets the same bits whatever its number of cores.
//! Each operation has its file; [`storage`] holds the buffers.

mod average_pool;
mod batch_norm;
mod cast;
mod conv2d;
#[cfg(test)]
mod fixture;
mod gradient_epilogue;
mod im2col;
mod max_pool;
mod product;
mod softmax;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use super::{
    Device, DeviceKind, Engine, EngineError, EngineKind, Listing, Memory, Session, StepTime, Timing, step_medians,
};
use crate::ops::BufferId;
use crate::plan::{Plan, Step};
use crate::shape::Precision;
use storage::{Storage, Workspace};

/// Identifier of the only device.
pub const DEVICE_ID: &str = "cpu";

/// Opens the processor.
///
/// # Errors
/// None today; the signature is that of every engine.
pub fn open() -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(Cpu { device: device() }))
}

/// The processor as a device; always available.
pub fn listing() -> Listing {
    Listing {
        engine: EngineKind::Cpu,
        device: device(),
        precisions: vec![Precision::F32],
        remarks: Vec::new(),
        unavailable: None,
    }
}

fn device() -> Device {
    let wanted =
        RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()).with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(wanted).ok();
    let text = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let first = system.as_ref().and_then(|system| system.cpus().first());
    Device {
        id: DEVICE_ID.to_owned(),
        name: first.and_then(|cpu| text(cpu.brand())).unwrap_or_else(|| "processor".to_owned()),
        kind: DeviceKind::Cpu,
        vendor: first.and_then(|cpu| text(cpu.vendor_id())),
        memory_bytes: system.as_ref().map(System::total_memory).filter(|&bytes| bytes > 0),
        limits: BTreeMap::from([("cores".to_owned(), rayon::current_num_threads() as u64)]),
        ..Device::default()
    }
}

/// The open processor.
struct Cpu {
    device: Device,
}

impl Engine for Cpu {
    fn device(&self) -> &Device {
        &self.device
    }

    /// Empty: the GEMM is compiled in, its version is fixed by the program's.
    fn libraries(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn load(&self, plan: &Plan) -> Result<Box<dyn Session + '_>, EngineError> {
        if plan.precision != Precision::F32 {
            let reason = format!("the reference on the processor computes f32 only, not {}", plan.precision);
            return Err(EngineError::NotSupported { reason });
        }
        let workspace = plan.steps.iter().map(conv2d::workspace).fold(Workspace::default(), Workspace::max);
        check_available(plan, workspace.bytes())?;
        let scratch = workspace.allocate()?;
        let storage = Storage::allocate(plan)?;
        Ok(Box::new(Resident { steps: plan.steps.clone(), storage, scratch }))
    }
}

/// Refuses what the system can't hold before it starts to swap or kill.
fn check_available(plan: &Plan, workspace_bytes: u64) -> Result<(), EngineError> {
    let wanted = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    // A system that does not tell is tried; its allocator has the last word.
    let Ok(system) = System::new_with_specifics(wanted) else { return Ok(()) };
    let group = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    let available = system.available_memory().min(group);
    let requested_bytes = plan.bytes() + workspace_bytes;
    if available > 0 && requested_bytes > available {
        let what = format!("the plan of {} and its workspace, with {available} bytes available", plan.definition);
        return Err(EngineError::OutOfMemory { requested_bytes, what });
    }
    Ok(())
}

/// A plan in the processor's memory.
struct Resident {
    steps: Vec<Step>,
    storage: Storage,
    scratch: storage::Scratch,
}

impl Resident {
    fn compute(&mut self, step_idx: usize) {
        let Self { steps, storage, scratch } = self;
        match &steps[step_idx] {
            Step::Cast(step) => cast::cast(step, storage),
            Step::Conv2dForward(step) => conv2d::forward(step, storage, scratch),
            Step::Conv2dBackwardData(step) => conv2d::backward_data(step, storage, scratch),
            Step::Conv2dBackwardWeight(step) => conv2d::backward_weight(step, storage, scratch),
            Step::BatchNormForward(step) => batch_norm::forward(step, storage),
            Step::BatchNormBackward(step) => batch_norm::backward(step, storage),
            Step::MaxPoolForward(step) => max_pool::forward(step, storage),
            Step::MaxPoolBackward(step) => max_pool::backward(step, storage),
            Step::AveragePoolForward(step) => average_pool::forward(step, storage),
            Step::AveragePoolBackward(step) => average_pool::backward(step, storage),
            Step::CrossEntropy(step) => softmax::cross_entropy(step, storage),
        }
    }
}

impl Session for Resident {
    fn write(&mut self, buffer: BufferId, values: &[f32]) -> Result<(), EngineError> {
        self.storage.write(buffer, values)
    }

    fn run(&mut self, iterations: usize) -> Result<Vec<Timing>, EngineError> {
        let mut timings = Vec::with_capacity(iterations);
        for _ in 0..iterations {
            let start = Instant::now();
            for step_idx in 0..self.steps.len() {
                self.compute(step_idx);
            }
            timings.push(Timing { device_secs: None, host_secs: start.elapsed().as_secs_f64() });
        }
        Ok(timings)
    }

    fn profile(&mut self, repetitions: usize) -> Result<Vec<StepTime>, EngineError> {
        let mut iterations = Vec::new();
        for _ in 0..repetitions.max(1) {
            let timed = (0..self.steps.len()).map(|step_idx| {
                let start = Instant::now();
                self.compute(step_idx);
                start.elapsed().as_secs_f64()
            });
            iterations.push(timed.collect());
        }
        let steps = step_medians(&iterations).into_iter().zip(&self.steps);
        Ok(steps.map(|(secs, step)| StepTime { secs, kernel: kernel(step) }).collect())
    }

    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>, EngineError> {
        Ok(self.storage.read(buffer))
    }

    fn memory(&self) -> Memory {
        let workspace_bytes = self.scratch.bytes();
        Memory { peak_bytes: self.storage.bytes() + workspace_bytes, workspace_bytes }
    }

    fn kernels(&self) -> Vec<String> {
        let names: BTreeSet<String> = self.steps.iter().map(kernel).collect();
        names.into_iter().collect()
    }

    fn notes(&self) -> Vec<String> {
        vec!["computed by the reference on the processor: f32 storage, f64 accumulation".to_owned()]
    }
}

/// What computes a step.
fn kernel(step: &Step) -> String {
    let routine = match step {
        Step::Conv2dForward(_) | Step::Conv2dBackwardWeight(_) => "im2col and matrixmultiply dgemm",
        Step::Conv2dBackwardData(_) => "matrixmultiply dgemm and col2im",
        _ => "direct",
    };
    format!("{}: {routine}", step.name())
}
