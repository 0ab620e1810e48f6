//! Gradient of a convolution's input: rows of the GEMM are the input's positions, columns its channels, the depth runs
//! over the output's channels and the taps that connect the two positions.
//!
//! With a stride the taps that reach a position depend on its residue, so that each residue class of positions is a GEMM
//! of its own over its own taps; where a class has none, the GEMM is empty and only the epilogue is computed.

use super::gemm::{Gemm, Parameters, Segment, Switches};
use super::{bindable_bytes, flat, is_fully_connected, panel_bytes, panel_ranges, parts_bytes};
use crate::engine::EngineError;
use crate::engine::wgsl::launch::{Launch, Lowering, channels4, even_ranges, row4};
use crate::engine::wgsl::layout;
use crate::ops::View;
use crate::ops::conv2d::{BackwardData, Window};

/// Launches of the gradient and its epilogue; the sums over it are not among them.
///
/// # Errors
/// [`EngineError::NotSupported`] for a slice of channels that is not a multiple of four,
/// [`EngineError::ExceedsDeviceLimit`] when one image or 64 output channels of the filter can't be bound.
pub(in crate::engine::wgsl) fn backward_data(
    step: &BackwardData,
    context: &Lowering<'_>,
) -> Result<Vec<Launch>, EngineError> {
    let mask = step.epilogue.relu_mask;
    let fully_connected = is_fully_connected(&step.dx, step.window) && mask.is_none_or(|view| view.is_whole());
    let (dx, mask, window) = if fully_connected {
        (flat(&step.dx), mask.as_ref().map(flat), Window { r: 1, s: 1, stride: 1, pad: 0 })
    } else {
        (step.dx, mask, step.window)
    };
    let mut views = vec![&step.dy, &dx];
    views.extend(&mask);
    let filter_ranges = panel_ranges(context, step.w, bindable_bytes(context.limits()))?;
    let mut launches = Vec::new();
    for range in context.image_ranges(&views, 0)? {
        // Several ranges of the filter leave partial sums, one for each: these must fit.
        let sums = (layout::image_elements(dx.shape) * 4 * filter_ranges.len()) as u64;
        let most = if filter_ranges.len() == 1 { u64::MAX } else { parts_bytes(context.limits()) / sums };
        let pieces = (range.len() as u64).div_ceil(most.max(1)) as usize;
        for piece in even_ranges(range.len(), pieces) {
            let images = range.start + piece.start..range.start + piece.end;
            let (input, input_base) = context.images(&step.dy, images.clone(), false)?;
            let (output, output_base) = context.images(&dx, images.clone(), true)?;
            let operand = mask.as_ref().map(|view| context.images(view, images.clone(), false)).transpose()?;
            let segments = segments(step, context, input_base)?;
            let gemm = Gemm {
                entry: "conv2d_backward_data",
                gather_filter: true,
                switches: Switches {
                    factor: step.epilogue.scale != 1.0,
                    accumulate: step.epilogue.accumulate,
                    mask: mask.is_some(),
                    strided: window.stride > 1,
                    ..Switches::default()
                },
                input,
                segments,
                scale: None,
                bias: None,
                operand: operand.map(|(binding, _)| binding),
                output,
                parameters: Parameters {
                    columns4: channels4(&dx),
                    input_row: row4(&step.dy),
                    input_h: step.dy.shape.h as u32,
                    input_w: step.dy.shape.w as u32,
                    stride: 1,
                    tap_step: -1,
                    output_base,
                    output_row: row4(&dx),
                    operand_base: operand.map_or(0, |(_, base)| base),
                    operand_row: mask.as_ref().map_or(0, row4),
                    factor: step.epilogue.scale,
                    ..Parameters::default()
                },
            };
            for class in classes(&dx, window) {
                launches.extend(class.gemm(&gemm, &dx, window, images.len()).launches(context)?);
            }
        }
    }
    Ok(launches)
}

/// The filter's panels as segments of the depth.
fn segments(step: &BackwardData, context: &Lowering<'_>, input_base: u32) -> Result<Vec<Segment>, EngineError> {
    let panel_bytes = panel_bytes(context, step.w);
    let element_bytes = context.buffer(step.w).element.bytes() as u64;
    let panels4 = (layout::PANEL / layout::CHANNELS) as u32;
    panel_ranges(context, step.w, bindable_bytes(context.limits()))?
        .into_iter()
        .map(|panels| {
            let bytes = panels.start as u64 * panel_bytes..panels.end as u64 * panel_bytes;
            let (filter, distance) = context.range(step.w, bytes, false)?;
            let first4 = panels.start as u32 * panels4;
            Ok(Segment {
                filter,
                filter_base: (distance / element_bytes / 4) as u32,
                input_base: input_base + first4,
                channels4: channels4(&step.dy).min(panels.end as u32 * panels4) - first4,
            })
        })
        .collect()
}

/// Residue class of the input's positions: those at `(h0 + i·stride, w0 + j·stride)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class {
    h0: usize,
    w0: usize,
}

fn classes(dx: &View, window: Window) -> impl Iterator<Item = Class> {
    let (rows, columns) = (window.stride.min(dx.shape.h), window.stride.min(dx.shape.w));
    (0..rows).flat_map(move |h0| (0..columns).map(move |w0| Class { h0, w0 }))
}

/// Along one side of the map: first tap that reaches a residue class, how many do, and the output's position that the
/// first of them connects to the first of the class.
fn taps(first: usize, size: usize, window: Window) -> (usize, usize, usize) {
    let tap = (first + window.pad) % window.stride;
    let count = if tap < size { (size - tap).div_ceil(window.stride) } else { 0 };
    (tap, count, (first + window.pad) / window.stride)
}

impl Class {
    fn gemm(self, gemm: &Gemm, dx: &View, window: Window, images: usize) -> Gemm {
        let (h, w) = (dx.shape.h, dx.shape.w);
        let stride = window.stride;
        let (rows, columns) = ((h - self.h0).div_ceil(stride), (w - self.w0).div_ceil(stride));
        let (tap_r, taps_r, start_h) = taps(self.h0, window.r, window);
        let (tap_s, taps_s, start_w) = taps(self.w0, window.s, window);
        // Groups of four filter elements of one tap: 16 for each channel of the input.
        let tap4 = layout::padded_channels(dx.shape.c) * layout::PANEL / 4;
        let first4 = ((tap_r * window.s + tap_s) * tap4) as u32;
        let mut class = gemm.clone();
        // A class without taps has an empty depth; the first tap would lie outside of the filter.
        let is_empty = taps_r * taps_s == 0;
        for segment in &mut class.segments {
            segment.filter_base += if is_empty { 0 } else { first4 };
        }
        if is_empty {
            class.segments.truncate(1);
        }
        class.parameters = Parameters {
            rows: (images * rows * columns) as u32,
            row_plane: (rows * columns) as u32,
            row_w: columns as u32,
            start_h: start_h as i32,
            start_w: start_w as i32,
            taps_r: if is_empty { 0 } else { taps_r as u32 },
            taps_s: if is_empty { 0 } else { taps_s as u32 },
            filter_panel: (window.r * window.s * tap4) as u32,
            filter_r: (stride * window.s * tap4) as u32,
            filter_s: (stride * tap4) as u32,
            output_plane: (h * w) as u32,
            output_i: (stride * w) as u32,
            output_j: stride as u32,
            output_start: (self.h0 * w + self.w0) as u32,
            ..gemm.parameters
        };
        class
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tap_belongs_to_one_class() {
        for (size, stride, pad) in [(1, 2, 0), (3, 2, 1), (7, 2, 3), (11, 4, 2), (2, 3, 0)] {
            let window = Window { r: size, s: size, stride, pad };
            let mut all: Vec<_> = (0..stride)
                .flat_map(|first| {
                    let (tap, count, _) = taps(first, size, window);
                    (0..count).map(move |i| tap + i * stride)
                })
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..size).collect::<Vec<_>>(), "{window:?}");
        }
    }
}
