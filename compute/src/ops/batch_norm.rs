//! Batch normalization.
//!
//! Source: Ioffe, Szegedy, "Batch Normalization", 2015. In inference it is a scale and a bias of the convolution before
//! it; in training the statistics are of the minibatch (biased variance), over `n`, `h`, `w`. Running averages are
//! state of an optimizer step, which the suite does not make, and are left out.

use super::{BufferId, View};

/// Batch norm of a network's layer.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchNorm {
    /// Added to the variance.
    pub epsilon: f32,
    /// Value that the synthetic scale γ is drawn around. Blocks that add a residual use a small one so that
    /// activations stay bounded through fifty of them.
    pub gamma: f32,
}

/// Where the statistics of a convolution's output go, `[k]` f32 each.
///
/// Formula: `mean = Σ y / m`, `inv_std = 1 / √(Σ (y − mean)² / m + epsilon)`, `m = n·p·q`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Mean of each channel.
    pub mean: BufferId,
    /// Reciprocal standard deviation of each channel.
    pub inv_std: BufferId,
    /// Added to the variance.
    pub epsilon: f32,
}

/// A convolution's output on its way through batch norm: `γ · (y − mean) · inv_std + β`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalized {
    /// The convolution's output.
    pub y: View,
    /// Mean of each channel, `[c]` f32.
    pub mean: BufferId,
    /// Reciprocal standard deviation of each channel, `[c]` f32.
    pub inv_std: BufferId,
    /// Scale γ, `[c]` f32.
    pub gamma: BufferId,
    /// Shift β, `[c]` f32.
    pub beta: BufferId,
}

/// What is added behind batch norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Residual {
    /// A finished activation.
    Identity(View),
    /// The projection shortcut, normalized on the way.
    Normalized(Normalized),
}

/// Step: `z = relu(normalize(y) + residual)` in training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forward {
    /// The input and its normalization.
    pub input: Normalized,
    /// Summand, where the layer closes a residual block.
    pub residual: Option<Residual>,
    /// Whether negative values become zero.
    pub relu: bool,
    /// Output.
    pub z: View,
}

/// Sums over a finished gradient `g` of a batch norm's output, part of the step that finishes it.
///
/// Formula: `dbeta = factor · Σ g`, `dgamma = factor · Σ g · (y − mean) · inv_std`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// The convolution's output.
    pub y: View,
    /// Mean of each channel.
    pub mean: BufferId,
    /// Reciprocal standard deviation of each channel.
    pub inv_std: BufferId,
    /// Gradient of γ, `[c]` f32.
    pub dgamma: BufferId,
    /// Gradient of β, `[c]` f32.
    pub dbeta: BufferId,
    /// `1 / loss scale`.
    pub factor: f32,
}

/// Step: gradient of a convolution's output through batch norm in training.
///
/// Formula: `dy = γ · inv_std · (g − loss_scale · (dbeta + x̂ · dgamma) / m)`, `x̂ = (y − mean) · inv_std`,
/// `m = n·h·w`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backward {
    /// Gradient of the batch norm's output, masked by its ReLU.
    pub g: View,
    /// The convolution's output.
    pub y: View,
    /// Mean of each channel.
    pub mean: BufferId,
    /// Reciprocal standard deviation of each channel.
    pub inv_std: BufferId,
    /// Scale γ.
    pub gamma: BufferId,
    /// Gradient of γ, finished.
    pub dgamma: BufferId,
    /// Gradient of β, finished.
    pub dbeta: BufferId,
    /// Gradient of the convolution's output.
    pub dy: View,
    /// Factor that `g` and `dy` carry and the parameter gradients do not.
    pub loss_scale: f32,
}
