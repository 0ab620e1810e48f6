//! Convolutions on a device against plain loops in f64.

mod models;
mod reference;

use reference::{Geometry, conv2d_backward_bias, conv2d_backward_data, conv2d_backward_weight, conv2d_forward};

use crate::engine::wgsl::device::WgslEngine;
use crate::engine::wgsl::tests::{Sketch, engine, error, tolerance};
use crate::ops::conv2d::{BackwardData, BackwardWeight, Epilogue, Forward, Window};
use crate::ops::dropout::Dropping;
use crate::ops::{BufferId, GradientEpilogue, View};
use crate::plan::Step;
use crate::shape::{Element, Precision, Shape};

/// Sizes of one case: input `[n, c, h, w]`, output channels, window `[r, s, stride, pad]`.
type Sizes = ([usize; 4], usize, [usize; 4]);

/// Odd sizes, every stride and window of the suite's models, fully connected layers.
const SIZES: [Sizes; 14] = [
    ([2, 3, 9, 7], 5, [3, 3, 1, 1]),
    ([1, 4, 5, 5], 64, [1, 1, 1, 0]),
    ([3, 8, 11, 13], 12, [3, 3, 2, 1]),
    ([2, 20, 9, 9], 70, [1, 1, 2, 0]),
    ([1, 3, 23, 27], 16, [11, 11, 4, 2]),
    ([1, 3, 19, 16], 9, [7, 7, 2, 3]),
    ([2, 7, 8, 6], 130, [5, 5, 1, 2]),
    ([1, 16, 6, 7], 20, [1, 7, 1, 0]),
    ([2, 5, 12, 12], 8, [2, 2, 3, 0]),
    ([1, 24, 17, 16], 128, [3, 3, 1, 1]),
    // Fully connected: of a map, of one position, one image, rows that are no multiple of anything.
    ([3, 17, 6, 6], 33, [6, 6, 1, 0]),
    ([3, 260, 1, 1], 100, [1, 1, 1, 0]),
    ([1, 512, 3, 2], 10, [3, 2, 1, 0]),
    ([70, 36, 1, 1], 10, [1, 1, 1, 0]),
];

/// What stands between a case and a device of ordinary limits.
#[derive(Clone, Copy, Debug, Default)]
struct Squeeze {
    /// Bytes that one binding holds.
    binding_bytes: Option<u64>,
    /// Floating-point operations of one dispatch.
    flops: Option<u64>,
    /// Workgroups that keep the device busy.
    busy_workgroups: Option<u32>,
    /// Workgroup memory.
    workgroup_bytes: Option<u32>,
}

fn squeeze(engine: &mut WgslEngine, squeeze: Squeeze) {
    let ordinary = engine.limits;
    let limits = &mut engine.limits;
    limits.max_binding_bytes = squeeze.binding_bytes.unwrap_or(ordinary.max_binding_bytes);
    limits.max_flops_per_dispatch = squeeze.flops.unwrap_or(ordinary.max_flops_per_dispatch);
    limits.busy_workgroups = squeeze.busy_workgroups.unwrap_or(ordinary.busy_workgroups);
    limits.max_workgroup_bytes = squeeze.workgroup_bytes.unwrap_or(ordinary.max_workgroup_bytes);
}

fn geometry((shape, k, [r, s, stride, pad]): Sizes) -> Geometry {
    let [n, c, h, w] = shape;
    Geometry::new(Shape::new(n, c, h, w), k, Window { r, s, stride, pad })
}

/// An activation: all of a buffer, or four channels behind the beginning of a larger one.
fn activation(sketch: &mut Sketch, shape: Shape, is_slice: bool) -> View {
    if is_slice && shape.c.is_multiple_of(4) {
        sketch.slice(Shape { c: shape.c + 12, ..shape }, 4, shape.c)
    } else {
        sketch.activation(shape)
    }
}

/// Values of a view out of the values of its buffer.
fn values_of(view: &View, buffer: &[f32]) -> Vec<f64> {
    let plane = view.shape.h * view.shape.w;
    (0..view.shape.n)
        .flat_map(|n| {
            let first = (n * view.buffer_channels + view.channel_offset) * plane;
            buffer[first..first + view.shape.c * plane].iter().map(|&v| f64::from(v))
        })
        .collect()
}

fn filled(sketch: &mut Sketch, view: &View) -> Vec<f64> {
    let values = sketch.fill(view.buffer);
    values_of(view, &values)
}

fn filter(sketch: &mut Sketch, g: &Geometry, precision: Precision) -> (BufferId, Vec<f64>) {
    let id = sketch.filter(g.filter(), precision.storage());
    (id, sketch.fill(id).into_iter().map(f64::from).collect())
}

/// Asserts that a view holds `expected` and that the rest of its buffer holds what it held.
fn assert_view(name: &str, view: &View, read: &[f32], before: &[f32], expected: &[f64], precision: Precision) {
    let got: Vec<f32> = values_of(view, read).into_iter().map(|v| v as f32).collect();
    let e = error(&got, expected);
    assert!(e < tolerance(precision), "{name}: error {e:e}");
    let plane = view.shape.h * view.shape.w;
    for (idx, (a, b)) in read.iter().zip(before).enumerate() {
        let channel = idx / plane % view.buffer_channels;
        let is_inside = (view.channel_offset..view.channel_offset + view.shape.c).contains(&channel);
        assert!(is_inside || a == b, "{name}: element {idx} beside the view became {a}");
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Fused {
    scale: bool,
    bias: bool,
    residual: bool,
    relu: bool,
    dropout: bool,
    slices: bool,
}

const PLAIN: Fused = Fused { scale: false, bias: false, residual: false, relu: false, dropout: false, slices: false };
const INFERENCE: Fused = Fused { scale: true, bias: true, residual: true, relu: true, dropout: false, slices: true };
const CLASSIFIER: Fused = Fused { bias: true, relu: true, dropout: true, ..PLAIN };

fn check_forward(engine: &WgslEngine, sizes: Sizes, precision: Precision, fused: Fused) {
    let name = format!("{sizes:?} {precision} {fused:?}");
    let g = geometry(sizes);
    let mut sketch = Sketch::new(precision);
    let x = activation(&mut sketch, g.x, fused.slices);
    let x_values = filled(&mut sketch, &x);
    let (w, w_values) = filter(&mut sketch, &g, precision);
    let y = activation(&mut sketch, g.y, fused.slices);
    let before = sketch.fill(y.buffer);
    let mut expected = conv2d_forward(&g, &x_values, &w_values);
    let mut epilogue = Epilogue { relu: fused.relu, ..Epilogue::default() };
    let vector = |sketch: &mut Sketch, is_present: bool| {
        let id = is_present.then(|| sketch.vector(g.y.c));
        (id, id.map(|id| sketch.fill(id)))
    };
    let (scale, bias);
    (epilogue.scale, scale) = vector(&mut sketch, fused.scale);
    (epilogue.bias, bias) = vector(&mut sketch, fused.bias);
    let residual = fused.residual.then(|| {
        let view = activation(&mut sketch, g.y, fused.slices);
        epilogue.residual = Some(view);
        filled(&mut sketch, &view)
    });
    epilogue.dropout = fused.dropout.then_some(Dropping { key: 7, threshold: 1 << 31, scale: 2.0 });
    for (idx, value) in expected.iter_mut().enumerate() {
        let k = idx / (g.y.h * g.y.w) % g.y.c;
        *value *= scale.as_ref().map_or(1.0, |v| f64::from(v[k]));
        *value += bias.as_ref().map_or(0.0, |v| f64::from(v[k]));
        *value += residual.as_ref().map_or(0.0, |v| v[idx]);
        if fused.relu {
            *value = value.max(0.0);
        }
        *value *= epilogue.dropout.map_or(1.0, |dropping| f64::from(dropping.factor(idx as u32)));
    }
    sketch.step(Step::Conv2dForward(Forward { x, w, y, window: g.window, epilogue, statistics: None }));
    let read = sketch.run(engine, &[y.buffer]);
    assert_view(&name, &y, &read[0], &before, &expected, precision);
}

#[derive(Clone, Copy, Debug)]
struct Gradient {
    scale: f32,
    accumulate: bool,
    mask: bool,
    slices: bool,
}

const BARE: Gradient = Gradient { scale: 1.0, accumulate: false, mask: false, slices: false };
const ALL: Gradient = Gradient { scale: 2.0, accumulate: true, mask: true, slices: true };

fn check_backward_data(engine: &WgslEngine, sizes: Sizes, precision: Precision, fused: Gradient) {
    let name = format!("{sizes:?} {precision} {fused:?}");
    let g = geometry(sizes);
    let mut sketch = Sketch::new(precision);
    let dy = activation(&mut sketch, g.y, fused.slices);
    let dy_values = filled(&mut sketch, &dy);
    let (w, w_values) = filter(&mut sketch, &g, precision);
    let dx = activation(&mut sketch, g.x, fused.slices);
    let before = sketch.fill(dx.buffer);
    let relu_mask = fused.mask.then(|| activation(&mut sketch, g.x, fused.slices));
    let mask = relu_mask.map(|view| filled(&mut sketch, &view));
    let mut expected = conv2d_backward_data(&g, &dy_values, &w_values);
    let held = values_of(&dx, &before);
    for (idx, value) in expected.iter_mut().enumerate() {
        *value = *value * f64::from(fused.scale) + if fused.accumulate { held[idx] } else { 0.0 };
        if mask.as_ref().is_some_and(|mask| mask[idx] <= 0.0) {
            *value = 0.0;
        }
    }
    let epilogue =
        GradientEpilogue { scale: fused.scale, accumulate: fused.accumulate, relu_mask, reductions: Vec::new() };
    sketch.step(Step::Conv2dBackwardData(BackwardData { dy, w, dx, window: g.window, epilogue }));
    let read = sketch.run(engine, &[dx.buffer]);
    assert_view(&name, &dx, &read[0], &before, &expected, precision);
}

fn check_backward_weight(engine: &WgslEngine, sizes: Sizes, precision: Precision, slices: bool) {
    let name = format!("{sizes:?} {precision} slices {slices}");
    let g = geometry(sizes);
    let factor = 0.25;
    let mut sketch = Sketch::new(precision);
    let x = activation(&mut sketch, g.x, slices);
    let x_values = filled(&mut sketch, &x);
    let dy = activation(&mut sketch, g.y, slices);
    let dy_values = filled(&mut sketch, &dy);
    let dw = sketch.filter(g.filter(), Element::F32);
    let dbias = sketch.vector(g.y.c);
    sketch.fill(dw);
    sketch.fill(dbias);
    let step = BackwardWeight { x, dy, dw, dbias: Some(dbias), window: g.window, factor };
    sketch.step(Step::Conv2dBackwardWeight(step));
    let read = sketch.run(engine, &[dw, dbias]);
    let scaled = |values: Vec<f64>| values.into_iter().map(|v| v * f64::from(factor)).collect::<Vec<_>>();
    // Results are f32 whatever the storage of the activations.
    for (what, read, expected) in [
        ("dw", &read[0], conv2d_backward_weight(&g, &x_values, &dy_values)),
        ("dbias", &read[1], conv2d_backward_bias(&g, &dy_values)),
    ] {
        let e = error(read, &scaled(expected));
        assert!(e < tolerance(Precision::F32), "{name}: error of {what} {e:e}");
    }
}

#[test]
fn forward_agrees() {
    let Some(engine) = engine() else { return };
    for (sizes, idx) in SIZES.into_iter().zip(0..) {
        check_forward(&engine, sizes, Precision::F32, [PLAIN, INFERENCE, CLASSIFIER][idx % 3]);
        if idx % 2 == 0 {
            check_forward(&engine, sizes, Precision::F16, INFERENCE);
        }
    }
}

#[test]
fn backward_data_agrees() {
    let Some(engine) = engine() else { return };
    for (sizes, idx) in SIZES.into_iter().zip(0..) {
        check_backward_data(&engine, sizes, Precision::F32, [BARE, ALL][idx % 2]);
        if idx % 3 == 0 {
            check_backward_data(&engine, sizes, Precision::F16, ALL);
        }
    }
}

#[test]
fn backward_weight_agrees() {
    let Some(engine) = engine() else { return };
    for (sizes, idx) in SIZES.into_iter().zip(0..) {
        check_backward_weight(&engine, sizes, Precision::F32, idx % 2 == 1);
        if idx % 2 == 0 {
            check_backward_weight(&engine, sizes, Precision::F16, true);
        }
    }
}

/// Cases that a squeeze must cut: images, panels, workgroups, and the depth.
const CUT: [Sizes; 5] = [
    ([5, 8, 10, 10], 130, [3, 3, 1, 1]),
    ([3, 8, 11, 13], 12, [3, 3, 2, 1]),
    ([3, 12, 6, 6], 200, [6, 6, 1, 0]),
    ([7, 640, 1, 1], 300, [1, 1, 1, 0]),
    ([2, 32, 12, 11], 160, [1, 1, 2, 0]),
];

#[test]
fn every_cut_agrees() {
    let Some(mut engine) = engine() else { return };
    let ordinary = engine.limits;
    for cut in [
        Squeeze { busy_workgroups: Some(512), ..Squeeze::default() },
        Squeeze { busy_workgroups: Some(2), flops: Some(200_000), ..Squeeze::default() },
        Squeeze { binding_bytes: Some(1 << 18), workgroup_bytes: Some(16 << 10), ..Squeeze::default() },
        Squeeze {
            binding_bytes: Some(1 << 18),
            flops: Some(1 << 20),
            busy_workgroups: Some(512),
            ..Squeeze::default()
        },
    ] {
        engine.limits = ordinary;
        squeeze(&mut engine, cut);
        for (sizes, idx) in CUT.into_iter().zip(0..) {
            check_forward(&engine, sizes, Precision::F32, [CLASSIFIER, INFERENCE][idx % 2]);
            check_backward_data(&engine, sizes, Precision::F32, ALL);
            check_backward_weight(&engine, sizes, Precision::F32, false);
        }
    }
    assert_variants(&engine);
}

/// Asserts that every tile with one and with two buffers was computed with.
fn assert_variants(engine: &WgslEngine) {
    let known = format!("{:?}", engine.pipelines.lock().unwrap().keys());
    // Two buffers of the smallest tile always fit.
    let larger = [(64, 128), (128, 64), (128, 128)].into_iter().flat_map(|(m, n)| [(m, n, 1), (m, n, 2)]);
    let missing: Vec<_> = larger
        .chain([(64, 64, 2)])
        .filter(|(m, n, b)| !known.contains(&format!("(\"TILE_M\", {m}), (\"TILE_N\", {n}), (\"BUFFERS\", {b})")))
        .collect();
    assert!(missing.is_empty(), "tiles and buffers without a case: {missing:?}");
}
