//! Launches of softmax with cross-entropy.

use super::launch::{Kernel, Launch, Lowering, channels4, row4};
use crate::engine::EngineError;
use crate::ops::softmax::CrossEntropy;

/// Loss and gradient of the logits: a workgroup a sample, then the mean of the samples' losses.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn cross_entropy(step: &CrossEntropy, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let (logits, dlogits) = (&step.logits, &step.dlogits);
    let minibatch = logits.shape.n;
    let losses = |writable| context.workspace(0, 4 * minibatch as u64, writable);
    let kernel = |entry| Kernel { file: "softmax", entry, constants: Vec::new(), element: context.element() };
    let scale = step.loss_scale / minibatch as f32;
    let parameters = |samples: usize, first: usize, logits_base, dlogits_base| {
        vec![
            samples as u32,
            first as u32,
            minibatch as u32,
            logits.shape.c as u32,
            channels4(logits),
            logits_base,
            row4(logits),
            dlogits_base,
            row4(dlogits),
            scale.to_bits(),
        ]
    };
    let mut launches = Vec::new();
    for images in context.image_ranges(&[logits, dlogits], 0)? {
        let (logits_binding, logits_base) = context.images(logits, images.clone(), false)?;
        let (dlogits_binding, dlogits_base) = context.images(dlogits, images.clone(), true)?;
        launches.push(Launch {
            kernel: kernel("cross_entropy"),
            bindings: vec![logits_binding, context.whole(step.labels, false)?, losses(true)?, dlogits_binding],
            parameters: parameters(images.len(), images.start, logits_base, dlogits_base),
            workgroups: images.len() as u64,
            flops: 0,
            bytes: 4 * context.image_bytes(logits) * images.len() as u64,
        });
    }
    launches.push(Launch {
        kernel: kernel("cross_entropy_mean"),
        bindings: vec![losses(false)?, context.whole(step.loss, true)?],
        parameters: parameters(minibatch, 0, 0, 0),
        workgroups: 1,
        flops: 0,
        bytes: 4 * minibatch as u64,
    });
    Ok(launches)
}

#[cfg(test)]
mod tests;
