//! Launches of our kernels around a library's convolution: for what it does not take up.

use super::super::super::columns::{Tiling, optional_row, optional_view};
use super::super::super::launch::{Command, Kernel, Lowering, Place, contiguous};
use crate::ops::BufferId;
use crate::ops::conv2d::Forward;

/// `y = relu(scale · acc + bias + residual)` of packed sums.
pub(super) fn epilogue(step: &Forward, acc: Place, lowering: &Lowering) -> Command {
    let residual = step.epilogue.residual.as_ref();
    let vectors = [step.epilogue.scale, step.epilogue.bias].map(|id| lowering.optional(id));
    let mut pointers = vec![acc];
    pointers.extend(vectors);
    pointers.extend([optional_view(residual, lowering), lowering.view(&step.y)]);
    let parameters = [optional_row(residual, lowering), lowering.row(&step.y), u32::from(step.epilogue.relu)];
    let tiling = Tiling::elementwise(&step.y, lowering);
    Command::Kernel(tiling.launch("conv2d_epilogue", "conv2d_epilogue", pointers, parameters))
}

/// Filter with each output channel's scale multiplied in. `vectors` are those of the filter and of one channel's part.
pub(super) fn scale_filter(w: Place, scale: BufferId, y: Place, vectors: [u32; 2], lowering: &Lowering) -> Command {
    let kernel = Kernel { file: "conv2d_filter", entry: "conv2d_scale_filter" };
    contiguous(kernel, vec![w, lowering.place(scale), y], vectors, 256)
}

/// A filter's gradient in f32, multiplied by `factor`, from one in the type of the activations.
pub(super) fn widen_filter(sums: Place, dw: BufferId, vectors: u32, factor: f32, lowering: &Lowering) -> Command {
    let kernel = Kernel { file: "conv2d_filter", entry: "conv2d_widen_filter" };
    contiguous(kernel, vec![sums, lowering.place(dw)], [vectors, factor.to_bits()], 256)
}

/// A bias in the type of the activations.
pub(super) fn cast_bias(bias: BufferId, y: Place, vectors: u32, lowering: &Lowering) -> Command {
    let kernel = Kernel { file: "cast", entry: "cast" };
    contiguous(kernel, vec![lowering.place(bias), y], [vectors], 1024)
}
