//! A plan resident on a device: its memory, the chosen commands of its steps, and the running of them as one graph.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaEvent, CudaGraph};

use super::device::CudaEngine;
use super::driver;
use super::error::driver_error;
use super::launch::{Candidate, Lowering, TICKETS};
use super::layout::Layout;
use super::lower::{self, Lowered};
use super::memory::DeviceMemory;
use super::stream::{Addresses, Gpu};
use super::tune::Tuner;
use crate::engine::{EngineError, Memory, Session, StepTime, Timing, step_medians};
use crate::ops::BufferId;
use crate::plan::{Pass, Plan};
use crate::shape::Precision;

/// Iterations that are queued before the host waits for them.
const QUEUE_DEPTH: usize = 256;
/// What every buffer's address is a multiple of, in bytes.
const ALIGNMENT: u64 = 256;
/// Bytes of the tickets, which are 32-bit counters.
const TICKET_BYTES: u64 = 4 * TICKETS as u64;
/// Workspaces that a step may ask for: the next, while there is no memory for the one before.
const WORKSPACE_BUDGETS: [u64; 5] = [4 << 30, 1 << 30, 256 << 20, 32 << 20, 0];
/// Time after which no more candidates are timed.
const TUNING_TIME: Duration = Duration::from_secs(20);

/// A plan with everything it needs on the device.
pub(super) struct LoadedPlan<'a> {
    // Graphs hold addresses, so they go first.
    iteration: Option<CudaGraph>,
    engine: &'a CudaEngine,
    names: Vec<String>,
    layouts: Vec<Layout>,
    /// Address of each buffer.
    buffers: Vec<u64>,
    slots: DeviceMemory,
    workspace: DeviceMemory,
    tickets: DeviceMemory,
    steps: Vec<Chosen>,
    events: Vec<CudaEvent>,
    precision: Precision,
    pass: Pass,
    /// Whether parameters were written since the prepared commands ran.
    is_stale: bool,
    notes: Vec<String>,
}

/// Which of a step's candidates computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The one that takes the least time.
    Fastest,
    /// The first, untimed: a kernel of ours, with which all others are compared when they are timed.
    Quick,
    /// The one of this number, or the last: tests go through all.
    #[cfg(test)]
    Nth(usize),
}

/// A step's chosen candidate and the memory it keeps.
struct Chosen {
    candidate: Candidate,
    kept: Option<DeviceMemory>,
}

impl<'a> LoadedPlan<'a> {
    /// Lowers the plan, allocates its memory, compiles its kernels and chooses among its candidates.
    ///
    /// # Errors
    /// As [`crate::engine::Engine::load`].
    pub(super) fn new(engine: &'a CudaEngine, plan: &Plan, pick: Pick) -> Result<Self, EngineError> {
        let gpu = &engine.gpu;
        gpu.context.bind_to_thread().map_err(|error| driver_error("binding the context", error))?;
        let lowering = Lowering { plan, facts: gpu.facts, is_quick: pick == Pick::Quick };
        let layouts: Vec<Layout> = (0..plan.buffers.len() as u32).map(|idx| lowering.layout(BufferId(idx))).collect();
        let (offsets, slot_bytes) = arrange(plan, &layouts);
        engine.check_free(slot_bytes)?;
        // Memory first: whether it fits is known in a moment, compiling takes longer.
        let slots = DeviceMemory::zeroed(&gpu.stream, slot_bytes, "the plan's buffers")?;
        let buffers: Vec<u64> = offsets.iter().map(|offset| slots.address() + offset).collect();
        let (candidates, remarks) = choose(engine, &lowering, &buffers, pick)?;
        // What the choice left in the buffers must not look like results.
        slots.clear("the plan's buffers")?;
        let workspace_bytes = candidates.iter().map(|candidate| candidate.workspace_bytes).max().unwrap_or(0);
        let workspace = DeviceMemory::zeroed(&gpu.stream, workspace_bytes, "workspace")?;
        let tickets = DeviceMemory::zeroed(&gpu.stream, TICKET_BYTES, "tickets")?;
        let keep = |candidate: Candidate| {
            let kept = (candidate.kept_bytes > 0)
                .then(|| DeviceMemory::zeroed(&gpu.stream, candidate.kept_bytes, &candidate.name))
                .transpose()?;
            Ok(Chosen { candidate, kept })
        };
        let steps = candidates.into_iter().map(keep).collect::<Result<Vec<_>, EngineError>>()?;
        let notes = engine.notes.iter().cloned().chain(remarks).collect();
        Ok(Self {
            iteration: None,
            engine,
            names: plan.buffers.iter().map(|buffer| buffer.name.clone()).collect(),
            layouts,
            buffers,
            slots,
            workspace,
            tickets,
            steps,
            events: Vec::new(),
            precision: plan.precision,
            pass: plan.pass,
            is_stale: true,
            notes,
        })
    }

    fn gpu(&self) -> &Gpu {
        &self.engine.gpu
    }

    fn enqueue<'b>(
        &self,
        chosen: &'b Chosen,
        mut commands: impl Iterator<Item = &'b super::launch::Command>,
    ) -> Result<(), EngineError> {
        let addresses = Addresses {
            buffers: &self.buffers,
            workspace: self.workspace.address(),
            kept: chosen.kept.as_ref().map_or(0, DeviceMemory::address),
            tickets: self.tickets.address(),
        };
        commands.try_for_each(|command| self.gpu().enqueue(command, addresses, self.precision))
    }

    fn enqueue_step(&self, chosen: &Chosen) -> Result<(), EngineError> {
        self.enqueue(chosen, chosen.candidate.iteration(self.pass == Pass::ForwardBackward))
    }

    /// Runs what depends on parameters alone, and captures an iteration.
    fn make_ready(&mut self) -> Result<(), EngineError> {
        if self.is_stale && self.pass == Pass::Forward {
            self.steps.iter().try_for_each(|chosen| self.enqueue(chosen, chosen.candidate.prepare.iter()))?;
            self.gpu().wait()?;
        }
        self.is_stale = false;
        if self.iteration.is_some() {
            return Ok(());
        }
        let one = || self.steps.iter().try_for_each(|chosen| self.enqueue_step(chosen));
        // Once outside of capture: libraries may load something at their first use.
        one()?;
        self.gpu().wait()?;
        self.iteration = self.gpu().capture(one)?;
        if let Some(graph) = &self.iteration {
            graph.upload().map_err(|error| driver_error("uploading the graph", error))?;
        }
        self.gpu().wait()
    }

    /// Runs up to [`QUEUE_DEPTH`] iterations without a wait between them.
    fn run_queued(&mut self, count: usize) -> Result<Vec<Timing>, EngineError> {
        while self.events.len() <= count {
            self.events.push(self.gpu().event()?);
        }
        let Some(graph) = &self.iteration else {
            return Err(EngineError::Failed { what: "running".into(), reason: "the plan has no steps".into() });
        };
        let start = Instant::now();
        let stream = &self.gpu().stream;
        let queue = || {
            self.events[0].record(stream)?;
            for event in &self.events[1..=count] {
                graph.launch()?;
                event.record(stream)?;
            }
            stream.synchronize()
        };
        queue().map_err(|error| driver_error("running an iteration", error))?;
        let host_secs = start.elapsed().as_secs_f64() / count as f64;
        let pairs = self.events[..=count].windows(2);
        pairs
            .map(|pair| {
                let millis = driver::elapsed_ms(&pair[0], &pair[1])?;
                Ok(Timing { device_secs: Some(millis / 1e3), host_secs })
            })
            .collect()
    }
}

/// The candidate of every step, and what is to be said of the choice. What it allocates is free again afterwards.
fn choose(
    engine: &CudaEngine,
    lowering: &Lowering,
    buffers: &[u64],
    pick: Pick,
) -> Result<(Vec<Candidate>, Vec<String>), EngineError> {
    let gpu = &engine.gpu;
    let mut choices = engine.choices.lock().unwrap_or_else(PoisonError::into_inner);
    let mut lowered = lower::plan(lowering, engine, &mut choices.remarks)?;
    let files = (pick == Pick::Fastest).then_some("check");
    gpu.load(lowered.iter().flat_map(|step| &step.candidates), files, lowering.precision())?;
    let tickets = DeviceMemory::zeroed(&gpu.stream, TICKET_BYTES, "tickets")?;
    let workspace = workspace(gpu, &mut lowered)?;
    let addresses = Addresses { buffers, workspace: workspace.address(), kept: 0, tickets: tickets.address() };
    let tuner = Tuner { gpu, lowering, addresses, deadline: Instant::now() + TUNING_TIME };
    let mut candidates = Vec::with_capacity(lowered.len());
    for mut step in lowered {
        candidates.push(match pick {
            Pick::Fastest => tuner.fastest(&mut choices, step)?,
            Pick::Quick => step.candidates.swap_remove(0),
            #[cfg(test)]
            Pick::Nth(n) => step.candidates.swap_remove(n.min(step.candidates.len() - 1)),
        });
    }
    Ok((candidates, std::mem::take(&mut choices.remarks)))
}

/// Workspace for every candidate. Those that ask for more than the first budget that there is memory for are dropped, where
/// others are left.
fn workspace(gpu: &Gpu, lowered: &mut [Lowered]) -> Result<DeviceMemory, EngineError> {
    let mut outcome = DeviceMemory::zeroed(&gpu.stream, 0, "workspace");
    for budget in WORKSPACE_BUDGETS {
        let mut most = 0;
        for Lowered { candidates, .. } in lowered.iter_mut() {
            let least = candidates.iter().map(|candidate| candidate.workspace_bytes).min().unwrap_or(0);
            candidates.retain(|candidate| candidate.workspace_bytes <= budget.max(least));
            most = candidates.iter().map(|candidate| candidate.workspace_bytes).fold(most, u64::max);
        }
        outcome = DeviceMemory::zeroed(&gpu.stream, most, "workspace");
        if !matches!(outcome, Err(EngineError::OutOfMemory { .. })) {
            break;
        }
    }
    outcome
}

/// Offset of each buffer and the bytes of all: slots one after the other.
fn arrange(plan: &Plan, layouts: &[Layout]) -> (Vec<u64>, u64) {
    let mut slots = vec![0u64; plan.slots.len()];
    for (buffer, layout) in plan.buffers.iter().zip(layouts) {
        slots[buffer.slot] = slots[buffer.slot].max(layout.bytes().next_multiple_of(ALIGNMENT));
    }
    let mut end = 0;
    let starts: Vec<u64> = slots
        .iter()
        .map(|bytes| {
            let start = end;
            end += bytes;
            start
        })
        .collect();
    (plan.buffers.iter().map(|buffer| starts[buffer.slot]).collect(), end)
}

impl Session for LoadedPlan<'_> {
    fn write(&mut self, buffer: BufferId, values: &[f32]) -> Result<(), EngineError> {
        let idx = buffer.0 as usize;
        let bytes = self.layouts[idx].pack(values);
        self.gpu().wait()?;
        self.is_stale = true;
        self.slots.write(self.buffers[idx] - self.slots.address(), &bytes, &self.names[idx])
    }

    fn run(&mut self, iterations: usize) -> Result<Vec<Timing>, EngineError> {
        self.make_ready()?;
        let mut timings = Vec::with_capacity(iterations);
        while timings.len() < iterations {
            let count = (iterations - timings.len()).min(QUEUE_DEPTH);
            timings.extend(self.run_queued(count)?);
        }
        Ok(timings)
    }

    fn profile(&mut self, repetitions: usize) -> Result<Vec<StepTime>, EngineError> {
        self.make_ready()?;
        let gpu = self.gpu();
        let events = (0..=self.steps.len()).map(|_| gpu.event()).collect::<Result<Vec<_>, _>>()?;
        let graph = gpu.capture(|| {
            for (chosen, event) in self.steps.iter().zip(&events) {
                gpu.record(event)?;
                self.enqueue_step(chosen)?;
            }
            events.last().map_or(Ok(()), |event| gpu.record(event))
        })?;
        let mut iterations = Vec::with_capacity(repetitions);
        // The first launch of a graph also loads it.
        for repetition in 0..=repetitions {
            if let Some(graph) = &graph {
                graph.launch().map_err(|error| driver_error("running a profile", error))?;
            }
            gpu.wait()?;
            let times = events.windows(2).map(|pair| Ok(driver::elapsed_ms(&pair[0], &pair[1])? / 1e3));
            let times = times.collect::<Result<Vec<f64>, EngineError>>()?;
            if repetition > 0 {
                iterations.push(times);
            }
        }
        let medians = step_medians(&iterations);
        let kernels = self.steps.iter().map(|step| step.candidate.name.clone());
        Ok(medians.into_iter().zip(kernels).map(|(secs, kernel)| StepTime { secs, kernel }).collect())
    }

    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>, EngineError> {
        let idx = buffer.0 as usize;
        let layout = self.layouts[idx];
        let mut bytes = vec![0; layout.bytes() as usize];
        self.gpu().wait()?;
        self.slots.read(self.buffers[idx] - self.slots.address(), &mut bytes, &self.names[idx])?;
        Ok(layout.unpack(&bytes))
    }

    fn memory(&self) -> Memory {
        let kept: u64 = self.steps.iter().filter_map(|step| step.kept.as_ref()).map(DeviceMemory::bytes).sum();
        let workspace_bytes = self.workspace.bytes() + self.tickets.bytes() + kept;
        Memory { peak_bytes: self.slots.bytes() + workspace_bytes, workspace_bytes }
    }

    fn kernels(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for step in &self.steps {
            if !names.contains(&step.candidate.name) {
                names.push(step.candidate.name.clone());
            }
        }
        names
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

impl Drop for LoadedPlan<'_> {
    fn drop(&mut self) {
        // Whoever uses the device next learns of an error then; here memory is to be given back.
        let _ = self.gpu().wait();
        self.iteration = None;
    }
}
