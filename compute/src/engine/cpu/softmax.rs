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
