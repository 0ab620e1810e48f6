//! Times of the steps of a plan: a timestamp at the end of each, or, where the device has no clock, each step submitted
//! and waited for by itself.

use std::ops::Range;
use std::time::Instant;

use super::clock::Clock;
use super::dispatch;
use super::session::LoadedPlan;
use crate::engine::{EngineError, StepTime, step_medians};

/// One step of the plan as it was lowered.
pub(super) struct LoweredStep {
    /// Its dispatches.
    pub(super) dispatches: Range<usize>,
    /// Their kernels, each once.
    pub(super) kernels: Vec<String>,
}

impl LoadedPlan<'_> {
    /// Computes iterations with a time for each step.
    ///
    /// # Errors
    /// As [`crate::engine::Session::profile`].
    pub(super) fn profile_steps(&mut self, repetitions: usize) -> Result<Vec<StepTime>, EngineError> {
        self.engine.faults.check()?;
        // The first iterations settle whether the device's clock is to be believed.
        while !self.is_calibrated {
            self.run_alone()?;
        }
        let iterations = match self.iterations_on_device(repetitions.max(1))? {
            Some(iterations) => iterations,
            None => {
                let note = "profiled without the device's clock: each step was submitted and waited for by itself, which \
                            makes short steps look longer";
                self.notes.push(note.to_owned());
                (0..repetitions.max(1)).map(|_| self.iteration_on_host()).collect::<Result<_, _>>()?
            }
        };
        let steps = step_medians(&iterations).into_iter().zip(&self.steps);
        Ok(steps.map(|(secs, step)| StepTime { secs, kernel: step.kernels.join(" + ") }).collect())
    }

    /// Seconds of each step in several iterations, by timestamps; `None` where there is no clock, or it ran backwards.
    fn iterations_on_device(&mut self, repetitions: usize) -> Result<Option<Vec<Vec<f64>>>, EngineError> {
        let n_borders = self.steps.len() + 1;
        let has_room = n_borders <= wgpu::QUERY_SET_MAX_QUERIES as usize;
        if self.clock.is_none() || !has_room {
            return Ok(None);
        }
        let clock = Clock::new(self.engine, n_borders as u32)?;
        let mut iterations = Vec::with_capacity(repetitions);
        for _ in 0..repetitions {
            let (commands, n_borders) = self.encode_steps(&clock);
            let last = self.submit(commands);
            self.engine.wait(last)?;
            self.iterations_done += 1;
            let spans: Option<Vec<f64>> = clock.read_spans(self.engine, n_borders)?.into_iter().collect();
            let Some(spans) = spans else { return Ok(None) };
            let mut spans = spans.into_iter();
            let secs = |step: &LoweredStep| if step.dispatches.is_empty() { None } else { spans.next() };
            let secs: Vec<f64> = self.steps.iter().map(secs).map(Option::unwrap_or_default).collect();
            iterations.push(secs);
        }
        Ok(Some(iterations))
    }

    /// Command buffers of one iteration, cut as those of any other, with a timestamp before the first step and one at
    /// the end of each; and the number of timestamps.
    fn encode_steps(&self, clock: &Clock) -> (Vec<wgpu::CommandBuffer>, u32) {
        let mut border = 0;
        let mut commands = Vec::with_capacity(self.submissions.len());
        for submission in &self.submissions {
            let mut encoder = self.engine.gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for step in &self.steps {
                let Range { start, end } = step.dispatches;
                let part = start.max(submission.start)..end.min(submission.end);
                if part.is_empty() {
                    continue;
                }
                let ends = part.end == end;
                let timestamp_writes = clock.writes(border, start == 0 && part.start == 0, ends);
                border += u32::from(ends);
                self.encode_pass(&mut encoder, timestamp_writes, part);
            }
            commands.push(encoder.finish());
        }
        (commands, border + 1)
    }

    /// Seconds of each step in one iteration, on the host's clock.
    fn iteration_on_host(&mut self) -> Result<Vec<f64>, EngineError> {
        let secs = self.steps.iter().map(|step| {
            let first = step.dispatches.start;
            let commands = dispatch::submissions(&self.seconds[step.dispatches.clone()]).into_iter().map(|part| {
                let mut encoder = self.engine.gpu.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                self.encode_pass(&mut encoder, None, first + part.start..first + part.end);
                encoder.finish()
            });
            let commands = commands.collect();
            let start = Instant::now();
            let last = self.submit(commands);
            self.engine.wait(last)?;
            Ok(start.elapsed().as_secs_f64())
        });
        let secs = secs.collect();
        self.iterations_done += 1;
        secs
    }
}
