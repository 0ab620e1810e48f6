//! Two-dimensional convolution (cross-correlation), and the fully connected layer as its special case.

use super::dropout::Dropping;
use super::{BufferId, GradientEpilogue, ShapeError, View, batch_norm};
use crate::shape::{FilterShape, Shape};

/// A convolution with a square stride and symmetric zero padding.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv2d {
    /// Output channels.
    pub k: usize,
    /// Height of the window.
    pub r: usize,
    /// Width of the window.
    pub s: usize,
    /// Step of the window in both directions.
    pub stride: usize,
    /// Zeros added on each side.
    pub pad: usize,
    /// Whether a bias is added for each output channel.
    pub bias: bool,
}

impl Conv2d {
    /// Output shape, sizes rounded down.
    ///
    /// # Errors
    /// [`ShapeError::WindowTooLarge`].
    pub fn output(&self, x: Shape) -> Result<Shape, ShapeError> {
        let side = |map: usize, window: usize| window_count(map, window, self.stride, self.pad);
        Ok(Shape::new(x.n, self.k, side(x.h, self.r)?, side(x.w, self.s)?))
    }

    /// Shape of the filter for an input of shape `x`.
    pub fn filter(&self, x: Shape) -> FilterShape {
        FilterShape { k: self.k, c: x.c, r: self.r, s: self.s }
    }

    /// Weights and biases.
    pub fn parameters(&self, x: Shape) -> u64 {
        (self.filter(x).elements() + if self.bias { self.k } else { 0 }) as u64
    }

    /// Multiply-accumulates of the forward pass; zero where the window does not fit.
    pub fn macs(&self, x: Shape) -> u64 {
        self.output(x).map_or(0, |y| (y.elements() * self.filter(x).depth()) as u64)
    }

    /// What a step needs to know of the window.
    pub fn window(&self) -> Window {
        Window { r: self.r, s: self.s, stride: self.stride, pad: self.pad }
    }
}

/// Positions of a window along one side of a map, rounded down.
///
/// # Errors
/// [`ShapeError::WindowTooLarge`].
pub fn window_count(map: usize, window: usize, stride: usize, pad: usize) -> Result<usize, ShapeError> {
    let padded = map + 2 * pad;
    if window > padded {
        return Err(ShapeError::WindowTooLarge { window, map: padded });
    }
    Ok((padded - window) / stride + 1)
}

/// Size, stride and padding of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Height.
    pub r: usize,
    /// Width.
    pub s: usize,
    /// Step in both directions.
    pub stride: usize,
    /// Zeros added on each side.
    pub pad: usize,
}

/// Step: `y = epilogue(conv(x, w))`.
///
/// Formula: `acc[n,k,p,q] = Σ_{c,r,s} x[n, c, p·stride + r − pad, q·stride + s − pad] · w[k,c,r,s]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// Input `[n, c, h, w]`.
    pub x: View,
    /// Filter `[k, c, r, s]`.
    pub w: BufferId,
    /// Output `[n, k, p, q]`.
    pub y: View,
    /// The window.
    pub window: Window,
    /// What is fused behind the sum.
    pub epilogue: Epilogue,
    /// Batch statistics of `y`, as stored, when batch norm follows in training.
    pub statistics: Option<batch_norm::Statistics>,
}

/// What is fused behind a convolution's sum, in this order.
///
/// Formula: `y = dropout(relu(scale[k] · acc + bias[k] + residual))`, each part where present.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Epilogue {
    /// Factor for each output channel, f32: batch norm in inference.
    pub scale: Option<BufferId>,
    /// Summand for each output channel, f32.
    pub bias: Option<BufferId>,
    /// Summand of the output's shape.
    pub residual: Option<View>,
    /// Whether negative values become zero.
    pub relu: bool,
    /// Dropout of the result.
    pub dropout: Option<Dropping>,
}

/// Step: gradient of a convolution's input.
///
/// Formula: `dx[n,c,h,w] = epilogue(Σ_{k,r,s} dy[n, k, p, q] · w[k,c,r,s])` over all `p·stride + r − pad = h`,
/// `q·stride + s − pad = w`.
#[derive(Clone, Debug, PartialEq)]
pub struct BackwardData {
    /// Gradient of the output `[n, k, p, q]`.
    pub dy: View,
    /// Filter `[k, c, r, s]`.
    pub w: BufferId,
    /// Gradient of the input `[n, c, h, w]`.
    pub dx: View,
    /// The window.
    pub window: Window,
    /// What is fused behind the sum.
    pub epilogue: GradientEpilogue,
}

/// Step: gradients of a convolution's filter and bias, f32.
///
/// Formula: `dw[k,c,r,s] = factor · Σ_{n,p,q} dy[n,k,p,q] · x[n, c, p·stride + r − pad, q·stride + s − pad]`,
/// `dbias[k] = factor · Σ_{n,p,q} dy[n,k,p,q]`.
#[derive(Clone, Debug, PartialEq)]
pub struct BackwardWeight {
    /// Input `[n, c, h, w]`.
    pub x: View,
    /// Gradient of the output `[n, k, p, q]`.
    pub dy: View,
    /// Gradient of the filter `[k, c, r, s]`.
    pub dw: BufferId,
    /// Gradient of the bias `[k]`.
    pub dbias: Option<BufferId>,
    /// The window.
    pub window: Window,
    /// `1 / loss scale`.
    pub factor: f32,
}
