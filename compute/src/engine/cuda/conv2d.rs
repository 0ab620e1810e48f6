//! Candidates of convolutions, fully connected layers among them.
//!
//! Own kernels come first: [`mma`] (tensor cores of any GPU), [`wgmma`] (those of compute capability 9.0), [`simt`] and
//! [`winograd`] (f32 without tensor cores). [`vendor`] adds cuDNN's and cuBLASLt's where they are installed.

pub(super) mod mma;
pub(super) mod simt;
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
/// What libraries report.
pub(super) fn forward(step: &Forward, lowering: &Lowering, engine: &CudaEngine) -> Result<Vec<Candidate>, EngineError> {
    let mut candidates = match lowering.precision() {
        Precision::F32 => {
            let mut all = simt::forward(step, lowering);
            all.extend(winograd::forward(step, lowering));
            all
        }
        _ => {
            let mut all = mma::forward(step, lowering);
            if engine.gpu.compiles() {
                all.extend(wgmma::forward(step, lowering));
            }
            all
        }
    };
    candidates.extend(vendor::forward(step, lowering, engine)?);
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
/// What libraries report.
pub(super) fn backward_data(
    step: &BackwardData,
    lowering: &Lowering,
    engine: &CudaEngine,
) -> Result<Vec<Candidate>, EngineError> {
    let mut candidates = match lowering.precision() {
        Precision::F32 => {
            let mut all = simt::backward_data(step, lowering);
            all.extend(winograd::backward_data(step, lowering));
            all
        }
        _ => {
            let mut all = mma::backward_data(step, lowering);
            if engine.gpu.compiles() {
                all.extend(wgmma::backward_data(step, lowering));
            }
            all
        }
    };
    candidates.extend(vendor::backward_data(step, lowering, engine)?);
    Ok(candidates)
}

/// Candidates of a convolution's gradients to its filter and bias.
///
/// # Errors
/// What libraries report.
pub(super) fn backward_weight(
    step: &BackwardWeight,
    lowering: &Lowering,
    engine: &CudaEngine,
) -> Result<Vec<Candidate>, EngineError> {
    let mut candidates = match lowering.precision() {
        Precision::F32 => {
            let mut all = simt::backward_weight(step, lowering);
            all.extend(winograd::backward_weight(step, lowering));
            all
        }
        _ => {
            let mut all = mma::backward_weight(step, lowering);
            if engine.gpu.compiles() {
                all.extend(wgmma::backward_weight(step, lowering));
            }
            all
        }
    };
    candidates.extend(vendor::backward_weight(step, lowering, engine)?);
    Ok(candidates)
}
