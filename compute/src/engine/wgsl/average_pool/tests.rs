use super::*;
use crate::engine::wgsl::device::WgslEngine;
use crate::engine::wgsl::tests::{Sketch, engine, error, tolerance};
use crate::ops::GradientEpilogue;
use crate::ops::dropout::Dropping;
use crate::plan::Step;
use crate::shape::{Precision, Shape};

fn check(engine: &WgslEngine, shape: Shape, precision: Precision) {
    let plane = shape.h * shape.w;
    let small = Shape { h: 1, w: 1, ..shape };
    for dropout in [None, Some(Dropping { key: 1, threshold: 1 << 30, scale: 1.25 })] {
        let mut sketch = Sketch::new(precision);
        let x = sketch.activation(shape);
        let values = sketch.fill(x.buffer);
        let y = sketch.activation(small);
        sketch.step(Step::AveragePoolForward(Forward { x, y, dropout }));
        let factor = |i: usize| dropout.map_or(1.0, |dropping| dropping.factor(i as u32));
        let expected: Vec<f64> = values
            .chunks(plane)
            .enumerate()
            .map(|(i, map)| f64::from(factor(i)) * map.iter().copied().map(f64::from).sum::<f64>() / plane as f64)
            .collect();
        let error = error(&sketch.run(engine, &[y.buffer])[0], &expected);
        assert!(error < tolerance(precision), "{shape} in {precision}, {dropout:?}: {error}");
    }
    for (accumulate, masked, scale) in [(false, false, 1.0), (true, true, 1.25)] {
        let mut sketch = Sketch::new(precision);
        let dy = sketch.activation(small);
        let gradient = sketch.fill(dy.buffer);
        let (dx, mask) = (sketch.activation(shape), sketch.activation(shape));
        let (before, rectified) = (sketch.fill(dx.buffer), sketch.fill(mask.buffer));
        let relu_mask = masked.then_some(mask);
        let epilogue = GradientEpilogue { scale, accumulate, relu_mask, reductions: Vec::new() };
        sketch.step(Step::AveragePoolBackward(Backward { dy, dx, epilogue }));
        let expected: Vec<f64> = (0..shape.elements())
            .map(|i| {
                let new = f64::from(scale) * f64::from(gradient[i / plane]) / plane as f64;
                let sum = if accumulate { new + f64::from(before[i]) } else { new };
                if masked && rectified[i] <= 0.0 { 0.0 } else { sum }
            })
            .collect();
        let error = error(&sketch.run(engine, &[dx.buffer])[0], &expected);
        assert!(error < tolerance(precision), "{shape} in {precision}, accumulate {accumulate}: {error}");
    }
}

#[test]
fn maps_are_averaged_and_gradients_spread() {
    let Some(engine) = engine() else { return };
    for precision in [Precision::F32, Precision::F16] {
        check(&engine, Shape::new(2, 8, 7, 7), precision);
        check(&engine, Shape::new(3, 5, 1, 2), precision);
        check(&engine, Shape::new(1, 1030, 3, 5), precision);
    }
}
