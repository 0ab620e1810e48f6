//! Maximum pooling.

use rayon::prelude::*;

use super::gradient_epilogue::{self, Finish};
use super::storage::{Storage, place};
use crate::ops::conv2d::Window;
use crate::ops::max_pool::{Backward, Forward};

/// See [`Forward`].
pub(super) fn forward(step: &Forward, storage: &mut Storage) {
    let mut y = storage.take(step.y.buffer);
    let mut index_slot = step.index.map(|id| storage.take(id)).unwrap_or_default();
    let x = storage.tensor(&step.x);
    let size = step.y.shape.h * step.y.shape.w;
    let (map, view) = ([step.x.shape.h, step.x.shape.w], step.y);
    let pool = |n: usize, c: usize, y: &mut [f32], index: Option<&mut [u8]>| {
        let first = (n * view.shape.c + c) * size;
        let mut index = index;
        for (at, y) in y.iter_mut().enumerate() {
            let output = [at / view.shape.w, at % view.shape.w];
            let (value, place) = maximum(x.plane(n, c), map, output, step.window);
            *y = step.dropout.as_ref().map_or(value, |dropout| value * dropout.factor((first + at) as u32));
            if let Some(index) = &mut index {
                index[at] = place;
            }
        }
    };
    let planes = y[..view.shape.n * view.buffer_channels * size].par_chunks_mut(size).enumerate();
    if step.index.is_some() {
        // The index has no channels but the view's own; maps beside the view get an empty one.
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut index_slot);
        let mut indices: Vec<Option<&mut [u8]>> = Vec::new();
        let mut rest = bytes[..view.shape.elements()].chunks_exact_mut(size);
        indices.extend((0..planes.len()).map(|idx| place(&view, idx).and_then(|_| rest.next())));
        planes.zip(indices).for_each(|((idx, y), index)| {
            if let Some((n, c)) = place(&view, idx) {
                pool(n, c, y, index);
            }
        });
    } else {
        planes.for_each(|(idx, y)| {
            if let Some((n, c)) = place(&view, idx) {
                pool(n, c, y, None);
            }
        });
    }
    storage.put(step.y.buffer, y);
    if let Some(id) = step.index {
        storage.put(id, index_slot);
    }
}

/// The first maximum of a window and its place; NaN is kept.
fn maximum(x: &[f32], [height, width]: [usize; 2], [p, q]: [usize; 2], window: Window) -> (f32, u8) {
    let mut best: Option<(f32, u8)> = None;
    for r in 0..window.r {
        let Some(h) = (p * window.stride + r).checked_sub(window.pad).filter(|&h| h < height) else { continue };
        for s in 0..window.s {
            let Some(w) = (q * window.stride + s).checked_sub(window.pad).filter(|&w| w < width) else { continue };
            let value = x[h * width + w];
            if best.is_none_or(|(best, _)| value > best || (value.is_nan() && !best.is_nan())) {
                best = Some((value, (r * window.s + s) as u8));
            }
        }
    }
    best.expect("a pooling window meets its map")
}

/// See [`Backward`].
pub(super) fn backward(step: &Backward, storage: &mut Storage) {
    let mut dx = storage.take(step.dx.buffer);
    let (dy, index) = (storage.tensor(&step.dy), storage.bytes_of(step.index));
    let finish = Finish::new(&step.epilogue, storage);
    let (width, outputs) = (step.dy.shape.w, step.dy.shape.h * step.dy.shape.w);
    let Window { s: columns, stride, pad, .. } = step.window;
    gradient_epilogue::store(&finish, &step.dx, &mut dx, |n, c, _, sum| {
        sum.fill(0.0);
        let first = (n * step.dy.shape.c + c) * outputs;
        let places = &index[first..first + outputs];
        for (at, (&dy, &place)) in dy.plane(n, c).iter().zip(places).enumerate() {
            let (r, s) = (usize::from(place) / columns, usize::from(place) % columns);
            let (h, w) = (at / width * stride + r - pad, at % width * stride + s - pad);
            sum[h * step.dx.shape.w + w] += f64::from(dy);
        }
        true
    });
    storage.put(step.dx.buffer, dx);
    gradient_epilogue::reduce(&step.epilogue, &step.dx, storage);
}
