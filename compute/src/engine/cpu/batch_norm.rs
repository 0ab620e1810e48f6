//! Batch norm in training: statistics, apply, and gradient.

use rayon::prelude::*;

use super::storage::{Storage, Tensor, place};
use crate::ops::View;
use crate::ops::batch_norm::{Backward, Forward, Normalized, Residual, Statistics};

/// See [`Statistics`]: mean first, then the squares of the distances from it.
pub(super) fn statistics(step: &Statistics, y: &View, storage: &mut Storage) {
    let values = storage.tensor(y);
    let m = y.shape.positions() as f64;
    let channel = |c: usize| {
        let sum_of = |f: &dyn Fn(f64) -> f64| {
            (0..y.shape.n).map(|n| values.plane(n, c).iter().map(|&y| f(f64::from(y))).sum::<f64>()).sum::<f64>()
        };
        let mean = sum_of(&|y| y) / m;
        let variance = sum_of(&|y| (y - mean) * (y - mean)) / m;
        [mean as f32, (variance + f64::from(step.epsilon)).sqrt().recip() as f32]
    };
    let moments: Vec<[f32; 2]> = (0..y.shape.c).into_par_iter().map(channel).collect();
    for (buffer, pick) in [(step.mean, 0), (step.inv_std, 1)] {
        let mut target = storage.take(buffer);
        target.iter_mut().zip(&moments).for_each(|(target, moments)| *target = moments[pick]);
        storage.put(buffer, target);
    }
}

/// One normalized input with its vectors.
struct Input<'a> {
    y: Tensor<'a>,
    mean: &'a [f32],
    inv_std: &'a [f32],
    gamma: &'a [f32],
    beta: &'a [f32],
}

impl<'a> Input<'a> {
    fn new(input: &Normalized, storage: &'a Storage) -> Self {
        Self {
            y: storage.tensor(&input.y),
            mean: storage.values(input.mean),
            inv_std: storage.values(input.inv_std),
            gamma: storage.values(input.gamma),
            beta: storage.values(input.beta),
        }
    }

    fn map(&self, n: usize, c: usize) -> impl Iterator<Item = f64> {
        let [mean, inv_std, gamma, beta] =
            [self.mean, self.inv_std, self.gamma, self.beta].map(|vector| f64::from(vector[c]));
        self.y.plane(n, c).iter().map(move |&y| gamma * (f64::from(y) - mean) * inv_std + beta)
    }
}

/// See [`Forward`].
pub(super) fn forward(step: &Forward, storage: &mut Storage) {
    let mut z = storage.take(step.z.buffer);
    let input = Input::new(&step.input, storage);
    let rectified = |value: f64| if step.relu && value < 0.0 { 0.0 } else { value } as f32;
    let identity = match &step.residual {
        Some(Residual::Identity(view)) => Some(storage.tensor(view)),
        _ => None,
    };
    let shortcut = match &step.residual {
        Some(Residual::Normalized(shortcut)) => Some(Input::new(shortcut, storage)),
        _ => None,
    };
    for_each_plane(&step.z, &mut z, |n, c, z| {
        let values = z.iter_mut().zip(input.map(n, c));
        if let Some(identity) = &identity {
            let residual = identity.plane(n, c);
            values.zip(residual).for_each(|((z, value), &x)| *z = rectified(value + f64::from(x)));
        } else if let Some(shortcut) = &shortcut {
            values.zip(shortcut.map(n, c)).for_each(|((z, value), x)| *z = rectified(value + x));
        } else {
            values.for_each(|(z, value)| *z = rectified(value));
        }
    });
    storage.put(step.z.buffer, z);
}

/// See [`Backward`].
pub(super) fn backward(step: &Backward, storage: &mut Storage) {
    let mut dy = storage.take(step.dy.buffer);
    let (g, y) = (storage.tensor(&step.g), storage.tensor(&step.y));
    let vectors = [step.mean, step.inv_std, step.gamma, step.dgamma, step.dbeta].map(|id| storage.values(id));
    let share = f64::from(step.loss_scale) / step.y.shape.positions() as f64;
    for_each_plane(&step.dy, &mut dy, |n, c, dy| {
        let [mean, inv_std, gamma, dgamma, dbeta] = vectors.map(|vector| f64::from(vector[c]));
        for ((dy, &g), &y) in dy.iter_mut().zip(g.plane(n, c)).zip(y.plane(n, c)) {
            let normalized = (f64::from(y) - mean) * inv_std;
            *dy = (gamma * inv_std * (f64::from(g) - share * (dbeta + normalized * dgamma))) as f32;
        }
    });
    storage.put(step.dy.buffer, dy);
}

/// Visits every map of a view whose buffer's slot is lent out, on all cores.
pub(super) fn for_each_plane(view: &View, slot: &mut [f32], visit: impl Fn(usize, usize, &mut [f32]) + Sync) {
    let size = view.shape.h * view.shape.w;
    let planes = slot[..view.shape.n * view.buffer_channels * size].par_chunks_mut(size).enumerate();
    planes.for_each(|(idx, plane)| {
        if let Some((n, c)) = place(view, idx) {
            visit(n, c, plane);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;
    use crate::plan::Step;
    use crate::shape::Shape;

    /// Shape, and channels before each slice.
    const CASES: [(Shape, usize); 3] =
        [(Shape::new(1, 1, 1, 1), 0), (Shape::new(3, 5, 4, 7), 0), (Shape::new(2, 3, 5, 3), 2)];

    fn normalized(f: &mut Fixture, shape: Shape, before: usize) -> Normalized {
        let y = f.activation(shape, before);
        let [mean, inv_std, gamma, beta] = [(); 4].map(|()| f.vector(shape.c));
        Normalized { y, mean, inv_std, gamma, beta }
    }

    fn value(f: &Fixture, input: &Normalized, at: [usize; 4]) -> f64 {
        let [mean, inv_std, gamma, beta] =
            [input.mean, input.inv_std, input.gamma, input.beta].map(|id| f.value(id, at[1]));
        gamma * (f.at(&input.y, at) - mean) * inv_std + beta
    }

    #[test]
    fn forward() {
        for (shape, before) in CASES {
            let mut f = Fixture::new();
            let (input, z) = (normalized(&mut f, shape, before), f.activation(shape, before));
            let identity = Residual::Identity(f.activation(shape, before));
            let shortcut = Residual::Normalized(normalized(&mut f, shape, before));
            for (residual, relu) in [(None, false), (None, true), (Some(identity), true), (Some(shortcut), true)] {
                let after = f.run(Step::BatchNormForward(Forward { input, residual, relu, z }));
                after.check(&format!("{shape} + {residual:?}"), &f, &z, |at| {
                    let residual = match &residual {
                        None => 0.0,
                        Some(Residual::Identity(view)) => f.at(view, at),
                        Some(Residual::Normalized(shortcut)) => value(&f, shortcut, at),
                    };
                    let sum = value(&f, &input, at) + residual;
                    if relu { sum.max(0.0) } else { sum }
                });
            }
        }
    }

    #[test]
    fn backward() {
        for (shape, before) in CASES {
            let mut f = Fixture::new();
            let [g, y, dy] = [(); 3].map(|()| f.activation(shape, before));
            let [mean, inv_std, gamma, dgamma, dbeta] = [(); 5].map(|()| f.vector(shape.c));
            let step = Backward { g, y, mean, inv_std, gamma, dgamma, dbeta, dy, loss_scale: 8.0 };
            f.run(Step::BatchNormBackward(step)).check(&shape.to_string(), &f, &dy, |at| {
                let vectors = [mean, inv_std, gamma, dgamma, dbeta].map(|id| f.value(id, at[1]));
                let [mean, inv_std, gamma, dgamma, dbeta] = vectors;
                let m = (shape.n * shape.h * shape.w) as f64;
                let normalized = (f.at(&y, at) - mean) * inv_std;
                gamma * inv_std * (f.at(&g, at) - 8.0 * (dbeta + normalized * dgamma) / m)
            });
        }
    }
}
