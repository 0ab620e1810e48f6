//! Products of a matrix with columns, in f64 and on all cores.
//!
//! The GEMM itself is the one of `ndarray` (the crate `matrixmultiply`); here is how it is divided into units. The
//! division depends on shapes only, never on the number of cores, and no sum is divided.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, s};
use rayon::prelude::*;

use super::im2col::{Columns, tile_size};

/// Products `[rows, positions]` in units of some rows and one tile of positions, each row-major.
pub(super) struct Products<'a> {
    data: &'a [f64],
    rows: usize,
    positions: usize,
}

/// Units that a product is divided into at least, where it is large enough: several for each core of a common machine.
const UNITS: usize = 32;

impl<'a> Products<'a> {
    /// `matrix · columns`.
    pub(super) fn compute(matrix: ArrayView2<'_, f64>, columns: &Columns<'_>, data: &'a mut [f64]) -> Self {
        let (rows, positions) = (matrix.nrows(), columns.positions());
        let (unit, tile) = (unit_rows(rows, positions), tile_size(positions));
        let row_blocks = rows.div_ceil(unit);
        let data = &mut data[..Self::elements(rows, positions)];
        data.par_chunks_mut(unit * tile).enumerate().for_each(|(idx, product)| {
            let (tile_idx, first) = (idx / row_blocks, idx % row_blocks * unit);
            let block = matrix.slice(s![first..rows.min(first + unit), ..]);
            let tile = columns.tile(tile_idx);
            let shape = (block.nrows(), tile.ncols());
            let mut product =
                ArrayViewMut2::from_shape(shape, &mut product[..shape.0 * shape.1]).expect("a unit holds its product");
            general_mat_mul(1.0, &block, &tile, 0.0, &mut product);
        });
        Self { data, rows, positions }
    }

    /// Elements that products of a shape take.
    pub(super) fn elements(rows: usize, positions: usize) -> usize {
        let (unit, tile) = (unit_rows(rows, positions), tile_size(positions));
        rows.div_ceil(unit) * unit * positions.div_ceil(tile) * tile
    }

    /// Visits the products of one row at the given positions, in order: pieces with their first position.
    pub(super) fn visit(&self, row: usize, positions: Range<usize>, mut piece: impl FnMut(usize, &[f64])) {
        let (unit, tile) = (unit_rows(self.rows, self.positions), tile_size(self.positions));
        let row_blocks = self.rows.div_ceil(unit);
        let mut at = positions.start;
        while at < positions.end {
            let tile_idx = at / tile;
            let end = positions.end.min((tile_idx + 1) * tile);
            let width = tile.min(self.positions - tile_idx * tile);
            let first = (tile_idx * row_blocks + row / unit) * unit * tile + row % unit * width + at % tile;
            piece(at, &self.data[first..first + end - at]);
            at = end;
        }
    }
}

/// Rows of a unit.
fn unit_rows(rows: usize, positions: usize) -> usize {
    let tiles = positions.div_ceil(tile_size(positions));
    (rows * tiles).div_ceil(UNITS).next_multiple_of(8).clamp(32, 128)
}

/// Sums of products `[rows, depth]` over positions, in units of some rows and some of the depth, each row-major.
pub(super) struct Sums<'a> {
    data: &'a mut [f64],
    rows: usize,
    depth: usize,
}

impl<'a> Sums<'a> {
    /// Zeros.
    pub(super) fn zero(rows: usize, depth: usize, data: &'a mut [f64]) -> Self {
        let data = &mut data[..Self::elements(rows, depth)];
        data.fill(0.0);
        Self { data, rows, depth }
    }

    /// Elements that sums of a shape take.
    pub(super) fn elements(rows: usize, depth: usize) -> usize {
        let [unit_rows, unit_depth] = unit_sums(rows, depth);
        rows.next_multiple_of(unit_rows) * depth.next_multiple_of(unit_depth)
    }

    /// Adds `a · bᵀ`, summed over positions tile after tile.
    pub(super) fn add(&mut self, a: &Columns<'_>, b: &Columns<'_>) {
        let (rows, depth) = (self.rows, self.depth);
        let [unit_rows, unit_depth] = unit_sums(rows, depth);
        let depth_blocks = depth.div_ceil(unit_depth);
        self.data.par_chunks_mut(unit_rows * unit_depth).enumerate().for_each(|(idx, sums)| {
            let (row, column) = (idx / depth_blocks * unit_rows, idx % depth_blocks * unit_depth);
            let (row, column) = (row..rows.min(row + unit_rows), column..depth.min(column + unit_depth));
            let shape = (row.len(), column.len());
            let mut sums =
                ArrayViewMut2::from_shape(shape, &mut sums[..shape.0 * shape.1]).expect("a unit holds its sums");
            for tile_idx in 0..a.positions().div_ceil(a.tile_size()) {
                let (a, b) = (a.tile(tile_idx), b.tile(tile_idx));
                let (a, b) = (a.slice(s![row.clone(), ..]), b.slice(s![column.clone(), ..]));
                general_mat_mul(1.0, &a, &b.t(), 1.0, &mut sums);
            }
        });
    }

    /// Visits the sums of one row in order: pieces with their first place in the depth.
    pub(super) fn visit(&self, row: usize, mut piece: impl FnMut(usize, &[f64])) {
        let [unit_rows, unit_depth] = unit_sums(self.rows, self.depth);
        let depth_blocks = self.depth.div_ceil(unit_depth);
        for block in 0..depth_blocks {
            let width = unit_depth.min(self.depth - block * unit_depth);
            let unit = row / unit_rows * depth_blocks + block;
            let first = unit * unit_rows * unit_depth + row % unit_rows * width;
            piece(block * unit_depth, &self.data[first..first + width]);
        }
    }
}

/// Rows and depth of a unit.
fn unit_sums(rows: usize, depth: usize) -> [usize; 2] {
    let unit_rows = rows.min(64);
    let per_unit = (rows.div_ceil(unit_rows) * depth).div_ceil(UNITS);
    [unit_rows, per_unit.next_multiple_of(8).clamp(32, 512).min(depth)]
}
