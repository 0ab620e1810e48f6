//! Convolutions as im2col and GEMM, in blocks that keep the workspace small whatever the layer.

#[cfg(test)]
mod tests;

use std::ops::Range;

use ndarray::ArrayView2;
use rayon::prelude::*;

use super::im2col::{Columns, Geometry, positions_within, widen};
use super::product::{Products, Sums};
use super::storage::{Scratch, Storage, Tensor, Workspace, place};
use super::{batch_norm, gradient_epilogue};
use crate::ops::View;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Epilogue, Forward, Window};
use crate::plan::Step;

/// Elements of columns that a block may have; a single position or sample may need more.
const MOST_COLUMNS: usize = 8 << 20;
/// Elements of widened weights that a block may have; a single channel may need more.
const MOST_WEIGHTS: usize = 4 << 20;
/// Elements of products that a block may have.
const MOST_PRODUCTS: usize = 4 << 20;

/// Sizes of the blocks of a step.
#[derive(Clone, Copy, Debug)]
struct Blocking {
    geometry: Geometry,
    /// Elements of a filter, `c · r · s`.
    depth: usize,
    /// Channels at once: output channels, or input channels in backward data.
    channels: usize,
    /// Positions at once; whole samples in backward data.
    positions: usize,
}

impl Blocking {
    fn new(x: &View, y: &View, window: Window) -> Self {
        let geometry = Geometry::new(window, [x.shape.h, x.shape.w], [y.shape.h, y.shape.w]);
        Self { geometry, depth: x.shape.c * window.r * window.s, channels: 0, positions: 0 }
    }

    fn forward(step: &Forward) -> Self {
        let mut block = Self::new(&step.x, &step.y, step.window);
        block.positions = positions_within(MOST_COLUMNS, block.depth, step.y.shape.positions());
        let channels = (MOST_WEIGHTS / block.depth).min(MOST_PRODUCTS / block.positions);
        block.channels = channels.clamp(1, step.y.shape.c);
        block
    }

    fn backward_data(step: &BackwardData) -> Self {
        let mut block = Self::new(&step.dx, &step.dy, step.window);
        let (k, window) = (step.dy.shape.c, block.geometry.window_size());
        let samples = positions_within(MOST_COLUMNS, k, step.dy.shape.positions()) / block.geometry.positions();
        block.positions = samples.max(1) * block.geometry.positions();
        let channels = (MOST_WEIGHTS / (k * window)).min(MOST_PRODUCTS / (window * block.positions));
        block.channels = channels.clamp(1, step.dx.shape.c);
        block
    }

    fn backward_weight(step: &BackwardWeight) -> Self {
        let mut block = Self::new(&step.x, &step.dy, step.window);
        block.channels = (MOST_PRODUCTS / block.depth).clamp(1, step.dy.shape.c);
        block.positions = positions_within(MOST_COLUMNS, block.depth, step.dy.shape.positions());
        block
    }
}

/// Workspace that a step needs.
pub(super) fn workspace(step: &Step) -> Workspace {
    match step {
        Step::Conv2dForward(step) => {
            let block = Blocking::forward(step);
            Workspace {
                columns: block.depth * block.positions,
                weights: block.depth * block.channels,
                products: most_products(&step.y, step.y.shape.c, 1, &block),
            }
        }
        Step::Conv2dBackwardData(step) => {
            let block = Blocking::backward_data(step);
            let (k, window) = (step.dy.shape.c, block.geometry.window_size());
            Workspace {
                columns: k * block.positions,
                weights: k * block.channels * window,
                products: most_products(&step.dy, step.dx.shape.c, window, &block),
            }
        }
        Step::Conv2dBackwardWeight(step) => {
            let block = Blocking::backward_weight(step);
            Workspace {
                columns: block.depth * block.positions,
                weights: block.channels * block.positions,
                products: blocks(step.dy.shape.c, block.channels)
                    .map(|channels| Sums::elements(channels.len(), block.depth))
                    .max()
                    .unwrap_or(0),
            }
        }
        _ => Workspace::default(),
    }
}

/// Elements of the largest product over positions of `y`, with `rows` rows for each of `channels`. The last block may
/// round up to more than a full one.
fn most_products(y: &View, channels: usize, rows: usize, block: &Blocking) -> usize {
    let sizes = |all, size| blocks(all, size).map(|block| block.len());
    let products = sizes(channels, block.channels).flat_map(|channels| {
        sizes(y.shape.positions(), block.positions).map(move |positions| Products::elements(channels * rows, positions))
    });
    products.max().unwrap_or(0)
}

/// Ranges of at most `size` that cover `0..all`.
fn blocks(all: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..all).step_by(size.max(1)).map(move |first| first..all.min(first + size))
}

/// See [`Forward`].
pub(super) fn forward(step: &Forward, storage: &mut Storage, scratch: &mut Scratch) {
    let mut y = storage.take(step.y.buffer);
    let block = Blocking::forward(step);
    let (x, w) = (storage.tensor(&step.x), storage.values(step.w));
    let finish = Finish::new(&step.epilogue, &step.y, storage);
    for positions in blocks(step.y.shape.positions(), block.positions) {
        let columns = Columns::gather(x, &block.geometry, positions.clone(), &mut scratch.columns);
        for channels in blocks(step.y.shape.c, block.channels) {
            let weights = &mut scratch.weights[..channels.len() * block.depth];
            let chosen = &w[channels.start * block.depth..channels.end * block.depth];
            weights
                .par_chunks_mut(block.depth)
                .zip(chosen.par_chunks(block.depth))
                .for_each(|(to, from)| widen(from, to));
            let weights = matrix(weights, channels.len(), block.depth);
            let products = Products::compute(weights, &columns, &mut scratch.products);
            finish.store(&products, &channels, &positions, &mut y);
        }
    }
    storage.put(step.y.buffer, y);
    if let Some(statistics) = &step.statistics {
        batch_norm::statistics(statistics, &step.y, storage);
    }
}

/// The epilogue of a forward step with the buffers it reads.
struct Finish<'a> {
    epilogue: &'a Epilogue,
    y: &'a View,
    scale: Option<&'a [f32]>,
    bias: Option<&'a [f32]>,
    residual: Option<Tensor<'a>>,
}

impl<'a> Finish<'a> {
    fn new(epilogue: &'a Epilogue, y: &'a View, storage: &'a Storage) -> Self {
        Self {
            epilogue,
            y,
            scale: epilogue.scale.map(|id| storage.values(id)),
            bias: epilogue.bias.map(|id| storage.values(id)),
            residual: epilogue.residual.as_ref().map(|view| storage.tensor(view)),
        }
    }

    /// Writes the outputs at `positions` of `channels`.
    fn store(&self, products: &Products<'_>, channels: &Range<usize>, positions: &Range<usize>, y: &mut [f32]) {
        let size = self.y.shape.h * self.y.shape.w;
        let samples = positions.start / size..positions.end.div_ceil(size);
        let sample = self.y.buffer_channels * size;
        let planes = y[samples.start * sample..samples.end * sample].par_chunks_mut(size).enumerate();
        planes.for_each(|(idx, plane)| {
            let Some((n, k)) = place(self.y, samples.start * self.y.buffer_channels + idx) else { return };
            if !channels.contains(&k) {
                return;
            }
            let first = (n * size).max(positions.start);
            let wanted = first - positions.start..((n + 1) * size).min(positions.end) - positions.start;
            products.visit(k - channels.start, wanted, |at, sums| {
                let at = positions.start + at - n * size;
                self.piece(n, k, at, sums, &mut plane[at..at + sums.len()]);
            });
        });
    }

    /// Writes outputs of one map from element `at` on.
    fn piece(&self, n: usize, k: usize, at: usize, sums: &[f64], y: &mut [f32]) {
        let scale = self.scale.map_or(1.0, |scale| f64::from(scale[k]));
        let bias = self.bias.map_or(0.0, |bias| f64::from(bias[k]));
        let residual = self.residual.map(|residual| &residual.plane(n, k)[at..at + y.len()]);
        let first = (n * self.y.shape.c + k) * self.y.shape.h * self.y.shape.w + at;
        for (i, (y, sum)) in y.iter_mut().zip(sums).enumerate() {
            let mut value = scale * sum + bias + residual.map_or(0.0, |residual| f64::from(residual[i]));
            if self.epilogue.relu {
                // Unlike `max`, which would hide a fault, this keeps NaN.
                value = if value < 0.0 { 0.0 } else { value };
            }
            if let Some(dropout) = &self.epilogue.dropout {
                value *= f64::from(dropout.factor((first + i) as u32));
            }
            *y = value as f32;
        }
    }
}

/// See [`BackwardData`].
pub(super) fn backward_data(step: &BackwardData, storage: &mut Storage, scratch: &mut Scratch) {
    let mut dx = storage.take(step.dx.buffer);
    let block = Blocking::backward_data(step);
    let (dy, w) = (storage.tensor(&step.dy), storage.values(step.w));
    let finish = gradient_epilogue::Finish::new(&step.epilogue, storage);
    let (k, window, size) = (step.dy.shape.c, block.geometry.window_size(), block.geometry.positions());
    for positions in blocks(step.dy.shape.positions(), block.positions) {
        let columns = Columns::gather(dy, &Geometry::pointwise(size), positions.clone(), &mut scratch.columns);
        let samples = positions.start / size..positions.end / size;
        for channels in blocks(step.dx.shape.c, block.channels) {
            // Of each filter, the part that meets these channels.
            let rows = channels.len() * window;
            let weights = &mut scratch.weights[..k * rows];
            let filters = weights.par_chunks_mut(rows).zip(w.par_chunks(block.depth));
            filters.for_each(|(to, from)| widen(&from[channels.start * window..], to));
            let weights = matrix(weights, k, rows);
            let products = Products::compute(weights.t(), &columns, &mut scratch.products);
            gradient_epilogue::store(&finish, &step.dx, &mut dx, |n, c, maps, sum| {
                if !samples.contains(&n) || !channels.contains(&c) {
                    return false;
                }
                maps.resize(window * size, 0.0);
                let first = (n - samples.start) * size;
                for element in 0..window {
                    products.visit((c - channels.start) * window + element, first..first + size, |at, piece| {
                        let at = element * size + at - first;
                        maps[at..at + piece.len()].copy_from_slice(piece);
                    });
                }
                block.geometry.col2im(maps, sum);
                true
            });
        }
    }
    storage.put(step.dx.buffer, dx);
    gradient_epilogue::reduce(&step.epilogue, &step.dx, storage);
}

/// See [`BackwardWeight`].
pub(super) fn backward_weight(step: &BackwardWeight, storage: &mut Storage, scratch: &mut Scratch) {
    let mut dw = storage.take(step.dw);
    let block = Blocking::backward_weight(step);
    let (x, dy) = (storage.tensor(&step.x), storage.tensor(&step.dy));
    let factor = f64::from(step.factor);
    for channels in blocks(step.dy.shape.c, block.channels) {
        let dy = dy.channels(channels.start, channels.len());
        let mut sums = Sums::zero(channels.len(), block.depth, &mut scratch.products);
        for positions in blocks(step.dy.shape.positions(), block.positions) {
            let inputs = Columns::gather(x, &block.geometry, positions.clone(), &mut scratch.columns);
            let pointwise = Geometry::pointwise(block.geometry.positions());
            let gradients = Columns::gather(dy, &pointwise, positions, &mut scratch.weights);
            sums.add(&gradients, &inputs);
        }
        let filters = dw[channels.start * block.depth..channels.end * block.depth].par_chunks_mut(block.depth);
        filters.enumerate().for_each(|(row, filter)| {
            sums.visit(row, |at, sums| {
                filter[at..].iter_mut().zip(sums).for_each(|(dw, sum)| *dw = (factor * sum) as f32);
            });
        });
    }
    storage.put(step.dw, dw);
    if let Some(id) = step.dbias {
        let mut dbias = storage.take(id);
        let dy = storage.tensor(&step.dy);
        let sum = |k: usize| (0..dy.shape.n).flat_map(|n| dy.plane(n, k)).map(|&dy| f64::from(dy)).sum::<f64>();
        dbias[..dy.shape.c].par_iter_mut().enumerate().for_each(|(k, dbias)| *dbias = (factor * sum(k)) as f32);
        storage.put(id, dbias);
    }
}

fn matrix(data: &[f64], rows: usize, columns: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((rows, columns), data).expect("a matrix is as long as its shape says")
}
