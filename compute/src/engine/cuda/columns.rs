//! Thread blocks and grids of the kernels that go over whole activations. Twin of `shaders/columns.cu` and
//! `shaders/column_sums.cu`.

use super::launch::{Kernel, Launch, Lowering, Place};
use crate::ops::View;

/// Threads of a block, about, and of one that sums.
const THREADS: u32 = 256;
const SUM_THREADS: u32 = 512;
/// Vectors side by side in a block: enough to read whole lines, few enough to leave rows for their neighbors. Measured
/// on an H200, 2026-11-30, where 8, 64 and 256 differ by less than 5 %.
const COLUMNS: u32 = 64;
/// The same for windows, whose rows share what they read.
const WINDOW_COLUMNS: u32 = 8;
/// The most that the summing kernels hold.
const SUM_COLUMNS: u32 = 16;
/// Positions of a thread, so that it reads its channels' coefficients seldom.
const POSITIONS_PER_THREAD: u32 = 8;
/// Blocks for each multiprocessor below which a thread takes fewer positions.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 2;

/// How a kernel is spread over positions and channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    positions: u32,
    channels: u32,
    /// Positions of a block.
    chunk: u32,
    /// Vectors of a block.
    columns: u32,
    /// Blocks that share the channels.
    tiles: u32,
    threads: u32,
}

impl Tiling {
    /// For a kernel that takes every position by itself.
    pub(super) fn elementwise(view: &View, lowering: &Lowering) -> Self {
        let positions = view.shape.positions() as u32;
        let channels = lowering.padded(view.shape.c);
        let vectors = channels / lowering.vector() as u32;
        let tiles = vectors.div_ceil(COLUMNS);
        let columns = vectors.div_ceil(tiles);
        let rows = THREADS / columns;
        let blocks = (lowering.facts.multiprocessors * BLOCKS_PER_MULTIPROCESSOR / tiles).max(1);
        let per_thread = positions.div_ceil(blocks).div_ceil(rows).clamp(1, POSITIONS_PER_THREAD);
        Self { positions, channels, chunk: rows * per_thread, columns, tiles, threads: rows * columns }
    }

    /// For a kernel that takes `strips` of positions with the channels of a view, one a thread.
    pub(super) fn strips(strips: usize, view: &View, lowering: &Lowering) -> Self {
        let channels = lowering.padded(view.shape.c);
        let vectors = channels / lowering.vector() as u32;
        let tiles = vectors.div_ceil(WINDOW_COLUMNS);
        let columns = vectors.div_ceil(tiles);
        let rows = THREADS / columns;
        Self { positions: strips as u32, channels, chunk: rows, columns, tiles, threads: rows * columns }
    }

    /// For a kernel that sums over all positions: one block for each multiprocessor.
    pub(super) fn sums(view: &View, lowering: &Lowering) -> Self {
        let positions = view.shape.positions() as u32;
        let channels = lowering.padded(view.shape.c);
        let vectors = channels / lowering.vector() as u32;
        let columns = vectors.next_power_of_two().min(SUM_COLUMNS);
        let tiles = vectors.div_ceil(columns);
        let blocks = (lowering.facts.multiprocessors / tiles).max(1);
        let chunk = positions.div_ceil(blocks).max(SUM_THREADS / columns);
        Self { positions, channels, chunk, columns, tiles, threads: SUM_THREADS }
    }

    /// For a kernel that takes every image by itself and sums over it.
    pub(super) fn images(view: &View, lowering: &Lowering) -> Self {
        let channels = lowering.padded(view.shape.c);
        let vectors = channels / lowering.vector() as u32;
        let columns = vectors.next_power_of_two().min(SUM_COLUMNS);
        let positions = view.shape.positions() as u32;
        let chunk = positions / view.shape.n as u32;
        Self { positions, channels, chunk, columns, tiles: vectors.div_ceil(columns), threads: THREADS }
    }

    /// Bytes that a kernel leaves for its last block when it sums `quantities`, f32.
    pub(super) fn partial_bytes(&self, quantities: u32) -> u64 {
        4 * u64::from(self.positions.div_ceil(self.chunk)) * u64::from(quantities) * u64::from(self.channels)
    }

    /// Launch of a kernel whose parameters are `parameters` behind the extent.
    pub(super) fn launch(
        &self,
        file: &'static str,
        entry: &'static str,
        pointers: Vec<Place>,
        parameters: impl IntoIterator<Item = u32>,
    ) -> Launch {
        let extent = [self.positions, self.channels, self.chunk, self.columns];
        Launch {
            kernel: Kernel { file, entry },
            pointers,
            parameters: extent.into_iter().chain(parameters).collect(),
            grid: [self.positions.div_ceil(self.chunk), self.tiles, 1],
            threads: self.threads,
            shared_bytes: 0,
        }
    }
}

/// First channel of an optional view.
pub(super) fn optional_view(view: Option<&View>, lowering: &Lowering) -> Place {
    view.map_or(Place::Null, |view| lowering.view(view))
}

/// Elements from one position of an optional view to the next.
pub(super) fn optional_row(view: Option<&View>, lowering: &Lowering) -> u32 {
    view.map_or(0, |view| lowering.row(view))
}
