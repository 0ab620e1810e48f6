//! Launches of maximum pooling.

use super::batch_norm::add_reductions;
use super::columns::{Tiling, optional_row, optional_view};
use super::dropout::dropout;
use super::launch::{Candidate, Command, Lowering};
use crate::ops::View;
use crate::ops::conv2d::Window;
use crate::ops::max_pool::{Backward, Forward};

/// A window that kernels are written for, and what a thread takes of the map: as many neighbors as share enough to make
/// up for fewer threads. Measured on an H200, 2026-11-30.
struct Known {
    side: usize,
    stride: usize,
    forward: &'static str,
    backward: &'static str,
    /// Outputs of a thread, forward.
    outputs: usize,
    /// Squares of `stride` × `stride` inputs of a thread, backward.
    squares: usize,
}

const KNOWN: [Known; 3] = [
    Known {
        side: 2,
        stride: 2,
        forward: "max_pool_forward_2_2",
        backward: "max_pool_backward_2_2",
        outputs: 1,
        squares: 1,
    },
    Known {
        side: 3,
        stride: 2,
        forward: "max_pool_forward_3_2",
        backward: "max_pool_backward_3_2",
        outputs: 1,
        squares: 1,
    },
    Known {
        side: 3,
        stride: 1,
        forward: "max_pool_forward_3_1",
        backward: "max_pool_backward_3_1",
        outputs: 2,
        squares: 4,
    },
];

fn known(window: Window) -> Option<&'static Known> {
    KNOWN.iter().find(|known| [window.r, window.s, window.stride] == [known.side, known.side, known.stride])
}

/// See [`Forward`].
pub(super) fn forward(step: &Forward, lowering: &Lowering) -> Candidate {
    let Forward { x, y, index, window, .. } = step;
    let (entry, outputs) = known(*window).map_or(("max_pool_forward", 1), |known| (known.forward, known.outputs));
    let strips = y.shape.n * y.shape.h * y.shape.w.div_ceil(outputs);
    let pointers = vec![lowering.view(x), lowering.view(y), lowering.optional(*index)];
    let parameters = [lowering.row(x), lowering.row(y)].into_iter().chain(geometry(x, y, *window));
    let launch = Tiling::strips(strips, y, lowering).launch("max_pool", entry, pointers, parameters);
    let mut candidate = Candidate::of(launch);
    candidate.commands.extend(step.dropout.iter().map(|dropping| Command::Kernel(dropout(y, dropping, lowering))));
    candidate
}

/// See [`Backward`].
pub(super) fn backward(step: &Backward, lowering: &Lowering) -> Candidate {
    let Backward { dy, index, dx, window, epilogue } = step;
    let mask = epilogue.relu_mask.as_ref();
    let (entry, strips) = match known(*window) {
        Some(known) => {
            let squares = |side: usize| (side - 1 + window.pad) / window.stride + 1;
            (known.backward, dx.shape.n * squares(dx.shape.h) * squares(dx.shape.w).div_ceil(known.squares))
        }
        None => ("max_pool_backward", dx.shape.positions()),
    };
    let pointers = vec![lowering.view(dy), lowering.place(*index), optional_view(mask, lowering), lowering.view(dx)];
    let parameters = [lowering.row(dy), lowering.row(dx), optional_row(mask, lowering)]
        .into_iter()
        .chain(geometry(dx, dy, *window))
        .chain([u32::from(epilogue.accumulate), epilogue.scale.to_bits()]);
    let launch = Tiling::strips(strips, dx, lowering).launch("max_pool_backward", entry, pointers, parameters);
    let mut candidate = Candidate::of(launch);
    add_reductions(&mut candidate, dx, &epilogue.reductions, lowering);
    candidate
}

/// Input map, output map and window.
fn geometry(x: &View, y: &View, window: Window) -> impl Iterator<Item = u32> {
    let Window { r, s, stride, pad } = window;
    [x.shape.h, x.shape.w, y.shape.h, y.shape.w, r, s, stride, pad].into_iter().map(|size| size as u32)
}
