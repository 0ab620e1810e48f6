//! Implicit GEMMs in f32 without tensor cores, in `shaders/conv2d_simt.cu`, `conv2d_simt_backward_data.cu` and
//! `conv2d_simt_backward_weight.cu`: one candidate for each tile and number of parts that the depth is cut into.
//!
//! The structures of parameters and the lists of tiles are those of the kernel texts.

use crate::engine::cuda::batch_norm;
use crate::engine::cuda::columns::{optional_row, optional_view};
use crate::engine::cuda::conv2d::divisor::divisor;
use crate::engine::cuda::launch::{Candidate, Command, Kernel, Launch, Lowering, Place};
use crate::ops::View;
use crate::ops::conv2d::{BackwardData, BackwardWeight, Forward, Window};

/// Depths of a step of the mainloop.
const STEP: u32 = 16;
/// Steps below which a part of the depth does not pay.
const MIN_STEPS: u32 = 4;
/// The most parts.
const MAX_PARTS: u32 = 64;
/// Largest workspace of a candidate, but for a single chunk or part.
pub(super) const MAX_WORKSPACE_BYTES: u64 = 256 << 20;
/// What a part costs, as a share of all multiplications, times the depth: its sums are written and read, 8 bytes, at 14
/// FLOPs in the time of a byte. Measured on an H200, 2026-11-30: 43 TFLOP/s, 3 TB/s.
const PART_COST: f64 = 8.0 * 14.0 / 2.0;

/// An output tile's kernel.
pub(super) struct Tile {
    pub(super) m: u32,
    pub(super) n: u32,
    pub(super) threads: u32,
    /// Blocks that share a multiprocessor.
    pub(super) blocks: u32,
    pub(super) entry: &'static str,
}

const FORWARD: [Tile; 3] = [
    Tile { m: 128, n: 128, threads: 128, blocks: 2, entry: "conv2d_simt_forward_128x128" },
    Tile { m: 128, n: 64, threads: 64, blocks: 4, entry: "conv2d_simt_forward_128x64" },
    Tile { m: 64, n: 128, threads: 64, blocks: 4, entry: "conv2d_simt_forward_64x128" },
];

const BACKWARD_DATA: [Tile; 3] = [
    Tile { m: 128, n: 128, threads: 128, blocks: 2, entry: "conv2d_simt_backward_data_128x128" },
    Tile { m: 128, n: 64, threads: 64, blocks: 4, entry: "conv2d_simt_backward_data_128x64" },
    Tile { m: 64, n: 128, threads: 64, blocks: 4, entry: "conv2d_simt_backward_data_64x128" },
];

const BACKWARD_WEIGHT: [Tile; 4] = [
    Tile { m: 128, n: 128, threads: 128, blocks: 2, entry: "conv2d_simt_backward_weight_128x128" },
    Tile { m: 128, n: 64, threads: 64, blocks: 4, entry: "conv2d_simt_backward_weight_128x64" },
    Tile { m: 64, n: 128, threads: 64, blocks: 4, entry: "conv2d_simt_backward_weight_64x128" },
    Tile { m: 64, n: 64, threads: 64, blocks: 8, entry: "conv2d_simt_backward_weight_64x64" },
];

impl Tile {
    /// Tiles of a GEMM.
    pub(super) fn count(&self, rows: u32, columns: u32) -> u32 {
        rows.div_ceil(self.m) * columns.div_ceil(self.n)
    }

    /// Whether a smaller tile would hold all rows or all columns. Where both are few, 64 rows remain with any columns: not
    /// every kernel has a tile of 64 x 64.
    pub(super) fn is_too_large(&self, rows: u32, columns: u32) -> bool {
        self.m > 64 && rows <= 64 || self.n > 64 && columns <= 64 && rows > 64
    }

    /// How busy the device is with useful multiplications: a share of its multiprocessors' time.
    fn busy(&self, blocks: u32, depth: u32, parts: u32, lowering: &Lowering) -> f64 {
        let slots = f64::from(lowering.facts.multiprocessors * self.blocks);
        let waves = f64::from(blocks) * f64::from(parts) / slots;
        let cost = if parts == 1 { 0.0 } else { f64::from(parts) * PART_COST / f64::from(depth) };
        waves / waves.ceil() / (1.0 + cost)
    }

    /// Number of parts of the depth that keeps the device busiest, the fewest of equally good ones.
    pub(super) fn best_parts(&self, blocks: u32, depth: u32, part_bytes: u64, lowering: &Lowering) -> u32 {
        let fitting = (MAX_WORKSPACE_BYTES / part_bytes).min(u64::from(MAX_PARTS)) as u32;
        let most = depth.div_ceil(STEP * MIN_STEPS).min(fitting).max(1);
        let busy = |parts| self.busy(blocks, depth, parts, lowering);
        (2..=most).fold(1, |best, parts| if busy(parts) > busy(best) + 0.01 { parts } else { best })
    }

    /// Numbers of parts worth a try: the best, and one where that keeps the device half as busy.
    fn parts(&self, blocks: u32, depth: u32, part_bytes: u64, lowering: &Lowering) -> Vec<u32> {
        let best = self.best_parts(blocks, depth, part_bytes, lowering);
        let busy = |parts| self.busy(blocks, depth, parts, lowering);
        if best > 1 && 2.0 * busy(1) >= busy(best) { vec![1, best] } else { vec![best] }
    }

    fn launch(&self, file: &'static str, grid: [u32; 3], pointers: Vec<Place>, parameters: Vec<u32>) -> Launch {
        let kernel = Kernel { file, entry: self.entry };
        Launch { kernel, pointers, parameters, grid, threads: self.threads, shared_bytes: 0 }
    }
}

/// A kernel that takes four elements a thread.
fn elementwise(kernel: Kernel, elements: u64, pointers: Vec<Place>, parameters: Vec<u32>) -> Command {
    let grid = [elements.div_ceil(1024) as u32, 1, 1];
    Command::Kernel(Launch { kernel, pointers, parameters, grid, threads: 256, shared_bytes: 0 })
}

/// A kernel that combines what half tiles left, eight columns a block.
fn combine(kernel: Kernel, columns: u32, pointers: Vec<Place>, parameters: Vec<u32>) -> Command {
    let grid = [columns.div_ceil(8), 1, 1];
    Command::Kernel(Launch { kernel, pointers, parameters, grid, threads: 512, shared_bytes: 0 })
}

/// A candidate's name: its entry point, and the parts of its depth.
fn name(entry: &str, parts: u32) -> String {
    if parts == 1 { entry.to_owned() } else { format!("{entry}/{parts}") }
}

/// A convolution's sizes, channels padded.
struct Layer {
    n: u32,
    h: u32,
    w: u32,
    c: u32,
    k: u32,
    p: u32,
    q: u32,
    window: Window,
    /// Whether a window over the whole map was made one of a single position with more channels.
    is_flat: bool,
}

impl Layer {
    /// `may_flatten`: whether all else of the input's shape is elementwise and whole.
    fn new(x: &View, y: &View, window: Window, may_flatten: bool, lowering: &Lowering) -> Self {
        let [n, h, w, p, q] = [x.shape.n, x.shape.h, x.shape.w, y.shape.h, y.shape.w].map(|size| size as u32);
        let (c, k) = (lowering.padded(x.shape.c), lowering.padded(y.shape.c));
        let covers = (window.r, window.s, window.pad) == (x.shape.h, x.shape.w, 0);
        if covers && may_flatten && x.is_whole() {
            let window = Window { r: 1, s: 1, stride: 1, pad: 0 };
            return Self { n, h: 1, w: 1, c: h * w * c, k, p, q, window, is_flat: true };
        }
        Self { n, h, w, c, k, p, q, window, is_flat: false }
    }

    /// Words of the kernels' `Convolution`.
    fn words(&self) -> Vec<u32> {
        let Window { r, s, stride, pad } = self.window;
        let mut words = vec![self.n, self.h, self.w, self.c, self.k, self.p, self.q];
        words.extend([r, s, stride, pad].map(|size| size as u32));
        words
    }

    fn taps(&self) -> u32 {
        (self.window.r * self.window.s) as u32
    }

    /// Elements from one position to the next of a view of the input's shape.
    fn input_row(&self, view: Option<&View>, lowering: &Lowering) -> u32 {
        if self.is_flat { self.c } else { optional_row(view, lowering) }
    }
}

/// Steps of one part, and the parts that are then left.
fn part_steps(depth: u32, parts: u32) -> (u32, u32) {
    let steps = depth.div_ceil(STEP);
    let size = steps.div_ceil(parts).max(1);
    (size, steps.div_ceil(size).max(1))
}

/// Candidates of a convolution with its epilogue, but for dropout, and its statistics.
pub(in crate::engine::cuda) fn forward(step: &Forward, lowering: &Lowering) -> Vec<Candidate> {
    const FILE: &str = "conv2d_simt";
    let layer = Layer::new(&step.x, &step.y, step.window, true, lowering);
    let (rows, depth) = (layer.n * layer.p * layer.q, layer.taps() * layer.c);
    let part_bytes = u64::from(rows) * u64::from(layer.k) * 4;
    let epilogue = &step.epilogue;
    let residual = epilogue.residual.as_ref();
    let operands = [
        lowering.optional(epilogue.scale),
        lowering.optional(epilogue.bias),
        optional_view(residual, lowering),
        lowering.view(&step.y),
    ];
    let mut candidates = Vec::new();
    for tile in FORWARD.iter().filter(|tile| !tile.is_too_large(rows, layer.k)) {
        let blocks = tile.count(rows, layer.k);
        for parts in tile.parts(blocks, depth, part_bytes, lowering) {
            let (part_steps, parts) = part_steps(depth, parts);
            let mut parameters = layer.words();
            parameters.extend([layer.input_row(Some(&step.x), lowering), lowering.row(&step.y)]);
            parameters.extend([optional_row(residual, lowering), u32::from(epilogue.relu), part_steps, parts]);
            let workspace = Place::Workspace { offset: 0 };
            let statistics = step.statistics.filter(|_| parts == 1);
            let mut pointers = vec![lowering.view(&step.x), lowering.place(step.w)];
            pointers.extend(operands);
            pointers.push(if parts > 1 { workspace } else { Place::Null });
            pointers.push(if statistics.is_some() { workspace } else { Place::Null });
            let mut candidate = Candidate::of(tile.launch(FILE, [blocks, 1, parts], pointers, parameters.clone()));
            candidate.name = name(tile.entry, parts);
            if let Some(statistics) = statistics {
                candidate.workspace_bytes = u64::from(rows.div_ceil(tile.m)) * 4 * u64::from(layer.k) * 4;
                candidate.commands.push(combine(
                    Kernel { file: FILE, entry: "conv2d_simt_statistics" },
                    layer.k,
                    vec![workspace, lowering.place(statistics.mean), lowering.place(statistics.inv_std)],
                    vec![rows, tile.m / 2, layer.k, statistics.epsilon.to_bits()],
                ));
            }
            if parts > 1 {
                candidate.workspace_bytes = part_bytes * u64::from(parts);
                let pointers = [workspace].into_iter().chain(operands).collect();
                let kernel = Kernel { file: FILE, entry: "conv2d_simt_forward_finish" };
                candidate.commands.push(elementwise(kernel, part_bytes / 4, pointers, parameters));
                if let Some(statistics) = &step.statistics {
                    let (launch, bytes) = batch_norm::statistics(&step.y, statistics, 0, lowering);
                    candidate.commands.push(Command::Kernel(launch));
                    candidate.workspace_bytes = candidate.workspace_bytes.max(bytes);
                }
            }
            candidates.push(candidate);
        }
    }
    candidates
}

/// Candidates of a convolution's gradient to its input, with epilogue and reductions.
pub(in crate::engine::cuda) fn backward_data(step: &BackwardData, lowering: &Lowering) -> Vec<Candidate> {
    const FILE: &str = "conv2d_simt_backward_data";
    let epilogue = &step.epilogue;
    let (mask, reductions) = (epilogue.relu_mask.as_ref(), &epilogue.reductions);
    let may_flatten = reductions.is_empty() && mask.is_none_or(View::is_whole);
    let layer = Layer::new(&step.dx, &step.dy, step.window, may_flatten, lowering);
    let stride = layer.window.stride as u32;
    let [taps_r, taps_s] = [layer.window.r, layer.window.s].map(|side| (side as u32).div_ceil(stride));
    let (positions, depth) = (layer.n * layer.h * layer.w, taps_r * taps_s * layer.k);
    let rows = layer.n * layer.h.div_ceil(stride) * layer.w.div_ceil(stride);
    let classes = stride * stride;
    let part_bytes = u64::from(positions) * u64::from(layer.c) * 4;
    let (mask_place, dx) = (optional_view(mask, lowering), lowering.view(&step.dx));
    let mut candidates = Vec::new();
    for tile in BACKWARD_DATA.iter().filter(|tile| !tile.is_too_large(rows, layer.c)) {
        let blocks = tile.count(rows, layer.c);
        for parts in tile.parts(blocks * classes, depth, part_bytes, lowering) {
            let (part_steps, parts) = part_steps(depth, parts);
            let is_fused = parts == 1 && reductions.len() <= 2;
            let half_tiles = 2 * rows.div_ceil(tile.m) * classes;
            let sums_bytes = u64::from(half_tiles) * 2 * u64::from(layer.c) * 4;
            let fused = |idx: usize| reductions.get(idx).filter(|_| is_fused);
            let y_row = |idx: usize| optional_row(fused(idx).map(|reduction| &reduction.y), lowering);
            let mut parameters = layer.words();
            parameters.extend([lowering.row(&step.dy), layer.input_row(Some(&step.dx), lowering)]);
            parameters.extend([layer.input_row(mask, lowering), y_row(0), y_row(1)]);
            parameters.extend([u32::from(epilogue.accumulate), epilogue.scale.to_bits(), part_steps, parts]);
            let partial = if parts > 1 { Place::Workspace { offset: 0 } } else { Place::Null };
            let mut pointers = vec![lowering.view(&step.dy), lowering.place(step.w), mask_place, dx, partial];
            for idx in 0..2 {
                pointers.extend(fused(idx).map_or([Place::Null; 4], |reduction| {
                    let sums = Place::Workspace { offset: idx as u64 * sums_bytes };
                    let [mean, inv_std] = [reduction.mean, reduction.inv_std].map(|id| lowering.place(id));
                    [lowering.view(&reduction.y), mean, inv_std, sums]
                }));
            }
            let launch = tile.launch(FILE, [blocks, classes, parts], pointers, parameters.clone());
            let mut candidate = Candidate::of(launch);
            candidate.name = name(tile.entry, parts);
            if parts > 1 {
                candidate.workspace_bytes = part_bytes * u64::from(parts);
                let kernel = Kernel { file: FILE, entry: "conv2d_simt_backward_data_finish" };
                let pointers = vec![partial, mask_place, dx];
                candidate.commands.push(elementwise(kernel, part_bytes / 4, pointers, parameters));
            }
            if is_fused {
                candidate.workspace_bytes = sums_bytes * reductions.len() as u64;
                for (idx, reduction) in reductions.iter().enumerate() {
                    let sums = Place::Workspace { offset: idx as u64 * sums_bytes };
                    candidate.commands.push(combine(
                        Kernel { file: FILE, entry: "conv2d_simt_reduction" },
                        layer.c,
                        vec![sums, lowering.place(reduction.dbeta), lowering.place(reduction.dgamma)],
                        vec![half_tiles, layer.c, reduction.factor.to_bits()],
                    ));
                }
            } else {
                batch_norm::add_reductions(&mut candidate, &step.dx, reductions, lowering);
            }
            candidates.push(candidate);
        }
    }
    candidates
}

/// Candidates of a convolution's gradients to its filter and bias.
pub(in crate::engine::cuda) fn backward_weight(step: &BackwardWeight, lowering: &Lowering) -> Vec<Candidate> {
    const FILE: &str = "conv2d_simt_backward_weight";
    let layer = Layer::new(&step.x, &step.dy, step.window, true, lowering);
    let (positions, columns) = (layer.n * layer.p * layer.q, layer.taps() * layer.c);
    let part_bytes = u64::from(layer.k) * u64::from(columns) * 4;
    let (dw, dbias) = (lowering.place(step.dw), lowering.optional(step.dbias));
    let mut candidates = Vec::new();
    for tile in BACKWARD_WEIGHT.iter().filter(|tile| !tile.is_too_large(layer.k, columns)) {
        let blocks = tile.count(layer.k, columns);
        let parts = tile.best_parts(blocks, positions, part_bytes, lowering);
        let (part_steps, parts) = part_steps(positions, parts);
        let (partial, partial_bias) = if parts > 1 {
            (Place::Workspace { offset: 0 }, Place::Workspace { offset: part_bytes * u64::from(parts) })
        } else {
            (Place::Null, Place::Null)
        };
        let mut parameters = layer.words();
        parameters.extend([layer.input_row(Some(&step.x), lowering), lowering.row(&step.dy)]);
        parameters.extend([part_steps * STEP, parts, step.factor.to_bits()]);
        parameters.extend(divisor(layer.p * layer.q));
        parameters.extend(divisor(layer.q));
        let pointers = vec![lowering.view(&step.x), lowering.view(&step.dy), dw, dbias, partial, partial_bias];
        let mut candidate = Candidate::of(tile.launch(FILE, [blocks, 1, parts], pointers, parameters));
        candidate.name = name(tile.entry, parts);
        if parts > 1 {
            candidate.workspace_bytes = (part_bytes + u64::from(layer.k) * 4) * u64::from(parts);
            candidate.commands.push(elementwise(
                Kernel { file: FILE, entry: "conv2d_simt_backward_weight_combine" },
                part_bytes / 4 + u64::from(layer.k),
                vec![partial, partial_bias, dw, dbias],
                vec![layer.k * columns, layer.k, parts, step.factor.to_bits()],
            ));
        }
        candidates.push(candidate);
    }
    candidates
}
