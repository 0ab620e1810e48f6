//! Columns of an implicit GEMM: for each output position the inputs under its window, widened to f64, and the way back.

use std::ops::Range;

use ndarray::ArrayView2;
use rayon::prelude::*;

use super::storage::Tensor;
use crate::ops::conv2d::Window;

/// Positions that one tile of columns holds.
const TILE: usize = 256;

/// How output positions `[p, q]` of a minibatch meet a map under a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    window: Window,
    /// Height of the output.
    p: usize,
    /// Width of the output.
    q: usize,
    /// Height of the input.
    h: usize,
    /// Width of the input.
    w: usize,
}

/// Columns of some positions, tile by tile: `[depth, positions]` row-major, or `[positions, depth]` where the window is
/// the whole map and a column is a sample as it lies in memory.
pub(super) struct Columns<'a> {
    data: &'a [f64],
    depth: usize,
    positions: usize,
    transposed: bool,
}

/// Part of a tile: consecutive positions of one output row.
struct Segment {
    /// First position in the tile.
    start: usize,
    n: usize,
    p: usize,
    q: Range<usize>,
}

impl Geometry {
    /// Geometry of input maps `[h, w]` and output maps `[p, q]`.
    pub(super) fn new(window: Window, [h, w]: [usize; 2], [p, q]: [usize; 2]) -> Self {
        if window == POINTWISE {
            // Rows need no distinction: one long row is copied faster than many short ones.
            return Self { window, p: 1, q: p * q, h: 1, w: h * w };
        }
        Self { window, p, q, h, w }
    }

    /// Geometry of maps of `positions` elements that are taken as they are.
    pub(super) fn pointwise(positions: usize) -> Self {
        Self::new(POINTWISE, [1, positions], [1, positions])
    }

    /// Output positions of one sample.
    pub(super) const fn positions(&self) -> usize {
        self.p * self.q
    }

    /// Elements of a window in one map.
    pub(super) const fn window_size(&self) -> usize {
        self.window.r * self.window.s
    }

    /// Whether the window is the whole map, as in a fully connected layer.
    const fn covers_map(&self) -> bool {
        self.window.pad == 0 && self.window.r == self.h && self.window.s == self.w
    }

    /// Row of the input that row `r` of the window reads at output row `p`; none in the padding.
    fn input_row(&self, p: usize, r: usize) -> Option<usize> {
        (p * self.window.stride + r).checked_sub(self.window.pad).filter(|&h| h < self.h)
    }

    /// Positions `q` whose column `s` of the window lies inside the input.
    fn inside(&self, s: usize) -> Range<usize> {
        let Window { stride, pad, .. } = self.window;
        let first = pad.saturating_sub(s).div_ceil(stride);
        let end = (self.w + pad).saturating_sub(s).div_ceil(stride).min(self.q);
        first.min(end)..end
    }

    /// Rows that the positions, counted through the minibatch, are made of.
    fn segments(&self, positions: Range<usize>) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut at = positions.start;
        while at < positions.end {
            let (row, q) = (at / self.q, at % self.q);
            let length = (self.q - q).min(positions.end - at);
            let start = at - positions.start;
            segments.push(Segment { start, n: row / self.p, p: row % self.p, q: q..q + length });
            at += length;
        }
        segments
    }

    /// Sums the products of one channel, `[r, s, p, q]`, into its map `[h, w]`, window element after window element.
    pub(super) fn col2im(&self, products: &[f64], map: &mut [f64]) {
        let Window { r: rows, s: columns, stride, pad } = self.window;
        map.fill(0.0);
        for (element, product) in products.chunks_exact(self.positions()).enumerate() {
            let (r, s) = (element / columns, element % columns);
            debug_assert!(r < rows, "one map of products for each element of the window");
            let inside = self.inside(s);
            for (p, row) in product.chunks_exact(self.q).enumerate() {
                let Some(h) = self.input_row(p, r) else { continue };
                if inside.is_empty() {
                    continue;
                }
                let line = &mut map[h * self.w..(h + 1) * self.w];
                let targets = line[inside.start * stride + s - pad..].iter_mut().step_by(stride);
                targets.zip(&row[inside.clone()]).for_each(|(sum, &value)| *sum += value);
            }
        }
    }
}

/// A window of one element.
const POINTWISE: Window = Window { r: 1, s: 1, stride: 1, pad: 0 };

impl<'a> Columns<'a> {
    /// Gathers the columns of `positions` (counted through the minibatch) of `x` into `data`.
    pub(super) fn gather(x: Tensor<'_>, geometry: &Geometry, positions: Range<usize>, data: &'a mut [f64]) -> Self {
        let depth = x.shape.c * geometry.window_size();
        let transposed = geometry.covers_map();
        let data = &mut data[..depth * positions.len()];
        if transposed {
            data.par_chunks_mut(depth).zip(positions.clone()).for_each(|(column, n)| widen(x.sample(n), column));
        } else {
            let x = if geometry.window == POINTWISE { x.flattened() } else { x };
            data.par_chunks_mut(depth * TILE).enumerate().for_each(|(tile_idx, tile)| {
                let first = positions.start + tile_idx * TILE;
                let segments = geometry.segments(first..positions.end.min(first + TILE));
                let channel_size = tile.len() / x.shape.c;
                let channels = tile.par_chunks_mut(channel_size).enumerate();
                channels.for_each(|(c, rows)| gather_channel(x, geometry, &segments, c, rows));
            });
        }
        Self { data, depth, positions: positions.len(), transposed }
    }

    /// Number of positions of all tiles.
    pub(super) const fn positions(&self) -> usize {
        self.positions
    }

    /// Positions of every tile but the last.
    pub(super) fn tile_size(&self) -> usize {
        tile_size(self.positions)
    }

    /// The columns of one tile, `[depth, positions]`.
    pub(super) fn tile(&self, tile_idx: usize) -> ArrayView2<'_, f64> {
        let size = self.tile_size();
        let positions = size.min(self.positions - tile_idx * size);
        let first = tile_idx * size * self.depth;
        let data = &self.data[first..first + positions * self.depth];
        let shape = if self.transposed { (positions, self.depth) } else { (self.depth, positions) };
        let tile = ArrayView2::from_shape(shape, data).expect("a tile is as long as its shape says");
        if self.transposed { tile.reversed_axes() } else { tile }
    }
}

/// Positions of every tile but the last, of `positions` in all.
pub(super) fn tile_size(positions: usize) -> usize {
    positions.min(TILE)
}

/// Most positions, in whole tiles where there are several, whose columns have no more than `elements` elements.
pub(super) fn positions_within(elements: usize, depth: usize, positions: usize) -> usize {
    let fitting = (elements / depth).clamp(1, MOST_POSITIONS);
    let whole = if fitting > TILE { fitting / TILE * TILE } else { fitting };
    whole.min(positions)
}

/// Most positions at once: beyond, the products of a GEMM outgrow their columns.
const MOST_POSITIONS: usize = 8192;

fn gather_channel(x: Tensor<'_>, geometry: &Geometry, segments: &[Segment], c: usize, rows: &mut [f64]) {
    let Window { s: columns, stride, pad, .. } = geometry.window;
    let length = rows.len() / geometry.window_size();
    for (element, row) in rows.chunks_exact_mut(length).enumerate() {
        let (r, s) = (element / columns, element % columns);
        let inside = geometry.inside(s);
        for segment in segments {
            let target = &mut row[segment.start..segment.start + segment.q.len()];
            let q = inside.start.max(segment.q.start)..inside.end.min(segment.q.end);
            let (Some(h), false) = (geometry.input_row(segment.p, r), q.is_empty()) else {
                target.fill(0.0);
                continue;
            };
            let line = &x.plane(segment.n, c)[h * geometry.w..(h + 1) * geometry.w];
            let line = &line[q.start * stride + s - pad..];
            let (before, rest) = target.split_at_mut(q.start - segment.q.start);
            let (middle, after) = rest.split_at_mut(q.len());
            before.fill(0.0);
            if stride == 1 {
                widen(&line[..middle.len()], middle);
            } else {
                middle.iter_mut().zip(line.iter().step_by(stride)).for_each(|(to, &from)| *to = f64::from(from));
            }
            after.fill(0.0);
        }
    }
}

/// Converts to f64.
pub(super) fn widen(from: &[f32], to: &mut [f64]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = f64::from(from));
}
