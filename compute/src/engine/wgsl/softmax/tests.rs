use super::*;
use crate::engine::wgsl::device::WgslEngine;
use crate::engine::wgsl::tests::{Sketch, engine, error, tolerance};
use crate::plan::{Contents, Step};
use crate::shape::{Element, Precision, Shape};

fn check(engine: &WgslEngine, minibatch: usize, classes: usize, precision: Precision) {
    let loss_scale = precision.loss_scale();
    let shape = Shape::new(minibatch, classes, 1, 1);
    let mut sketch = Sketch::new(precision);
    let (logits, dlogits) = (sketch.activation(shape), sketch.activation(shape));
    let values = sketch.fill(logits.buffer);
    let labels = sketch.buffer(Contents::Vector(minibatch), Element::U32);
    let classes_of: Vec<_> = (0..minibatch).map(|n| n * 7 % classes).collect();
    sketch.set(labels, classes_of.iter().map(|&class| class as f32).collect());
    let loss = sketch.vector(1);
    sketch.step(Step::CrossEntropy(CrossEntropy { logits, labels, loss, dlogits, loss_scale }));
    let (mut total, mut gradient) = (0.0f64, Vec::new());
    for (row, &class) in values.chunks(classes).zip(&classes_of) {
        let powers: Vec<f64> = row.iter().map(|&value| f64::from(value).exp()).collect();
        let sum: f64 = powers.iter().sum();
        total -= (powers[class] / sum).ln();
        let onehot = |idx| f64::from(u8::from(idx == class));
        let scale = f64::from(loss_scale) / minibatch as f64;
        gradient.extend(powers.iter().enumerate().map(|(idx, power)| scale * (power / sum - onehot(idx))));
    }
    let found = sketch.run(engine, &[loss, dlogits.buffer]);
    let case = format!("{minibatch} of {classes} classes in {precision}");
    let loss_error = error(&found[0], &[total / minibatch as f64]);
    assert!(loss_error < 1e-5, "loss of {case}: {loss_error}");
    let gradient_error = error(&found[1], &gradient);
    assert!(gradient_error < tolerance(precision), "gradient of {case}: {gradient_error}");
}

#[test]
fn loss_and_gradient_are_those_of_the_formula() {
    let Some(engine) = engine() else { return };
    for precision in [Precision::F32, Precision::F16] {
        check(&engine, 2, 12, precision);
        check(&engine, 3, 1001, precision);
        check(&engine, 1, 1, Precision::F32);
        check(&engine, 300, 5, precision);
    }
}

#[test]
fn more_workgroups_than_one_dimension_holds() {
    let Some(engine) = engine() else { return };
    check(&engine, 65_537, 3, Precision::F32);
}
