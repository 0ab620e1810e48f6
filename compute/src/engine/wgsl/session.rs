//! A plan resident on a device: its buffers, its dispatches, and the running of them.

use std::collections::VecDeque;
use std::time::Instant;

use super::clock::Clock;
use super::device::WgslEngine;
use super::dispatch::{self, fold};
use super::error::{explain, scoped};
use super::launch::{Binding, Launch, Lowering, Source};
use super::lower::lower;
use super::pipeline::{self, Pipeline, PipelineKey};
use super::transfer::Blocks;
use super::{layout, timestamp};
use crate::engine::{DeviceKind, Engine, EngineError, Memory, Session, Timing};
use crate::ops::BufferId;
use crate::plan::{Buffer, Plan};

/// Iterations that may be queued before the host waits for the first of them.
const QUEUE_DEPTH: usize = 3;
/// Bytes of one piece of an upload or a download.
const TRANSFER_BYTES: usize = 32 << 20;

/// A plan with everything it needs on the device.
pub(super) struct LoadedPlan<'a> {
    engine: &'a WgslEngine,
    buffers: Vec<Buffer>,
    slots: Vec<wgpu::Buffer>,
    workspaces: Vec<wgpu::Buffer>,
    parameters: wgpu::Buffer,
    dispatches: Vec<Dispatch>,
    /// Seconds that each dispatch is thought to take.
    seconds: Vec<f64>,
    /// Dispatches of each submission of one iteration.
    submissions: Vec<std::ops::Range<usize>>,
    clock: Option<Clock>,
    kernels: Vec<String>,
    notes: Vec<String>,
    iterations_done: u64,
}

/// One launch bound to its pipeline and buffers.
struct Dispatch {
    pipeline: std::sync::Arc<Pipeline>,
    bindings: wgpu::BindGroup,
    x: u32,
    y: u32,
}

impl<'a> LoadedPlan<'a> {
    /// Lowers the plan, compiles its kernels, allocates and clears its memory.
    ///
    /// # Errors
    /// As [`Engine::load`].
    pub(super) fn new(engine: &'a WgslEngine, plan: &Plan) -> Result<Self, EngineError> {
        engine.faults.check()?;
        let context = Lowering::new(plan, engine.limits);
        let mut launches = Vec::new();
        for step in &plan.steps {
            launches.extend(lower(step, &context)?);
        }
        let workspace_bytes = context.into_workspaces();
        let slot_bytes = slot_bytes(plan);
        let all = slot_bytes.iter().zip(&plan.slots).map(|(bytes, _)| *bytes).chain(workspace_bytes.iter().copied());
        for (bytes, idx) in all.zip(0..) {
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
        let clock = engine.has_clock().then(|| Clock::new(engine)).transpose()?;
        let mut session = Self {
            engine,
            buffers: plan.buffers.clone(),
            slots: made,
            workspaces,
            parameters,
            dispatches: Vec::new(),
            seconds: launches.iter().map(|launch| engine.rates().seconds(launch)).collect(),
            submissions: Vec::new(),
            clock,
            kernels: Vec::new(),
            notes: Vec::new(),
            iterations_done: 0,
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
            let pipeline = std::sync::Arc::clone(&pipelines[&key]);
            let entry = launch.kernel.entry;
            let (x, y) = fold(launch.workgroups, self.engine.gpu_limits.max_compute_workgroups_per_dimension)?;
            let bindings = scoped(&self.engine.gpu, &format!("binding the buffers of {entry}"), 0, || {
                let storage = launch.bindings.iter().map(|binding| self.resource(binding));
                let uniform = (!launch.parameters.is_empty()).then(|| {
                    wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &self.parameters,
                        offset: idx * stride,
                        size: std::num::NonZeroU64::new(parameter_bytes(launch)),
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
            self.dispatches.push(Dispatch { pipeline, bindings, x, y });
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
            size: std::num::NonZeroU64::new(binding.bytes),
        })
    }

    fn slot(&self, id: BufferId) -> &wgpu::Buffer {
        &self.slots[self.buffers[id.0 as usize].slot]
    }

    /// Command buffers of one iteration; `query` is the number of its first timestamp.
    fn encode(&self, query: u32) -> Vec<wgpu::CommandBuffer> {
        let last = self.submissions.len() - 1;
        let encode_one = |(idx, range): (usize, &std::ops::Range<usize>)| {
            let mut encoder = self.engine.gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let timestamp_writes = self.clock.as_ref().and_then(|clock| clock.writes(query, idx == 0, idx == last));
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
            for dispatch in &self.dispatches[range.clone()] {
                pass.set_pipeline(&dispatch.pipeline.pipeline);
                pass.set_bind_group(0, &dispatch.bindings, &[]);
                pass.dispatch_workgroups(dispatch.x, dispatch.y, 1);
            }
            drop(pass);
            encoder.finish()
        };
        self.submissions.iter().enumerate().map(encode_one).collect()
    }

    /// Submits one iteration. One command buffer a submission: a watchdog counts each alone.
    fn submit(&self, commands: Vec<wgpu::CommandBuffer>) -> Option<wgpu::SubmissionIndex> {
        commands.into_iter().map(|command| self.engine.queue.submit([command])).last()
    }

    /// Runs one iteration by itself; from the second on its times decide whether the device's clock is used and how the
    /// work is cut into submissions. The first holds what drivers put off until a kernel is used.
    fn run_alone(&mut self) -> Result<Timing, EngineError> {
        let start = Instant::now();
        let commands = self.encode(0);
        let submitted = Instant::now();
        let last = self.submit(commands);
        self.engine.wait(last)?;
        let wait_secs = submitted.elapsed().as_secs_f64();
        let host_secs = start.elapsed().as_secs_f64();
        self.iterations_done += 1;
        let mut device_secs = None;
        if self.iterations_done == CALIBRATION_ITERATIONS {
            if let Some(clock) = &self.clock {
                device_secs = clock.read(self.engine, 1)?[0];
                if let Some(reason) = timestamp::mistrust(device_secs.unwrap_or(0.0), wait_secs) {
                    self.notes.push(reason);
                    (self.clock, device_secs) = (None, None);
                }
            }
            let assumed: f64 = self.seconds.iter().sum();
            let factor = device_secs.unwrap_or(wait_secs) / assumed.max(1e-9);
            self.seconds.iter_mut().for_each(|secs| *secs *= factor);
            self.submissions = dispatch::submissions(&self.seconds);
        }
        Ok(Timing { device_secs, host_secs })
    }

    /// Runs `count` iterations without a wait between them.
    fn run_queued(&mut self, count: usize) -> Result<Vec<Timing>, EngineError> {
        let start = Instant::now();
        let mut queued = VecDeque::with_capacity(QUEUE_DEPTH + 1);
        for idx in 0..count {
            let commands = self.encode(2 * idx as u32);
            queued.push_back(self.submit(commands));
            if queued.len() > QUEUE_DEPTH {
                self.engine.wait(queued.pop_front().flatten())?;
            }
        }
        self.engine.wait(queued.pop_back().flatten())?;
        let host_secs = start.elapsed().as_secs_f64() / count as f64;
        self.iterations_done += count as u64;
        let device = match &self.clock {
            Some(clock) => clock.read(self.engine, count)?,
            None => vec![None; count],
        };
        Ok(device.into_iter().map(|device_secs| Timing { device_secs, host_secs }).collect())
    }

    fn upload(&self, buffer: BufferId, values: &[f32]) -> Result<(), EngineError> {
        let Buffer { contents, element, name, .. } = &self.buffers[buffer.0 as usize];
        assert_eq!(values.len(), contents.elements(), "values for {name:?}");
        let blocks = Blocks::new(*contents, *element);
        for (first, count) in pieces(&blocks) {
            let (offset, length) = ((first * blocks.bytes()) as u64, (count * blocks.bytes()) as u64);
            scoped(&self.engine.gpu, &format!("writing {name}"), length, || {
                blocks.pack(values, first, count, |bytes| {
                    self.engine.queue.write_buffer(self.slot(buffer), offset, bytes);
                });
                self.engine.queue.submit([]);
            })?;
            // Bounds the staging memory.
            self.engine.wait(None)?;
        }
        Ok(())
    }

    fn iterate(&mut self, iterations: usize) -> Result<Vec<Timing>, EngineError> {
        self.engine.faults.check()?;
        let mut timings = Vec::with_capacity(iterations);
        while timings.len() < iterations {
            if self.iterations_done < CALIBRATION_ITERATIONS {
                timings.push(self.run_alone()?);
            } else {
                timings.extend(self.run_queued((iterations - timings.len()).min(Clock::ITERATIONS))?);
            }
        }
        Ok(timings)
    }

    fn download(&self, buffer: BufferId) -> Result<Vec<f32>, EngineError> {
        let Buffer { contents, element, name, .. } = &self.buffers[buffer.0 as usize];
        let blocks = Blocks::new(*contents, *element);
        let mut values = vec![0.0; contents.elements()];
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        for (first, count) in pieces(&blocks) {
            let bytes = (count * blocks.bytes()) as u64;
            let staging = allocate(self.engine, bytes, usage, bytes)?;
            scoped(&self.engine.gpu, &format!("reading {name}"), bytes, || {
                let mut encoder = self.engine.gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                let offset = (first * blocks.bytes()) as u64;
                encoder.copy_buffer_to_buffer(self.slot(buffer), offset, &staging, 0, bytes);
                self.engine.queue.submit([encoder.finish()]);
                staging.map_async(wgpu::MapMode::Read, .., |_| {});
            })?;
            self.engine.wait(None)?;
            let view = staging
                .get_mapped_range(..)
                .map_err(|error| EngineError::Failed { what: format!("reading {name}"), reason: error.to_string() })?;
            blocks.unpack(&view, first, &mut values);
            drop(view);
            staging.destroy();
        }
        Ok(values)
    }

    fn explain(&self, error: EngineError) -> EngineError {
        explain(error, &self.engine.faults, self.memory().peak_bytes)
    }
}

/// The iteration whose times are looked at.
const CALIBRATION_ITERATIONS: u64 = 2;

impl Session for LoadedPlan<'_> {
    fn write(&mut self, buffer: BufferId, values: &[f32]) -> Result<(), EngineError> {
        self.upload(buffer, values).map_err(|error| self.explain(error))
    }

    fn run(&mut self, iterations: usize) -> Result<Vec<Timing>, EngineError> {
        self.iterate(iterations).map_err(|error| self.explain(error))
    }

    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>, EngineError> {
        self.download(buffer).map_err(|error| self.explain(error))
    }

    fn memory(&self) -> Memory {
        let sum = |buffers: &[wgpu::Buffer]| buffers.iter().map(wgpu::Buffer::size).sum::<u64>();
        let workspace_bytes = sum(&self.workspaces) + self.parameters.size();
        Memory { peak_bytes: sum(&self.slots) + workspace_bytes, workspace_bytes }
    }

    fn kernels(&self) -> Vec<String> {
        self.kernels.clone()
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

impl Drop for LoadedPlan<'_> {
    fn drop(&mut self) {
        for buffer in self.slots.iter().chain(&self.workspaces).chain([&self.parameters]) {
            buffer.destroy();
        }
        self.dispatches.clear();
        // Whoever uses the device next learns of an error then; here memory is to be given back.
        let _ = self.engine.wait(None);
    }
}

/// First block and number of blocks of each piece of a transfer.
fn pieces(blocks: &Blocks) -> impl Iterator<Item = (usize, usize)> + use<> {
    let (total, size) = (blocks.count, (TRANSFER_BYTES / blocks.bytes().max(1)).max(1));
    (0..total).step_by(size).map(move |first| (first, size.min(total - first)))
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

fn allocate(
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
