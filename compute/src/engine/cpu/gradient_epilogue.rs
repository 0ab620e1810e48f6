//! What is fused behind every step that makes an activation's gradient.

use rayon::prelude::*;

use super::storage::{Storage, Tensor, place};
use crate::ops::batch_norm::Reduction;
use crate::ops::{GradientEpilogue, View};

/// The parts of an epilogue that are applied map by map.
pub(super) struct Finish<'a> {
    scale: f64,
    accumulate: bool,
    mask: Option<Tensor<'a>>,
}

/// Makes maps of `dx`: `gradient(n, c, scratch, sum)` puts the new gradient of one sample's channel into `sum`, or leaves
/// that map alone and says false; the epilogue does the rest. `dx` is the lent slot of the view's buffer, `scratch` is
/// whatever the last call left.
pub(super) fn store(
    finish: &Finish<'_>,
    view: &View,
    dx: &mut [f32],
    gradient: impl Fn(usize, usize, &mut Vec<f64>, &mut [f64]) -> bool + Sync,
) {
    let size = view.shape.h * view.shape.w;
    let n_planes = view.shape.n * view.buffer_channels;
    let planes = dx[..n_planes * size].par_chunks_mut(size).enumerate();
    planes.for_each_init(
        || (Vec::new(), vec![0.0; size]),
        |(scratch, sum), (plane_idx, plane)| {
            if let Some((n, c)) = place(view, plane_idx)
                && gradient(n, c, scratch, sum)
            {
                finish.plane(n, c, sum, plane);
            }
        },
    );
}

impl<'a> Finish<'a> {
    /// What an epilogue asks for.
    pub(super) fn new(epilogue: &GradientEpilogue, storage: &'a Storage) -> Self {
        Self {
            scale: f64::from(epilogue.scale),
            accumulate: epilogue.accumulate,
            mask: epilogue.relu_mask.as_ref().map(|view| storage.tensor(view)),
        }
    }

    fn plane(&self, n: usize, c: usize, new: &[f64], dx: &mut [f32]) {
        for (dx, new) in dx.iter_mut().zip(new) {
            let held = if self.accumulate { f64::from(*dx) } else { 0.0 };
            *dx = (self.scale * new + held) as f32;
        }
        if let Some(mask) = &self.mask {
            let values = mask.plane(n, c);
            dx.iter_mut().zip(values).filter(|&(_, &value)| value <= 0.0).for_each(|(dx, _)| *dx = 0.0);
        }
    }
}

/// Sums over the finished gradient, see [`Reduction`].
pub(super) fn reduce(epilogue: &GradientEpilogue, dx: &View, storage: &mut Storage) {
    for reduction in &epilogue.reductions {
        let sums = sums(reduction, dx, storage);
        let factor = f64::from(reduction.factor);
        for (buffer, pick) in [(reduction.dbeta, 0), (reduction.dgamma, 1)] {
            let mut target = storage.take(buffer);
            target.iter_mut().zip(&sums).for_each(|(target, sums)| *target = (factor * sums[pick]) as f32);
            storage.put(buffer, target);
        }
    }
}

/// `Σ g` and `Σ g · x̂` of every channel.
fn sums(reduction: &Reduction, dx: &View, storage: &Storage) -> Vec<[f64; 2]> {
    let (g, y) = (storage.tensor(dx), storage.tensor(&reduction.y));
    let (mean, inv_std) = (storage.values(reduction.mean), storage.values(reduction.inv_std));
    let channel = |c: usize| {
        let (mean, inv_std) = (f64::from(mean[c]), f64::from(inv_std[c]));
        let mut sums = [0.0; 2];
        for n in 0..dx.shape.n {
            for (&g, &y) in g.plane(n, c).iter().zip(y.plane(n, c)) {
                let g = f64::from(g);
                sums[0] += g;
                sums[1] += g * (f64::from(y) - mean) * inv_std;
            }
        }
        sums
    };
    (0..dx.shape.c).into_par_iter().map(channel).collect()
}
