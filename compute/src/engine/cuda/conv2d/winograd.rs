//! Convolutions of 3x3 and 5x5 windows at stride 1 by minimal filtering, in `shaders/conv2d_winograd*.cu`: one candidate
//! for each tile of the products.
//!
//! Images are worked on in chunks of tiles that fit into the workspace. Large chunks are the fastest (H200, 2026-11-30):
//! what passes between the kernels costs less through memory than small launches do through the L2 cache.

use super::simt::{MAX_WORKSPACE_BYTES, Tile};
use crate::engine::cuda::columns::{optional_row, optional_view};
use crate::engine::cuda::launch::{Candidate, Command, Kernel, Launch, Lowering, Place};
use crate::engine::cuda::{batch_norm, gradient_finish};
use crate::ops::View;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Forward, Window};

/// Products of a tile, whose input has six positions along a side.
const PRODUCTS: u32 = 36;
/// Channels below which the transforms outweigh the multiplications saved.
const MIN_CHANNELS: usize = 32;
/// A chunk is a multiple of the largest tile of the products.
const CHUNK_STEP: u32 = 128;

const MULTIPLY: [Tile; 3] = [
    Tile { m: 128, n: 128, threads: 128, blocks: 2, entry: "conv2d_winograd_multiply_128x128" },
    Tile { m: 128, n: 64, threads: 64, blocks: 4, entry: "conv2d_winograd_multiply_128x64" },
    Tile { m: 64, n: 64, threads: 64, blocks: 8, entry: "conv2d_winograd_multiply_64x64" },
];

const MULTIPLY_TRANSPOSED: [Tile; 3] = [
    Tile { m: 128, n: 128, threads: 128, blocks: 2, entry: "conv2d_winograd_multiply_transposed_128x128" },
    Tile { m: 128, n: 64, threads: 64, blocks: 4, entry: "conv2d_winograd_multiply_transposed_128x64" },
    Tile { m: 64, n: 64, threads: 64, blocks: 8, entry: "conv2d_winograd_multiply_transposed_64x64" },
];

const MULTIPLY_WEIGHT: [Tile; 4] = [
    Tile { m: 128, n: 128, threads: 128, blocks: 2, entry: "conv2d_winograd_multiply_weight_128x128" },
    Tile { m: 128, n: 64, threads: 64, blocks: 4, entry: "conv2d_winograd_multiply_weight_128x64" },
    Tile { m: 64, n: 128, threads: 64, blocks: 4, entry: "conv2d_winograd_multiply_weight_64x128" },
    Tile { m: 64, n: 64, threads: 64, blocks: 8, entry: "conv2d_winograd_multiply_weight_64x64" },
];

/// A window that minimal filtering takes.
struct Filtering {
    taps: u32,
    /// Outputs along a side of a tile.
    side: u32,
    filter: &'static str,
    forward_output: &'static str,
    backward_data_output: &'static str,
}

const FILTERINGS: [Filtering; 2] = [
    Filtering {
        taps: 3,
        side: 4,
        filter: "conv2d_winograd_filter_3x3",
        forward_output: "conv2d_winograd_forward_output_3x3",
        backward_data_output: "conv2d_winograd_backward_data_output_3x3",
    },
    Filtering {
        taps: 5,
        side: 2,
        filter: "conv2d_winograd_filter_5x5",
        forward_output: "conv2d_winograd_forward_output_5x5",
        backward_data_output: "conv2d_winograd_backward_data_output_5x5",
    },
];

/// How minimal filtering takes a convolution, where it does and is likely to pay.
fn filtering(x: &View, y: &View, window: Window) -> Option<&'static Filtering> {
    let Window { r, s, stride, pad } = window;
    let is_suitable = r == s && stride == 1 && pad < r && x.shape.c >= MIN_CHANNELS && y.shape.c >= MIN_CHANNELS;
    FILTERINGS.iter().find(|filtering| filtering.taps as usize == r).filter(|_| is_suitable)
}

/// The tiles that cover the maps of a view of outputs.
struct Cover {
    side: u32,
    tiles_h: u32,
    tiles_w: u32,
    tiles: u32,
    /// Tiles of a chunk, but for the last one.
    chunk: u32,
}

impl Cover {
    /// `channels` pass between the kernels for each product.
    fn new(outputs: &View, channels: u32, side: u32) -> Self {
        let [tiles_h, tiles_w] = [outputs.shape.h, outputs.shape.w].map(|length| (length as u32).div_ceil(side));
        let tiles = outputs.shape.n as u32 * tiles_h * tiles_w;
        let fitting = (MAX_WORKSPACE_BYTES / product_bytes(channels)) as u32 / CHUNK_STEP * CHUNK_STEP;
        Self { side, tiles_h, tiles_w, tiles, chunk: fitting.max(CHUNK_STEP).min(tiles) }
    }

    /// First tile and number of tiles of every chunk.
    fn chunks(&self) -> impl Iterator<Item = (u32, u32)> {
        let (tiles, chunk) = (self.tiles, self.chunk);
        (0..tiles).step_by(chunk as usize).map(move |first| (first, chunk.min(tiles - first)))
    }

    /// Words of the kernels' `WinogradChunk` for a map that is padded by `pad`.
    fn words(&self, map: &View, pad: u32, (first, tiles): (u32, u32), lowering: &Lowering) -> Vec<u32> {
        let channels = lowering.padded(map.shape.c);
        let mut words = vec![map.shape.h as u32, map.shape.w as u32, lowering.row(map), channels, pad];
        words.extend([self.tiles_h, self.tiles_w, first, tiles, self.side]);
        words
    }
}

/// Bytes of one tile's products, or transformed elements, of so many channels.
fn product_bytes(channels: u32) -> u64 {
    u64::from(PRODUCTS) * u64::from(channels) * 4
}

/// A transform: one thread a tile, or an element of the filter, and two channels.
fn transform(entry: &'static str, elements: u32, pointers: Vec<Place>, parameters: Vec<u32>) -> Command {
    let kernel = Kernel { file: "conv2d_winograd", entry };
    let grid = [elements.div_ceil(512), 1, 1];
    Command::Kernel(Launch { kernel, pointers, parameters, grid, threads: 256, shared_bytes: 0 })
}

/// Products in tiles of `tile`, in parts where they are summed over tiles.
fn multiply(tile: &Tile, [rows, columns, parts]: [u32; 3], pointers: Vec<Place>, parameters: Vec<u32>) -> Command {
    let kernel = Kernel { file: "conv2d_winograd_multiply", entry: tile.entry };
    let grid = [tile.count(rows, columns), PRODUCTS, parts];
    Command::Kernel(Launch { kernel, pointers, parameters, grid, threads: tile.threads, shared_bytes: 0 })
}

/// A candidate whose filter is transformed once it is known.
fn with_filter(tile: &Tile, filtering: &Filtering, w: Place, [k, c]: [u32; 2], is_flipped: bool) -> Candidate {
    let kept = Place::Kept { offset: 0 };
    let parameters = vec![k, c, u32::from(is_flipped)];
    Candidate {
        name: tile.entry.to_owned(),
        prepare: vec![transform(filtering.filter, k * c, vec![w, kept], parameters)],
        kept_bytes: product_bytes(k) * u64::from(c),
        ..Candidate::default()
    }
}

/// Candidates of a convolution with its epilogue, but for dropout, and its statistics.
pub(in crate::engine::cuda) fn forward(step: &Forward, lowering: &Lowering) -> Vec<Candidate> {
    let Forward { x, w, y, window, epilogue, statistics } = step;
    let Some(filtering) = filtering(x, y, *window) else {
        return Vec::new();
    };
    let (c, k) = (lowering.padded(x.shape.c), lowering.padded(y.shape.c));
    let cover = Cover::new(y, c + k, filtering.side);
    let residual = epilogue.residual.as_ref();
    let transformed = Place::Workspace { offset: 0 };
    let products = Place::Workspace { offset: product_bytes(c) * u64::from(cover.chunk) };
    let candidate = |tile: &Tile| {
        let mut candidate = with_filter(tile, filtering, lowering.place(*w), [k, c], false);
        candidate.workspace_bytes = product_bytes(c + k) * u64::from(cover.chunk);
        for chunk in cover.chunks() {
            let tiles = chunk.1;
            let words = cover.words(x, window.pad as u32, chunk, lowering);
            let mut finish = cover.words(y, 0, chunk, lowering);
            finish.extend([optional_row(residual, lowering), u32::from(epilogue.relu)]);
            let [scale, bias] = [epilogue.scale, epilogue.bias].map(|id| lowering.optional(id));
            let outputs = vec![products, scale, bias, optional_view(residual, lowering), lowering.view(y)];
            candidate.commands.extend([
                transform("conv2d_winograd_input", tiles * c, vec![lowering.view(x), transformed], words),
                multiply(
                    tile,
                    [tiles, k, 1],
                    vec![transformed, Place::Kept { offset: 0 }, products],
                    vec![tiles, k, c],
                ),
                transform(filtering.forward_output, tiles * k, outputs, finish),
            ]);
        }
        if let Some(statistics) = statistics {
            let (launch, bytes) = batch_norm::statistics(y, statistics, 0, lowering);
            candidate.commands.push(Command::Kernel(launch));
            candidate.workspace_bytes = candidate.workspace_bytes.max(bytes);
        }
        candidate
    };
    MULTIPLY.iter().filter(|tile| !tile.is_too_large(cover.chunk, k)).map(candidate).collect()
}

/// Candidates of a convolution's gradient to its input, with epilogue and reductions.
pub(in crate::engine::cuda) fn backward_data(step: &BackwardData, lowering: &Lowering) -> Vec<Candidate> {
    let BackwardData { dy, w, dx, window, epilogue } = step;
    let Some(filtering) = filtering(dx, dy, *window) else {
        return Vec::new();
    };
    let (c, k) = (lowering.padded(dx.shape.c), lowering.padded(dy.shape.c));
    let cover = Cover::new(dx, c + k, filtering.side);
    let mask = epilogue.relu_mask.as_ref();
    let transformed = Place::Workspace { offset: 0 };
    let products = Place::Workspace { offset: product_bytes(k) * u64::from(cover.chunk) };
    let candidate = |tile: &Tile| {
        let mut candidate = with_filter(tile, filtering, lowering.place(*w), [k, c], true);
        candidate.workspace_bytes = product_bytes(c + k) * u64::from(cover.chunk);
        for chunk in cover.chunks() {
            let tiles = chunk.1;
            let words = cover.words(dy, filtering.taps - 1 - window.pad as u32, chunk, lowering);
            let mut finish = cover.words(dx, 0, chunk, lowering);
            finish.extend([optional_row(mask, lowering), u32::from(epilogue.accumulate), epilogue.scale.to_bits()]);
            let outputs = vec![products, optional_view(mask, lowering), lowering.view(dx)];
            candidate.commands.extend([
                transform("conv2d_winograd_input", tiles * k, vec![lowering.view(dy), transformed], words),
                multiply(
                    tile,
                    [tiles, c, 1],
                    vec![transformed, Place::Kept { offset: 0 }, products],
                    vec![tiles, c, k],
                ),
                transform(filtering.backward_data_output, tiles * c, outputs, finish),
            ]);
        }
        batch_norm::add_reductions(&mut candidate, dx, &epilogue.reductions, lowering);
        candidate
    };
    MULTIPLY_TRANSPOSED.iter().filter(|tile| !tile.is_too_large(cover.chunk, c)).map(candidate).collect()
}

/// Candidates of a convolution's gradients to its filter and bias.
pub(in crate::engine::cuda) fn backward_weight(step: &BackwardWeight, lowering: &Lowering) -> Vec<Candidate> {
    let BackwardWeight { x, dy, dw, dbias, window, factor } = step;
    let Some(filtering) = filtering(x, dy, *window).filter(|filtering| filtering.taps == 3) else {
        return Vec::new();
    };
    let (c, k) = (lowering.padded(x.shape.c), lowering.padded(dy.shape.c));
    let cover = Cover::new(dy, c + k, filtering.side);
    let input = Place::Workspace { offset: 0 };
    let gradient = Place::Workspace { offset: product_bytes(c) * u64::from(cover.chunk) };
    let chunk_bytes = product_bytes(c + k) * u64::from(cover.chunk);
    let sums = Place::Workspace { offset: chunk_bytes };
    let part_bytes = product_bytes(k) * u64::from(c);
    let candidate = |tile: &Tile| {
        let parts = tile.best_parts(tile.count(k, c) * PRODUCTS, cover.chunk, part_bytes, lowering);
        let part_tiles = cover.chunk.div_ceil(parts).next_multiple_of(16);
        let parts = cover.chunk.div_ceil(part_tiles);
        let mut candidate = Candidate {
            name: format!("{}/{parts}", tile.entry),
            workspace_bytes: chunk_bytes + part_bytes * u64::from(parts),
            ..Candidate::default()
        };
        for chunk in cover.chunks() {
            let (first, tiles) = chunk;
            let words = cover.words(x, window.pad as u32, chunk, lowering);
            let gradient_words = cover.words(dy, 0, chunk, lowering);
            candidate.commands.extend([
                transform("conv2d_winograd_input", tiles * c, vec![lowering.view(x), input], words),
                transform("conv2d_winograd_gradient", tiles * k, vec![lowering.view(dy), gradient], gradient_words),
                multiply(
                    tile,
                    [k, c, parts],
                    vec![gradient, input, sums],
                    vec![tiles, k, c, part_tiles, u32::from(first > 0)],
                ),
            ]);
        }
        let words = vec![k, c, parts, factor.to_bits()];
        let pointers = vec![sums, lowering.place(*dw)];
        candidate.commands.push(transform("conv2d_winograd_filter_gradient", k * c, pointers, words));
        if let Some(dbias) = dbias {
            let (launch, bytes) = gradient_finish::bias_gradient(dy, *dbias, *factor, 0, lowering);
            candidate.commands.push(Command::Kernel(launch));
            candidate.workspace_bytes = candidate.workspace_bytes.max(bytes);
        }
        candidate
    };
    MULTIPLY_WEIGHT.iter().filter(|tile| !tile.is_too_large(k, c)).map(candidate).collect()
}
