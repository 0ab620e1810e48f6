//! Implicit GEMMs on the tensor cores of compute capability 9.0, in `shaders/conv2d_wgmma*.cu`: one candidate for each way
//! to read the gathered operand and each tile. TF32 goes forward only: its instruction takes no transposed operand.
//!
//! The structures of parameters, the tiles and their shared memory are those of the kernel texts.

mod backward_weight;
mod reading;
mod sizes;

pub(in crate::engine::cuda) use backward_weight::backward_weight;

use self::reading::{Reading, Tile, launch, name};
use self::sizes::Sizes;
use crate::engine::cuda::launch::{Candidate, Command, Kernel, Launch, Lowering, Place, contiguous};
use crate::ops::conv2d::{BackwardData, Forward};

/// Threads of a block, and rows of its tile.
const THREADS: u32 = 256;
const ROWS: u32 = 128;

/// Bytes of one row of a shared operand: a step of the reduction.
const STEP_BYTES: u32 = 128;

/// Rows of a patch that fit into shared memory.
const PATCH_ROWS: u32 = 248;

/// Shared memory that the epilogue of a block that stays needs beside its operands.
const STAGING_BYTES: u32 = 8 * 2048 + 32;

/// Largest workspace of a candidate.
const MAX_WORKSPACE_BYTES: u64 = 512 << 20;

/// A launch that adds up what tiles left, eight channels a block.
fn combine(entry: &'static str, pointers: Vec<Place>, parameters: Vec<u32>, channels: u32) -> Command {
    let kernel = Kernel { file: "conv2d_wgmma_combine", entry };
    let grid = [channels.div_ceil(8), 1, 1];
    Command::Kernel(Launch { kernel, pointers, parameters, grid, threads: 1024, shared_bytes: 0 })
}

/// A filter of so many vectors, rounded to TF32: the tensor cores would drop what it has beside.
fn round_filter(w: Place, rounded: Place, vectors: u32) -> Command {
    let kernel = Kernel { file: "conv2d_filter", entry: "conv2d_round_filter" };
    contiguous(kernel, vec![w, rounded], [vectors], 256)
}

/// Candidates of a convolution with its epilogue, but for dropout, and its statistics.
pub(in crate::engine::cuda) fn forward(step: &Forward, lowering: &Lowering) -> Vec<Candidate> {
    let epilogue = &step.epilogue;
    let is_plain = epilogue.scale.is_none() && epilogue.bias.is_none() && epilogue.residual.is_none() && !epilogue.relu;
    let Some(sizes) = Sizes::new(&step.x, &step.y, step.window, lowering) else {
        return Vec::new();
    };
    if step.statistics.is_some() && !is_plain {
        return Vec::new();
    }
    let residual = epilogue.residual.as_ref();
    let partials = Place::Workspace { offset: 0 };
    let filter = if sizes.is_half() { lowering.place(step.w) } else { Place::Kept { offset: 0 } };
    let candidate = |choice: (Reading, &'static Tile, &'static str)| {
        let (reading, tile, _) = choice;
        let row_tiles = sizes.row_tiles(reading, sizes.p, sizes.q);
        let (mut launch, parts) =
            launch(choice, tile.forward, [row_tiles, 1, sizes.k, sizes.c.div_ceil(sizes.step)], lowering);
        launch.pointers = vec![
            lowering.view(&step.x),
            filter,
            lowering.optional(epilogue.scale),
            lowering.optional(epilogue.bias),
            residual.map_or(Place::Null, |view| lowering.view(view)),
            lowering.view(&step.y),
            if step.statistics.is_some() { partials } else { Place::Null },
        ];
        launch.parameters = sizes.words();
        launch.parameters.extend([lowering.row(&step.x), lowering.row(&step.y)]);
        launch.parameters.extend([residual.map_or(0, |view| lowering.row(view)), u32::from(epilogue.relu)]);
        if let Reading::Patch { flat } = reading {
            launch.parameters.push(u32::from(flat));
        }
        let mut candidate = Candidate::of(launch);
        candidate.name = name(reading, tile.forward);
        if !sizes.is_half() {
            let vectors = sizes.k * sizes.r * sizes.s * sizes.c / 4;
            candidate.prepare.push(round_filter(lowering.place(step.w), filter, vectors));
            candidate.kept_bytes = u64::from(vectors) * 16;
        }
        if let Some(to) = &step.statistics {
            candidate.workspace_bytes = u64::from(parts) * (2 * u64::from(sizes.k) + 1) * 4;
            candidate.commands.push(combine(
                "conv2d_wgmma_statistics_combine",
                vec![partials, lowering.place(to.mean), lowering.place(to.inv_std)],
                vec![sizes.k, parts, sizes.outputs(), to.epsilon.to_bits()],
                sizes.k,
            ));
        }
        candidate
    };
    sizes.choices(true).into_iter().map(candidate).collect()
}

/// Candidates of a convolution's gradient to its input, with epilogue and up to two reductions.
pub(in crate::engine::cuda) fn backward_data(step: &BackwardData, lowering: &Lowering) -> Vec<Candidate> {
    let epilogue = &step.epilogue;
    let Some(sizes) = Sizes::new(&step.dx, &step.dy, step.window, lowering).filter(Sizes::is_half) else {
        return Vec::new();
    };
    if epilogue.reductions.len() > 2 {
        return Vec::new();
    }
    let [first, second] = [0, 1].map(|idx| epilogue.reductions.get(idx));
    let mask = epilogue.relu_mask.as_ref();
    let partials = Place::Workspace { offset: 0 };
    let classes = sizes.stride * sizes.stride;
    let candidate = |choice: (Reading, &'static Tile, &'static str)| {
        let (reading, tile, _) = choice;
        let row_tiles = sizes.row_tiles(reading, sizes.h.div_ceil(sizes.stride), sizes.w.div_ceil(sizes.stride));
        let (mut launch, parts) =
            launch(choice, tile.backward_data, [row_tiles, classes, sizes.c, sizes.k.div_ceil(sizes.step)], lowering);
        launch.pointers = vec![lowering.view(&step.dy), lowering.place(step.w)];
        launch.pointers.push(mask.map_or(Place::Null, |view| lowering.view(view)));
        for to in [first, second] {
            launch.pointers.push(to.map_or(Place::Null, |to| lowering.view(&to.y)));
            launch.pointers.push(lowering.optional(to.map(|to| to.mean)));
        }
        launch.pointers.push(lowering.view(&step.dx));
        launch.pointers.push(if first.is_some() { partials } else { Place::Null });
        launch.parameters = sizes.words();
        launch.parameters.extend([lowering.row(&step.dy), lowering.row(&step.dx)]);
        launch.parameters.push(mask.map_or(0, |view| lowering.row(view)));
        launch.parameters.extend([first, second].map(|to| to.map_or(0, |to| lowering.row(&to.y))));
        launch.parameters.extend([u32::from(epilogue.accumulate), epilogue.scale.to_bits()]);
        if let Reading::Patch { flat } = reading {
            launch.parameters.push(u32::from(flat));
        }
        let mut candidate = Candidate::of(launch);
        candidate.name = name(reading, tile.backward_data);
        if let Some(first) = first {
            candidate.workspace_bytes = u64::from(parts) * 3 * u64::from(sizes.c) * 4;
            let mut pointers = vec![partials, lowering.place(first.inv_std)];
            pointers.push(lowering.optional(second.map(|to| to.inv_std)));
            pointers.extend([lowering.place(first.dgamma), lowering.place(first.dbeta)]);
            pointers.push(lowering.optional(second.map(|to| to.dgamma)));
            pointers.push(lowering.optional(second.map(|to| to.dbeta)));
            let factors = [first.factor, second.map_or(0.0, |to| to.factor)].map(f32::to_bits);
            let mut parameters = vec![sizes.c, parts, epilogue.reductions.len() as u32];
            parameters.extend(factors);
            candidate.commands.push(combine("conv2d_wgmma_reduction_combine", pointers, parameters, sizes.c));
        }
        candidate
    };
    sizes.choices(false).into_iter().map(candidate).collect()
}
