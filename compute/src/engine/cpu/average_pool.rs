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
