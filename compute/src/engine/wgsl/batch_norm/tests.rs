use super::*;
use crate::engine::wgsl::device::WgslEngine;
use crate::engine::wgsl::tests::{Sketch, engine, error, tolerance};
use crate::ops::conv2d::Window;
use crate::ops::{GradientEpilogue, average_pool, conv2d};
use crate::plan::{Contents, Step};
use crate::shape::{Element, FilterShape, Precision, Shape};

/// Odd sizes, one position, many positions, and more columns than a workgroup takes.
const SHAPES: [Shape; 4] =
    [Shape::new(2, 5, 3, 7), Shape::new(1, 3, 1, 2), Shape::new(3, 16, 41, 37), Shape::new(2, 132, 5, 3)];

/// Values of channel `c` in `[n, c, h, w]`.
fn channel(values: &[f32], shape: Shape, c: usize) -> impl Iterator<Item = (usize, f64)> {
    let plane = shape.h * shape.w;
    (0..shape.n)
        .flat_map(move |n| (0..plane).map(move |i| (n * shape.c + c) * plane + i))
        .map(|i| (i, values[i].into()))
}

/// For every element the number of its channel.
fn channels(shape: Shape) -> impl Iterator<Item = usize> {
    (0..shape.elements()).map(move |i| i / (shape.h * shape.w) % shape.c)
}

fn check_statistics(engine: &WgslEngine, shape: Shape, mean: f32, precision: Precision) {
    let mut sketch = Sketch::new(precision);
    let x = sketch.activation(shape);
    // A convolution that copies its input.
    let filter = FilterShape { k: shape.c, c: shape.c, r: 1, s: 1 };
    let w = sketch.buffer(Contents::Filter(filter), precision.storage());
    sketch.set(w, (0..filter.elements()).map(|i| f32::from(i / shape.c == i % shape.c)).collect());
    let y = sketch.activation(shape);
    let stream = crate::random::stream(2, "statistics");
    let values = (0..shape.elements() as u64).map(|i| mean + crate::random::normal(stream, i)).collect();
    let values = sketch.set(x.buffer, values);
    let statistics = Statistics { mean: sketch.vector(shape.c), inv_std: sketch.vector(shape.c), epsilon: 1e-5 };
    sketch.step(Step::Conv2dForward(conv2d::Forward {
        x,
        w,
        y,
        window: Window { r: 1, s: 1, stride: 1, pad: 0 },
        epilogue: conv2d::Epilogue::default(),
        statistics: Some(statistics),
    }));
    let found = sketch.run(engine, &[statistics.mean, statistics.inv_std]);
    let m = (shape.n * shape.h * shape.w) as f64;
    let means: Vec<f64> =
        (0..shape.c).map(|c| channel(&values, shape, c).map(|(_, value)| value).sum::<f64>() / m).collect();
    let inv_stds: Vec<f64> = (0..shape.c)
        .map(|c| channel(&values, shape, c).map(|(_, value)| (value - means[c]).powi(2)).sum::<f64>() / m)
        .map(|variance| 1.0 / (variance + 1e-5).sqrt())
        .collect();
    // The statistics are f32 in either precision, of what is stored.
    for (name, found, expected) in [("mean", &found[0], means), ("inv_std", &found[1], inv_stds)] {
        let error = error(found, &expected);
        assert!(error < 2e-5, "{name} of {shape} around {mean} in {precision}: {error}");
    }
}

#[test]
fn statistics_are_those_of_the_stored_output() {
    let Some(engine) = engine() else { return };
    for precision in [Precision::F32, Precision::F16] {
        for shape in SHAPES {
            check_statistics(&engine, shape, 0.5, precision);
        }
    }
    // The mean is a hundred times the deviation: sums of squares would cancel.
    check_statistics(&engine, Shape::new(3, 5, 41, 37), 100.0, Precision::F32);
}

/// A convolution's output with made-up statistics; returns it and the values of its vectors.
fn normalized(sketch: &mut Sketch, shape: Shape) -> (Normalized, Vec<f32>, [Vec<f32>; 4]) {
    let y = sketch.activation(shape);
    let values = sketch.fill(y.buffer);
    let [mean, inv_std, gamma, beta] = [(); 4].map(|()| sketch.vector(shape.c));
    let vectors = [mean, inv_std, gamma, beta].map(|id| sketch.fill(id));
    (Normalized { y, mean, inv_std, gamma, beta }, values, vectors)
}

fn apply_normalized(values: &[f32], [mean, inv_std, gamma, beta]: &[Vec<f32>; 4], shape: Shape) -> Vec<f64> {
    channels(shape)
        .zip(values)
        .map(|(c, &y)| {
            let [mean, inv_std, gamma, beta] = [mean, inv_std, gamma, beta].map(|vector| f64::from(vector[c]));
            gamma * (f64::from(y) - mean) * inv_std + beta
        })
        .collect()
}

fn check_forward(engine: &WgslEngine, shape: Shape, kind: u32, relu: bool, precision: Precision) {
    let mut sketch = Sketch::new(precision);
    let (input, values, vectors) = normalized(&mut sketch, shape);
    let mut expected = apply_normalized(&values, &vectors, shape);
    let (residual, added) = match kind {
        0 => (None, vec![0.0; shape.elements()]),
        1 => {
            let view = sketch.activation(shape);
            let added = sketch.fill(view.buffer).into_iter().map(f64::from).collect();
            (Some(Residual::Identity(view)), added)
        }
        _ => {
            let (shortcut, values, vectors) = normalized(&mut sketch, shape);
            (Some(Residual::Normalized(shortcut)), apply_normalized(&values, &vectors, shape))
        }
    };
    for (value, added) in expected.iter_mut().zip(added) {
        *value += added;
        if relu {
            *value = value.max(0.0);
        }
    }
    let z = sketch.activation(shape);
    sketch.step(Step::BatchNormForward(Forward { input, residual, relu, z }));
    let error = error(&sketch.run(engine, &[z.buffer])[0], &expected);
    assert!(error < tolerance(precision), "{shape}, residual {kind}, relu {relu}, {precision}: {error}");
}

#[test]
fn forward_normalizes_adds_and_rectifies() {
    let Some(engine) = engine() else { return };
    for precision in [Precision::F32, Precision::F16] {
        for (shape, kind) in SHAPES.into_iter().zip([0, 1, 2, 2]) {
            check_forward(&engine, shape, kind, kind != 1, precision);
        }
    }
}

fn check_reductions(engine: &WgslEngine, shape: Shape, precision: Precision) {
    let mut sketch = Sketch::new(precision);
    let dy = sketch.activation(Shape { h: 1, w: 1, ..shape });
    sketch.fill(dy.buffer);
    let dx = sketch.activation(shape);
    let mut sums = Vec::new();
    let mut values = Vec::new();
    for _ in 0..2 {
        let (input, y, vectors) = normalized(&mut sketch, shape);
        let [dgamma, dbeta] = [(); 2].map(|()| sketch.vector(shape.c));
        values.push((y, vectors));
        let Normalized { y, mean, inv_std, .. } = input;
        sums.push(Reduction { y, mean, inv_std, dgamma, dbeta, factor: 0.25 });
    }
    let epilogue = GradientEpilogue { scale: 1.0, accumulate: false, relu_mask: None, reductions: sums.clone() };
    sketch.step(Step::AveragePoolBackward(average_pool::Backward { dy, dx, epilogue }));
    let read: Vec<_> = std::iter::once(dx.buffer).chain(sums.iter().flat_map(|s| [s.dgamma, s.dbeta])).collect();
    let found = sketch.run(engine, &read);
    for (i, (y, [mean, inv_std, ..])) in values.iter().enumerate() {
        let (mut dgamma, mut dbeta) = (vec![0.0; shape.c], vec![0.0; shape.c]);
        for (idx, c) in channels(shape).enumerate() {
            let g = 0.25 * f64::from(found[0][idx]);
            dbeta[c] += g;
            dgamma[c] += g * (f64::from(y[idx]) - f64::from(mean[c])) * f64::from(inv_std[c]);
        }
        for (name, found, expected) in [("dgamma", &found[1 + 2 * i], dgamma), ("dbeta", &found[2 + 2 * i], dbeta)] {
            let error = error(found, &expected);
            assert!(error < 2e-5, "{name} {i} of {shape} in {precision}: {error}");
        }
    }
}

#[test]
fn reductions_sum_over_the_finished_gradient() {
    let Some(engine) = engine() else { return };
    for precision in [Precision::F32, Precision::F16] {
        for shape in SHAPES {
            check_reductions(&engine, shape, precision);
        }
    }
}

fn check_backward(engine: &WgslEngine, shape: Shape, in_place: bool, precision: Precision) {
    let mut sketch = Sketch::new(precision);
    let (input, y, [mean, inv_std, gamma, _]) = normalized(&mut sketch, shape);
    let g = sketch.activation(shape);
    let gradient = sketch.fill(g.buffer);
    let [dgamma, dbeta] = [(); 2].map(|()| sketch.vector(shape.c));
    let [dgamma_values, dbeta_values] = [dgamma, dbeta].map(|id| sketch.fill(id));
    let dy = if in_place { g } else { sketch.activation(shape) };
    let loss_scale = 4.0;
    let Normalized { y: y_view, mean: mean_id, inv_std: inv_std_id, gamma: gamma_id, .. } = input;
    sketch.step(Step::BatchNormBackward(Backward {
        g,
        y: y_view,
        mean: mean_id,
        inv_std: inv_std_id,
        gamma: gamma_id,
        dgamma,
        dbeta,
        dy,
        loss_scale,
    }));
    let m = shape.positions() as f64;
    let expected: Vec<f64> = channels(shape)
        .enumerate()
        .map(|(idx, c)| {
            let inv_std = f64::from(inv_std[c]);
            let normalized = (f64::from(y[idx]) - f64::from(mean[c])) * inv_std;
            let part = (f64::from(dbeta_values[c]) + normalized * f64::from(dgamma_values[c])) / m;
            f64::from(gamma[c]) * inv_std * (f64::from(gradient[idx]) - f64::from(loss_scale) * part)
        })
        .collect();
    let error = error(&sketch.run(engine, &[dy.buffer])[0], &expected);
    assert!(error < tolerance(precision), "{shape}, in place {in_place}, {precision}: {error}");
}

#[test]
fn backward_takes_the_means_away() {
    let Some(engine) = engine() else { return };
    for precision in [Precision::F32, Precision::F16] {
        for (shape, in_place) in SHAPES.into_iter().zip([false, true, false, true]) {
            check_backward(&engine, shape, in_place, precision);
        }
    }
}

#[test]
fn padding_channels_stay_zero() {
    let Some(engine) = engine() else { return };
    let shape = Shape::new(1, 5, 2, 2);
    let mut sketch = Sketch::new(Precision::F32);
    let (input, ..) = normalized(&mut sketch, shape);
    let z = sketch.activation(shape);
    sketch.step(Step::BatchNormForward(Forward { input, residual: None, relu: false, z }));
    // The same memory seen with its padding.
    let padded = sketch.buffer(Contents::Activation(Shape { c: 8, ..shape }), Element::F32);
    sketch.share(padded, z.buffer);
    let found = &sketch.run(&engine, &[padded])[0];
    assert!(found[..5 * 4].iter().all(|&value| value != 0.0));
    assert!(found[5 * 4..].iter().all(|&value| value == 0.0), "{found:?}");
}
