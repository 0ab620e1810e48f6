//! Launches of batch norm: statistics and gradient sums over a tensor, and the normalization forward and backward.

use std::ops::Range;

use super::launch::{Binding, Kernel, Launch, Lowering, channels4, row4};
use super::layout::PANEL;
use crate::engine::EngineError;
use crate::ops::batch_norm::{Backward, Forward, Normalized, Reduction, Residual, Statistics};
use crate::ops::{BufferId, View};

/// Threads of one workgroup of the kernels that take an element a thread, and of the partial sums.
const THREADS: u32 = 256;
/// Partial results that one sum is cut into at most.
const MAX_BLOCKS: usize = 256;
/// Workgroups of partial sums that are enough for any device.
const ENOUGH_WORKGROUPS: usize = 2048;
/// Bytes of four f32.
const VEC4: u64 = 16;

/// Statistics of a convolution's finished output.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn statistics(y: &View, step: &Statistics, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let sum = Sum::new(y, &[y], 3, context)?;
    let mut launches = Vec::new();
    for (images, first_block) in &sum.ranges {
        let (y_binding, y_base) = context.images(y, images.clone(), false)?;
        let place = Place { y_base, y_row: row4(y), ..Place::default() };
        launches.push(Launch {
            kernel: sum.kernel("batch_norm_statistics", context),
            bindings: vec![y_binding, sum.partials(true, context)?],
            parameters: sum.parameters(images, *first_block, place, 0.0, 0.0),
            workgroups: sum.workgroups(images),
            flops: 0,
            bytes: context.image_bytes(y) * images.len() as u64,
        });
    }
    launches.push(Launch {
        kernel: sum.kernel("batch_norm_statistics_combine", context),
        bindings: vec![
            sum.partials(false, context)?,
            context.whole(step.mean, true)?,
            context.whole(step.inv_std, true)?,
        ],
        parameters: sum.parameters(&(0..0), 0, Place::default(), step.epsilon, 0.0),
        workgroups: u64::from(sum.columns),
        flops: 0,
        bytes: sum.partial_bytes(),
    });
    Ok(launches)
}

/// Gradients of γ and β from the finished gradient `g` of each batch norm's output.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn reductions(g: &View, reductions: &[Reduction], context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let mut launches = Vec::new();
    for step in reductions {
        let sum = Sum::new(g, &[g, &step.y], 2, context)?;
        for (images, first_block) in &sum.ranges {
            let (g_binding, g_base) = context.images(g, images.clone(), false)?;
            let (y_binding, y_base) = context.images(&step.y, images.clone(), false)?;
            let place = Place { y_base, y_row: row4(&step.y), g_base, g_row: row4(g) };
            launches.push(Launch {
                kernel: sum.kernel("batch_norm_reduction", context),
                bindings: vec![
                    g_binding,
                    y_binding,
                    context.whole(step.mean, false)?,
                    context.whole(step.inv_std, false)?,
                    sum.partials(true, context)?,
                ],
                parameters: sum.parameters(images, *first_block, place, 0.0, 0.0),
                workgroups: sum.workgroups(images),
                flops: 0,
                bytes: 2 * context.image_bytes(g) * images.len() as u64,
            });
        }
        launches.push(Launch {
            kernel: sum.kernel("batch_norm_reduction_combine", context),
            bindings: vec![
                sum.partials(false, context)?,
                context.whole(step.dbeta, true)?,
                context.whole(step.dgamma, true)?,
            ],
            parameters: sum.parameters(&(0..0), 0, Place::default(), 0.0, step.factor),
            workgroups: u64::from(sum.columns),
            flops: 0,
            bytes: sum.partial_bytes(),
        });
    }
    Ok(launches)
}

/// A sum over the positions of a tensor: how it is cut into launches and blocks.
struct Sum {
    /// Images of each launch and the number of its first block.
    ranges: Vec<(Range<usize>, usize)>,
    plane: usize,
    /// Positions of a block.
    block: usize,
    blocks: usize,
    /// Groups of four channels, and those of one workgroup.
    columns: u32,
    group_columns: u32,
    channels: u32,
    /// Vectors of four in a partial result.
    parts: u64,
}

/// Where the tensors of a sum lie.
#[derive(Clone, Copy, Default)]
struct Place {
    y_base: u32,
    y_row: u32,
    g_base: u32,
    g_row: u32,
}

impl Sum {
    fn new(shape: &View, views: &[&View], parts: u64, context: &Lowering) -> Result<Self, EngineError> {
        let columns = channels4(shape);
        let group_columns = columns.next_power_of_two().min(16);
        let column_blocks = columns.div_ceil(group_columns) as usize;
        let rows = (THREADS / group_columns) as usize;
        let plane = shape.shape.h * shape.shape.w;
        // A few positions a thread at least.
        let wanted = (ENOUGH_WORKGROUPS / column_blocks).clamp(1, MAX_BLOCKS);
        let block = (shape.shape.n * plane).div_ceil(wanted).max(4 * rows);
        let mut blocks = 0;
        let mut ranges = Vec::new();
        for images in context.image_ranges(views, 0)? {
            let count = (images.len() * plane).div_ceil(block);
            ranges.push((images, blocks));
            blocks += count;
        }
        Ok(Self { ranges, plane, block, blocks, columns, group_columns, channels: shape.shape.c as u32, parts })
    }

    fn kernel(&self, entry: &'static str, context: &Lowering) -> Kernel {
        let constants = vec![("COLUMNS", self.group_columns)];
        Kernel { file: "batch_norm_sums", entry, constants, element: context.element() }
    }

    fn partial_bytes(&self) -> u64 {
        self.blocks as u64 * self.parts * u64::from(self.columns) * VEC4
    }

    fn partials(&self, writable: bool, context: &Lowering) -> Result<Binding, EngineError> {
        context.workspace(0, self.partial_bytes(), writable)
    }

    fn workgroups(&self, images: &Range<usize>) -> u64 {
        (images.len() * self.plane).div_ceil(self.block) as u64 * u64::from(self.columns.div_ceil(self.group_columns))
    }

    fn parameters(
        &self,
        images: &Range<usize>,
        first_block: usize,
        place: Place,
        epsilon: f32,
        factor: f32,
    ) -> Vec<u32> {
        vec![
            place.y_base,
            place.y_row,
            place.g_base,
            place.g_row,
            (images.len() * self.plane) as u32,
            self.block as u32,
            first_block as u32,
            self.blocks as u32,
            self.columns,
            self.channels,
            epsilon.to_bits(),
            factor.to_bits(),
        ]
    }
}

/// Normalization, residual and ReLU.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn forward(step: &Forward, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let (mut launches, input) = {
        let (launch, binding) = coefficients(0, &step.input, context)?;
        (vec![launch], binding)
    };
    let (kind, residual, shortcut) = match &step.residual {
        None => (0, step.input.y, input),
        Some(Residual::Identity(view)) => (1, *view, input),
        Some(Residual::Normalized(shortcut)) => {
            let (launch, binding) = coefficients(1, shortcut, context)?;
            launches.push(launch);
            (2, shortcut.y, binding)
        }
    };
    let (y, z) = (&step.input.y, &step.z);
    let columns = channels4(z);
    for images in context.image_ranges(&[y, &residual, z], 0)? {
        let (y_binding, y_base) = context.images(y, images.clone(), false)?;
        let (residual_binding, residual_base) = context.images(&residual, images.clone(), false)?;
        let (z_binding, z_base) = context.images(z, images.clone(), true)?;
        let count = (images.len() * z.shape.h * z.shape.w) as u32 * columns;
        launches.push(Launch {
            kernel: apply("batch_norm_forward", kind, step.relu.into(), 0, context),
            bindings: vec![y_binding, input, residual_binding, shortcut, z_binding],
            parameters: vec![count, columns, y_base, row4(y), residual_base, row4(&residual), z_base, row4(z)],
            workgroups: u64::from(count.div_ceil(THREADS)),
            flops: 0,
            bytes: 3 * context.image_bytes(z) * images.len() as u64,
        });
    }
    Ok(launches)
}

/// Mean, γ · inv_std and β of every channel side by side in a workspace: one binding instead of four.
fn coefficients(workspace: u32, step: &Normalized, context: &Lowering) -> Result<(Launch, Binding), EngineError> {
    let columns = channels4(&step.y);
    let bytes = 3 * VEC4 * u64::from(columns);
    let mut bindings = [step.mean, step.inv_std, step.gamma, step.beta]
        .map(|id| context.whole(id, false))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    bindings.push(context.workspace(workspace, bytes, true)?);
    let launch = Launch {
        kernel: apply("batch_norm_coefficients", 0, 0, 0, context),
        bindings,
        parameters: vec![columns],
        workgroups: u64::from(columns.div_ceil(THREADS)),
        flops: 0,
        bytes,
    };
    Ok((launch, context.workspace(workspace, bytes, false)?))
}

fn apply(entry: &'static str, residual: u32, relu: u32, in_place: u32, context: &Lowering) -> Kernel {
    let constants = vec![("RESIDUAL", residual), ("RELU", relu), ("IN_PLACE", in_place)];
    Kernel { file: "batch_norm", entry, constants, element: context.element() }
}

/// Gradient of a convolution's output through batch norm.
///
/// # Errors
/// As [`super::lower::lower`].
pub(super) fn backward(step: &Backward, context: &Lowering) -> Result<Vec<Launch>, EngineError> {
    let in_place = same_memory(step.g.buffer, step.dy.buffer, context);
    let (y, dy) = (&step.y, &step.dy);
    // What is bound for a gradient that lies in dy's memory is not read.
    let g = if in_place { y } else { &step.g };
    let columns = channels4(dy);
    let scale = step.loss_scale / dy.shape.positions() as f32;
    let vectors = [step.mean, step.inv_std, step.gamma, step.dgamma, step.dbeta]
        .map(|id| context.whole(id, false))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let mut launches = Vec::new();
    for images in context.image_ranges(&[g, y, dy], 0)? {
        let (g_binding, g_base) = context.images(g, images.clone(), false)?;
        let (y_binding, y_base) = context.images(y, images.clone(), false)?;
        let (dy_binding, dy_base) = context.images(dy, images.clone(), true)?;
        let count = (images.len() * dy.shape.h * dy.shape.w) as u32 * columns;
        let mut bindings = vec![g_binding, y_binding];
        bindings.extend(&vectors);
        bindings.push(dy_binding);
        launches.push(Launch {
            kernel: apply("batch_norm_backward", 0, 0, in_place.into(), context),
            bindings,
            parameters: vec![count, columns, g_base, row4(g), y_base, row4(y), dy_base, row4(dy), scale.to_bits()],
            workgroups: u64::from(count.div_ceil(THREADS)),
            flops: 0,
            bytes: 3 * context.image_bytes(dy) * images.len() as u64,
        });
    }
    Ok(launches)
}

fn same_memory(a: BufferId, b: BufferId, context: &Lowering) -> bool {
    a == b || context.buffer(a).slot == context.buffer(b).slot
}

// The kernels read whole groups of four channels of vectors.
const _: () = assert!(PANEL.is_multiple_of(4));

#[cfg(test)]
mod tests;
