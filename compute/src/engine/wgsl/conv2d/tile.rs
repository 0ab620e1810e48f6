//! Choice of a GEMM's tile and of the split of its depth, by a model of the time they take.

use super::DEPTH;

/// Tile and split of one GEMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiling {
    /// Rows of a workgroup's tile: 64 or 128.
    pub(super) m: u32,
    /// Columns of a workgroup's tile: 64 or 128.
    pub(super) n: u32,
    /// Parts of the depth, each of them summed by its own workgroups.
    pub(super) parts: u64,
}

/// Size of a GEMM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) depth: u64,
}

impl Extent {
    /// Floating-point operations.
    pub(super) const fn flops(self) -> u64 {
        2 * self.rows * self.columns * self.depth
    }

    /// Steps of the depth.
    pub(super) const fn steps(self) -> u64 {
        self.depth.div_ceil(DEPTH)
    }

    /// Bytes of one part's sums, columns in groups of four.
    pub(super) const fn part_bytes(self) -> u64 {
        self.rows * self.columns.next_multiple_of(4) * 4
    }
}

impl Tiling {
    /// Tiles along the rows.
    pub(super) const fn row_tiles(&self, extent: Extent) -> u64 {
        extent.rows.div_ceil(self.m as u64)
    }

    /// Tiles along the columns.
    pub(super) const fn column_tiles(&self, extent: Extent) -> u64 {
        extent.columns.div_ceil(self.n as u64)
    }

    /// Workgroups of all parts.
    pub(super) const fn workgroups(&self, extent: Extent) -> u64 {
        self.row_tiles(extent) * self.column_tiles(extent) * self.parts
    }

    /// Steps of one part; the last part may have fewer.
    pub(super) const fn steps_per_part(&self, extent: Extent) -> u64 {
        extent.steps().div_ceil(self.parts)
    }
}

/// Tiles with the share of a core's multiply-adds that they reach: smaller ones read workgroup memory more often for
/// each multiply-add.
const TILES: [(u32, u32, f64); 4] = [(128, 128, 1.0), (128, 64, 0.85), (64, 128, 0.85), (64, 64, 0.65)];
/// Multiply-adds of one core and cycle, and bytes of memory traffic of the whole device and cycle: the ratio is that of
/// current discrete devices.
const CORE_MULTIPLY_ADDS: f64 = 128.0;
const DEVICE_BYTES: f64 = 2000.0;
/// Cycles that another dispatch costs.
const DISPATCH_CYCLES: f64 = 6000.0;
/// Steps that filling and emptying a tile's pipeline and writing it costs.
const TILE_STEPS: f64 = 4.0;
/// Slow-down of a workgroup that has a core for itself: nothing hides its waits.
const ALONE: f64 = 1.25;
/// More parts than this are never better.
const MOST_PARTS: u64 = 512;

/// The tile and the number of parts, at most `most_parts`, that take the least time on a device which
/// `busy_workgroups` keep busy, two on each core.
pub(super) fn choose(extent: Extent, most_parts: u64, busy_workgroups: u32) -> Tiling {
    let steps = extent.steps();
    let most_parts = most_parts.min(steps / 4).clamp(1, MOST_PARTS);
    let candidates =
        TILES.iter().flat_map(|&(m, n, share)| (1..=most_parts).map(move |parts| (Tiling { m, n, parts }, share)));
    let best = candidates.min_by(|&(a, a_share), &(b, b_share)| {
        cycles(extent, a, a_share, busy_workgroups).total_cmp(&cycles(extent, b, b_share, busy_workgroups))
    });
    let mut tiling = best.map_or(Tiling { m: 64, n: 64, parts: 1 }, |(tiling, _)| tiling);
    // No part may be empty.
    tiling.parts = steps.div_ceil(tiling.steps_per_part(extent).max(1)).max(1);
    tiling
}

fn cycles(extent: Extent, tiling: Tiling, share: f64, busy_workgroups: u32) -> f64 {
    let cores = u64::from(busy_workgroups.div_ceil(2).max(1));
    let workgroups = tiling.workgroups(extent);
    let turns = workgroups.div_ceil(cores) as f64 * if workgroups <= cores { ALONE } else { 1.0 };
    let step = f64::from(tiling.m * tiling.n) * DEPTH as f64 / CORE_MULTIPLY_ADDS / share;
    let sums = turns * (tiling.steps_per_part(extent) as f64 + TILE_STEPS) * step;
    if tiling.parts == 1 {
        return sums;
    }
    // Parts are written once and read once.
    sums + DISPATCH_CYCLES + 2.0 * (extent.part_bytes() * tiling.parts) as f64 / DEVICE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_gemms_take_the_large_tile_and_small_ones_split_their_depth() {
        for (rows, columns, depth, m, n, splits) in [
            // VGG-16, 64 images: conv3_2, conv1_2.
            (200_704, 256, 2304, 128, 128, false),
            (3_211_264, 64, 576, 128, 64, false),
            // Fully connected layers.
            (64, 4096, 25_088, 64, 128, true),
            (1, 1000, 4096, 64, 128, true),
            // Backward weight of conv1_2: many positions, a small filter.
            (576, 64, 3_211_264, 128, 64, true),
        ] {
            let tiling = choose(Extent { rows, columns, depth }, 400, 256);
            assert_eq!((tiling.m, tiling.n, tiling.parts > 1), (m, n, splits), "{rows}x{columns}x{depth}: {tiling:?}");
        }
    }

    #[test]
    fn no_part_is_empty_and_the_limit_holds() {
        for depth in [0, 1, 16, 17, 160, 1000, 9216] {
            for most in [1, 2, 7, 64] {
                let extent = Extent { rows: 3, columns: 100, depth };
                let tiling = choose(extent, most, 256);
                assert!(tiling.parts <= most, "{depth}: {tiling:?}");
                let before_last = (tiling.parts - 1) * tiling.steps_per_part(extent);
                assert!(depth == 0 || before_last < extent.steps(), "{depth}: {tiling:?}");
            }
        }
    }
}
