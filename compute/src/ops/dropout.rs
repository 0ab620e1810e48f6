//! Dropout from a counter-based generator, so that every engine drops the same elements and none stores a mask.

use crate::random::dropout_bits;

/// Dropout of a network's layer.
///
/// Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014; scaled in
/// training ("inverted"), identity in inference.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout {
    /// Probability that an element is zeroed.
    pub probability: f32,
}

/// Dropout as part of a step.
///
/// Formula: element `i` (row-major in logical `[n, c, h, w]`) becomes `x · scale` where
/// `dropout_bits(key, i) >= threshold`, else 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropping {
    /// Number of the layer in the generator.
    pub key: u32,
    /// Elements whose bits are below are zeroed: probability · 2³².
    pub threshold: u32,
    /// `1 / (1 - probability)`.
    pub scale: f32,
}

impl Dropping {
    /// Dropout of the layer with number `key`.
    pub fn new(dropout: &Dropout, key: u32) -> Self {
        Self {
            key,
            threshold: (f64::from(dropout.probability) * 4_294_967_296.0) as u32,
            scale: 1.0 / (1.0 - dropout.probability),
        }
    }

    /// Factor for element `index`: `scale` or 0.
    pub fn factor(&self, index: u32) -> f32 {
        if dropout_bits(self.key, index) >= self.threshold { self.scale } else { 0.0 }
    }
}
