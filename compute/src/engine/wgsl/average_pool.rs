//! Launches of the average over the map.

use super::launch::{Kernel, Launch, Lowering, channels4, row4};
use super::max_pool::dropout_parameters;
use crate::engine::EngineError;
use crate::ops::average_pool::{Backward, Forward};

/// Threads of one workgroup.
const THREADS: u32 = 256;

/// Average and dropout.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn forward(step: &Forward, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let (x, y) = (&step.x, &step.y);
    let columns = channels4(y);
    let mut launches = Vec::new();
    for images in context.image_ranges(&[x, y], 0)? {
        let (x_binding, x_base) = context.images(x, images.clone(), false)?;
        let (y_binding, y_base) = context.images(y, images.clone(), true)?;
        let count = images.len() as u32 * columns;
        let mut parameters = vec![count, columns, x_base, row4(x), y_base, row4(y), (x.shape.h * x.shape.w) as u32];
        parameters.extend(dropout_parameters(step.dropout, y, images.start));
        launches.push(Launch {
            kernel: kernel("average_pool_forward", [step.dropout.is_some(), false, false], context),
            bindings: vec![x_binding, y_binding],
            parameters,
            workgroups: u64::from(count.div_ceil(THREADS)),
            flops: 0,
            bytes: context.image_bytes(x) * images.len() as u64,
        });
    }
    Ok(launches)
}

/// The gradient of the average, spread over the map.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn backward(step: &Backward, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let (dy, dx) = (&step.dy, &step.dx);
    let epilogue = &step.epilogue;
    // What is bound for a mask that there is not is not read.
    let mask = epilogue.relu_mask.as_ref().unwrap_or(dy);
    let columns = channels4(dx);
    let plane = dx.shape.h * dx.shape.w;
    let mut launches = Vec::new();
    for images in context.image_ranges(&[dy, mask, dx], 0)? {
        let (dy_binding, dy_base) = context.images(dy, images.clone(), false)?;
        let (mask_binding, mask_base) = context.images(mask, images.clone(), false)?;
        let (dx_binding, dx_base) = context.images(dx, images.clone(), true)?;
        let count = (images.len() * plane) as u32 * columns;
        launches.push(Launch {
            kernel: kernel(
                "average_pool_backward",
                [false, epilogue.accumulate, epilogue.relu_mask.is_some()],
                context,
            ),
            bindings: vec![dy_binding, mask_binding, dx_binding],
            parameters: vec![
                count,
                columns,
                dy_base,
                row4(dy),
                dx_base,
                row4(dx),
                mask_base,
                row4(mask),
                plane as u32,
                (epilogue.scale / plane as f32).to_bits(),
            ],
            workgroups: u64::from(count.div_ceil(THREADS)),
            flops: 0,
            bytes: 3 * context.image_bytes(dx) * images.len() as u64,
        });
    }
    Ok(launches)
}

fn kernel(entry: &'static str, enabled: [bool; 3], context: &Lowering) -> Kernel {
    let names = ["DROPOUT", "ACCUMULATE", "MASK"];
    let constants = names.into_iter().zip(enabled.map(u32::from)).collect();
    Kernel { file: "average_pool", entry, constants, element: context.element() }
}

#[cfg(test)]
mod tests;
