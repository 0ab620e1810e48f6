//! Convolution and its gradients as their formulas read, in f64 and logical order.

use crate::ops::Conv2d;
use crate::ops::conv2d::Window;
use crate::shape::{FilterShape, Shape};

/// Shapes of one convolution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) x: Shape,
    pub(super) y: Shape,
    pub(super) window: Window,
}

impl Geometry {
    pub(super) fn new(x: Shape, k: usize, window: Window) -> Self {
        let Window { r, s, stride, pad } = window;
        let side = |conv: Conv2d| conv.output(x).unwrap();
        Self { x, y: side(Conv2d { k, r, s, stride, pad, bias: false }), window }
    }

    pub(super) fn filter(&self) -> FilterShape {
        FilterShape { k: self.y.c, c: self.x.c, r: self.window.r, s: self.window.s }
    }

    /// Calls `visit` with the indices of x, w and y of every product.
    fn products(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let (x, y, Window { r, s, stride, pad }) = (self.x, self.y, self.window);
        for n in 0..y.n {
            for k in 0..y.c {
                for p in 0..y.h {
                    for q in 0..y.w {
                        let y_at = ((n * y.c + k) * y.h + p) * y.w + q;
                        for (tap_r, tap_s) in (0..r).flat_map(|a| (0..s).map(move |b| (a, b))) {
                            let (h, w) =
                                ((p * stride + tap_r).wrapping_sub(pad), (q * stride + tap_s).wrapping_sub(pad));
                            if h >= x.h || w >= x.w {
                                continue;
                            }
                            for c in 0..x.c {
                                let x_at = ((n * x.c + c) * x.h + h) * x.w + w;
                                visit(x_at, ((k * x.c + c) * r + tap_r) * s + tap_s, y_at);
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn conv2d_forward(g: &Geometry, x: &[f64], w: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; g.y.elements()];
    g.products(|x_at, w_at, y_at| y[y_at] += x[x_at] * w[w_at]);
    y
}

pub(super) fn conv2d_backward_data(g: &Geometry, dy: &[f64], w: &[f64]) -> Vec<f64> {
    let mut dx = vec![0.0; g.x.elements()];
    g.products(|x_at, w_at, y_at| dx[x_at] += dy[y_at] * w[w_at]);
    dx
}

pub(super) fn conv2d_backward_weight(g: &Geometry, x: &[f64], dy: &[f64]) -> Vec<f64> {
    let mut dw = vec![0.0; g.filter().elements()];
    g.products(|x_at, w_at, y_at| dw[w_at] += dy[y_at] * x[x_at]);
    dw
}

pub(super) fn conv2d_backward_bias(g: &Geometry, dy: &[f64]) -> Vec<f64> {
    let plane = g.y.h * g.y.w;
    let mut dbias = vec![0.0; g.y.c];
    dy.iter().enumerate().for_each(|(idx, value)| dbias[idx / plane % g.y.c] += value);
    dbias
}
