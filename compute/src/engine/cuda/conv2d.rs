//! Candidates of convolutions, fully connected layers among them.
//!
//! Own kernels come first: [`mma`] (tensor cores of any GPU), [`wgmma`] (those of compute capability 9.0), [`simt`] and
//! [`winograd`] (f32 without tensor cores). The first of all serves every convolution: the others are compared with it.
//! [`vendor`] adds cuDNN's and cuBLASLt's where they are installed.

mod divisor;
pub(super) mod mma;
pub(super) mod simt;
#[cfg(test)]
mod tests;
pub(super) mod vendor;
pub(super) mod wgmma;
pub(super) mod winograd;

use super::device::CudaEngine;
use super::dropout;
use super::launch::{Candidate, Command, Lowering};
use crate::engine::EngineError;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Forward};
use crate::shape::Precision;

/// Candidates of a convolution with its epilogue, statistics and dropout.
///
/// # Errors
/// [`EngineError::DeviceLost`] as a library reports it.
pub(super) fn forward(
    step: &Forward,
    lowering: &Lowering,
    engine: &CudaEngine,
    remarks: &mut Vec<String>,
) -> Result<Vec<Candidate>, EngineError> {
    let mut candidates = own_forward(step, lowering, engine.gpu.compiles());
    candidates.extend(or_none(vendor::forward(step, lowering, engine), remarks)?);
    if let Some(dropping) = &step.epilogue.dropout {
        for candidate in &mut candidates {
            candidate.commands.push(Command::Kernel(dropout::dropout(&step.y, dropping, lowering)));
        }
    }
    Ok(candidates)
}

/// Candidates of a convolution's gradient to its input, epilogue and reductions included.
///
/// # Errors
/// As [`forward`].
pub(super) fn backward_data(
    step: &BackwardData,
    lowering: &Lowering,
    engine: &CudaEngine,
    remarks: &mut Vec<String>,
) -> Result<Vec<Candidate>, EngineError> {
    let mut candidates = own_backward_data(step, lowering, engine.gpu.compiles());
    candidates.extend(or_none(vendor::backward_data(step, lowering, engine), remarks)?);
    Ok(candidates)
}

/// Candidates of a convolution's gradients to its filter and bias.
///
/// # Errors
/// As [`forward`].
pub(super) fn backward_weight(
    step: &BackwardWeight,
    lowering: &Lowering,
    engine: &CudaEngine,
    remarks: &mut Vec<String>,
) -> Result<Vec<Candidate>, EngineError> {
    let mut candidates = own_backward_weight(step, lowering, engine.gpu.compiles());
    candidates.extend(or_none(vendor::backward_weight(step, lowering, engine), remarks)?);
    Ok(candidates)
}

/// Own candidates of [`forward`], but for dropout. `compiles`: whether kernels are compiled for the device at hand.
fn own_forward(step: &Forward, lowering: &Lowering, compiles: bool) -> Vec<Candidate> {
    if lowering.precision() == Precision::F32 {
        return join(simt::forward(step, lowering), winograd::forward(step, lowering));
    }
    let special = if compiles { wgmma::forward(step, lowering) } else { Vec::new() };
    join(mma::forward(step, lowering), special)
}

fn own_backward_data(step: &BackwardData, lowering: &Lowering, compiles: bool) -> Vec<Candidate> {
    if lowering.precision() == Precision::F32 {
        return join(simt::backward_data(step, lowering), winograd::backward_data(step, lowering));
    }
    let special = if compiles { wgmma::backward_data(step, lowering) } else { Vec::new() };
    join(mma::backward_data(step, lowering), special)
}

fn own_backward_weight(step: &BackwardWeight, lowering: &Lowering, compiles: bool) -> Vec<Candidate> {
    if lowering.precision() == Precision::F32 {
        return join(simt::backward_weight(step, lowering), winograd::backward_weight(step, lowering));
    }
    let special = if compiles { wgmma::backward_weight(step, lowering) } else { Vec::new() };
    join(mma::backward_weight(step, lowering), special)
}

fn join(mut first: Vec<Candidate>, more: Vec<Candidate>) -> Vec<Candidate> {
    first.extend(more);
    first
}

/// A library's candidates; where it fails, none, and a remark: our kernels compute the step as well.
fn or_none(
    found: Result<Vec<Candidate>, EngineError>,
    remarks: &mut Vec<String>,
) -> Result<Vec<Candidate>, EngineError> {
    match found {
        Err(error @ EngineError::DeviceLost { .. }) => Err(error),
        Err(error) => {
            let remark = format!("a library's kernels are left out: {error}");
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
            Ok(Vec::new())
        }
        found => found,
    }
}
