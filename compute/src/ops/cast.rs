//! Rounding of f32 master weights to the storage type of the activations, once an iteration of mixed training.

use super::BufferId;

/// Step: `y = x`, rounded to nearest even. Both buffers are filters of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    /// Master weights, f32.
    pub x: BufferId,
    /// Weights as the convolutions read them.
    pub y: BufferId,
}
