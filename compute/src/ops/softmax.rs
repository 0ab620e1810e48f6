//! Softmax with cross-entropy, the loss of the training pass, and its gradient in one step.

use super::{BufferId, View};

/// Step: loss and gradient of the logits.
///
/// Formula: `p = softmax(logits)`, `loss = −(1/n) Σ ln p[label]`, `dlogits = loss_scale / n · (p − onehot(label))`.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossEntropy {
    /// Logits `[n, classes, 1, 1]`.
    pub logits: View,
    /// Class of each sample, `[n]` u32.
    pub labels: BufferId,
    /// Mean loss, one f32, without the loss scale.
    pub loss: BufferId,
    /// Gradient of the logits.
    pub dlogits: View,
    /// Factor on the gradient.
    pub loss_scale: f32,
}
