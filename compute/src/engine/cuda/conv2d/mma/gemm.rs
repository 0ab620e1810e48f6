//! The GEMM of forward and backward data: its tiles, their launches, and parts of its reduction.

use super::sizes::Sizes;
use super::{CHUNKS, MIN_STEPS, shared_bytes};
use crate::engine::cuda::conv2d::divisor::divisor;
use crate::engine::cuda::launch::{Kernel, Launch, Lowering, TICKETS};

/// Rows and columns of a block's part of the result.
pub(super) struct Tile {
    pub(super) m: u32,
    pub(super) n: u32,
    /// Blocks that share a multiprocessor, where there is shared memory for them.
    pub(super) blocks: u32,
    /// The same for backward data, whose kernel takes more registers.
    pub(super) backward_data_blocks: u32,
    pub(super) forward: &'static str,
    pub(super) backward_data: &'static str,
}

const TILES: [Tile; 3] = [
    Tile {
        m: 128,
        n: 128,
        blocks: 2,
        backward_data_blocks: 2,
        forward: "conv2d_forward_128x128",
        backward_data: "conv2d_backward_data_128x128",
    },
    Tile {
        m: 128,
        n: 64,
        blocks: 3,
        backward_data_blocks: 3,
        forward: "conv2d_forward_128x64",
        backward_data: "conv2d_backward_data_128x64",
    },
    Tile {
        m: 64,
        n: 64,
        blocks: 4,
        backward_data_blocks: 3,
        forward: "conv2d_forward_64x64",
        backward_data: "conv2d_backward_data_64x64",
    },
];

/// One GEMM that forward and backward data share: gathered map, result, and the launch's shape.
pub(super) struct Gemm {
    /// Height, width, elements from one position to the next and channels of the gathered operand.
    pub(super) gathered: [u32; 4],
    pub(super) images: u32,
    pub(super) out_height: u32,
    pub(super) out_width: u32,
    pub(super) columns: u32,
    /// Height and width of the map of GEMM rows.
    pub(super) rows_height: u32,
    pub(super) rows_width: u32,
    /// Residue classes.
    pub(super) classes: u32,
}

impl Gemm {
    /// Rows of one residue class.
    fn rows(&self) -> u32 {
        self.images * self.rows_height * self.rows_width
    }

    pub(super) fn row_tiles(&self, tile: &Tile) -> u32 {
        self.rows().div_ceil(tile.m)
    }

    fn blocks(&self, tile: &Tile) -> u32 {
        self.row_tiles(tile) * self.columns.div_ceil(tile.n)
    }

    /// Words of the kernel's `Geometry`.
    pub(super) fn geometry(&self, sizes: &Sizes, tile: &Tile, splits: u32, vector: u32) -> Vec<u32> {
        let [height, width, row, channels] = self.gathered;
        let mut words = vec![height, width, row / vector, channels / vector];
        words.extend([self.images, self.out_height, self.out_width, self.columns]);
        words.extend(sizes.window_words());
        words.extend(divisor(self.rows_height * self.rows_width));
        words.extend(divisor(self.rows_width));
        words.extend(divisor(channels / vector));
        words.extend(divisor(self.columns.div_ceil(tile.n)));
        words.push(splits);
        words
    }

    /// Tiles that the device holds, each with its numbers of parts. `blocks`: those of a tile that share a multiprocessor.
    pub(super) fn choices<'a>(
        &'a self,
        sizes: &'a Sizes,
        lowering: &'a Lowering,
        blocks: fn(&Tile) -> u32,
    ) -> impl Iterator<Item = (&'static Tile, u32)> + 'a {
        let rows = self.rows();
        let depth = sizes.taps() * self.gathered[3] / lowering.vector() as u32;
        TILES
            .iter()
            .filter(|tile| shared_bytes(tile.m, tile.n) <= lowering.facts.shared_bytes)
            // Not where half of the tile would be empty.
            .filter(move |tile| (tile.m == 64 || rows > tile.m / 2) && (tile.n == 64 || self.columns > tile.n / 2))
            .flat_map(move |tile| {
                let fitting = lowering.facts.shared_bytes / shared_bytes(tile.m, tile.n);
                let capacity = lowering.facts.multiprocessors * blocks(tile).min(fitting);
                splits(self.blocks(tile) * self.classes, depth.div_ceil(CHUNKS), capacity)
                    .into_iter()
                    .map(move |splits| (tile, splits))
            })
    }

    /// Bytes of the parts' sums.
    pub(super) fn partial_bytes(&self, tile: &Tile, splits: u32) -> u64 {
        if splits == 1 {
            return 0;
        }
        [self.blocks(tile), self.classes, splits, tile.m, tile.n, 4].into_iter().map(u64::from).product()
    }

    pub(super) fn launch(&self, entry: &'static str, file: &'static str, tile: &Tile, splits: u32) -> Launch {
        Launch {
            kernel: Kernel { file, entry },
            pointers: Vec::new(),
            parameters: Vec::new(),
            grid: [self.blocks(tile), splits, self.classes],
            threads: 128,
            shared_bytes: shared_bytes(tile.m, tile.n),
        }
    }
}

/// Numbers of parts worth a try where one part makes `blocks` blocks of `steps` steps, and `capacity` run at once.
fn splits(blocks: u32, steps: u32, capacity: u32) -> Vec<u32> {
    let mut splits = vec![1];
    if blocks <= TICKETS as u32 {
        let fitting = (2..=steps / MIN_STEPS).take_while(|split| blocks * split <= capacity);
        // All that fit at once, and half as many.
        if let Some(most) = fitting.last() {
            splits.extend([most.div_ceil(2), most].into_iter().filter(|&split| split > 1));
            splits.dedup();
        }
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_device_and_keep_their_steps() {
        assert_eq!(splits(264, 72, 264), [1]);
        assert_eq!(splits(64, 64, 528), [1, 4, 8]);
        assert_eq!(splits(8, 12, 264), [1, 2, 3]);
        assert_eq!(splits(8, 7, 264), [1]);
    }
}
