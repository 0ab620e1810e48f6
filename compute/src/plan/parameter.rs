//! Synthetic values of a network's parameters: seeded, finite, and the same on every engine.

use rayon::prelude::*;

use super::SEED;
use crate::ops::BufferId;
use crate::random;

/// A buffer to be filled before the first iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name, such as `"conv1.weight"`.
    pub name: String,
    /// The buffer.
    pub buffer: BufferId,
    /// Number of values.
    pub elements: usize,
    /// How its values come about.
    pub init: Init,
}

/// How a parameter's values come about.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// Uniform with variance `2 / fan_in`.
    ///
    /// Source: He et al., "Delving Deep into Rectifiers", 2015, equation 10; uniform instead of normal because its
    /// values need no transcendental function and hence agree to the bit on every machine.
    He {
        /// Inputs of one output.
        fan_in: usize,
    },
    /// `center + spread · uniform(-1, 1)`; never constant, so that a wrong index shows.
    Around {
        /// Center.
        center: f32,
        /// Largest distance from it.
        spread: f32,
    },
    /// Inference batch norm as a factor: `γ / √(variance + epsilon)`.
    NormScale(NormInit),
    /// Inference batch norm as a summand: `β − mean · γ / √(variance + epsilon)`.
    NormBias(NormInit),
}

/// Batch norm whose parameters are folded for inference.
#[derive(Clone, Debug, PartialEq)]
pub struct NormInit {
    /// Name of the batch norm's node.
    pub node: String,
    /// Center of γ.
    pub gamma: f32,
    /// Added to the variance.
    pub epsilon: f32,
}

/// Largest distance of biases, γ, β and running averages from their centers.
const SPREAD: f32 = 0.1;

impl Init {
    /// Bias of a convolution.
    pub const BIAS: Self = Self::Around { center: 0.0, spread: SPREAD };

    /// Scale γ of a batch norm.
    pub const fn gamma(center: f32) -> Self {
        Self::Around { center, spread: SPREAD * center }
    }

    /// Shift β of a batch norm.
    pub const BETA: Self = Self::Around { center: 0.0, spread: SPREAD };
}

impl Parameter {
    /// The values in logical order.
    pub fn values(&self) -> Vec<f32> {
        match &self.init {
            Init::He { fan_in } => around(&self.name, self.elements, 0.0, (6.0 / *fan_in as f32).sqrt()),
            Init::Around { center, spread } => around(&self.name, self.elements, *center, *spread),
            Init::NormScale(norm) => norm.folded(self.elements).map(|(scale, _)| scale).collect(),
            Init::NormBias(norm) => norm.folded(self.elements).map(|(_, bias)| bias).collect(),
        }
    }
}

impl NormInit {
    /// Scale and bias of each channel.
    fn folded(&self, channels: usize) -> impl Iterator<Item = (f32, f32)> {
        let values = |part: &str, center, spread| around(&format!("{}.{part}", self.node), channels, center, spread);
        let gamma = values("gamma", self.gamma, SPREAD * self.gamma);
        let beta = values("beta", 0.0, SPREAD);
        let mean = values("running_mean", 0.0, SPREAD);
        let variance = values("running_variance", 1.0, SPREAD);
        (0..channels).map(move |c| {
            let scale = gamma[c] / (variance[c] + self.epsilon).sqrt();
            (scale, beta[c] - mean[c] * scale)
        })
    }
}

fn around(name: &str, elements: usize, center: f32, spread: f32) -> Vec<f32> {
    let stream = random::stream(SEED, name);
    (0..elements as u64).into_par_iter().map(|i| center + spread * random::uniform(stream, i)).collect()
}
