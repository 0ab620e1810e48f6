//! A plan made resident: lowered, allocated, compiled and bound.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::clock::Clock;
use super::device::WgslEngine;
use super::dispatch::{self, fold};
use super::error::scoped;
use super::launch::{Binding, Launch, Lowering, Source};
use super::layout;
use super::lower::lower;
use super::pipeline::{self, PipelineKey};
use super::profile::LoweredStep;
use super::session::{Dispatch, LoadedPlan};
use crate::engine::{DeviceKind, Engine, EngineError, Session};
use crate::plan::Plan;

impl<'a> LoadedPlan<'a> {
    /// Lowers the plan, compiles its kernels, allocates and clears its memory.
    ///
    /// # Errors
    /// As [`Engine::load`].
    pub(super) fn new(engine: &'a WgslEngine, plan: &Plan) -> Result<Self, EngineError> {
        engine.faults.check()?;
        let context = Lowering::new(plan, engine.limits);
        let mut launches = Vec::new();
        let mut steps = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            let first = launches.len();
            launches.extend(lower(step, &context)?);
            steps.push(lowered_step(first, &launches));
        }
        let workspace_bytes = context.into_workspaces();
        let slot_bytes = slot_bytes(plan);
        for (&bytes, idx) in slot_bytes.iter().chain(&workspace_bytes).zip(0..) {
            check_size(bytes, engine.gpu_limits.max_buffer_size, plan, idx)?;
        }
        // Memory first: whether it fits is known in a moment, compiling takes longer.
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let total = slot_bytes.iter().chain(&workspace_bytes).sum::<u64>();
        let mut made: Vec<wgpu::Buffer> = Vec::new();
        for &bytes in slot_bytes.iter().chain(&workspace_bytes) {
            let buffer = allocate(engine, bytes, usage, total).inspect_err(|_| {
                made.iter().for_each(wgpu::Buffer::destroy);
                let _ = engine.wait(None);
            })?;
            made.push(buffer);
        }
        let workspaces = made.split_off(slot_bytes.len());
        let parameters = upload_parameters(engine, &launches)?;
        let clock = engine.has_clock().then(|| Clock::new(engine, Clock::ITERATION_TIMESTAMPS)).transpose()?;
        let mut session = Self {
            engine,
            buffers: plan.buffers.clone(),
            slots: made,
            workspaces,
            parameters,
            dispatches: Vec::new(),
            steps,
            seconds: launches.iter().map(|launch| engine.rates().seconds(launch)).collect(),
            submissions: Vec::new(),
            clock,
            kernels: Vec::new(),
            notes: Vec::new(),
            iterations_done: 0,
            is_calibrated: false,
        };
        session.clear()?;
        session.bind(&launches)?;
        session.submissions = dispatch::submissions(&session.seconds);
        if session.clock.is_none() {
            session.notes.push("the device has no clock, times are the host's".into());
        }
        if engine.device().kind == DeviceKind::Software {
            session.notes.push(format!("software adapter: {} computes on the processor", engine.device().name));
        }
        Ok(session)
    }

    /// Zeros all memory, so that padding is zero and the first iteration has no such work left.
    fn clear(&self) -> Result<(), EngineError> {
        scoped(&self.engine.gpu, "clearing memory", self.memory().peak_bytes, || {
            let mut encoder = self.engine.gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for buffer in self.slots.iter().chain(&self.workspaces) {
                encoder.clear_buffer(buffer, 0, None);
            }
            self.engine.queue.submit([encoder.finish()]);
        })?;
        self.engine.wait(None)
    }

    fn bind(&mut self, launches: &[Launch]) -> Result<(), EngineError> {
        let pipelines = pipeline::compile(self.engine, launches)?;
        let stride = parameter_stride(self.engine);
        for (launch, idx) in launches.iter().zip(0u64..) {
            let key = PipelineKey::of(launch);
            let pipeline = Arc::clone(&pipelines[&key]);
            let entry = launch.kernel.entry;
            let (x, y) = fold(launch.workgroups, self.engine.gpu_limits.max_compute_workgroups_per_dimension)?;
            let bindings = scoped(&self.engine.gpu, &format!("binding the buffers of {entry}"), 0, || {
                let storage = launch.bindings.iter().map(|binding| self.resource(binding));
                let uniform = (!launch.parameters.is_empty()).then(|| {
                    wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &self.parameters,
                        offset: idx * stride,
                        size: NonZeroU64::new(parameter_bytes(launch)),
                    })
                });
                let entries: Vec<_> = storage
                    .chain(uniform)
                    .zip(0..)
                    .map(|(resource, binding)| wgpu::BindGroupEntry { binding, resource })
                    .collect();
                self.engine.gpu.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: Some(entry),
                    layout: &pipeline.layout,
                    entries: &entries,
                })
            })?;
            let name = pipeline::name(&launch.kernel);
            if !self.kernels.contains(&name) {
                self.kernels.push(name);
            }
            self.dispatches.push(Dispatch { pipeline, bindings, x, y, entry });
        }
        Ok(())
    }

    fn resource(&self, binding: &Binding) -> wgpu::BindingResource<'_> {
        let buffer = match binding.source {
            Source::Buffer(id) => self.slot(id),
            Source::Workspace(idx) => &self.workspaces[idx as usize],
        };
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer,
            offset: binding.offset,
            size: NonZeroU64::new(binding.bytes),
        })
    }
}

/// The step whose launches are the last, from `first` on.
fn lowered_step(first: usize, launches: &[Launch]) -> LoweredStep {
    let mut kernels: Vec<String> = Vec::new();
    for launch in &launches[first..] {
        // What is switched off tells nothing here.
        let name = pipeline::name(&launch.kernel);
        let name = name.split(' ').filter(|part| !part.ends_with("=0")).collect::<Vec<_>>().join(" ");
        if !kernels.contains(&name) {
            kernels.push(name);
        }
    }
    LoweredStep { dispatches: first..launches.len(), kernels }
}

/// Bytes of each slot: the largest of its tenants, with padding.
fn slot_bytes(plan: &Plan) -> Vec<u64> {
    let mut slots = vec![256; plan.slots.len()];
    for buffer in &plan.buffers {
        let bytes = layout::padded_bytes(buffer.contents, buffer.element).next_multiple_of(256);
        slots[buffer.slot] = bytes.max(slots[buffer.slot]);
    }
    slots
}

/// # Errors
/// [`EngineError::ExceedsDeviceLimit`] with the name of the slot's largest tenant; slots past the plan's are workspaces.
fn check_size(bytes: u64, allowed: u64, plan: &Plan, slot: usize) -> Result<(), EngineError> {
    if bytes <= allowed {
        return Ok(());
    }
    let tenants = plan.buffers.iter().filter(|buffer| buffer.slot == slot);
    let largest = tenants.max_by_key(|buffer| layout::padded_bytes(buffer.contents, buffer.element));
    Err(EngineError::ExceedsDeviceLimit {
        what: largest.map_or_else(|| "a workspace".into(), |buffer| format!("{:?}", buffer.name)),
        needed: bytes,
        limit: "max_buffer_size".into(),
        allowed,
    })
}

/// Allocates a buffer; `total` is what an error reports as requested.
///
/// # Errors
/// [`EngineError::OutOfMemory`], [`EngineError::Failed`].
pub(super) fn allocate(
    engine: &WgslEngine,
    size: u64,
    usage: wgpu::BufferUsages,
    total: u64,
) -> Result<wgpu::Buffer, EngineError> {
    let buffer = scoped(&engine.gpu, "the plan's buffers", total, || {
        engine.gpu.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
    })?;
    engine.faults.check()?;
    Ok(buffer)
}

/// Bytes of a launch's uniform block.
fn parameter_bytes(launch: &Launch) -> u64 {
    (launch.parameters.len() as u64 * 4).next_multiple_of(16)
}

/// Distance of the uniform blocks of two launches.
fn parameter_stride(engine: &WgslEngine) -> u64 {
    u64::from(engine.gpu_limits.min_uniform_buffer_offset_alignment).max(256)
}

fn upload_parameters(engine: &WgslEngine, launches: &[Launch]) -> Result<wgpu::Buffer, EngineError> {
    let stride = parameter_stride(engine) as usize;
    let mut bytes = vec![0u8; stride * launches.len().max(1)];
    for (launch, block) in launches.iter().zip(bytes.chunks_mut(stride)) {
        let values: &[u8] = bytemuck::cast_slice(&launch.parameters);
        assert!(values.len() <= stride, "{} has more parameters than a block holds", launch.kernel.entry);
        block[..values.len()].copy_from_slice(values);
    }
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
    let size = bytes.len() as u64;
    let buffer = allocate(engine, size, usage, size)?;
    scoped(&engine.gpu, "writing parameters", size, || engine.queue.write_buffer(&buffer, 0, &bytes))?;
    Ok(buffer)
}
