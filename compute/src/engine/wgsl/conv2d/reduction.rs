//! Sum of partial results that lie one behind the other, in a fixed order.

use super::Work;
use super::backward_weight::Parameters;
use crate::engine::wgsl::launch::{Binding, Kernel, Launch, Lowering};
use crate::shape::Element;

/// Launches of `result = factor · Σ parts`, f32; a part has `size4` groups of four elements.
pub(super) fn reduction(
    context: &Lowering<'_>,
    parts: Binding,
    n_parts: u64,
    size4: u64,
    result: Binding,
    factor: f32,
) -> Vec<Launch> {
    // Few elements of many parts leave most of the device idle unless several threads share an element.
    let lanes: u32 = match n_parts {
        0..8 => 1,
        8..32 => 4,
        _ => 16,
    };
    let parameters = Parameters { parts: n_parts as u32, part_size: size4 as u32, factor, ..Parameters::default() };
    let kernel = kernel(context, "conv2d_backward_reduce", lanes);
    let parts = Binding { writable: false, ..parts };
    let workgroups = size4.div_ceil(u64::from(256 / lanes));
    let bytes = size4 * 16 * (n_parts + 1);
    Work { kernel, bindings: vec![parts, parts, result], workgroups, flops: size4 * 4 * n_parts, bytes }
        .launches(context.limits(), |first, count| parameters.words(first, count))
}

/// A kernel of `conv2d_backward_weight.wgsl` whose workgroups are `lanes` threads a column.
pub(super) fn kernel(context: &Lowering<'_>, entry: &'static str, lanes: u32) -> Kernel {
    let constants = vec![("TILE_M", 64), ("TILE_N", 64), ("BUFFERS", 1), ("LANES", lanes)];
    let element = if entry == "conv2d_backward_reduce" { Element::F32 } else { context.element() };
    Kernel { file: "conv2d_backward_weight", entry, constants, element }
}
