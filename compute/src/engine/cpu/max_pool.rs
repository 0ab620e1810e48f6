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

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, positions};
    use super::*;
    use crate::ops::dropout::{Dropout, Dropping};
    use crate::ops::{GradientEpilogue, MaxPool};
    use crate::plan::{Contents, Step};
    use crate::shape::{Element, Shape};

    /// Input, pooling, channels before each slice.
    const CASES: [(Shape, MaxPool, usize); 5] = [
        (Shape::new(1, 1, 2, 2), MaxPool { size: 2, stride: 2, pad: 0 }, 0),
        (Shape::new(2, 3, 7, 9), MaxPool { size: 2, stride: 2, pad: 0 }, 0),
        (Shape::new(2, 3, 8, 11), MaxPool { size: 3, stride: 2, pad: 1 }, 2),
        (Shape::new(2, 2, 6, 5), MaxPool { size: 3, stride: 1, pad: 1 }, 1),
        (Shape::new(3, 2, 10, 7), MaxPool { size: 2, stride: 3, pad: 0 }, 0),
    ];

    /// Inputs under the window of an output, with their places, row-major.
    fn window(x: Shape, pool: &MaxPool, [n, c, p, q]: [usize; 4]) -> Vec<(usize, [usize; 4])> {
        let inside = |at: usize, element: usize, size: usize| {
            (at * pool.stride + element).checked_sub(pool.pad).filter(|&at| at < size)
        };
        let elements = (0..pool.size * pool.size).filter_map(|element| {
            let h = inside(p, element / pool.size, x.h)?;
            let w = inside(q, element % pool.size, x.w)?;
            Some((element, [n, c, h, w]))
        });
        elements.collect()
    }

    #[test]
    fn forward() {
        for (shape, pool, before) in CASES {
            let mut f = Fixture::new();
            let output = pool.output(shape).expect("the window fits");
            // Behind ReLU half of the values are the same zero, and which is first matters.
            let (x, y) = (f.rectified(shape, before), f.activation(output, before));
            let index = f.buffer(Contents::Activation(output), Element::U8, vec![99.0; output.elements()]);
            let dropping = Dropping::new(&Dropout { probability: 0.4 }, 3);
            for (index, dropout) in [(None, None), (Some(index), Some(dropping))] {
                let step = Forward { x, y, index, window: pool.window(), dropout };
                let after = f.run(Step::MaxPoolForward(step));
                let first_maximum = |at| {
                    let inputs = window(shape, &pool, at).into_iter().rev();
                    inputs.max_by(|a, b| f.at(&x, a.1).total_cmp(&f.at(&x, b.1))).expect("the window meets the map")
                };
                let what = format!("{shape} {pool:?}");
                after.check(&what, &f, &y, |at| {
                    let element = positions(output).position(|other| other == at).expect("it is an output");
                    let factor = dropout.map_or(1.0, |dropout| f64::from(dropout.factor(element as u32)));
                    f.at(&x, first_maximum(at).1) * factor
                });
                if let Some(index) = index {
                    let places: Vec<f64> = positions(output).map(|at| first_maximum(at).0 as f64).collect();
                    after.check_buffer(&format!("{what}: index"), index, &places);
                }
            }
        }
    }

    #[test]
    fn padding_never_wins() {
        let mut f = Fixture::new();
        let shape = Shape::new(1, 1, 2, 2);
        let x = f.buffer(Contents::Activation(shape), Element::F32, vec![-1.0, -2.0, -3.0, -4.0]);
        let (x, y) = (crate::ops::View::whole(x, shape), f.activation(shape, 0));
        let window = MaxPool { size: 3, stride: 1, pad: 1 }.window();
        let after = f.run(Step::MaxPoolForward(Forward { x, y, index: None, window, dropout: None }));
        after.check("negative map", &f, &y, |_| -1.0);
    }

    #[test]
    fn backward() {
        for (shape, pool, before) in CASES {
            let mut f = Fixture::new();
            let output = pool.output(shape).expect("the window fits");
            let (dy, dx) = (f.activation(output, before), f.activation(shape, before));
            // Any input of the window, so that windows share some.
            let chosen = |at: [usize; 4]| {
                let inputs = window(shape, &pool, at);
                inputs[(at[0] + 3 * at[1] + 5 * at[2] + 7 * at[3]) % inputs.len()]
            };
            let places = positions(output).map(|at| chosen(at).0 as f32).collect();
            let index = f.buffer(Contents::Activation(output), Element::U8, places);
            let bare = GradientEpilogue { scale: 1.0, accumulate: false, relu_mask: None, reductions: Vec::new() };
            for epilogue in [bare, f.epilogue(shape, before)] {
                let step = Backward { dy, index, dx, window: pool.window(), epilogue: epilogue.clone() };
                let after = f.run(Step::MaxPoolBackward(step));
                after.check_gradient(&format!("{shape} {pool:?}"), &f, &dx, &epilogue, |at| {
                    positions(output).filter(|&output| chosen(output).1 == at).map(|output| f.at(&dy, output)).sum()
                });
            }
        }
    }
}
