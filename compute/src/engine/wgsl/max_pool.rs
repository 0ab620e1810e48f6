//! Launches of max pooling.

use super::launch::{Kernel, Launch, Lowering, channels4, row4};
use crate::engine::EngineError;
use crate::ops::View;
use crate::ops::conv2d::Window;
use crate::ops::dropout::Dropping;
use crate::ops::max_pool::{Backward, Forward};

/// Threads of one workgroup.
const THREADS: u32 = 256;

/// Maximum over windows, its position and dropout.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn forward(step: &Forward, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let (x, y) = (&step.x, &step.y);
    let index = step.index.map(|id| View::whole(id, y.shape));
    let columns = channels4(y);
    let Window { r, s, stride, pad } = step.window;
    let mut views = vec![x, y];
    views.extend(&index);
    let mut launches = Vec::new();
    for images in context.image_ranges(&views, 0)? {
        let (x_binding, x_base) = context.images(x, images.clone(), false)?;
        let (y_binding, y_base) = context.images(y, images.clone(), true)?;
        let (index_binding, index_base) = match &index {
            Some(view) => context.images(view, images.clone(), true)?,
            // Bound but not touched.
            None => (context.workspace(0, 256, true)?, 0),
        };
        let count = (images.len() * y.shape.h * y.shape.w) as u32 * columns;
        let mut parameters = vec![count, columns, x_base, row4(x), y_base, row4(y), index_base];
        parameters.extend([x.shape.h, x.shape.w, y.shape.h, y.shape.w, r, s, stride, pad].map(|size| size as u32));
        parameters.extend(dropout_parameters(step.dropout, y, images.start));
        launches.push(Launch {
            kernel: kernel("max_pool_forward", [step.index.is_some(), step.dropout.is_some(), false, false], context),
            bindings: vec![x_binding, y_binding, index_binding],
            parameters,
            workgroups: u64::from(count.div_ceil(THREADS)),
            flops: 0,
            bytes: (context.image_bytes(x) + 2 * context.image_bytes(y)) * images.len() as u64,
        });
    }
    Ok(launches)
}

/// Channels, number of the first image, key, threshold and scale.
pub(super) fn dropout_parameters(dropout: Option<Dropping>, y: &View, first_image: usize) -> [u32; 5] {
    let (key, threshold, scale) = dropout.map_or((0, 0, 1.0), |d| (d.key, d.threshold, d.scale));
    [y.shape.c as u32, first_image as u32, key, threshold, scale.to_bits()]
}

/// Each input gathers from the windows whose maximum it was.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn backward(step: &Backward, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let (dy, dx) = (&step.dy, &step.dx);
    let index = View::whole(step.index, dy.shape);
    let epilogue = &step.epilogue;
    // What is bound for a mask that there is not is not read.
    let mask = epilogue.relu_mask.as_ref().unwrap_or(dy);
    let columns = channels4(dx);
    let Window { r, s, stride, pad } = step.window;
    let mut launches = Vec::new();
    for images in context.image_ranges(&[dy, &index, mask, dx], 0)? {
        let (dy_binding, dy_base) = context.images(dy, images.clone(), false)?;
        let (index_binding, index_base) = context.images(&index, images.clone(), false)?;
        let (mask_binding, mask_base) = context.images(mask, images.clone(), false)?;
        let (dx_binding, dx_base) = context.images(dx, images.clone(), true)?;
        let count = (images.len() * dx.shape.h * dx.shape.w) as u32 * columns;
        let mut parameters =
            vec![count, columns, dy_base, row4(dy), index_base, dx_base, row4(dx), mask_base, row4(mask)];
        parameters.extend([dx.shape.h, dx.shape.w, dy.shape.h, dy.shape.w, r, s, stride, pad].map(|size| size as u32));
        parameters.push(epilogue.scale.to_bits());
        launches.push(Launch {
            kernel: kernel(
                "max_pool_backward",
                [false, false, epilogue.accumulate, epilogue.relu_mask.is_some()],
                context,
            ),
            bindings: vec![dy_binding, index_binding, mask_binding, dx_binding],
            parameters,
            workgroups: u64::from(count.div_ceil(THREADS)),
            flops: 0,
            bytes: (2 * context.image_bytes(dy) + 2 * context.image_bytes(dx)) * images.len() as u64,
        });
    }
    Ok(launches)
}

fn kernel(entry: &'static str, enabled: [bool; 4], context: &Lowering) -> Kernel {
    let names = ["KEEP_INDEX", "DROPOUT", "ACCUMULATE", "MASK"];
    let constants = names.into_iter().zip(enabled.map(u32::from)).collect();
    Kernel { file: "max_pool", entry, constants, element: context.element() }
}

#[cfg(test)]
mod tests;
