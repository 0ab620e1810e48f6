//! Launches of the average over the map.

use super::batch_norm::add_reductions;
use super::columns::{Tiling, optional_row, optional_view};
use super::dropout::dropout;
use super::launch::{Candidate, Command, Lowering};
use crate::ops::average_pool::{Backward, Forward};

/// See [`Forward`].
pub(super) fn forward(step: &Forward, lowering: &Lowering) -> Candidate {
    let Forward { x, y, dropout: dropping } = step;
    let pointers = vec![lowering.view(x), lowering.view(y)];
    let parameters = [lowering.row(x), lowering.row(y)];
    let launch = Tiling::images(x, lowering).launch("average_pool", "average_pool_forward", pointers, parameters);
    let mut candidate = Candidate::of(launch);
    candidate.commands.extend(dropping.iter().map(|dropping| Command::Kernel(dropout(y, dropping, lowering))));
    candidate
}

/// See [`Backward`].
pub(super) fn backward(step: &Backward, lowering: &Lowering) -> Candidate {
    let Backward { dy, dx, epilogue } = step;
    let mask = epilogue.relu_mask.as_ref();
    let pointers = vec![lowering.view(dy), optional_view(mask, lowering), lowering.view(dx)];
    let scale = epilogue.scale / (dx.shape.h * dx.shape.w) as f32;
    let rows = [lowering.row(dy), lowering.row(dx), optional_row(mask, lowering)];
    let parameters = rows.into_iter().chain([u32::from(epilogue.accumulate), scale.to_bits()]);
    let launch = Tiling::images(dx, lowering).launch("average_pool", "average_pool_backward", pointers, parameters);
    let mut candidate = Candidate::of(launch);
    add_reductions(&mut candidate, dx, &epilogue.reductions, lowering);
    candidate
}
