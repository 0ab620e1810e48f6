//! Launch of softmax with cross-entropy.

use super::launch::{Candidate, Kernel, Launch, Lowering, Place};
use crate::ops::softmax::CrossEntropy;

/// See [`CrossEntropy`]. The samples' losses wait in the workspace.
pub(super) fn cross_entropy(step: &CrossEntropy, lowering: &Lowering) -> Candidate {
    let CrossEntropy { logits, labels, loss, dlogits, loss_scale } = step;
    let samples = logits.shape.n as u32;
    let mut pointers = vec![lowering.view(logits), lowering.place(*labels), lowering.place(*loss)];
    pointers.extend([lowering.view(dlogits), Place::Workspace { offset: 0 }, Place::Tickets]);
    let scale = loss_scale / samples as f32;
    let classes = logits.shape.c as u32;
    let candidate = Candidate::of(Launch {
        kernel: Kernel { file: "softmax", entry: "cross_entropy" },
        pointers,
        parameters: vec![samples, classes, lowering.row(logits), lowering.row(dlogits), scale.to_bits()],
        grid: [samples, 1, 1],
        threads: 256,
        shared_bytes: 0,
    });
    Candidate { workspace_bytes: 4 * u64::from(samples), ..candidate }
}
