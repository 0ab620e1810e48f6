use super::*;
use crate::engine::wgsl::device::WgslEngine;
use crate::engine::wgsl::tests::{Sketch, engine, error, tolerance};
use crate::ops::{GradientEpilogue, MaxPool};
use crate::plan::{Contents, Step};
use crate::shape::{Element, Precision, Shape};

const DROPPING: Dropping = Dropping { key: 3, threshold: 1 << 31, scale: 2.0 };

/// Value and place of the first maximum of each window.
fn pooled(x: &[f32], shape: Shape, y: Shape, window: Window) -> Vec<(f32, usize, usize)> {
    let mut maxima = Vec::new();
    for (n, c, p, q) in positions(y) {
        let mut best: Option<(f32, usize, usize)> = None;
        for (r, s) in (0..window.r).flat_map(|r| (0..window.s).map(move |s| (r, s))) {
            let (h, w) = (p * window.stride + r, q * window.stride + s);
            if h < window.pad || w < window.pad || h - window.pad >= shape.h || w - window.pad >= shape.w {
                continue;
            }
            let at = ((n * shape.c + c) * shape.h + h - window.pad) * shape.w + w - window.pad;
            if best.is_none_or(|(value, ..)| x[at] > value) {
                best = Some((x[at], r * window.s + s, at));
            }
        }
        maxima.push(best.unwrap());
    }
    maxima
}

fn positions(shape: Shape) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    (0..shape.elements()).map(move |i| {
        let (q, rest) = (i % shape.w, i / shape.w);
        let (p, rest) = (rest % shape.h, rest / shape.h);
        (rest / shape.c, rest % shape.c, p, q)
    })
}

fn check(engine: &WgslEngine, shape: Shape, size: usize, stride: usize, pad: usize, precision: Precision) {
    let pool = MaxPool { size, stride, pad };
    let (y_shape, window) = (pool.output(shape).unwrap(), pool.window());
    let case = format!("{size}x{size} at stride {stride}, padding {pad}, of {shape} in {precision}");

    // Forward, with dropout, into a slice.
    let mut sketch = Sketch::new(precision);
    let x = sketch.activation(shape);
    // Few distinct values: the first of equal maxima counts.
    let stream = crate::random::stream(3, "max_pool");
    let values = (0..shape.elements() as u64).map(|i| (4.0 * crate::random::normal(stream, i)).round() / 4.0 - 2.0);
    let values = sketch.set(x.buffer, values.collect());
    let y = sketch.slice(Shape { c: shape.c.next_multiple_of(4) + 8, ..y_shape }, 4, shape.c.next_multiple_of(4));
    let y = View { shape: y_shape, ..y };
    let y = if shape.c.is_multiple_of(4) { y } else { sketch.activation(y_shape) };
    let index = sketch.buffer(Contents::Activation(y_shape), Element::U8);
    let dropout = Some(DROPPING);
    sketch.step(Step::MaxPoolForward(Forward { x, y, index: Some(index), window, dropout }));
    let plain = sketch.activation(y_shape);
    sketch.step(Step::MaxPoolForward(Forward { x, y: plain, index: None, window, dropout: None }));
    let found = sketch.run(engine, &[y.buffer, index, plain.buffer]);
    let maxima = pooled(&values, shape, y_shape, window);
    for (i, (n, c, p, q)) in positions(y_shape).enumerate() {
        let (value, place, _) = maxima[i];
        let at = ((n * y.buffer_channels + y.channel_offset + c) * y_shape.h + p) * y_shape.w + q;
        assert_eq!(found[2][i], value, "value {i} of {case}");
        assert_eq!(found[1][i], place as f32, "place {i} of {case}");
        assert_eq!(found[0][at], value * DROPPING.factor(i as u32), "dropped value {i} of {case}");
    }

    // Backward, with everything behind it.
    for (accumulate, masked, scale) in [(false, false, 1.0), (true, true, 2.0)] {
        let mut sketch = Sketch::new(precision);
        let dy = sketch.activation(y_shape);
        let gradient = sketch.fill(dy.buffer);
        let index = sketch.buffer(Contents::Activation(y_shape), Element::U8);
        sketch.set(index, maxima.iter().map(|(_, place, _)| *place as f32).collect());
        let dx = sketch.activation(shape);
        let before = sketch.fill(dx.buffer);
        let mask = sketch.activation(shape);
        let rectified = sketch.fill(mask.buffer);
        let relu_mask = masked.then_some(mask);
        let epilogue = GradientEpilogue { scale, accumulate, relu_mask, reductions: Vec::new() };
        sketch.step(Step::MaxPoolBackward(Backward { dy, index, dx, window, epilogue }));
        let mut expected = vec![0.0f64; shape.elements()];
        for (&(_, _, at), &gradient) in maxima.iter().zip(&gradient) {
            expected[at] += f64::from(scale) * f64::from(gradient);
        }
        for (i, value) in expected.iter_mut().enumerate() {
            *value += if accumulate { before[i].into() } else { 0.0 };
            *value *= if masked && rectified[i] <= 0.0 { 0.0 } else { 1.0 };
        }
        let error = error(&sketch.run(engine, &[dx.buffer])[0], &expected);
        assert!(error < tolerance(precision), "{case}, accumulate {accumulate}: {error}");
    }
}

#[test]
fn windows_give_their_maxima_and_get_their_gradients() {
    let Some(engine) = engine() else { return };
    for precision in [Precision::F32, Precision::F16] {
        check(&engine, Shape::new(2, 8, 13, 13), 3, 2, 0, precision);
        check(&engine, Shape::new(2, 5, 6, 8), 2, 2, 0, precision);
        check(&engine, Shape::new(1, 12, 7, 5), 3, 1, 1, precision);
        check(&engine, Shape::new(3, 4, 9, 11), 3, 2, 1, precision);
        check(&engine, Shape::new(1, 1, 3, 3), 3, 1, 0, precision);
    }
}
