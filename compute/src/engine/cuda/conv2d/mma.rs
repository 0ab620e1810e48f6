//! Implicit GEMMs on the tensor cores of any GPU, in `shaders/conv2d.cu`, `conv2d_backward_data.cu` and
//! `conv2d_backward_weight.cu`: one candidate for each tile and number of parts that the reduction is cut into.
//!
//! The structures of parameters and the lists of tiles are those of the kernel texts.

mod backward_weight;
mod gemm;
mod sizes;

pub(in crate::engine::cuda) use backward_weight::backward_weight;

use crate::engine::cuda::launch::{Candidate, Command, Kernel, Launch, Lowering, Place};
use crate::ops::View;
use crate::ops::conv2d::{BackwardData, Forward};
use gemm::Gemm;
use sizes::Sizes;

/// Largest workspace of a candidate.
const MAX_WORKSPACE_BYTES: u64 = 512 << 20;

/// Steps of the mainloop below which a part of a reduction does not pay.
const MIN_STEPS: u32 = 4;

/// Chunks of 16 bytes of a step, of every tile.
const CHUNKS: u32 = 8;

/// Candidates of a convolution with its epilogue, but for dropout, and its statistics.
pub(in crate::engine::cuda) fn forward(step: &Forward, lowering: &Lowering) -> Vec<Candidate> {
    let Some(sizes) = Sizes::new(&step.x, &step.y, step.window, true, lowering) else {
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
    gemm.choices(&sizes, lowering, |tile| tile.blocks)
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
    // What a fully connected layer reads as one position has other channels than its reductions.
    let may_flatten = epilogue.reductions.is_empty() && epilogue.relu_mask.iter().all(View::is_whole);
    let Some(sizes) = Sizes::new(&step.dx, &step.dy, step.window, may_flatten, lowering) else {
        return Vec::new();
    };
    let is_factored = epilogue.reductions.windows(2).all(|pair| pair[0].factor == pair[1].factor);
    if epilogue.reductions.len() > 2 || !is_factored {
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
    gemm.choices(&sizes, lowering, |tile| tile.backward_data_blocks)
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
                    pointers
                        .extend([lowering.optional(to.map(|to| to.dgamma)), lowering.optional(to.map(|to| to.dbeta))]);
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

/// A launch that joins what row tiles left for eight channels a block.
fn combine(kernel: Kernel, pointers: Vec<Place>, parameters: Vec<u32>, channels: u32) -> Command {
    let grid = [channels.div_ceil(8), 1, 1];
    Command::Kernel(Launch { kernel, pointers, parameters, grid, threads: 1024, shared_bytes: 0 })
}

/// A candidate's name: its entry point, and the parts of its reduction.
fn name(entry: &str, splits: u32) -> String {
    if splits == 1 { entry.to_owned() } else { format!("{entry}/{splits}") }
}

/// Shared memory of a mainloop: three steps of both operands.
fn shared_bytes(m: u32, n: u32) -> u32 {
    3 * (m + n) * CHUNKS * 16
}
