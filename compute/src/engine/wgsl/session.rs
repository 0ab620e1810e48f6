//! A plan resident on a device: its buffers, its dispatches, and the running of them. [`super::load`] makes one.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Instant;

use super::clock::Clock;
use super::device::WgslEngine;
use super::error::{explain, scoped};
use super::load::allocate;
use super::pipeline::Pipeline;
use super::profile::LoweredStep;
use super::transfer::Blocks;
use super::{dispatch, timestamp};
use crate::engine::{DeviceKind, Engine, EngineError, Memory, Session, StepTime, Timing};
use crate::ops::BufferId;
use crate::plan::Buffer;

/// Iterations that may be queued before the host waits for the first of them.
const QUEUE_DEPTH: usize = 3;
/// The iterations whose times are looked at, until the device's clock agrees with the host's.
const CALIBRATION_ITERATIONS: RangeInclusive<u64> = 2..=4;
/// Bytes of one piece of an upload or a download.
const TRANSFER_BYTES: usize = 32 << 20;

/// A plan with everything it needs on the device.
pub(super) struct LoadedPlan<'a> {
    pub(super) engine: &'a WgslEngine,
    pub(super) buffers: Vec<Buffer>,
    pub(super) slots: Vec<wgpu::Buffer>,
    pub(super) workspaces: Vec<wgpu::Buffer>,
    pub(super) parameters: wgpu::Buffer,
    pub(super) dispatches: Vec<Dispatch>,
    /// The dispatches of each step of the plan.
    pub(super) steps: Vec<LoweredStep>,
    /// Seconds that each dispatch is thought to take.
    pub(super) seconds: Vec<f64>,
    /// Dispatches of each submission of one iteration.
    pub(super) submissions: Vec<Range<usize>>,
    pub(super) clock: Option<Clock>,
    pub(super) kernels: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) iterations_done: u64,
    /// Whether it is settled which clock is used and how the work is cut into submissions.
    pub(super) is_calibrated: bool,
}

/// One launch bound to its pipeline and buffers.
pub(super) struct Dispatch {
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) bindings: wgpu::BindGroup,
    pub(super) x: u32,
    pub(super) y: u32,
    /// Entry point of its kernel.
    pub(super) entry: &'static str,
}

impl LoadedPlan<'_> {
    pub(super) fn slot(&self, id: BufferId) -> &wgpu::Buffer {
        &self.slots[self.buffers[id.0 as usize].slot]
    }

    /// Command buffers of one iteration; `query` is the number of its first timestamp.
    fn encode(&self, query: u32) -> Vec<wgpu::CommandBuffer> {
        let last = self.submissions.len() - 1;
        let encode_one = |(idx, range): (usize, &Range<usize>)| {
            let mut encoder = self.engine.gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let timestamp_writes = self.clock.as_ref().and_then(|clock| clock.writes(query, idx == 0, idx == last));
            self.encode_pass(&mut encoder, timestamp_writes, range.clone());
            encoder.finish()
        };
        self.submissions.iter().enumerate().map(encode_one).collect()
    }

    /// Puts some dispatches into a pass.
    pub(super) fn encode_pass(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        timestamp_writes: Option<wgpu::ComputePassTimestampWrites<'_>>,
        dispatches: Range<usize>,
    ) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
        for dispatch in &self.dispatches[dispatches] {
            pass.set_pipeline(&dispatch.pipeline.pipeline);
            pass.set_bind_group(0, &dispatch.bindings, &[]);
            pass.dispatch_workgroups(dispatch.x, dispatch.y, 1);
        }
    }

    /// Submits one iteration. One command buffer a submission: a watchdog counts each alone.
    pub(super) fn submit(&self, commands: Vec<wgpu::CommandBuffer>) -> Option<wgpu::SubmissionIndex> {
        commands.into_iter().map(|command| self.engine.queue.submit([command])).last()
    }

    /// Runs one iteration by itself; from the second on its times decide whether the device's clock is used and how the
    /// work is cut into submissions. The first holds what drivers put off until a kernel is used. The clock is given up
    /// only when it disagrees with the host's several times: a host that was held up once says nothing about it.
    pub(super) fn run_alone(&mut self) -> Result<Timing, EngineError> {
        let start = Instant::now();
        let commands = self.encode(0);
        let submitted = Instant::now();
        let last = self.submit(commands);
        self.engine.wait(last)?;
        let wait_secs = submitted.elapsed().as_secs_f64();
        let host_secs = start.elapsed().as_secs_f64();
        self.iterations_done += 1;
        if !CALIBRATION_ITERATIONS.contains(&self.iterations_done) {
            return Ok(Timing { device_secs: None, host_secs });
        }
        let mut device_secs = None;
        self.is_calibrated = true;
        if let Some(clock) = &self.clock {
            device_secs = clock.read(self.engine, 1)?[0];
            if let Some(reason) = timestamp::mistrust(device_secs.unwrap_or(0.0), wait_secs) {
                device_secs = None;
                self.is_calibrated = self.iterations_done == *CALIBRATION_ITERATIONS.end();
                if self.is_calibrated {
                    self.notes.push(reason);
                    self.clock = None;
                }
            }
        }
        if self.is_calibrated {
            self.scale(device_secs.unwrap_or(wait_secs));
        }
        Ok(Timing { device_secs, host_secs })
    }

    /// Learns that one iteration takes `total_secs`.
    fn scale(&mut self, total_secs: f64) {
        let assumed: f64 = self.seconds.iter().sum();
        let factor = total_secs / assumed.max(1e-9);
        self.seconds.iter_mut().for_each(|secs| *secs *= factor);
        self.submissions = dispatch::submissions(&self.seconds);
        // No watchdog stops the processor.
        if self.engine.device().kind != DeviceKind::Software {
            let entries = self.dispatches.iter().map(|dispatch| dispatch.entry);
            self.notes.extend(dispatch::too_long(entries.zip(self.seconds.iter().copied())));
        }
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
            if self.is_calibrated {
                // Without the device's clock only an iteration that is waited for has a time of its own; the mean of a
                // queue, repeated, would look like times without scatter.
                let most = if self.clock.is_some() { Clock::ITERATIONS } else { 1 };
                timings.extend(self.run_queued((iterations - timings.len()).min(most))?);
            } else {
                timings.push(self.run_alone()?);
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

impl Session for LoadedPlan<'_> {
    fn write(&mut self, buffer: BufferId, values: &[f32]) -> Result<(), EngineError> {
        self.upload(buffer, values).map_err(|error| self.explain(error))
    }

    fn run(&mut self, iterations: usize) -> Result<Vec<Timing>, EngineError> {
        self.iterate(iterations).map_err(|error| self.explain(error))
    }

    fn profile(&mut self, repetitions: usize) -> Result<Vec<StepTime>, EngineError> {
        self.profile_steps(repetitions).map_err(|error| self.explain(error))
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
