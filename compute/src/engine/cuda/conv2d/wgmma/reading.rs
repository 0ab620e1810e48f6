//! How tiles of forward and backward data read their gathered operand: the kernels of each way, and their launches.

use super::{PATCH_ROWS, ROWS, STAGING_BYTES, STEP_BYTES, THREADS};
use crate::engine::cuda::launch::{Kernel, Launch, Lowering};

/// How tiles read the gathered operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
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
pub(super) struct Tile {
    pub(super) columns: u32,
    pub(super) stages: u32,
    /// Blocks that share a multiprocessor.
    pub(super) blocks: u32,
    pub(super) forward: &'static str,
    pub(super) backward_data: &'static str,
}

pub(super) const GATHER: [Tile; 3] = [
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

pub(super) const POINTWISE: [Tile; 2] = [
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

pub(super) const PATCH: [Tile; 2] = [
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
pub(super) const NARROW: [Tile; 1] = [Tile {
    columns: 64,
    stages: 0,
    blocks: 1,
    forward: "conv2d_wgmma_narrow_forward",
    backward_data: "conv2d_wgmma_narrow_backward_data",
}];

/// A launch without its arguments, and the parts that its per-channel sums are left in: `row_tiles` of `classes` residue
/// classes, over `columns` columns; `slices` panels of channels in the reduction.
pub(super) fn launch(
    (reading, tile, file): (Reading, &Tile, &'static str),
    entry: &'static str,
    [row_tiles, classes, columns, slices]: [u32; 4],
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
            let patches = slices.min(2);
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
pub(super) fn name(reading: Reading, entry: &str) -> String {
    match reading {
        Reading::Patch { flat: true } => format!("{entry}/flat"),
        _ => entry.to_owned(),
    }
}
