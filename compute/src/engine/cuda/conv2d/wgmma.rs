//! Implicit GEMMs on the tensor cores of compute capability 9.0, in `shaders/conv2d_wgmma*.cu`, for half precisions: one
//! candidate for each way to read the gathered operand and each tile.
//!
//! The structures of parameters, the tiles and their shared memory are those of the kernel texts.

use crate::engine::cuda::launch::{Candidate, Command, Kernel, Launch, Lowering, Place};
use crate::ops::View;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Forward, Window};
use crate::shape::Element;

/// Threads of a block, and rows of its tile.
const THREADS: u32 = 256;
const ROWS: u32 = 128;

/// Bytes of one row of a shared operand: a step of the reduction.
const STEP_BYTES: u32 = 128;

/// Positions of the output below which tiles would be mostly empty.
const MIN_OUTPUTS: u32 = 32;

/// Most taps of a window.
const MAX_TAPS: u32 = 255;

/// Rows of a patch that fit into shared memory.
const PATCH_ROWS: u32 = 248;

/// Shared memory that the epilogue of a block that stays needs beside its operands.
const STAGING_BYTES: u32 = 8 * 2048 + 32;

/// Largest workspace of a candidate.
const MAX_WORKSPACE_BYTES: u64 = 512 << 20;

/// How tiles read the gathered operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Every row for every tap.
    Gather,
    /// Rows as they are: windows of one position, stride 1. Blocks stay for many tiles.
    Pointwise,
    /// A patch of the map for all taps. A tile is a run of positions of the map with its padding (`flat`), or 8 by 16
    /// positions.
    Patch { flat: bool },
    /// Patches too, for few channels in the reduction, whose filters stay in shared memory. Blocks stay for many tiles.
    Narrow,
}

/// One kernel of both directions.
struct Tile {
    columns: u32,
    stages: u32,
    /// Blocks that share a multiprocessor.
    blocks: u32,
    forward: &'static str,
    backward_data: &'static str,
}

const GATHER: [Tile; 3] = [
    Tile {
        columns: 256,
        stages: 4,
        blocks: 1,
        forward: "conv2d_wgmma_forward_128x256",
        backward_data: "conv2d_wgmma_backward_data_128x256",
    },
    Tile {
        columns: 128,
        stages: 3,
        blocks: 2,
        forward: "conv2d_wgmma_forward_128x128",
        backward_data: "conv2d_wgmma_backward_data_128x128",
    },
    Tile {
        columns: 64,
        stages: 3,
        blocks: 3,
        forward: "conv2d_wgmma_forward_128x64",
        backward_data: "conv2d_wgmma_backward_data_128x64",
    },
];

const POINTWISE: [Tile; 2] = [
    Tile {
        columns: 128,
        stages: 3,
        blocks: 2,
        forward: "conv2d_wgmma_pointwise_forward_128x128",
        backward_data: "conv2d_wgmma_pointwise_backward_data_128x128",
    },
    Tile {
        columns: 64,
        stages: 4,
        blocks: 2,
        forward: "conv2d_wgmma_pointwise_forward_128x64",
        backward_data: "conv2d_wgmma_pointwise_backward_data_128x64",
    },
];

const PATCH: [Tile; 2] = [
    Tile {
        columns: 128,
        stages: 3,
        blocks: 2,
        forward: "conv2d_wgmma_patch_forward_128x128",
        backward_data: "conv2d_wgmma_patch_backward_data_128x128",
    },
    Tile {
        columns: 64,
        stages: 3,
        blocks: 3,
        forward: "conv2d_wgmma_patch_forward_128x64",
        backward_data: "conv2d_wgmma_patch_backward_data_128x64",
    },
];

/// Its tile is 64 columns by 128 rows.
const NARROW: [Tile; 1] = [Tile {
    columns: 64,
    stages: 0,
    blocks: 1,
    forward: "conv2d_wgmma_narrow_forward",
    backward_data: "conv2d_wgmma_narrow_backward_data",
}];

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

/// Sizes of a convolution, channels padded.
#[derive(Clone, Copy)]
struct Sizes {
    n: u32,
    h: u32,
    w: u32,
    c: u32,
    k: u32,
    p: u32,
    q: u32,
    r: u32,
    s: u32,
    stride: u32,
    pad: u32,
}

impl Sizes {
    /// None where the kernels do not reach, or other kernels are the better choice by far.
    fn new(x: &View, y: &View, window: Window, lowering: &Lowering) -> Option<Self> {
        let is_half = matches!(lowering.element(), Element::F16 | Element::Bf16);
        let sizes = Self {
            n: x.shape.n as u32,
            h: x.shape.h as u32,
            w: x.shape.w as u32,
            c: lowering.padded(x.shape.c),
            k: lowering.padded(y.shape.c),
            p: y.shape.h as u32,
            q: y.shape.w as u32,
            r: window.r as u32,
            s: window.s as u32,
            stride: window.stride as u32,
            pad: window.pad as u32,
        };
        let is_served = lowering.facts.capability == (9, 0) && is_half;
        // Fully connected layers have few rows and a long reduction: left to kernels that cut it.
        let is_connected = sizes.p * sizes.q == 1;
        let is_fit = sizes.outputs() >= MIN_OUTPUTS && sizes.r * sizes.s <= MAX_TAPS;
        (is_served && !is_connected && is_fit).then_some(sizes)
    }

    /// Positions of the output.
    fn outputs(&self) -> u32 {
        self.n * self.p * self.q
    }

    /// The first words of every structure of parameters.
    fn words(&self) -> Vec<u32> {
        let Self { n, h, w, c, k, p, q, r, s, stride, pad } = *self;
        vec![n, h, w, c, k, r, s, stride, pad, p, q]
    }

    /// Rows of a patch under one tile.
    fn patch_rows(&self, flat: bool) -> u32 {
        if flat { ROWS + 2 * self.pad * (self.w + self.pad + 1) } else { (8 + 2 * self.pad) * (16 + 2 * self.pad) }
    }

    /// Every reading with its tiles and file, of forward or backward data.
    fn choices(&self, is_forward: bool) -> Vec<(Reading, &'static Tile, &'static str)> {
        let mut choices = Vec::new();
        let mut add = |reading, tiles: &'static [Tile], forward, backward_data| {
            let columns = if is_forward { self.k } else { self.c };
            let file = if is_forward { forward } else { backward_data };
            // Half of the tile would be empty.
            let fitting = tiles.iter().filter(|tile| tile.columns == 64 || columns > tile.columns / 2);
            choices.extend(fitting.map(|tile| (reading, tile, file)));
        };
        let is_pointwise = self.r * self.s == 1 && self.stride == 1 && self.pad == 0;
        if is_pointwise {
            add(Reading::Pointwise, &POINTWISE, "conv2d_wgmma_pointwise", "conv2d_wgmma_pointwise_backward_data");
        }
        // Wide tiles gain nothing where memory is the bound.
        let tiles = if is_pointwise { &GATHER[1..] } else { &GATHER };
        add(Reading::Gather, tiles, "conv2d_wgmma", "conv2d_wgmma_backward_data");
        let keeps_size = self.r == self.s && self.r == 2 * self.pad + 1 && self.stride == 1;
        if keeps_size && self.r >= 3 {
            // Flat tiles waste less, but their patches grow with the map.
            let fitting = [true, false].into_iter().find(|&flat| self.patch_rows(flat) <= PATCH_ROWS);
            if let Some(flat) = fitting {
                add(Reading::Patch { flat }, &PATCH, "conv2d_wgmma_patch", "conv2d_wgmma_patch");
            }
        }
        let depth = if is_forward { self.c } else { self.k };
        if keeps_size && self.r == 3 && depth <= 64 {
            add(Reading::Narrow, &NARROW, "conv2d_wgmma_narrow", "conv2d_wgmma_narrow");
        }
        choices
    }

    /// Tiles along the rows of one residue class of a map of `h` by `w` that is filled with a stride.
    fn row_tiles(&self, reading: Reading, h: u32, w: u32) -> u32 {
        match reading {
            Reading::Gather | Reading::Pointwise => (self.n * h * w).div_ceil(ROWS),
            Reading::Patch { flat: true } => (self.n * (h + self.pad) * (w + self.pad)).div_ceil(ROWS),
            Reading::Patch { flat: false } | Reading::Narrow => self.n * h.div_ceil(16) * w.div_ceil(8),
        }
    }
}

/// A launch without its arguments, and the parts that its per-channel sums are left in: `row_tiles` of `classes` residue
/// classes, over `columns` columns; `depth` channels in the reduction.
fn launch(
    (reading, tile, file): (Reading, &Tile, &'static str),
    entry: &'static str,
    [row_tiles, classes, columns, depth]: [u32; 4],
    lowering: &Lowering,
) -> (Launch, u32) {
    let multiprocessors = lowering.facts.multiprocessors;
    let operands = tile.stages * (ROWS + tile.columns) * STEP_BYTES;
    let column_tiles = columns.div_ceil(tile.columns);
    let blocks = row_tiles * column_tiles;
    let (grid, threads, shared_bytes, parts) = match reading {
        Reading::Gather => ([blocks, classes, 1], THREADS, operands + ROWS * 12, row_tiles * classes),
        Reading::Pointwise => {
            ([blocks.min(multiprocessors * tile.blocks), 1, 1], THREADS, operands + STAGING_BYTES, row_tiles)
        }
        Reading::Patch { .. } => {
            let patches = if depth > 64 { 2 } else { 1 };
            let tables = ((ROWS + PATCH_ROWS) * 4).next_multiple_of(1024);
            let bytes = (patches * PATCH_ROWS + tile.stages * tile.columns) * STEP_BYTES + tables;
            ([blocks, 1, 1], THREADS, bytes, row_tiles)
        }
        Reading::Narrow => {
            // Three warp groups, each with two patches of 184 rows, beside the filters of nine taps.
            let blocks = row_tiles.div_ceil(3).min((multiprocessors / column_tiles).max(1));
            ([blocks, column_tiles, 1], 384, (9 * 64 + 6 * 184) * STEP_BYTES, 3 * blocks)
        }
    };
    let kernel = Kernel { file, entry };
    (Launch { kernel, pointers: Vec::new(), parameters: Vec::new(), grid, threads, shared_bytes }, parts)
}

/// Name of a candidate.
fn name(reading: Reading, entry: &str) -> String {
    match reading {
        Reading::Patch { flat: true } => format!("{entry}/flat"),
        _ => entry.to_owned(),
    }
}

/// A launch that adds up what tiles left, eight channels a block.
fn combine(entry: &'static str, pointers: Vec<Place>, parameters: Vec<u32>, channels: u32) -> Command {
    let kernel = Kernel { file: "conv2d_wgmma_combine", entry };
    let grid = [channels.div_ceil(8), 1, 1];
    Command::Kernel(Launch { kernel, pointers, parameters, grid, threads: 1024, shared_bytes: 0 })
}

/// Candidates of a convolution with its epilogue, but for dropout, and its statistics.
pub(in crate::engine::cuda) fn forward(step: &Forward, lowering: &Lowering) -> Vec<Candidate> {
    let epilogue = &step.epilogue;
    let is_plain = epilogue.scale.is_none() && epilogue.bias.is_none() && epilogue.residual.is_none() && !epilogue.relu;
    let Some(sizes) = Sizes::new(&step.x, &step.y, step.window, lowering) else {
        return Vec::new();
    };
    if step.statistics.is_some() && !is_plain {
        return Vec::new();
    }
    let residual = epilogue.residual.as_ref();
    let partials = Place::Workspace { offset: 0 };
    let candidate = |choice: (Reading, &'static Tile, &'static str)| {
        let (reading, tile, _) = choice;
        let row_tiles = sizes.row_tiles(reading, sizes.p, sizes.q);
        let (mut launch, parts) = launch(choice, tile.forward, [row_tiles, 1, sizes.k, sizes.c], lowering);
        launch.pointers = vec![
            lowering.view(&step.x),
            lowering.place(step.w),
            lowering.optional(epilogue.scale),
            lowering.optional(epilogue.bias),
            residual.map_or(Place::Null, |view| lowering.view(view)),
            lowering.view(&step.y),
            if step.statistics.is_some() { partials } else { Place::Null },
        ];
        launch.parameters = sizes.words();
        launch.parameters.extend([lowering.row(&step.x), lowering.row(&step.y)]);
        launch.parameters.extend([residual.map_or(0, |view| lowering.row(view)), u32::from(epilogue.relu)]);
        if let Reading::Patch { flat } = reading {
            launch.parameters.push(u32::from(flat));
        }
        let mut candidate = Candidate::of(launch);
        candidate.name = name(reading, tile.forward);
        if let Some(to) = &step.statistics {
            candidate.workspace_bytes = u64::from(parts) * (2 * u64::from(sizes.k) + 1) * 4;
            candidate.commands.push(combine(
                "conv2d_wgmma_statistics_combine",
                vec![partials, lowering.place(to.mean), lowering.place(to.inv_std)],
                vec![sizes.k, parts, sizes.outputs(), to.epsilon.to_bits()],
                sizes.k,
            ));
        }
        candidate
    };
    sizes.choices(true).into_iter().map(candidate).collect()
}

/// Candidates of a convolution's gradient to its input, with epilogue and up to two reductions.
pub(in crate::engine::cuda) fn backward_data(step: &BackwardData, lowering: &Lowering) -> Vec<Candidate> {
    let epilogue = &step.epilogue;
    let Some(sizes) = Sizes::new(&step.dx, &step.dy, step.window, lowering) else {
        return Vec::new();
    };
    if epilogue.reductions.len() > 2 {
        return Vec::new();
    }
    let [first, second] = [0, 1].map(|idx| epilogue.reductions.get(idx));
    let mask = epilogue.relu_mask.as_ref();
    let partials = Place::Workspace { offset: 0 };
    let classes = sizes.stride * sizes.stride;
    let candidate = |choice: (Reading, &'static Tile, &'static str)| {
        let (reading, tile, _) = choice;
        let row_tiles = sizes.row_tiles(reading, sizes.h.div_ceil(sizes.stride), sizes.w.div_ceil(sizes.stride));
        let (mut launch, parts) = launch(choice, tile.backward_data, [row_tiles, classes, sizes.c, sizes.k], lowering);
        launch.pointers = vec![lowering.view(&step.dy), lowering.place(step.w)];
        launch.pointers.push(mask.map_or(Place::Null, |view| lowering.view(view)));
        for to in [first, second] {
            launch.pointers.push(to.map_or(Place::Null, |to| lowering.view(&to.y)));
            launch.pointers.push(lowering.optional(to.map(|to| to.mean)));
        }
        launch.pointers.push(lowering.view(&step.dx));
        launch.pointers.push(if first.is_some() { partials } else { Place::Null });
        launch.parameters = sizes.words();
        launch.parameters.extend([lowering.row(&step.dy), lowering.row(&step.dx)]);
        launch.parameters.push(mask.map_or(0, |view| lowering.row(view)));
        launch.parameters.extend([first, second].map(|to| to.map_or(0, |to| lowering.row(&to.y))));
        launch.parameters.extend([u32::from(epilogue.accumulate), epilogue.scale.to_bits()]);
        if let Reading::Patch { flat } = reading {
            launch.parameters.push(u32::from(flat));
        }
        let mut candidate = Candidate::of(launch);
        candidate.name = name(reading, tile.backward_data);
        if let Some(first) = first {
            candidate.workspace_bytes = u64::from(parts) * 3 * u64::from(sizes.c) * 4;
            let mut pointers = vec![partials, lowering.place(first.inv_std)];
            pointers.push(lowering.optional(second.map(|to| to.inv_std)));
            pointers.extend([lowering.place(first.dgamma), lowering.place(first.dbeta)]);
            pointers.push(lowering.optional(second.map(|to| to.dgamma)));
            pointers.push(lowering.optional(second.map(|to| to.dbeta)));
            let factors = [first.factor, second.map_or(0.0, |to| to.factor)].map(f32::to_bits);
            let mut parameters = vec![sizes.c, parts, epilogue.reductions.len() as u32];
            parameters.extend(factors);
            candidate.commands.push(combine("conv2d_wgmma_reduction_combine", pointers, parameters, sizes.c));
        }
        candidate
    };
    sizes.choices(false).into_iter().map(candidate).collect()
}

/// Candidates of a convolution's gradients to its filter and bias.
pub(in crate::engine::cuda) fn backward_weight(step: &BackwardWeight, lowering: &Lowering) -> Vec<Candidate> {
    let Some(sizes) = Sizes::new(&step.x, &step.dy, step.window, lowering) else {
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
