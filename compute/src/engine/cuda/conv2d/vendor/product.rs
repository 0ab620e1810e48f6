//! Convolutions that are products of matrices, positions by channels: fully connected layers and 1x1 windows.

use super::super::super::cublaslt::{Matrix, Product};
use super::super::super::launch::Lowering;
use super::ALIGNMENT;
use crate::ops::View;
use crate::ops::conv2d::Window;
use crate::shape::Element;

/// The matrices of a convolution.
pub(super) struct Matrices {
    pub(super) x: Matrix,
    pub(super) w: Matrix,
    pub(super) y: Matrix,
}

impl Matrices {
    /// None where a window covers several positions of several outputs.
    pub(super) fn new(x: &View, y: &View, window: Window, lowering: &Lowering) -> Option<Self> {
        let Window { r, s, stride, pad } = window;
        let is_pointwise = (r, s, stride, pad) == (1, 1, 1, 0);
        let is_packed = lowering.row(x) == lowering.padded(x.shape.c);
        let is_whole_map = (r, s, pad) == (x.shape.h, x.shape.w, 0) && is_packed;
        if !is_pointwise && !is_whole_map {
            return None;
        }
        let inputs = u64::from(lowering.padded(x.shape.c)) * (r * s) as u64;
        let outputs = u64::from(lowering.padded(y.shape.c));
        let element = lowering.element();
        let w = Matrix { rows: outputs, columns: inputs, row: inputs, element, alignment: ALIGNMENT as u32 };
        let mut x = matrix(x, lowering);
        if !is_pointwise {
            x = Matrix { rows: y.shape.n as u64, columns: inputs, row: inputs, ..x };
        }
        Some(Self { x, w, y: matrix(y, lowering) })
    }

    /// `y = relu(x · wᵀ + summand + bias)`, the bias in the type of the activations.
    pub(super) fn forward(&self, summand: Option<Matrix>, has_bias: bool, relu: bool, lowering: &Lowering) -> Product {
        let bias = has_bias.then_some(lowering.element());
        Product { transpose_b: true, c: summand, bias, relu, ..plain(self.x, self.w, self.y, lowering) }
    }

    /// `dx = alpha · dy · w (+ dx)`.
    pub(super) fn backward_data(&self, alpha: f32, accumulate: bool, lowering: &Lowering) -> Product {
        Product { alpha, c: accumulate.then_some(self.x), ..plain(self.y, self.w, self.x, lowering) }
    }

    /// `dw = alpha · dyᵀ · x`, f32.
    pub(super) fn backward_weight(&self, alpha: f32, lowering: &Lowering) -> Product {
        let dw = Matrix { element: Element::F32, ..self.w };
        Product { transpose_a: true, alpha, ..plain(self.y, self.x, dw, lowering) }
    }
}

fn plain(a: Matrix, b: Matrix, d: Matrix, lowering: &Lowering) -> Product {
    Product {
        a,
        transpose_a: false,
        b,
        transpose_b: false,
        c: None,
        d,
        alpha: 1.0,
        bias: None,
        relu: false,
        precision: lowering.precision(),
    }
}

/// A view as a matrix of positions by channels.
pub(super) fn matrix(view: &View, lowering: &Lowering) -> Matrix {
    let offset = (view.channel_offset * lowering.element().bytes()) as u64 | ALIGNMENT;
    Matrix {
        rows: view.shape.positions() as u64,
        columns: u64::from(lowering.padded(view.shape.c)),
        row: u64::from(lowering.row(view)),
        element: lowering.element(),
        alignment: 1 << offset.trailing_zeros(),
    }
}
