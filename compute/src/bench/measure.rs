//! One run, from the closed device to its record.
//!
//! The device is opened, the plan is verified at a small minibatch, loaded, warmed up until its times settle, and
//! measured. Loading, compiling and tuning never count as iterations. The small plan is gone before the measured one
//! is loaded, so that verification costs no memory. Every outcome becomes a record; an error is never a number.

mod clock;
mod remarks;
#[cfg(test)]
mod tests;
mod timed;

use std::collections::BTreeMap;

use super::event::{Event, Phase};
use super::profile::{self, Ceilings, Profile};
use super::record::{Record, Status};
use super::spec::RunSpec;
use super::statistics::median;
use super::telemetry::{self, Monitor};
use super::verify::{self, Checked, VerifyError};
use crate::engine::{self, Device, Engine, EngineError, EngineKind, Session, Tier, fake};
use crate::ops::ShapeError;
use crate::plan::{Pass, Plan, PlanError};
use crate::shape::Precision;
use timed::Timed;

/// What a process remembers from run to run.
#[derive(Debug, Default)]
pub struct History {
    /// Free memory before the first run, by device.
    free_bytes: BTreeMap<String, u64>,
    /// Ceilings measured so far.
    ceilings: BTreeMap<(EngineKind, Tier, String, Precision), Ceilings>,
}

/// Why a run has no times.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error("{0}")]
    Incorrect(String),
    #[error("{0}")]
    NoMeasurement(String),
}

impl Failure {
    const fn status(&self) -> Status {
        match self {
            Self::Engine(error) | Self::Verify(VerifyError::Engine(error) | VerifyError::DoesNotFit(error)) => {
                match error {
                    EngineError::OutOfMemory { .. } => Status::OutOfMemory,
                    EngineError::ExceedsDeviceLimit { .. } => Status::ExceedsDeviceLimit,
                    EngineError::NotSupported { .. } => Status::NotSupported,
                    _ => Status::Failed,
                }
            }
            Self::Incorrect(_) => Status::Incorrect,
            Self::Verify(VerifyError::Plan(_) | VerifyError::Reference(_))
            | Self::Plan(_)
            | Self::Shape(_)
            | Self::NoMeasurement(_) => Status::Failed,
        }
    }
}

/// Measures one run. Its phases and iterations go to `emit`; the record's device is left to the store.
pub fn measure(spec: &RunSpec, history: &mut History, emit: &mut dyn FnMut(Event)) -> (Record, Option<Device>) {
    let mut record = spec.record(Status::Ok, None);
    let mut device = None;
    if let Err(failure) = attempt(spec, history, emit, &mut record, &mut device) {
        record.status = failure.status();
        record.reason = Some(failure.to_string());
        record.timing = None;
        record.throughput_per_sec = None;
        record.achieved_flop_per_sec = None;
    }
    (record, device)
}

fn attempt(
    spec: &RunSpec,
    history: &mut History,
    emit: &mut dyn FnMut(Event),
    record: &mut Record,
    device: &mut Option<Device>,
) -> Result<(), Failure> {
    emit(Event::Phase { phase: Phase::Open });
    let graph = spec.graph()?;
    let plan = Plan::new(&graph, spec.pass, spec.precision, spec.minibatch)?;
    record.memory.planned_bytes = Some(plan.bytes());
    let engine = engine::open(spec.engine, &spec.device, spec.script.as_ref(), spec.tier)?;
    let device = device.insert(engine.device().clone());
    telemetry::complete(device);
    record.libraries = engine.libraries();
    let monitor = Monitor::open(device);
    let free_bytes = match &spec.script {
        Some(script) => fake::Fake::free_bytes(script, device),
        None => monitor.as_ref().and_then(Monitor::free_bytes),
    };
    record.memory.free_before_bytes = free_bytes;
    if let Some(free) = free_bytes {
        let first = *history.free_bytes.entry(device.id.clone()).or_insert(free);
        record.notes.extend(remarks::less_free_memory(free, first));
    }

    emit(Event::Phase { phase: Phase::Verify });
    let checked = verify::check(engine.as_ref(), &graph, spec)?;
    record.tuning_ms = Some(checked.load_secs * 1e3);
    record.verification = Some(checked.verification.clone());
    if let Some(reason) = verify::failure(&checked.verification) {
        return Err(Failure::Incorrect(reason));
    }

    emit(Event::Phase { phase: Phase::Load });
    let begun = engine.now_secs();
    let mut session = engine.load(&plan)?;
    record.tuning_ms = Some((checked.load_secs + engine.now_secs() - begun) * 1e3);
    let memory = session.memory();
    (record.memory.peak_bytes, record.memory.workspace_bytes) = (Some(memory.peak_bytes), Some(memory.workspace_bytes));
    record.kernels = session.kernels();
    record.notes.extend(session.notes());
    verify::fill(session.as_mut(), &plan, spec.engine)?;

    let mut timed = Timed::new(engine.as_ref(), session.as_mut(), &plan, spec.bounds, emit);
    timed.emit(Event::Phase { phase: Phase::WarmUp });
    let logits = timed.first_iteration()?;
    check_logits(&logits, &checked, spec, record)?;
    timed.warm_up()?;
    timed.emit(Event::Phase { phase: Phase::Measure });
    let sampling = monitor.map(Monitor::start);
    let samples = timed.measure();
    record.telemetry = match &spec.script {
        Some(script) => telemetry::summarize(&scripted_readings(script)),
        None => sampling.and_then(telemetry::Sampling::finish),
    };
    let samples = samples?;
    for note in timed.notes {
        if !record.notes.contains(&note) {
            record.notes.push(note);
        }
    }
    check_training(session.as_mut(), &plan, record)?;
    conclude(record, &plan, device, &samples)?;
    if spec.profile {
        emit(Event::Phase { phase: Phase::Profile });
        match profile(engine.as_ref(), session, &plan, spec, history, record) {
            Ok(profile) => record.profile = Some(profile),
            // What was measured stays good without it.
            Err(error) => record.notes.push(format!("there is no profile: {error}")),
        }
    }
    Ok(())
}

/// Profiles a session that was measured. It is gone before the ceilings are measured, which need memory of their own.
fn profile(
    engine: &dyn Engine,
    mut session: Box<dyn Session + '_>,
    plan: &Plan,
    spec: &RunSpec,
    history: &mut History,
    record: &mut Record,
) -> Result<Profile, EngineError> {
    let Some(timing) = &record.timing else { unreachable!("a run that was concluded has times") };
    let times = session.profile(profile::repetitions(timing.median_ms / 1e3))?;
    for note in session.notes() {
        if !record.notes.contains(&note) {
            record.notes.push(note);
        }
    }
    drop(session);
    let key = (spec.engine, spec.tier, spec.device.clone(), spec.precision);
    let ceilings = match history.ceilings.get(&key) {
        Some(known) => *known,
        None => Ceilings::measure(engine, spec.precision, timing.clock)?,
    };
    history.ceilings.insert(key, ceilings);
    if times.len() != plan.steps.len() {
        let reason = format!("{} steps gave {} times", plan.steps.len(), times.len());
        return Err(EngineError::Failed { what: "profiling".to_owned(), reason });
    }
    Ok(Profile::new(plan, times, ceilings))
}

/// In inference a sample's logits don't depend on the others, so those of the measured minibatch, whose kernels may be
/// others than the verified ones, begin with the reference's.
fn check_logits(logits: &[f32], checked: &Checked, spec: &RunSpec, record: &mut Record) -> Result<(), Failure> {
    if !logits.iter().all(|x| x.is_finite()) {
        return Err(Failure::Incorrect(format!("\"logits\" of minibatch {} are not finite", spec.minibatch)));
    }
    if spec.pass == Pass::ForwardBackward {
        return Ok(());
    }
    let reference = &checked.reference.logits;
    let compared = logits.len().min(reference.len());
    let error = verify::normalized_error(&logits[..compared], &reference[..compared]);
    if let Some(verification) = &mut record.verification
        && !verification.error.is_some_and(|before| before >= error)
    {
        verification.error = error.is_finite().then_some(error);
        verification.passed = error <= verification.tolerance;
        verification.worst = Some(format!("logits of minibatch {}", spec.minibatch));
        if let Some(reason) = verify::failure(verification) {
            return Err(Failure::Incorrect(reason));
        }
    }
    Ok(())
}

/// In training the outputs of the measured minibatch have no reference. The loss, and the gradients of the first and
/// the last weights, which everything else leads to, must be numbers and not vanish. It is checked after the measurement,
/// where reads disturb nothing and a fault of any iteration still shows.
fn check_training(session: &mut dyn Session, plan: &Plan, record: &mut Record) -> Result<(), Failure> {
    let Some(loss) = plan.loss else { return Ok(()) };
    let mut weights = plan.gradients.iter().filter(|gradient| gradient.name.ends_with(".weight"));
    let ends = [weights.next(), weights.next_back()].into_iter().flatten();
    let checked = std::iter::once(("loss", loss)).chain(ends.map(|gradient| (gradient.name.as_str(), gradient.buffer)));
    for (name, buffer) in checked {
        let values = session.read(buffer)?;
        let fault = if values.is_empty() || !values.iter().all(|x| x.is_finite()) {
            "missing or not finite"
        } else if values.iter().all(|&x| x == 0.0) && name != "loss" {
            "zero"
        } else {
            continue;
        };
        if let Some(verification) = &mut record.verification {
            verification.error = None;
            verification.passed = false;
            verification.worst = Some(format!("{name} of minibatch {}", record.minibatch));
        }
        return Err(Failure::Incorrect(format!("{name:?} of minibatch {} is {fault}", record.minibatch)));
    }
    Ok(())
}

/// Turns the samples into what the record says of them.
fn conclude(record: &mut Record, plan: &Plan, device: &Device, samples: &timed::Samples) -> Result<(), Failure> {
    let (timing, clock_remark) = clock::quoted(samples).map_err(|error| Failure::NoMeasurement(error.to_string()))?;
    let median_secs = timing.median_ms / 1e3;
    let achieved = plan.flops as f64 / median_secs;
    if let Some(reason) = remarks::impossible(achieved) {
        return Err(Failure::NoMeasurement(reason));
    }
    let notes = [
        clock_remark,
        remarks::above_peak(achieved, device, plan.precision),
        remarks::spilled(&record.memory, device),
        timing.drift.and_then(remarks::drifting),
        remarks::warmed(median(&samples.first_window_ms), median(&samples.host_ms)),
    ];
    record.notes.extend(notes.into_iter().flatten());
    record.notes.extend(record.telemetry.as_ref().map(telemetry::notes).unwrap_or_default());
    record.throughput_per_sec = Some(record.minibatch as f64 / median_secs);
    record.achieved_flop_per_sec = Some(achieved);
    record.timing = Some(timing);
    Ok(())
}

fn scripted_readings(script: &fake::Script) -> Vec<telemetry::Reading> {
    const READINGS: usize = 50;
    let capped = script.power_capped.map(|share| (share * READINGS as f64).round() as usize);
    let readings = capped.map(|capped| {
        (0..READINGS).map(move |i| telemetry::Reading {
            power_watt: Some(300.0),
            throttled: if i < capped { vec![telemetry::POWER] } else { Vec::new() },
            ..telemetry::Reading::default()
        })
    });
    readings.into_iter().flatten().collect()
}
