//! Convolution and its gradients as implicit GEMMs: which kernels run on which ranges of buffers.
//!
//! [`tile`] chooses the tile and the split of the depth, [`gemm`] makes the launches that forward and backward data
//! share, the other modules describe one step each as GEMMs.

mod backward_data;
mod backward_weight;
mod forward;
mod gemm;
mod reduction;
#[cfg(test)]
mod tests;
mod tile;

use std::ops::Range;

use super::launch::{Binding, Kernel, Launch, Limits, Lowering, even_ranges};
use super::layout;
use crate::engine::EngineError;
use crate::ops::conv2d::Window;
use crate::ops::{BufferId, View};
use crate::shape::Shape;

pub(super) use backward_data::backward_data;
pub(super) use backward_weight::backward_weight;
pub(super) use forward::forward;

/// Depth of one step of the kernels.
const DEPTH: u64 = 16;

/// Bytes of partial sums that a split of the depth may need.
const PARTS_BYTES: u64 = 64 << 20;

/// Buffers of workgroup memory for the operands of one step of an `m` by `n` tile: two where there is room.
fn buffers(limits: &Limits, m: u32, n: u32) -> u32 {
    let bytes = 4 * DEPTH as u32 * (m + n);
    if 2 * bytes <= limits.max_workgroup_bytes { 2 } else { 1 }
}

/// Bytes of partial sums on a device of these limits.
fn parts_bytes(limits: &Limits) -> u64 {
    PARTS_BYTES.min(limits.max_binding_bytes)
}

/// The input of a window that covers it all, as one position of `h · w · c` channels: a fully connected layer is then a
/// 1x1 convolution, whose filter lies in memory exactly as before. Other inputs stay as they are.
fn flattened(x: &View, window: Window) -> (View, Window) {
    if !is_fully_connected(x, window) {
        return (*x, window);
    }
    (flat(x), Window { r: 1, s: 1, stride: 1, pad: 0 })
}

fn is_fully_connected(x: &View, window: Window) -> bool {
    window.r == x.shape.h && window.s == x.shape.w && window.pad == 0 && x.is_whole()
}

fn flat(x: &View) -> View {
    View::whole(x.buffer, Shape::new(x.shape.n, layout::image_elements(x.shape), 1, 1))
}

/// Ranges of a filter's panels, as few as possible, of at most `bytes` each.
fn panel_ranges(context: &Lowering<'_>, filter: BufferId, bytes: u64) -> Result<Vec<Range<usize>>, EngineError> {
    let panel = panel_bytes(context, filter);
    let panels = layout::panels(context.filter(filter).k);
    let most = bytes / panel;
    if most == 0 {
        return Err(EngineError::ExceedsDeviceLimit {
            what: format!("64 output channels of {:?}", context.buffer(filter).name),
            needed: panel,
            limit: "max_storage_buffer_binding_size".into(),
            allowed: bytes,
        });
    }
    Ok(even_ranges(panels, (panels as u64).div_ceil(most) as usize))
}

/// Bytes of one panel of a filter.
fn panel_bytes(context: &Lowering<'_>, filter: BufferId) -> u64 {
    (layout::panel_elements(context.filter(filter)) * context.buffer(filter).element.bytes()) as u64
}

/// Bytes of panels that one binding holds wherever it starts.
fn bindable_bytes(limits: &Limits) -> u64 {
    limits.max_binding_bytes.saturating_sub(limits.offset_alignment)
}

/// Workgroups of one kernel, and what all of them cost.
struct Work {
    kernel: Kernel,
    bindings: Vec<Binding>,
    workgroups: u64,
    flops: u64,
    bytes: u64,
}

impl Work {
    /// Launches that each keep within the budget of one dispatch; `parameters` makes the uniform block of one from its
    /// first workgroup and their number.
    fn launches(&self, limits: &Limits, parameters: impl Fn(u32, u32) -> Vec<u32>) -> Vec<Launch> {
        self.ranges(limits)
            .map(|range| {
                let count = range.end - range.start;
                let share = |cost: u64| (cost as f64 * count as f64 / self.workgroups as f64) as u64;
                Launch {
                    kernel: self.kernel.clone(),
                    bindings: self.bindings.clone(),
                    parameters: parameters(range.start as u32, count as u32),
                    workgroups: count,
                    flops: share(self.flops),
                    bytes: share(self.bytes),
                }
            })
            .collect()
    }

    fn ranges(&self, limits: &Limits) -> impl Iterator<Item = Range<u64>> {
        let by_flops = self.flops.div_ceil(limits.max_flops_per_dispatch);
        let by_bytes = self.bytes.div_ceil(limits.max_bytes_per_dispatch);
        let workgroups = self.workgroups;
        let each = (workgroups / by_flops.max(by_bytes).max(1)).max(1);
        (0..workgroups.div_ceil(each)).map(move |i| i * each..((i + 1) * each).min(workgroups))
    }
}
