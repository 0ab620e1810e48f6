//! Implicit GEMMs on the tensor cores of any GPU, in `shaders/conv2d.cu`, `conv2d_backward_data.cu` and
//! `conv2d_backward_weight.cu`: one candidate for each tile and number of parts that the reduction is cut into.
//!
//! The structures of parameters and the lists of tiles are those of the kernel texts.

use crate::engine::cuda::launch::{Candidate, Command, Kernel, Launch, Lowering, Place, TICKETS};
use crate::ops::View;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Forward, Window};

/// Largest side of a window.
const MAX_WINDOW: usize = 15;

/// Largest workspace of a candidate.
const MAX_WORKSPACE_BYTES: u64 = 512 << 20;

/// Steps of the mainloop below which a part of a reduction does not pay.
const MIN_STEPS: u32 = 4;

/// Threads of a block, chunks of 16 bytes of a step, and steps under way: of every tile.
const THREADS: u32 = 128;
const CHUNKS: u32 = 8;
const STAGES: u32 = 3;

/// Rows and columns of a block's part of the result.
struct Tile {
    m: u32,
    n: u32,
    /// Blocks that share a multiprocessor.
    blocks: u32,
    forward: &'static str,
    backward_data: &'static str,
}

const TILES: [Tile; 3] = [
    Tile {
        m: 128,
        n: 128,
        blocks: 2,
        forward: "conv2d_forward_128x128",
        backward_data: "conv2d_backward_data_128x128",
    },
    Tile { m: 128, n: 64, blocks: 3, forward: "conv2d_forward_128x64", backward_data: "conv2d_backward_data_128x64" },
    Tile { m: 64, n: 64, blocks: 4, forward: "conv2d_forward_64x64", backward_data: "conv2d_backward_data_64x64" },
];

/// The same for backward weight: square.
struct WeightTile {
    side: u32,
    blocks: u32,
    entry: &'static str,
    with_bias: &'static str,
}

const WEIGHT_TILES: [WeightTile; 2] = [
    WeightTile {
        side: 128,
        blocks: 2,
        entry: "conv2d_backward_weight_128x128",
        with_bias: "conv2d_backward_weight_128x128_bias",
    },
    WeightTile {
        side: 64,
        blocks: 4,
        entry: "conv2d_backward_weight_64x64",
        with_bias: "conv2d_backward_weight_64x64_bias",
    },
];

/// Sizes of a convolution, channels padded.
struct Sizes {
    h: u32,
    w: u32,
    c: u32,
    p: u32,
    q: u32,
    k: u32,
    n: u32,
    window: Window,
}

impl Sizes {
    /// A fully connected layer over a whole buffer becomes a window of one position with more channels. None where the
    /// kernels do not reach.
    fn new(x: &View, y: &View, window: Window, lowering: &Lowering) -> Option<Self> {
        let mut sizes = Self {
            h: x.shape.h as u32,
            w: x.shape.w as u32,
            c: lowering.padded(x.shape.c),
            p: y.shape.h as u32,
            q: y.shape.w as u32,
            k: lowering.padded(y.shape.c),
            n: x.shape.n as u32,
            window,
        };
        if x.is_whole() && (window.r, window.s) == (x.shape.h, x.shape.w) && window.pad == 0 {
            sizes.c *= sizes.h * sizes.w;
            (sizes.h, sizes.w) = (1, 1);
            sizes.window = Window { r: 1, s: 1, stride: 1, pad: 0 };
        }
        (sizes.window.r.max(sizes.window.s) <= MAX_WINDOW).then_some(sizes)
    }

    /// Elements from one position to the next of `view`, which this convolution reads as positions of `channels`.
    fn row(&self, view: &View, channels: u32, lowering: &Lowering) -> u32 {
        if view.is_whole() { channels } else { lowering.row(view) }
    }

    fn taps(&self) -> u32 {
        (self.window.r * self.window.s) as u32
    }

    /// Side of the window in both directions, stride and padding.
    fn window_words(&self) -> [u32; 4] {
        let Window { r, s, stride, pad } = self.window;
        [r, s, stride, pad].map(|value| value as u32)
    }
}

/// What a kernel divides by: divisor, multiplier and shift of its `Divisor`.
fn divisor(value: u32) -> [u32; 3] {
    if value == 1 {
        return [1, 0, 0];
    }
    let shift = (value - 1).ilog2();
    [value, (1u64 << (32 + shift)).div_ceil(u64::from(value)) as u32, shift]
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

fn shared_bytes(m: u32, n: u32) -> u32 {
    STAGES * (m + n) * CHUNKS * 16
}

/// One GEMM that forward and backward data share: gathered map, result, and the launch's shape.
struct Gemm {
    /// Height, width, elements from one position to the next and channels of the gathered operand.
    gathered: [u32; 4],
    images: u32,
    out_height: u32,
    out_width: u32,
    columns: u32,
    /// Height and width of the map of GEMM rows.
    rows_height: u32,
    rows_width: u32,
    /// Residue classes.
    classes: u32,
}

impl Gemm {
    fn row_tiles(&self, tile: &Tile) -> u32 {
        (self.images * self.rows_height * self.rows_width).div_ceil(tile.m)
    }

    fn blocks(&self, tile: &Tile) -> u32 {
        self.row_tiles(tile) * self.columns.div_ceil(tile.n)
    }

    /// Words of the kernel's `Geometry`.
    fn geometry(&self, sizes: &Sizes, tile: &Tile, splits: u32, vector: u32) -> Vec<u32> {
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

    /// Tiles that the device holds, each with its numbers of parts.
    fn choices<'a>(&'a self, sizes: &'a Sizes, lowering: &'a Lowering) -> impl Iterator<Item = (&'static Tile, u32)> + 'a {
        let depth = sizes.taps() * self.gathered[3] / lowering.vector() as u32;
        TILES
            .iter()
            .filter(|tile| shared_bytes(tile.m, tile.n) <= lowering.facts.shared_bytes)
            // Half of the tile would be empty.
            .filter(|tile| self.columns > tile.n / 2 || tile.n == 64)
            .flat_map(move |tile| {
                let capacity = lowering.facts.multiprocessors * tile.blocks;
                splits(self.blocks(tile) * self.classes, depth.div_ceil(CHUNKS), capacity)
                    .into_iter()
                    .map(move |splits| (tile, splits))
            })
    }

    /// Bytes of the parts' sums.
    fn partial_bytes(&self, tile: &Tile, splits: u32) -> u64 {
        if splits == 1 {
            return 0;
        }
        [self.blocks(tile), self.classes, splits, tile.m, tile.n, 4].into_iter().map(u64::from).product()
    }

    fn launch(&self, entry: &'static str, file: &'static str, tile: &Tile, splits: u32) -> Launch {
        Launch {
            kernel: Kernel { file, entry },
            pointers: Vec::new(),
            parameters: Vec::new(),
            grid: [self.blocks(tile), splits, self.classes],
            threads: THREADS,
            shared_bytes: shared_bytes(tile.m, tile.n),
        }
    }
}

/// A candidate's name: its entry point, and the parts of its reduction.
fn name(entry: &str, splits: u32) -> String {
    if splits == 1 { entry.to_owned() } else { format!("{entry}/{splits}") }
}

/// A launch that joins what row tiles left for eight channels a block.
fn combine(kernel: Kernel, pointers: Vec<Place>, parameters: Vec<u32>, channels: u32) -> Command {
    let grid = [channels.div_ceil(8), 1, 1];
    Command::Kernel(Launch { kernel, pointers, parameters, grid, threads: 1024, shared_bytes: 0 })
}

/// Candidates of a convolution with its epilogue, but for dropout, and its statistics.
pub(in crate::engine::cuda) fn forward(step: &Forward, lowering: &Lowering) -> Vec<Candidate> {
    let Some(sizes) = Sizes::new(&step.x, &step.y, step.window, lowering) else {
        return Vec::new();
    };
    let gemm = Gemm {
        gathered: [sizes.h, sizes.w, sizes.row(&step.x, sizes.c, lowering), sizes.c],
        images: sizes.n,
        out_height: sizes.p,
        out_width: sizes.q,
        columns: sizes.k,
        rows_height: sizes.p,
        rows_width: sizes.q,
        classes: 1,
    };
    gemm.choices(&sizes, lowering)
        .map(|(tile, splits)| {
            let partial_bytes = gemm.partial_bytes(tile, splits);
            let partials = Place::Workspace { offset: 0 };
            let statistics = step.statistics.map(|_| Place::Workspace { offset: partial_bytes });
            let epilogue = &step.epilogue;
            let mut launch = gemm.launch(tile.forward, "conv2d", tile, splits);
            launch.pointers = vec![
                lowering.view(&step.x),
                lowering.place(step.w),
                lowering.optional(epilogue.scale),
                lowering.optional(epilogue.bias),
                epilogue.residual.as_ref().map_or(Place::Null, |view| lowering.view(view)),
                lowering.view(&step.y),
                statistics.unwrap_or(Place::Null),
                if splits > 1 { partials } else { Place::Null },
                Place::Tickets,
            ];
            launch.parameters = gemm.geometry(&sizes, tile, splits, lowering.vector() as u32);
            launch.parameters.extend([
                lowering.row(&step.y),
                epilogue.residual.as_ref().map_or(0, |view| lowering.row(view)),
                u32::from(epilogue.relu),
            ]);
            let mut candidate = Candidate::of(launch);
            candidate.name = name(tile.forward, splits);
            candidate.workspace_bytes = partial_bytes;
            if let (Some(to), Some(place)) = (&step.statistics, statistics) {
                let row_tiles = gemm.row_tiles(tile);
                candidate.workspace_bytes += u64::from(row_tiles) * 2 * u64::from(sizes.k) * 4;
                candidate.commands.push(combine(
                    Kernel { file: "conv2d", entry: "conv2d_statistics_combine" },
                    vec![place, lowering.place(to.mean), lowering.place(to.inv_std)],
                    vec![row_tiles, tile.m, sizes.n * sizes.p * sizes.q, sizes.k, to.epsilon.to_bits()],
                    sizes.k,
                ));
            }
            candidate
        })
        .filter(|candidate| candidate.workspace_bytes <= MAX_WORKSPACE_BYTES)
        .collect()
}

/// Candidates of a convolution's gradient to its input, with epilogue and up to two reductions.
pub(in crate::engine::cuda) fn backward_data(step: &BackwardData, lowering: &Lowering) -> Vec<Candidate> {
    let epilogue = &step.epilogue;
    let Some(sizes) = Sizes::new(&step.dx, &step.dy, step.window, lowering) else {
        return Vec::new();
    };
    // What a fully connected layer reads as one position has other channels than its reductions.
    let is_flat = sizes.c != lowering.padded(step.dx.shape.c);
    let is_factored = epilogue.reductions.windows(2).all(|pair| pair[0].factor == pair[1].factor);
    let masks_alike = epilogue.relu_mask.iter().all(View::is_whole);
    if epilogue.reductions.len() > 2 || !is_factored || is_flat && !(epilogue.reductions.is_empty() && masks_alike) {
        return Vec::new();
    }
    let stride = sizes.window.stride as u32;
    let gemm = Gemm {
        gathered: [sizes.p, sizes.q, lowering.row(&step.dy), sizes.k],
        images: sizes.n,
        out_height: sizes.h,
        out_width: sizes.w,
        columns: sizes.c,
        rows_height: sizes.h.div_ceil(stride),
        rows_width: sizes.w.div_ceil(stride),
        classes: stride * stride,
    };
    let row = |view: &View| sizes.row(view, sizes.c, lowering);
    gemm.choices(&sizes, lowering)
        .map(|(tile, splits)| {
            let partial_bytes = gemm.partial_bytes(tile, splits);
            let sums = Place::Workspace { offset: partial_bytes };
            let normalized = |idx: usize| match epilogue.reductions.get(idx) {
                Some(to) => [lowering.view(&to.y), lowering.place(to.mean), lowering.place(to.inv_std)],
                None => [Place::Null; 3],
            };
            let mut launch = gemm.launch(tile.backward_data, "conv2d_backward_data", tile, splits);
            launch.pointers = vec![lowering.view(&step.dy), lowering.place(step.w)];
            launch.pointers.push(epilogue.relu_mask.as_ref().map_or(Place::Null, |view| lowering.view(view)));
            launch.pointers.extend(normalized(0));
            launch.pointers.extend(normalized(1));
            launch.pointers.push(lowering.view(&step.dx));
            launch.pointers.push(if epilogue.reductions.is_empty() { Place::Null } else { sums });
            launch.pointers.push(if splits > 1 { Place::Workspace { offset: 0 } } else { Place::Null });
            launch.pointers.push(Place::Tickets);
            launch.parameters = gemm.geometry(&sizes, tile, splits, lowering.vector() as u32);
            launch.parameters.extend([row(&step.dx), epilogue.relu_mask.as_ref().map_or(0, row)]);
            launch.parameters.extend([0, 1].map(|idx| epilogue.reductions.get(idx).map_or(0, |to| row(&to.y))));
            launch.parameters.extend([u32::from(epilogue.accumulate), epilogue.scale.to_bits()]);
            let mut candidate = Candidate::of(launch);
            candidate.name = name(tile.backward_data, splits);
            candidate.workspace_bytes = partial_bytes;
            if let Some(first) = epilogue.reductions.first() {
                let tiles = gemm.row_tiles(tile) * gemm.classes;
                candidate.workspace_bytes += u64::from(tiles) * 3 * u64::from(sizes.c) * 4;
                let mut pointers = vec![sums];
                for idx in [0, 1] {
                    let to = epilogue.reductions.get(idx);
                    pointers.extend([lowering.optional(to.map(|to| to.dgamma)), lowering.optional(to.map(|to| to.dbeta))]);
                }
                candidate.commands.push(combine(
                    Kernel { file: "conv2d_backward_data", entry: "conv2d_reduction_combine" },
                    pointers,
                    vec![tiles, sizes.c, first.factor.to_bits()],
                    sizes.c,
                ));
            }
            candidate
        })
        .filter(|candidate| candidate.workspace_bytes <= MAX_WORKSPACE_BYTES)
        .collect()
}

/// Candidates of a convolution's gradients to its filter and bias.
pub(in crate::engine::cuda) fn backward_weight(step: &BackwardWeight, lowering: &Lowering) -> Vec<Candidate> {
    let Some(sizes) = Sizes::new(&step.x, &step.dy, step.window, lowering) else {
        return Vec::new();
    };
    let vector = lowering.vector() as u32;
    let positions = sizes.n * sizes.p * sizes.q;
    let columns = sizes.taps() * sizes.c;
    let elements = sizes.k * columns;
    let bias = if step.dbias.is_some() { sizes.k } else { 0 };
    let steps = positions.div_ceil(CHUNKS * vector);
    let mut candidates = Vec::new();
    for tile in &WEIGHT_TILES {
        // Behind the operands lie the positions of four steps, 8 bytes each.
        let shared_bytes = shared_bytes(tile.side, tile.side) + 4 * 8 * CHUNKS * vector;
        if shared_bytes > lowering.facts.shared_bytes {
            continue;
        }
        let blocks = sizes.k.div_ceil(tile.side) * columns.div_ceil(tile.side);
        let capacity = lowering.facts.multiprocessors * tile.blocks;
        let most = (steps / MIN_STEPS).max(1);
        let mut parts: Vec<u32> = [1, 2, 4].iter().map(|waves| (waves * capacity / blocks).clamp(1, most)).collect();
        parts.dedup();
        for splits in parts {
            let partial_bytes = if splits == 1 { 0 } else { u64::from(elements + bias) * u64::from(splits) * 4 };
            if partial_bytes > MAX_WORKSPACE_BYTES {
                continue;
            }
            let partials = Place::Workspace { offset: 0 };
            let (dw, dbias) = (lowering.place(step.dw), lowering.optional(step.dbias));
            let entry = if step.dbias.is_some() { tile.with_bias } else { tile.entry };
            let mut parameters = vec![sizes.h, sizes.w, sizes.row(&step.x, sizes.c, lowering) / vector, sizes.c];
            parameters.extend([positions, lowering.row(&step.dy) / vector, sizes.k]);
            parameters.extend(sizes.window_words());
            parameters.extend(divisor(sizes.p * sizes.q));
            parameters.extend(divisor(sizes.q));
            parameters.extend(divisor(sizes.c / vector));
            parameters.extend(divisor(sizes.window.s as u32));
            parameters.extend([splits, step.factor.to_bits()]);
            let mut candidate = Candidate::of(Launch {
                kernel: Kernel { file: "conv2d_backward_weight", entry },
                pointers: vec![
                    lowering.view(&step.x),
                    lowering.view(&step.dy),
                    dw,
                    dbias,
                    if splits > 1 { partials } else { Place::Null },
                ],
                parameters,
                grid: [blocks, splits, 1],
                threads: THREADS,
                shared_bytes,
            });
            candidate.name = name(entry, splits);
            candidate.workspace_bytes = partial_bytes;
            if splits > 1 {
                candidate.commands.push(Command::Kernel(Launch {
                    kernel: Kernel { file: "conv2d_backward_weight", entry: "conv2d_backward_weight_combine" },
                    pointers: vec![partials, dw, dbias],
                    parameters: vec![elements, bias, splits, step.factor.to_bits()],
                    grid: [(elements + bias).div_ceil(1024), 1, 1],
                    threads: 256,
                    shared_bytes: 0,
                }));
            }
            candidates.push(candidate);
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_divide() {
        for value in [1, 2, 3, 7, 8, 49, 56, 64, 196, 3136, 50176, (1 << 20) + 1] {
            let [_, multiplier, shift] = divisor(value);
            for dividend in [0, 1, value - 1, value, 5 * value - 1, 5 * value, (1 << 31) - 1] {
                let high = (u64::from(dividend) * u64::from(multiplier)) >> 32;
                let quotient = if value == 1 { dividend } else { high as u32 >> shift };
                assert_eq!(quotient, dividend / value, "{dividend} / {value}");
            }
        }
    }

    #[test]
    fn parts_fill_the_device_and_keep_their_steps() {
        assert_eq!(splits(264, 72, 264), [1]);
        assert_eq!(splits(64, 64, 528), [1, 4, 8]);
        assert_eq!(splits(8, 12, 264), [1, 2, 3]);
        assert_eq!(splits(8, 7, 264), [1]);
    }
}
