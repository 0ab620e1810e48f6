//! Timestamps of iterations and of steps, taken by the device.

use super::device::WgslEngine;
use super::error::scoped;
use super::timestamp;
use crate::engine::EngineError;

/// Timestamps of work that is queued together.
pub(super) struct Clock {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    staging: wgpu::Buffer,
    /// Nanoseconds of one tick; tests make it wrong.
    pub(super) period_nanos: f32,
}

impl Clock {
    /// Iterations that can be queued together.
    pub(super) const ITERATIONS: usize = 256;

    /// Timestamps of that many iterations: two each.
    pub(super) const ITERATION_TIMESTAMPS: u32 = 2 * Self::ITERATIONS as u32;

    /// Allocates `count` timestamps.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`], [`EngineError::Failed`].
    pub(super) fn new(engine: &WgslEngine, count: u32) -> Result<Self, EngineError> {
        let size = u64::from(count) * 8;
        let buffer = |usage| {
            engine.gpu.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        scoped(&engine.gpu, "timestamp queries", size, || Self {
            queries: engine.gpu.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count,
            }),
            resolved: buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
            staging: buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
            period_nanos: engine.queue.get_timestamp_period(),
        })
    }

    /// What a pass writes that opens or closes the iteration or step whose first timestamp is number `query`.
    pub(super) fn writes(&self, query: u32, opens: bool, closes: bool) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        (opens || closes).then(|| wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: opens.then_some(query),
            end_of_pass_write_index: closes.then_some(query + 1),
        })
    }

    /// Seconds of the first `count` iterations, which are done.
    ///
    /// # Errors
    /// [`EngineError::DeviceLost`], [`EngineError::Failed`].
    pub(super) fn read(&self, engine: &WgslEngine, count: usize) -> Result<Vec<Option<f64>>, EngineError> {
        let ticks = self.ticks(engine, 2 * count as u32)?;
        Ok(ticks.chunks(2).map(|pair| timestamp::seconds(pair[0], pair[1], self.period_nanos)).collect())
    }

    /// Seconds between each of the first `count` timestamps and the next, all of which were taken.
    ///
    /// # Errors
    /// [`EngineError::DeviceLost`], [`EngineError::Failed`].
    pub(super) fn read_spans(&self, engine: &WgslEngine, count: u32) -> Result<Vec<Option<f64>>, EngineError> {
        let ticks = self.ticks(engine, count)?;
        Ok(ticks.windows(2).map(|pair| timestamp::seconds(pair[0], pair[1], self.period_nanos)).collect())
    }

    fn ticks(&self, engine: &WgslEngine, count: u32) -> Result<Vec<u64>, EngineError> {
        let bytes = 8 * u64::from(count);
        scoped(&engine.gpu, "reading timestamps", bytes, || {
            let mut encoder = engine.gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.resolve_query_set(&self.queries, 0..count, &self.resolved, 0);
            encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.staging, 0, bytes);
            engine.queue.submit([encoder.finish()]);
            self.staging.map_async(wgpu::MapMode::Read, 0..bytes, |_| {});
        })?;
        engine.wait(None)?;
        let view = self
            .staging
            .get_mapped_range(0..bytes)
            .map_err(|error| EngineError::Failed { what: "reading timestamps".into(), reason: error.to_string() })?;
        let ticks = bytemuck::pod_collect_to_vec(&view);
        drop(view);
        self.staging.unmap();
        Ok(ticks)
    }
}
