//! Launch of what is fused behind a convolution, for a sum that something else left in memory.

use super::super::columns::{Tiling, optional_row, optional_view};
use super::super::launch::{Launch, Lowering, Place};
use crate::ops::conv2d::Forward;

/// The epilogue of a step without its dropout, applied to the sum at `acc`, whose row is the padded channels. `acc` may be
/// where the step's `y` lies, if that is whole.
pub(super) fn conv2d_epilogue(acc: Place, step: &Forward, lowering: &Lowering) -> Launch {
    let (y, epilogue) = (&step.y, &step.epilogue);
    let residual = epilogue.residual.as_ref();
    let pointers = vec![
        acc,
        lowering.optional(epilogue.scale),
        lowering.optional(epilogue.bias),
        optional_view(residual, lowering),
        lowering.view(y),
    ];
    let parameters = [optional_row(residual, lowering), lowering.row(y), u32::from(epilogue.relu)];
    Tiling::elementwise(y, lowering).launch("conv2d_epilogue", "conv2d_epilogue", pointers, parameters)
}
