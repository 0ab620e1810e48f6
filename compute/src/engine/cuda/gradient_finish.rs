//! Launches of what is fused behind a gradient that something else left in memory, and of a bias's gradient.

use super::columns::{Tiling, optional_row, optional_view};
use super::launch::{Launch, Lowering, Place};
use crate::ops::{BufferId, GradientEpilogue, View};

/// An epilogue applied to a gradient `g` whose positions are `g_row` elements apart, reductions included; `g` may be what
/// `dx` holds already. Beside it the bytes of workspace that it needs at `offset`.
///
/// # Panics
/// With more than two reductions: a gradient enters two batch norms at most.
pub(super) fn gradient_finish(
    g: Place,
    g_row: u32,
    dx: &View,
    epilogue: &GradientEpilogue,
    offset: u64,
    lowering: &Lowering,
) -> (Launch, u64) {
    let GradientEpilogue { scale, accumulate, relu_mask, reductions } = epilogue;
    let mask = relu_mask.as_ref();
    let y_row = |n: usize| optional_row(reductions.get(n).map(|reduction| &reduction.y), lowering);
    let factor = reductions.first().map_or(1.0, |reduction| reduction.factor);
    let parameters = [
        g_row,
        lowering.row(dx),
        optional_row(mask, lowering),
        y_row(0),
        y_row(1),
        u32::from(*accumulate),
        scale.to_bits(),
        factor.to_bits(),
    ];
    let mut pointers = vec![g, optional_view(mask, lowering)];
    for reduction in reductions {
        pointers.push(lowering.view(&reduction.y));
        pointers.extend([reduction.mean, reduction.inv_std].map(|id| lowering.place(id)));
    }
    pointers.push(lowering.view(dx));
    for reduction in reductions {
        pointers.extend([reduction.dgamma, reduction.dbeta].map(|id| lowering.place(id)));
    }
    let entry = match reductions.len() {
        0 => {
            let tiling = Tiling::elementwise(dx, lowering);
            return (tiling.launch("gradient_finish", "gradient_finish", pointers, parameters), 0);
        }
        1 => "gradient_finish_reduction",
        2 => "gradient_finish_two_reductions",
        more => unreachable!("a gradient with {more} reductions"),
    };
    pointers.extend([Place::Workspace { offset }, Place::Tickets]);
    let tiling = Tiling::sums(dx, lowering);
    let bytes = tiling.partial_bytes(1 + reductions.len() as u32);
    (tiling.launch("gradient_finish", entry, pointers, parameters), bytes)
}

/// `dbias = factor · Σ dy`, and the bytes of workspace that it needs at `offset`.
pub(super) fn bias_gradient(
    dy: &View,
    dbias: BufferId,
    factor: f32,
    offset: u64,
    lowering: &Lowering,
) -> (Launch, u64) {
    let tiling = Tiling::sums(dy, lowering);
    let pointers = vec![lowering.view(dy), lowering.place(dbias), Place::Workspace { offset }, Place::Tickets];
    let parameters = [lowering.row(dy), factor.to_bits()];
    (tiling.launch("batch_norm_sums", "bias_gradient", pointers, parameters), tiling.partial_bytes(1))
}
