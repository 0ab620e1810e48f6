//! The fake device and the plan on it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Call, FaultKind, Outputs, Script, StepTime};
use crate::engine::{self, Device, Engine, EngineError, Listing, Memory, Session, Timing, step_medians};
use crate::ops::BufferId;
use crate::plan::Plan;
use crate::random;

/// Bytes that leaking scripts have taken from this process so far.
static LEAKED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Seconds that a submission takes whose end nobody waits for.
const SUBMIT_SECS: f64 = 20e-6;

/// How much slower iterations are when memory has spilled.
const SPILL_FACTOR: f64 = 20.0;

/// An open fake device.
#[derive(Debug)]
pub struct Fake {
    script: Script,
    listing: Listing,
    clock_secs: Cell<f64>,
    /// Device work that was submitted and not waited for.
    pending_secs: Cell<f64>,
    calls: RefCell<BTreeMap<&'static str, usize>>,
}

#[derive(Debug)]
struct FakeSession<'a> {
    fake: &'a Fake,
    plan: Plan,
    spilled: bool,
    /// Whether an earlier plan has verified this one.
    measured: bool,
    iterations: usize,
    begun_secs: Option<f64>,
}

impl Fake {
    /// Opens device `id` of the script.
    ///
    /// # Errors
    /// [`EngineError::NoSuchDevice`], [`EngineError::NotSupported`] when the script calls it unavailable, and the
    /// scripted fault.
    pub fn open(script: &Script, id: &str) -> Result<Self, EngineError> {
        let known = script.known();
        let listing =
            known.iter().find(|listing| listing.device.id == id).cloned().ok_or_else(|| EngineError::NoSuchDevice {
                id: id.to_owned(),
                available: known.iter().map(|listing| listing.device.id.as_str()).collect::<Vec<_>>().join(", "),
            })?;
        if let Some(reason) = &listing.unavailable {
            return Err(EngineError::NotSupported { reason: reason.clone() });
        }
        let fake = Self {
            script: script.clone(),
            listing,
            clock_secs: Cell::new(0.0),
            pending_secs: Cell::new(0.0),
            calls: RefCell::default(),
        };
        fake.called(Call::Open)?;
        Ok(fake)
    }

    /// Free memory of the scripted device; absent when the script tells no memory.
    pub fn free_bytes(script: &Script, device: &Device) -> Option<u64> {
        let leaked = if script.leaked_bytes > 0 { LEAKED_BYTES.load(Ordering::Relaxed) } else { 0 };
        device.memory_bytes.map(|bytes| bytes.saturating_sub(leaked))
    }

    fn advance(&self, secs: f64) {
        self.clock_secs.set(self.clock_secs.get() + secs);
        if self.script.pace > 0.0 {
            std::thread::sleep(super::seconds(secs * self.script.pace));
        }
    }

    /// Counts a call and plays the fault that is scripted for it.
    fn called(&self, call: Call) -> Result<(), EngineError> {
        let name = match call {
            Call::Open => "open",
            Call::Load => "load",
            Call::Run => "run",
            Call::Read => "read",
        };
        let mut calls = self.calls.borrow_mut();
        let count = calls.entry(name).or_insert(0);
        let nth = *count;
        *count += 1;
        drop(calls);
        match self.script.fault {
            Some(fault) if fault.call == call && fault.nth == nth => play(fault.kind),
            _ => Ok(()),
        }
    }

    fn check_limits(&self, plan: &Plan) -> Result<(), EngineError> {
        if !self.listing.precisions.contains(&plan.precision) {
            return Err(EngineError::NotSupported {
                reason: format!("this device does not compute {}", plan.precision),
            });
        }
        let binding = "max_storage_buffer_binding_size";
        if let Some(&allowed) = self.listing.device.limits.get(binding)
            && let Some(buffer) = plan.buffers.iter().find(|buffer| buffer.bytes() > allowed)
        {
            return Err(EngineError::ExceedsDeviceLimit {
                what: buffer.name.clone(),
                needed: buffer.bytes(),
                limit: binding.to_owned(),
                allowed,
            });
        }
        let dedicated = if self.script.spills { None } else { self.listing.device.memory_bytes };
        let limit = self.script.allocation_limit_bytes.or(dedicated).unwrap_or(u64::MAX);
        if plan.bytes() > limit {
            return Err(EngineError::OutOfMemory { requested_bytes: plan.bytes(), what: "the plan".to_owned() });
        }
        Ok(())
    }
}

impl Engine for Fake {
    fn device(&self) -> &Device {
        &self.listing.device
    }

    fn libraries(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("fake".to_owned(), "1".to_owned())])
    }

    fn now_secs(&self) -> f64 {
        self.clock_secs.get()
    }

    fn load(&self, plan: &Plan) -> Result<Box<dyn Session + '_>, EngineError> {
        self.called(Call::Load)?;
        self.check_limits(plan)?;
        LEAKED_BYTES.fetch_add(self.script.leaked_bytes, Ordering::Relaxed);
        self.advance(self.script.load_ms / 1e3);
        let spilled = self.listing.device.memory_bytes.is_some_and(|bytes| plan.bytes() > bytes);
        let measured = self.calls.borrow().get("load").is_some_and(|&count| count > 1);
        Ok(Box::new(FakeSession { fake: self, plan: plan.clone(), spilled, measured, iterations: 0, begun_secs: None }))
    }
}

impl FakeSession<'_> {
    /// Whether a buffer is the loss or the weight gradient that the script spoils at the measured minibatch.
    fn is_spoiled(&self, buffer: BufferId) -> bool {
        let mut weights = self.plan.gradients.iter().filter(|gradient| gradient.name.ends_with(".weight"));
        let spoiled = match self.fake.script.outputs {
            Outputs::NoLoss => self.plan.loss,
            Outputs::NoFirstGradient => weights.next().map(|gradient| gradient.buffer),
            Outputs::NoLastGradient => weights.next_back().map(|gradient| gradient.buffer),
            Outputs::Reference | Outputs::Wrong | Outputs::Nan => None,
        };
        self.measured && spoiled == Some(buffer)
    }

    fn iteration_secs(&mut self) -> f64 {
        let now = self.fake.clock_secs.get() + self.fake.pending_secs.get();
        let begun = *self.begun_secs.get_or_insert(now);
        let script = &self.fake.script;
        let ms = match &script.step {
            StepTime::Rate { flop_per_sec } => self.plan.flops as f64 / flop_per_sec * 1e3,
            StepTime::Constant { ms } => *ms,
            StepTime::List { ms } => ms.get(self.iterations).or(ms.last()).copied().unwrap_or(0.0),
            StepTime::Ramp { from_ms, to_ms, over_secs } => {
                from_ms + (to_ms - from_ms) * ((now - begun) / over_secs).clamp(0.0, 1.0)
            }
        };
        let noise = random::uniform(random::stream(0, "fake noise"), self.iterations as u64);
        let first = if self.iterations == 0 { script.first_iteration_ms } else { 0.0 };
        let factor = if self.spilled { SPILL_FACTOR } else { 1.0 };
        self.iterations += 1;
        (ms * factor * (1.0 + script.noise * f64::from(noise)) + first) / 1e3
    }
}

impl Session for FakeSession<'_> {
    fn write(&mut self, _buffer: BufferId, _values: &[f32]) -> Result<(), EngineError> {
        Ok(())
    }

    fn run(&mut self, iterations: usize) -> Result<Vec<Timing>, EngineError> {
        self.fake.called(Call::Run)?;
        let mut timings = Vec::with_capacity(iterations);
        for _ in 0..iterations {
            let secs = self.iteration_secs();
            let device_secs = self.fake.script.device_clock.map(|factor| factor * secs);
            let host_secs = if self.fake.script.returns_early {
                self.fake.pending_secs.set(self.fake.pending_secs.get() + secs - SUBMIT_SECS);
                SUBMIT_SECS
            } else {
                secs
            };
            self.fake.advance(host_secs);
            timings.push(Timing { device_secs, host_secs });
        }
        Ok(timings)
    }

    /// Every step takes the same share of an iteration.
    fn profile(&mut self, repetitions: usize) -> Result<Vec<engine::StepTime>, EngineError> {
        let n_steps = self.plan.steps.len();
        let mut iterations = Vec::new();
        for _ in 0..repetitions.max(1) {
            let secs = self.iteration_secs();
            self.fake.advance(secs);
            iterations.push(vec![secs / n_steps as f64; n_steps]);
        }
        let steps = step_medians(&iterations).into_iter().zip(&self.plan.steps);
        Ok(steps.map(|(secs, step)| engine::StepTime { secs, kernel: format!("fake {}", step.name()) }).collect())
    }

    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>, EngineError> {
        self.fake.called(Call::Read)?;
        self.fake.advance(self.fake.pending_secs.replace(0.0));
        let spoiled = self.is_spoiled(buffer);
        let buffer = self.plan.buffer(buffer);
        // One value a buffer, between 1 and 2: nothing looks at more than the norm, and a real network's gradients
        // would make the fake engine slow.
        let stream = random::stream(1, &buffer.name);
        let value = match self.fake.script.outputs {
            Outputs::NoFirstGradient if spoiled => 0.0,
            Outputs::NoLoss | Outputs::NoLastGradient if spoiled => f32::NAN,
            Outputs::Reference | Outputs::NoLoss | Outputs::NoFirstGradient | Outputs::NoLastGradient => {
                1.5 + 0.5 * random::uniform(stream, 0)
            }
            Outputs::Wrong => 2.5 + 0.5 * random::uniform(stream, 1),
            Outputs::Nan => f32::NAN,
        };
        Ok(vec![value; buffer.contents.elements()])
    }

    fn memory(&self) -> Memory {
        Memory { peak_bytes: self.plan.bytes(), workspace_bytes: 0 }
    }

    fn kernels(&self) -> Vec<String> {
        self.plan.step_counts().into_keys().map(|name| format!("fake {name}")).collect()
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

fn play(kind: FaultKind) -> Result<(), EngineError> {
    let reason = || "scripted".to_owned();
    match kind {
        FaultKind::OutOfMemory => Err(EngineError::OutOfMemory { requested_bytes: 1 << 30, what: reason() }),
        FaultKind::DeviceLost => Err(EngineError::DeviceLost { reason: reason() }),
        FaultKind::Failed => Err(EngineError::Failed { what: "fake call".to_owned(), reason: reason() }),
        FaultKind::Panic => panic!("scripted panic"),
        FaultKind::Crash => std::process::abort(),
        FaultKind::Exit => std::process::exit(0),
        FaultKind::Hang => loop {
            std::thread::park();
        },
    }
}
