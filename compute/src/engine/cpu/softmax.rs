//! Softmax with cross-entropy.

use super::storage::Storage;
use crate::ops::softmax::CrossEntropy;

/// See [`CrossEntropy`]. The largest logit is subtracted first, so that no exponential overflows.
pub(super) fn cross_entropy(step: &CrossEntropy, storage: &mut Storage) {
    let (n, classes) = (step.logits.shape.n, step.logits.shape.c);
    let mut dlogits = storage.take(step.dlogits.buffer);
    let (logits, labels) = (storage.tensor(&step.logits), storage.words(step.labels));
    let share = f64::from(step.loss_scale) / n as f64;
    let mut total = 0.0;
    for (sample, &label) in labels.iter().enumerate() {
        let logits = logits.sample(sample);
        let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let exponentials = logits.iter().map(|&logit| (f64::from(logit) - f64::from(largest)).exp());
        let sum: f64 = exponentials.clone().sum();
        total += sum.ln() - (f64::from(logits[label as usize]) - f64::from(largest));
        let first = sample * step.dlogits.buffer_channels + step.dlogits.channel_offset;
        let targets = dlogits[first..first + classes].iter_mut().zip(exponentials);
        for (class, (target, exponential)) in targets.enumerate() {
            let wanted = if class == label as usize { 1.0 } else { 0.0 };
            *target = (share * (exponential / sum - wanted)) as f32;
        }
    }
    storage.put(step.dlogits.buffer, dlogits);
    let mut loss = storage.take(step.loss);
    loss[0] = (total / n as f64) as f32;
    storage.put(step.loss, loss);
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;
    use crate::ops::View;
    use crate::plan::{Contents, Step};
    use crate::shape::{Element, Shape};

    #[test]
    fn cross_entropy() {
        // The last factor drives exponentials out of range unless the largest logit is subtracted.
        for (n, classes, factor) in [(1, 1, 1.0), (3, 5, 1.0), (4, 12, 3.0), (2, 7, 1000.0)] {
            let mut f = Fixture::new();
            let shape = Shape::new(n, classes, 1, 1);
            let logits = (0..n * classes).map(|i| factor * (i as f32 * 0.7).sin()).collect();
            let logits = View::whole(f.buffer(Contents::Activation(shape), Element::F32, logits), shape);
            let labels = (0..n).map(|sample| (3 * sample % classes) as f32).collect();
            let labels = f.buffer(Contents::Vector(n), Element::U32, labels);
            let (loss, dlogits) = (f.vector(1), f.activation(shape, 0));
            let step = CrossEntropy { logits, labels, loss, dlogits, loss_scale: 16.0 };
            let after = f.run(Step::CrossEntropy(step));
            // ln p = −ln Σ exp(other − logit), which holds for any logits.
            let log_p = |sample: usize, class: usize| {
                let logit = |class| f.at(&logits, [sample, class, 0, 0]);
                let largest = (0..classes).map(logit).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = (0..classes).map(|other| (logit(other) - largest).exp()).sum();
                logit(class) - largest - sum.ln()
            };
            let label = |sample: usize| f.value(labels, sample) as usize;
            let what = format!("{n} of {classes}, {factor}");
            let expected = -(0..n).map(|sample| log_p(sample, label(sample))).sum::<f64>() / n as f64;
            after.check_buffer(&format!("{what}: loss"), loss, &[expected]);
            after.check(&what, &f, &dlogits, |[sample, class, ..]| {
                let wanted = if class == label(sample) { 1.0 } else { 0.0 };
                16.0 / n as f64 * (log_p(sample, class).exp() - wanted)
            });
        }
    }
}
