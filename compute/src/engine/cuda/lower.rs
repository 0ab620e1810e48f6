//! The candidates of every step of a plan.

use super::device::CudaEngine;
use super::launch::{Candidate, Lowering};
use super::{average_pool, batch_norm, cast, check, conv2d, max_pool, softmax};
use crate::engine::EngineError;
use crate::ops::View;
use crate::plan::Step;

/// One step on its way to a choice.
pub(super) struct Lowered {
    /// At least one.
    pub(super) candidates: Vec<Candidate>,
    /// What the choice depends on: equal for steps of equal shapes.
    pub(super) key: String,
    /// What it reads and writes.
    pub(super) step: check::Step,
}

/// Candidates of all steps.
///
/// # Errors
/// [`EngineError::NotSupported`] for a slice that no kernel takes, and what libraries report.
pub(super) fn plan(
    lowering: &Lowering,
    engine: &CudaEngine,
    remarks: &mut Vec<String>,
) -> Result<Vec<Lowered>, EngineError> {
    let steps = || lowering.plan.steps.iter();
    if let Some(vendor) = engine.gpu.vendor_for(lowering) {
        let ask = || steps().try_for_each(|step| candidates(step, lowering, engine, &mut Vec::new()).map(drop));
        match vendor.prepare(ask) {
            Err(EngineError::Failed { what, reason }) => {
                remarks.push(format!("cuDNN's kernels are left out: {what}: {reason}"));
            }
            outcome => outcome?,
        }
    }
    steps()
        .map(|step| {
            let mut candidates = candidates(step, lowering, engine, remarks)?;
            if candidates.is_empty() {
                let reason = format!("no kernel computes this {} on this device", step.name());
                return Err(EngineError::NotSupported { reason });
            }
            tell_apart(&mut candidates);
            let touched = check::Step {
                name: format!("{} of {}", step.name(), lowering.plan.layer(step)),
                buffers: step.buffers(),
                outputs: lowering.plan.written(step),
            };
            Ok(Lowered { candidates, key: key(step, lowering), step: touched })
        })
        .collect()
}

/// Numbers candidates of one name: the choice remembers names, and a library does not state all that tells its own apart.
fn tell_apart(candidates: &mut [Candidate]) {
    for at in 1..candidates.len() {
        let (before, rest) = candidates.split_at_mut(at);
        let name = rest[0].name.clone();
        let same = before.iter().filter(|other| other.name == name || other.name.starts_with(&format!("{name} #")));
        match same.count() {
            0 => {}
            n => rest[0].name = format!("{name} #{}", n + 1),
        }
    }
}

/// Candidates of one step. A library that fails costs its candidates and leaves a remark.
fn candidates(
    step: &Step,
    lowering: &Lowering,
    engine: &CudaEngine,
    remarks: &mut Vec<String>,
) -> Result<Vec<Candidate>, EngineError> {
    for view in views(step) {
        lowering.check(view)?;
    }
    Ok(match step {
        Step::Cast(step) => vec![cast::cast(step, lowering)],
        Step::Conv2dForward(step) => conv2d::forward(step, lowering, engine, remarks)?,
        Step::Conv2dBackwardData(step) => conv2d::backward_data(step, lowering, engine, remarks)?,
        Step::Conv2dBackwardWeight(step) => conv2d::backward_weight(step, lowering, engine, remarks)?,
        Step::BatchNormForward(step) => vec![batch_norm::forward(step, lowering)],
        Step::BatchNormBackward(step) => vec![batch_norm::backward(step, lowering)],
        Step::MaxPoolForward(step) => vec![max_pool::forward(step, lowering)],
        Step::MaxPoolBackward(step) => vec![max_pool::backward(step, lowering)],
        Step::AveragePoolForward(step) => vec![average_pool::forward(step, lowering)],
        Step::AveragePoolBackward(step) => vec![average_pool::backward(step, lowering)],
        Step::CrossEntropy(step) => vec![softmax::cross_entropy(step, lowering)],
    })
}

/// The activations that a step reads or writes.
fn views(step: &Step) -> Vec<&View> {
    let mut views = Vec::new();
    match step {
        Step::Cast(_) => {}
        Step::Conv2dForward(step) => views.extend([&step.x, &step.y].into_iter().chain(&step.epilogue.residual)),
        Step::Conv2dBackwardData(step) => views.extend([&step.dy, &step.dx]),
        Step::Conv2dBackwardWeight(step) => views.extend([&step.x, &step.dy]),
        Step::BatchNormForward(step) => views.extend([&step.input.y, &step.z]),
        Step::BatchNormBackward(step) => views.extend([&step.g, &step.y, &step.dy]),
        Step::MaxPoolForward(step) => views.extend([&step.x, &step.y]),
        Step::MaxPoolBackward(step) => views.extend([&step.dy, &step.dx]),
        Step::AveragePoolForward(step) => views.extend([&step.x, &step.y]),
        Step::AveragePoolBackward(step) => views.extend([&step.dy, &step.dx]),
        Step::CrossEntropy(step) => views.extend([&step.logits, &step.dlogits]),
    }
    views
}

/// The step's description without the numbers of its buffers. The pass decides how often filters are prepared.
fn key(step: &Step, lowering: &Lowering) -> String {
    let text = format!("{} {} {step:?}", lowering.precision(), lowering.plan.pass);
    let mut key = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find("BufferId(") {
        let end = rest[start..].find(')').map_or(rest.len(), |end| start + end);
        key.push_str(&rest[..start]);
        key.push('#');
        rest = &rest[(end + 1).min(rest.len())..];
    }
    key.push_str(rest);
    key
}
