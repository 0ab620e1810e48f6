//! Average over whole maps.

use super::batch_norm::for_each_plane;
use super::gradient_epilogue::{self, Finish};
use super::storage::Storage;
use crate::ops::average_pool::{Backward, Forward};

/// See [`Forward`].
pub(super) fn forward(step: &Forward, storage: &mut Storage) {
    let mut y = storage.take(step.y.buffer);
    let x = storage.tensor(&step.x);
    let size = (step.x.shape.h * step.x.shape.w) as f64;
    for_each_plane(&step.y, &mut y, |n, c, y| {
        let mean = x.plane(n, c).iter().map(|&x| f64::from(x)).sum::<f64>() / size;
        let index = (n * step.y.shape.c + c) as u32;
        let factor = step.dropout.as_ref().map_or(1.0, |dropout| f64::from(dropout.factor(index)));
        y.fill((mean * factor) as f32);
    });
    storage.put(step.y.buffer, y);
}

/// See [`Backward`].
pub(super) fn backward(step: &Backward, storage: &mut Storage) {
    let mut dx = storage.take(step.dx.buffer);
    let dy = storage.tensor(&step.dy);
    let finish = Finish::new(&step.epilogue, storage);
    let size = (step.dx.shape.h * step.dx.shape.w) as f64;
    gradient_epilogue::store(&finish, &step.dx, &mut dx, |n, c, _, sum| {
        sum.fill(f64::from(dy.plane(n, c)[0]) / size);
        true
    });
    storage.put(step.dx.buffer, dx);
    gradient_epilogue::reduce(&step.epilogue, &step.dx, storage);
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;
    use crate::ops::GradientEpilogue;
    use crate::ops::dropout::{Dropout, Dropping};
    use crate::plan::Step;
    use crate::shape::Shape;

    /// Input, and channels before each slice.
    const CASES: [(Shape, usize); 3] =
        [(Shape::new(1, 1, 1, 1), 0), (Shape::new(3, 5, 7, 7), 0), (Shape::new(2, 3, 4, 5), 2)];

    #[test]
    fn forward() {
        for (shape, before) in CASES {
            let mut f = Fixture::new();
            let (x, y) = (f.activation(shape, before), f.activation(Shape { h: 1, w: 1, ..shape }, before));
            let dropping = Dropping::new(&Dropout { probability: 0.4 }, 9);
            for dropout in [None, Some(dropping)] {
                let after = f.run(Step::AveragePoolForward(Forward { x, y, dropout }));
                after.check(&shape.to_string(), &f, &y, |[n, c, ..]| {
                    let map = (0..shape.h).flat_map(|h| (0..shape.w).map(move |w| [n, c, h, w]));
                    let mean = map.map(|at| f.at(&x, at)).sum::<f64>() / (shape.h * shape.w) as f64;
                    mean * dropout.map_or(1.0, |dropout| f64::from(dropout.factor((n * shape.c + c) as u32)))
                });
            }
        }
    }

    #[test]
    fn backward() {
        for (shape, before) in CASES {
            let mut f = Fixture::new();
            let (dy, dx) = (f.activation(Shape { h: 1, w: 1, ..shape }, before), f.activation(shape, before));
            let bare = GradientEpilogue { scale: 1.0, accumulate: false, relu_mask: None, reductions: Vec::new() };
            for epilogue in [bare, f.epilogue(shape, before)] {
                let after = f.run(Step::AveragePoolBackward(Backward { dy, dx, epilogue: epilogue.clone() }));
                after.check_gradient(&shape.to_string(), &f, &dx, &epilogue, |[n, c, ..]| {
                    f.at(&dy, [n, c, 0, 0]) / (shape.h * shape.w) as f64
                });
            }
        }
    }
}
