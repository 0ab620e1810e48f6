//! Candidates of backward weight: positions are cut into shares, whose sums a second launch adds up.

use super::sizes::Sizes;
use super::{MAX_WORKSPACE_BYTES, STEP_BYTES, THREADS};
use crate::engine::cuda::launch::{Candidate, Command, Kernel, Launch, Lowering, Place};
use crate::ops::conv2d::BackwardWeight;

/// Kernels of backward weight: rows and columns of the tile.
struct WeightTile {
    rows: u32,
    columns: u32,
    stages: u32,
    blocks: u32,
    entry: &'static str,
}

const WEIGHT_TILES: [WeightTile; 3] = [
    WeightTile { rows: 128, columns: 256, stages: 4, blocks: 1, entry: "conv2d_wgmma_backward_weight_128x256" },
    WeightTile { rows: 128, columns: 128, stages: 3, blocks: 2, entry: "conv2d_wgmma_backward_weight_128x128" },
    WeightTile { rows: 64, columns: 128, stages: 4, blocks: 2, entry: "conv2d_wgmma_backward_weight_64x128" },
];

/// Candidates of a convolution's gradients to its filter and bias.
pub(in crate::engine::cuda) fn backward_weight(step: &BackwardWeight, lowering: &Lowering) -> Vec<Candidate> {
    let Some(sizes) = Sizes::new(&step.x, &step.dy, step.window, lowering).filter(Sizes::is_half) else {
        return Vec::new();
    };
    let rows = [lowering.row(&step.x), lowering.row(&step.dy)];
    let depth = sizes.r * sizes.s * sizes.c;
    let weights = sizes.k * depth;
    let multiprocessors = lowering.facts.multiprocessors;
    // Half of a larger tile would be empty.
    let tiles = WEIGHT_TILES.iter().filter(|tile| tile.rows == 64 || sizes.k > tile.rows / 2);
    let mut launches: Vec<(String, Launch)> = tiles
        .map(|tile| {
            let tiles = sizes.k.div_ceil(tile.rows) * depth.div_ceil(tile.columns);
            let work = Work {
                tiles,
                slots: multiprocessors * tile.blocks,
                units: sizes.outputs().div_ceil(64),
                unit_secs: 64.0 * 2.0 * f64::from(tile.rows * tile.columns) * f64::from(tile.blocks)
                    / BLOCK_FLOPS_PER_SEC,
                weights,
            };
            let (shares, share) = work.shares();
            let mut parameters = sizes.words();
            parameters.extend(rows);
            parameters.push(share * 64);
            let launch = Launch {
                kernel: Kernel { file: "conv2d_wgmma_backward_weight", entry: tile.entry },
                pointers: Vec::new(),
                parameters,
                grid: [tiles, shares, 1],
                threads: THREADS,
                shared_bytes: tile.stages * (tile.rows + tile.columns) * STEP_BYTES,
            };
            (tile.entry.to_owned(), launch)
        })
        .collect();
    if (sizes.r, sizes.s, sizes.stride, sizes.pad) == (3, 3, 1, 1) {
        launches.push(patch_weight(&sizes, rows, multiprocessors));
    }
    launches
        .into_iter()
        .map(|(name, launch)| add_shares(name, launch, step, weights, sizes.k, lowering))
        .filter(|candidate| candidate.workspace_bytes <= MAX_WORKSPACE_BYTES)
        .collect()
}

/// Backward weight of a 3x3 window from patches: 64 by 64 channels of all taps a block.
fn patch_weight(sizes: &Sizes, rows: [u32; 2], multiprocessors: u32) -> (String, Launch) {
    const BATCH: u32 = 256;
    const PATCH_ROWS: u32 = 376;
    let Sizes { n, h, w, c, k, .. } = *sizes;
    // As for the other direction.
    let flat = BATCH + 2 * (w + 1) + 2 <= PATCH_ROWS;
    let tiles = k.div_ceil(64) * c.div_ceil(64);
    let work = Work {
        tiles,
        slots: multiprocessors,
        units: if flat { (n * (h + 1) * (w + 1)).div_ceil(BATCH) } else { n * h.div_ceil(16) * w.div_ceil(16) },
        unit_secs: f64::from(BATCH) * 2.0 * 64.0 * 576.0 / BLOCK_FLOPS_PER_SEC,
        weights: 9 * k * c,
    };
    let (shares, share) = work.shares();
    let entry = "conv2d_wgmma_patch_backward_weight";
    let launch = Launch {
        kernel: Kernel { file: entry, entry },
        pointers: Vec::new(),
        parameters: vec![n, h, w, c, k, rows[0], rows[1], u32::from(flat), share],
        grid: [tiles, shares, 1],
        threads: 384,
        shared_bytes: (BATCH + PATCH_ROWS) * (2 * STEP_BYTES + 4),
    };
    (if flat { format!("{entry}/flat") } else { entry.to_owned() }, launch)
}

/// The candidate of a launch that leaves shares, and of the launch that adds them up.
fn add_shares(
    name: String,
    mut launch: Launch,
    step: &BackwardWeight,
    weights: u32,
    k: u32,
    lowering: &Lowering,
) -> Candidate {
    let shares = launch.grid[1];
    let biases = if step.dbias.is_some() { k } else { 0 };
    let share_bytes = |elements: u32| u64::from(shares) * u64::from(elements) * 4;
    let partials = Place::Workspace { offset: 0 };
    let bias_partials = match step.dbias {
        Some(_) => Place::Workspace { offset: share_bytes(weights) },
        None => Place::Null,
    };
    launch.pointers = vec![lowering.view(&step.x), lowering.view(&step.dy), partials, bias_partials];
    let combine = Launch {
        kernel: Kernel { file: "conv2d_wgmma_backward_weight", entry: "conv2d_wgmma_backward_weight_combine" },
        pointers: vec![partials, bias_partials, lowering.place(step.dw), lowering.optional(step.dbias)],
        parameters: vec![weights, biases, shares, step.factor.to_bits()],
        // Blocks of 32 vectors of four.
        grid: [((weights + biases) / 4).div_ceil(32), 1, 1],
        threads: THREADS,
        shared_bytes: 0,
    };
    Candidate {
        name,
        commands: vec![Command::Kernel(launch), Command::Kernel(combine)],
        workspace_bytes: share_bytes(weights + biases),
        ..Candidate::default()
    }
}

/// Multiplications of one block alone on a multiprocessor, and bytes of shares: an H200, 2026-11-30.
const BLOCK_FLOPS_PER_SEC: f64 = 4.5e12;
const BYTES_PER_SEC: f64 = 4e12;
/// What a wave of blocks costs beside its multiplications.
const WAVE_SECS: f64 = 4e-6;

/// A reduction over positions that may be cut into shares.
struct Work {
    tiles: u32,
    /// Blocks that run at once.
    slots: u32,
    /// Units of positions that are not cut further, and the time of one.
    units: u32,
    unit_secs: f64,
    weights: u32,
}

impl Work {
    /// Number of shares and units of a share: the least estimated time of multiplying in whole waves of blocks, and of
    /// writing and reading the shares' sums.
    fn shares(&self) -> (u32, u32) {
        let secs = |shares: u32, share: u32| {
            let waves = f64::from((self.tiles * shares).div_ceil(self.slots));
            let moved = f64::from(shares) * f64::from(self.weights) * 8.0;
            waves * (f64::from(share) * self.unit_secs + WAVE_SECS) + moved / BYTES_PER_SEC
        };
        (1..=256)
            .map(|shares| (shares, self.units.div_ceil(shares)))
            .filter(|&(shares, share)| self.units.div_ceil(share) == shares)
            .min_by(|a, b| secs(a.0, a.1).total_cmp(&secs(b.0, b.1)))
            .expect("one share always covers everything")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_the_positions_once() {
        for units in [1, 8, 784, 50_176] {
            for tiles in [1, 18, 144, 2_000] {
                let work = Work { tiles, slots: 132, units, unit_secs: 1e-6, weights: tiles * 128 * 128 };
                let (shares, share) = work.shares();
                assert!(shares * share >= units && (shares - 1) * share < units, "{units} {tiles}");
            }
        }
    }
}
