//! Launches of the rounding of master weights.

use super::launch::{Candidate, Kernel, Launch, Lowering};
use crate::ops::cast::Cast;

/// Vectors of a block: 256 threads with four each.
const VECTORS: u64 = 1024;

/// See [`Cast`].
pub(super) fn cast(step: &Cast, lowering: &Lowering) -> Candidate {
    let vectors = lowering.layout(step.y).bytes() / 16;
    Candidate::of(Launch {
        kernel: Kernel { file: "cast", entry: "cast" },
        pointers: vec![lowering.place(step.x), lowering.place(step.y)],
        parameters: vec![vectors as u32],
        grid: [vectors.div_ceil(VECTORS) as u32, 1, 1],
        threads: 256,
        shared_bytes: 0,
    })
}
