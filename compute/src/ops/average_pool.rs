//! Average pooling over the whole map.

use super::dropout::Dropping;
use super::{GradientEpilogue, View};

/// Average over `h` and `w`.
#[derive(Clone, Debug, PartialEq)]
pub struct AveragePool;

/// Step: `y[n,c] = dropout(Σ_{h,w} x[n,c,h,w] / (h·w))`.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// Input `[n, c, h, w]`.
    pub x: View,
    /// Output `[n, c, 1, 1]`.
    pub y: View,
    /// Dropout of the result.
    pub dropout: Option<Dropping>,
}

/// Step: `dx[n,c,h,w] = epilogue(dy[n,c] / (h·w))`.
#[derive(Clone, Debug, PartialEq)]
pub struct Backward {
    /// Gradient of the output `[n, c, 1, 1]`.
    pub dy: View,
    /// Gradient of the input `[n, c, h, w]`.
    pub dx: View,
    /// What is fused behind.
    pub epilogue: GradientEpilogue,
}
