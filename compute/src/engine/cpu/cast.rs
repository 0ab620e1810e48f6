//! Copy of master weights; without half types there is nothing to round.

use super::storage::Storage;
use crate::ops::cast::Cast;

/// See [`Cast`].
pub(super) fn cast(step: &Cast, storage: &mut Storage) {
    let mut y = storage.take(step.y);
    let x = storage.values(step.x);
    y[..x.len()].copy_from_slice(x);
    storage.put(step.y, y);
}
