//! Maximum pooling.

use super::conv2d::{Window, window_count};
use super::dropout::Dropping;
use super::{BufferId, GradientEpilogue, ShapeError, View};
use crate::shape::Shape;

/// Maximum over square windows; padding never wins.
#[derive(Clone, Debug, PartialEq)]
pub struct MaxPool {
    /// Side of the window.
    pub size: usize,
    /// Step of the window.
    pub stride: usize,
    /// Padding on each side.
    pub pad: usize,
}

impl MaxPool {
    /// Output shape, sizes rounded down.
    ///
    /// # Errors
    /// [`ShapeError::WindowTooLarge`].
    pub fn output(&self, x: Shape) -> Result<Shape, ShapeError> {
        let side = |map: usize| window_count(map, self.size, self.stride, self.pad);
        Ok(Shape { h: side(x.h)?, w: side(x.w)?, ..x })
    }

    /// What a step needs to know of the window.
    pub fn window(&self) -> Window {
        Window { r: self.size, s: self.size, stride: self.stride, pad: self.pad }
    }
}

/// Step: `y = dropout(max over the window of x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// Input `[n, c, h, w]`.
    pub x: View,
    /// Output `[n, c, p, q]`.
    pub y: View,
    /// In training: position `r · window.s + s` of the first maximum in its window, one byte an output.
    pub index: Option<BufferId>,
    /// The window.
    pub window: Window,
    /// Dropout of the result.
    pub dropout: Option<Dropping>,
}

/// Step: each output's gradient goes to the input that was its maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct Backward {
    /// Gradient of the output `[n, c, p, q]`.
    pub dy: View,
    /// Positions kept by the forward step.
    pub index: BufferId,
    /// Gradient of the input `[n, c, h, w]`.
    pub dx: View,
    /// The window.
    pub window: Window,
    /// What is fused behind the sum.
    pub epilogue: GradientEpilogue,
}
