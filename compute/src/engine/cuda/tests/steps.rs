//! Every step, in every precision and by every candidate, against the reference on the processor.

use super::{each_candidate, engine};
use crate::engine::sketch::Sketch;
use crate::ops::batch_norm::{self, Normalized, Reduction, Residual, Statistics};
use crate::ops::conv2d::{self, Window};
use crate::ops::dropout::{Dropout, Dropping};
use crate::ops::{BufferId, GradientEpilogue, View, average_pool, cast, max_pool, softmax};
use crate::plan::{Contents, Step};
use crate::shape::{Element, FilterShape, Precision, Shape};

/// A convolution: minibatch, channels, map, outputs, window, stride, padding.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::cuda) struct Geometry {
    pub(in crate::engine::cuda) x: Shape,
    k: usize,
    pub(in crate::engine::cuda) window: Window,
}

pub(in crate::engine::cuda) const fn geometry(
    x: [usize; 4],
    k: usize,
    r: usize,
    stride: usize,
    pad: usize,
) -> Geometry {
    let [n, c, h, w] = x;
    Geometry { x: Shape::new(n, c, h, w), k, window: Window { r, s: r, stride, pad } }
}

/// Odd sizes, all windows and strides of the suite, channels that are padded, more than one tile in every direction.
pub(in crate::engine::cuda) const GEOMETRIES: [Geometry; 14] = [
    geometry([1, 3, 5, 7], 5, 3, 1, 1),
    geometry([2, 3, 23, 19], 64, 7, 2, 3),
    geometry([1, 3, 35, 39], 96, 11, 4, 2),
    geometry([3, 40, 9, 13], 72, 3, 1, 1),
    geometry([2, 64, 14, 14], 64, 1, 1, 0),
    geometry([5, 24, 15, 17], 200, 1, 2, 0),
    geometry([2, 64, 15, 13], 136, 3, 2, 1),
    geometry([2, 72, 12, 11], 144, 3, 1, 1),
    geometry([2, 48, 11, 9], 40, 5, 1, 2),
    geometry([1, 96, 12, 12], 136, 5, 1, 0),
    geometry([3, 256, 7, 7], 520, 1, 1, 0),
    geometry([4, 136, 6, 6], 264, 3, 1, 1),
    // Fully connected: the window is the whole map. Statistics over fewer images would enlarge the errors of their terms.
    geometry([9, 40, 6, 6], 136, 6, 1, 0),
    geometry([9, 264, 1, 1], 1000, 1, 1, 0),
];

impl Geometry {
    pub(in crate::engine::cuda) fn y(&self) -> Shape {
        let side = |map| conv2d::window_count(map, self.window.r, self.window.stride, self.window.pad).unwrap();
        Shape::new(self.x.n, self.k, side(self.x.h), side(self.x.w))
    }

    pub(in crate::engine::cuda) fn filter(&self) -> FilterShape {
        FilterShape { k: self.k, c: self.x.c, r: self.window.r, s: self.window.s }
    }
}

fn filled(sketch: &mut Sketch, shape: Shape) -> View {
    let view = sketch.activation(shape);
    sketch.fill(view.buffer);
    view
}

/// Whole where the channels don't begin and end at 16 bytes, else a slice in the middle of a wider buffer.
fn sliced(sketch: &mut Sketch, shape: Shape) -> View {
    if !shape.c.is_multiple_of(8) {
        return filled(sketch, shape);
    }
    let view = sketch.slice(Shape { c: shape.c + 24, ..shape }, 16, shape.c);
    sketch.fill(view.buffer);
    view
}

fn vector(sketch: &mut Sketch, length: usize) -> BufferId {
    let id = sketch.vector(length);
    sketch.fill(id);
    id
}

/// A vector of values like reciprocal deviations.
fn positive(sketch: &mut Sketch, length: usize) -> BufferId {
    let id = sketch.vector(length);
    sketch.set(id, (0..length).map(|i| 0.5 + (i % 7) as f32 / 8.0).collect());
    id
}

fn reduction(sketch: &mut Sketch, shape: Shape) -> Reduction {
    Reduction {
        y: filled(sketch, shape),
        mean: vector(sketch, shape.c),
        inv_std: positive(sketch, shape.c),
        dgamma: sketch.vector(shape.c),
        dbeta: sketch.vector(shape.c),
        factor: 0.5,
    }
}

fn outputs(dx: &View, epilogue: &GradientEpilogue) -> Vec<BufferId> {
    let sums = epilogue.reductions.iter().flat_map(|sum| [sum.dgamma, sum.dbeta]);
    std::iter::once(dx.buffer).chain(sums).collect()
}

fn epilogue(sketch: &mut Sketch, shape: Shape, parts: u32) -> GradientEpilogue {
    GradientEpilogue {
        scale: if parts & 1 != 0 { 1.25 } else { 1.0 },
        accumulate: parts & 2 != 0,
        relu_mask: (parts & 4 != 0).then(|| filled(sketch, shape)),
        reductions: (0..parts >> 3).map(|_| reduction(sketch, shape)).collect(),
    }
}

#[test]
fn convolutions_are_the_references() {
    let Some(engine) = engine() else { return };
    for precision in Precision::ALL {
        for geometry in GEOMETRIES {
            for parts in [0, 1, 2] {
                let mut sketch = Sketch::new(precision);
                let w = sketch.filter(geometry.filter(), precision.storage());
                sketch.fill(w);
                let (x, y) = if parts == 0 {
                    (filled(&mut sketch, geometry.x), sketch.activation(geometry.y()))
                } else {
                    (sliced(&mut sketch, geometry.x), sliced(&mut sketch, geometry.y()))
                };
                let mut epilogue = conv2d::Epilogue::default();
                if parts > 0 {
                    epilogue.bias = Some(vector(&mut sketch, geometry.k));
                    epilogue.relu = true;
                }
                if parts > 1 {
                    epilogue.scale = Some(positive(&mut sketch, geometry.k));
                    epilogue.residual = Some(filled(&mut sketch, geometry.y()));
                    epilogue.dropout = Some(Dropping::new(&Dropout { probability: 0.4 }, 3));
                }
                let window = geometry.window;
                sketch.step(Step::Conv2dForward(conv2d::Forward { x, w, y, window, epilogue, statistics: None }));
                let name = format!("forward of {geometry:?} with epilogue {parts}");
                each_candidate(&engine, &sketch, &[y.buffer], &name);
            }
        }
    }
}

#[test]
fn statistics_are_those_of_the_stored_output() {
    let Some(engine) = engine() else { return };
    for precision in Precision::ALL {
        for geometry in GEOMETRIES {
            let mut sketch = Sketch::new(precision);
            let w = sketch.filter(geometry.filter(), precision.storage());
            sketch.fill(w);
            let (x, y) = (filled(&mut sketch, geometry.x), sketch.activation(geometry.y()));
            // A bias far from zero: sums of squares would cancel.
            let bias = sketch.vector(geometry.k);
            sketch.set(bias, vec![40.0; geometry.k]);
            let [mean, inv_std] = [(); 2].map(|()| sketch.vector(geometry.k));
            let step = conv2d::Forward {
                x,
                w,
                y,
                window: geometry.window,
                epilogue: conv2d::Epilogue { bias: Some(bias), ..conv2d::Epilogue::default() },
                statistics: Some(Statistics { mean, inv_std, epsilon: 1e-5 }),
            };
            sketch.step(Step::Conv2dForward(step));
            each_candidate(&engine, &sketch, &[y.buffer, mean, inv_std], &format!("statistics of {geometry:?}"));
        }
    }
}

#[test]
fn gradients_of_inputs_are_the_references() {
    let Some(engine) = engine() else { return };
    for precision in Precision::ALL {
        for geometry in GEOMETRIES {
            for parts in [0, 4, 7, 12, 20 + 2] {
                let mut sketch = Sketch::new(precision);
                let w = sketch.filter(geometry.filter(), precision.storage());
                sketch.fill(w);
                let (dy, dx) = if parts == 7 {
                    (sliced(&mut sketch, geometry.y()), sliced(&mut sketch, geometry.x))
                } else {
                    (filled(&mut sketch, geometry.y()), filled(&mut sketch, geometry.x))
                };
                let epilogue = epilogue(&mut sketch, geometry.x, parts);
                let outputs = outputs(&dx, &epilogue);
                let step = conv2d::BackwardData { dy, w, dx, window: geometry.window, epilogue };
                sketch.step(Step::Conv2dBackwardData(step));
                let name = format!("backward data of {geometry:?} with epilogue {parts}");
                each_candidate(&engine, &sketch, &outputs, &name);
            }
        }
    }
}

#[test]
fn gradients_of_filters_are_the_references() {
    let Some(engine) = engine() else { return };
    for precision in Precision::ALL {
        for geometry in GEOMETRIES {
            for is_sliced in [false, true] {
                let mut sketch = Sketch::new(precision);
                let make = if is_sliced { sliced } else { filled };
                let (x, dy) = (make(&mut sketch, geometry.x), make(&mut sketch, geometry.y()));
                let dw = sketch.filter(geometry.filter(), Element::F32);
                let dbias = is_sliced.then(|| sketch.vector(geometry.k));
                let step = conv2d::BackwardWeight { x, dy, dw, dbias, window: geometry.window, factor: 0.5 };
                sketch.step(Step::Conv2dBackwardWeight(step));
                let outputs: Vec<BufferId> = std::iter::once(dw).chain(dbias).collect();
                each_candidate(&engine, &sketch, &outputs, &format!("backward weight of {geometry:?}"));
            }
        }
    }
}

/// Odd sizes, one position, many positions, and many channels.
const SHAPES: [Shape; 5] = [
    Shape::new(2, 5, 3, 7),
    Shape::new(1, 3, 1, 2),
    Shape::new(3, 16, 41, 37),
    Shape::new(2, 264, 5, 3),
    Shape::new(4, 2048, 7, 7),
];

fn normalized(sketch: &mut Sketch, shape: Shape) -> Normalized {
    Normalized {
        y: filled(sketch, shape),
        mean: vector(sketch, shape.c),
        inv_std: positive(sketch, shape.c),
        gamma: vector(sketch, shape.c),
        beta: vector(sketch, shape.c),
    }
}

#[test]
fn batch_norm_is_the_references() {
    let Some(engine) = engine() else { return };
    for precision in Precision::ALL {
        for shape in SHAPES {
            for kind in 0..4 {
                let mut sketch = Sketch::new(precision);
                let input = normalized(&mut sketch, shape);
                let residual = match kind {
                    1 => Some(Residual::Identity(filled(&mut sketch, shape))),
                    2 => Some(Residual::Normalized(normalized(&mut sketch, shape))),
                    _ => None,
                };
                let z = if kind == 3 { sliced(&mut sketch, shape) } else { sketch.activation(shape) };
                sketch.step(Step::BatchNormForward(batch_norm::Forward { input, residual, relu: kind != 0, z }));
                each_candidate(&engine, &sketch, &[z.buffer], &format!("batch norm of {shape}, kind {kind}"));
            }
            for in_place in [false, true] {
                let mut sketch = Sketch::new(precision);
                let Normalized { y, mean, inv_std, gamma, .. } = normalized(&mut sketch, shape);
                let g = filled(&mut sketch, shape);
                let dy = sketch.activation(shape);
                if in_place {
                    sketch.share(dy.buffer, g.buffer);
                }
                let [dgamma, dbeta] = [(); 2].map(|()| vector(&mut sketch, shape.c));
                let step = batch_norm::Backward { g, y, mean, inv_std, gamma, dgamma, dbeta, dy, loss_scale: 4.0 };
                sketch.step(Step::BatchNormBackward(step));
                each_candidate(&engine, &sketch, &[dy.buffer], &format!("batch norm backward of {shape}"));
            }
        }
    }
}

#[test]
fn pooling_is_the_references() {
    let Some(engine) = engine() else { return };
    let windows = [(2, 2, 0), (3, 2, 1), (3, 1, 1), (3, 2, 0)];
    for precision in Precision::ALL {
        for shape in [Shape::new(2, 5, 9, 7), Shape::new(3, 64, 14, 15), Shape::new(1, 192, 28, 28)] {
            for (r, stride, pad) in windows {
                let window = Window { r, s: r, stride, pad };
                let side = |map| conv2d::window_count(map, r, stride, pad).unwrap();
                let pooled = Shape::new(shape.n, shape.c, side(shape.h), side(shape.w));
                for dropout in [None, Some(Dropping::new(&Dropout { probability: 0.5 }, 2))] {
                    let mut sketch = Sketch::new(precision);
                    let (x, y) = (filled(&mut sketch, shape), sliced(&mut sketch, pooled));
                    let index = sketch.buffer(Contents::Activation(pooled), Element::U8);
                    let step = max_pool::Forward { x, y, index: Some(index), window, dropout };
                    sketch.step(Step::MaxPoolForward(step));
                    each_candidate(&engine, &sketch, &[y.buffer, index], &format!("max pool of {shape} by {window:?}"));
                }
                for parts in [0, 7, 12] {
                    let mut sketch = Sketch::new(precision);
                    let (dy, dx) = (sliced(&mut sketch, pooled), filled(&mut sketch, shape));
                    let index = sketch.buffer(Contents::Activation(pooled), Element::U8);
                    let (x, y) = (filled(&mut sketch, shape), sketch.activation(pooled));
                    let step = max_pool::Forward { x, y, index: Some(index), window, dropout: None };
                    sketch.step(Step::MaxPoolForward(step));
                    let epilogue = epilogue(&mut sketch, shape, parts);
                    let outputs = outputs(&dx, &epilogue);
                    sketch.step(Step::MaxPoolBackward(max_pool::Backward { dy, index, dx, window, epilogue }));
                    each_candidate(&engine, &sketch, &outputs, &format!("max pool backward of {shape} by {window:?}"));
                }
            }
            let pooled = Shape::new(shape.n, shape.c, 1, 1);
            let mut sketch = Sketch::new(precision);
            let (x, y) = (filled(&mut sketch, shape), sketch.activation(pooled));
            let dropout = Some(Dropping::new(&Dropout { probability: 0.4 }, 1));
            sketch.step(Step::AveragePoolForward(average_pool::Forward { x, y, dropout }));
            each_candidate(&engine, &sketch, &[y.buffer], &format!("average pool of {shape}"));
            for parts in [0, 7, 12, 20] {
                let mut sketch = Sketch::new(precision);
                let (dy, dx) = (filled(&mut sketch, pooled), filled(&mut sketch, shape));
                let epilogue = epilogue(&mut sketch, shape, parts);
                let outputs = outputs(&dx, &epilogue);
                sketch.step(Step::AveragePoolBackward(average_pool::Backward { dy, dx, epilogue }));
                each_candidate(&engine, &sketch, &outputs, &format!("average pool backward of {shape}"));
            }
        }
    }
}

#[test]
fn loss_and_rounding_are_the_references() {
    let Some(engine) = engine() else { return };
    for precision in Precision::ALL {
        for (n, classes) in [(1, 3), (5, 10), (64, 1000)] {
            let mut sketch = Sketch::new(precision);
            let logits = filled(&mut sketch, Shape::new(n, classes, 1, 1));
            let labels = sketch.buffer(Contents::Vector(n), Element::U32);
            sketch.set(labels, (0..n).map(|i| ((7 * i + 2) % classes) as f32).collect());
            let loss = sketch.vector(1);
            let dlogits = sketch.activation(logits.shape);
            let step = softmax::CrossEntropy { logits, labels, loss, dlogits, loss_scale: 64.0 };
            sketch.step(Step::CrossEntropy(step));
            each_candidate(&engine, &sketch, &[loss, dlogits.buffer], &format!("cross entropy of {n} x {classes}"));
        }
        if precision.storage() != Element::F32 {
            let mut sketch = Sketch::new(precision);
            for k in [5, 64, 1000] {
                let shape = FilterShape { k, c: 5, r: 3, s: 3 };
                let (x, y) = (sketch.filter(shape, Element::F32), sketch.filter(shape, precision.storage()));
                sketch.fill(x);
                sketch.step(Step::Cast(cast::Cast { x, y }));
                each_candidate(&engine, &sketch, &[y], "cast");
            }
        }
    }
}
