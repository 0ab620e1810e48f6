//! Candidates of backward weight.

use super::sizes::Sizes;
use super::{CHUNKS, MAX_WORKSPACE_BYTES, MIN_STEPS, name, shared_bytes};
use crate::engine::cuda::conv2d::divisor::divisor;
use crate::engine::cuda::launch::{Candidate, Command, Kernel, Launch, Lowering, Place};
use crate::ops::conv2d::BackwardWeight;

/// Rows (`k`) and columns (`r`, `s`, `c`) of a block's part of the gradient.
struct Tile {
    m: u32,
    n: u32,
    threads: u32,
    /// Blocks that share a multiprocessor, where there is shared memory for them.
    blocks: u32,
    entry: &'static str,
    with_bias: &'static str,
}

const TILES: [Tile; 3] = [
    Tile {
        m: 128,
        n: 128,
        threads: 128,
        blocks: 2,
        entry: "conv2d_backward_weight_128x128",
        with_bias: "conv2d_backward_weight_128x128_bias",
    },
    Tile {
        m: 64,
        n: 192,
        threads: 192,
        blocks: 2,
        entry: "conv2d_backward_weight_64x192",
        with_bias: "conv2d_backward_weight_64x192_bias",
    },
    Tile {
        m: 64,
        n: 64,
        threads: 128,
        blocks: 4,
        entry: "conv2d_backward_weight_64x64",
        with_bias: "conv2d_backward_weight_64x64_bias",
    },
];

/// Candidates of a convolution's gradients to its filter and bias.
pub(in crate::engine::cuda) fn backward_weight(step: &BackwardWeight, lowering: &Lowering) -> Vec<Candidate> {
    let Some(sizes) = Sizes::new(&step.x, &step.dy, step.window, true, lowering) else {
        return Vec::new();
    };
    let vector = lowering.vector() as u32;
    let positions = sizes.n * sizes.p * sizes.q;
    let columns = sizes.taps() * sizes.c;
    let elements = sizes.k * columns;
    let bias = if step.dbias.is_some() { sizes.k } else { 0 };
    let steps = positions.div_ceil(CHUNKS * vector);
    let mut candidates = Vec::new();
    for tile in &TILES {
        // Behind the operands lie the positions of four steps, 8 bytes each.
        let shared_bytes = shared_bytes(tile.m, tile.n) + 4 * 8 * CHUNKS * vector;
        if shared_bytes > lowering.facts.shared_bytes {
            continue;
        }
        let blocks = sizes.k.div_ceil(tile.m) * columns.div_ceil(tile.n);
        let fitting = lowering.facts.shared_bytes / shared_bytes;
        let capacity = lowering.facts.multiprocessors * tile.blocks.min(fitting);
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
                threads: tile.threads,
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
