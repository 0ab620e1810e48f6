//! Launches of batch norm in training: statistics, apply, gradient, and the sums for it.

use super::columns::{Tiling, optional_row, optional_view};
use super::launch::{Candidate, Command, Launch, Lowering, Place};
use crate::ops::View;
use crate::ops::batch_norm::{Backward, Forward, Normalized, Reduction, Residual, Statistics};

/// See [`Forward`].
pub(super) fn forward(step: &Forward, lowering: &Lowering) -> Candidate {
    let Forward { input, residual, relu, z } = step;
    let vectors = |n: &Normalized| [n.mean, n.inv_std, n.gamma, n.beta].map(|id| lowering.place(id));
    let (added, shortcut) = match residual {
        None => (None, [Place::Null; 4]),
        Some(Residual::Identity(view)) => (Some(view), [Place::Null; 4]),
        Some(Residual::Normalized(shortcut)) => (Some(&shortcut.y), vectors(shortcut)),
    };
    let mut pointers = vec![lowering.view(&input.y)];
    pointers.extend(vectors(input));
    pointers.push(optional_view(added, lowering));
    pointers.extend(shortcut);
    pointers.push(lowering.view(z));
    let parameters = [lowering.row(&input.y), optional_row(added, lowering), lowering.row(z), u32::from(*relu)];
    Candidate::of(Tiling::elementwise(z, lowering).launch("batch_norm", "batch_norm_forward", pointers, parameters))
}

/// See [`Backward`].
pub(super) fn backward(step: &Backward, lowering: &Lowering) -> Candidate {
    let Backward { g, y, mean, inv_std, gamma, dgamma, dbeta, dy, loss_scale } = step;
    let mut pointers = vec![lowering.view(g), lowering.view(y)];
    pointers.extend([mean, inv_std, gamma].map(|&id| lowering.place(id)));
    pointers.extend([dgamma, dbeta].map(|&id| lowering.place(id)));
    pointers.push(lowering.view(dy));
    let share = loss_scale / y.shape.positions() as f32;
    let parameters = [lowering.row(g), lowering.row(y), lowering.row(dy), share.to_bits()];
    Candidate::of(Tiling::elementwise(dy, lowering).launch("batch_norm", "batch_norm_backward", pointers, parameters))
}

/// Statistics of a finished `y`, and the bytes of workspace that they need at `offset`.
pub(super) fn statistics(y: &View, step: &Statistics, offset: u64, lowering: &Lowering) -> (Launch, u64) {
    let tiling = Tiling::sums(y, lowering);
    let mut pointers = vec![lowering.view(y)];
    pointers.extend([step.mean, step.inv_std].map(|id| lowering.place(id)));
    pointers.extend([Place::Workspace { offset }, Place::Tickets]);
    let parameters = [lowering.row(y), step.epsilon.to_bits()];
    // Two sums, and what they are about.
    let bytes = tiling.partial_bytes(3);
    (tiling.launch("batch_norm_sums", "batch_norm_statistics", pointers, parameters), bytes)
}

/// Sums over a finished gradient, and the bytes of workspace that they need at `offset`.
fn reduction(g: &View, step: &Reduction, offset: u64, lowering: &Lowering) -> (Launch, u64) {
    let Reduction { y, mean, inv_std, dgamma, dbeta, factor } = step;
    let tiling = Tiling::sums(g, lowering);
    let mut pointers = vec![lowering.view(g), lowering.view(y), lowering.place(*mean), lowering.place(*inv_std)];
    pointers.extend([dgamma, dbeta].map(|&id| lowering.place(id)));
    pointers.extend([Place::Workspace { offset }, Place::Tickets]);
    let parameters = [lowering.row(g), lowering.row(y), factor.to_bits()];
    let bytes = tiling.partial_bytes(2);
    (tiling.launch("batch_norm_sums", "batch_norm_reduction", pointers, parameters), bytes)
}

/// Adds the sums over the gradient that a candidate's commands finish.
pub(super) fn add_reductions(candidate: &mut Candidate, g: &View, steps: &[Reduction], lowering: &Lowering) {
    for step in steps {
        let (launch, bytes) = reduction(g, step, 0, lowering);
        candidate.commands.push(Command::Kernel(launch));
        candidate.workspace_bytes = candidate.workspace_bytes.max(bytes);
    }
}
