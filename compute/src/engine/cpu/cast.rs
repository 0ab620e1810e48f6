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

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;
    use crate::plan::Step;
    use crate::shape::FilterShape;

    #[test]
    fn copies_every_weight() {
        let mut f = Fixture::new();
        let shape = FilterShape { k: 3, c: 2, r: 3, s: 1 };
        let (x, y) = (f.filter(shape), f.filter(shape));
        let values: Vec<f64> = (0..shape.elements()).map(|i| f.value(x, i)).collect();
        f.run(Step::Cast(Cast { x, y })).check_buffer("weights", y, &values);
    }
}
