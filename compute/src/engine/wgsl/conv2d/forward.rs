//! Convolution forward: rows of the GEMM are the output's positions, columns its channels.

use super::gemm::{Gemm, Parameters, Segment, Switches};
use super::{bindable_bytes, flattened, panel_bytes, panel_ranges};
use crate::engine::EngineError;
use crate::engine::wgsl::launch::{Launch, Lowering, channels4, row4};
use crate::engine::wgsl::layout;
use crate::ops::conv2d::Forward;

/// Launches of one convolution and its epilogue; statistics of the output are not among them.
///
/// # Errors
/// [`EngineError::NotSupported`] for a slice of channels that is not a multiple of four,
/// [`EngineError::ExceedsDeviceLimit`] when one image or 64 output channels of the filter can't be bound.
pub(in crate::engine::wgsl) fn forward(step: &Forward, context: &Lowering<'_>) -> Result<Vec<Launch>, EngineError> {
    let (x, window) = flattened(&step.x, step.window);
    let y = &step.y;
    let epilogue = &step.epilogue;
    let panel_bytes = panel_bytes(context, step.w);
    let panel4 = (panel_bytes / context.buffer(step.w).element.bytes() as u64 / 4) as u32;
    let panels4 = (layout::PANEL / layout::CHANNELS) as u32;
    let switches = Switches {
        scale: epilogue.scale.is_some(),
        bias: epilogue.bias.is_some(),
        residual: epilogue.residual.is_some(),
        relu: epilogue.relu,
        dropout: epilogue.dropout.is_some(),
        ..Switches::default()
    };
    let dropout = epilogue.dropout;
    let mut views = vec![&x, y];
    views.extend(&epilogue.residual);
    let mut launches = Vec::new();
    for images in context.image_ranges(&views, 0)? {
        let (input, input_base) = context.images(&x, images.clone(), false)?;
        let (output, output_base) = context.images(y, images.clone(), true)?;
        let residual = match &epilogue.residual {
            Some(view) => Some((context.images(view, images.clone(), false)?, row4(view))),
            None => None,
        };
        for panels in panel_ranges(context, step.w, bindable_bytes(context.limits()))? {
            let bytes = panels.start as u64 * panel_bytes..panels.end as u64 * panel_bytes;
            let (filter, distance) = context.range(step.w, bytes, false)?;
            let filter_base = (distance / context.buffer(step.w).element.bytes() as u64 / 4) as u32;
            let first4 = panels.start as u32 * panels4;
            let parameters = Parameters {
                rows: (images.len() * y.shape.h * y.shape.w) as u32,
                columns4: channels4(y).min(panels.end as u32 * panels4) - first4,
                row_plane: (y.shape.h * y.shape.w) as u32,
                row_w: y.shape.w as u32,
                input_row: row4(&x),
                input_h: x.shape.h as u32,
                input_w: x.shape.w as u32,
                stride: window.stride as i32,
                start_h: -(window.pad as i32),
                start_w: -(window.pad as i32),
                tap_step: 1,
                taps_r: window.r as u32,
                taps_s: window.s as u32,
                filter_panel: panel4,
                output_base: output_base + first4,
                output_row: row4(y),
                operand_base: residual.as_ref().map_or(0, |((_, base), _)| base + first4),
                operand_row: residual.as_ref().map_or(0, |&(_, row)| row),
                vector_base: first4,
                dropout_key: dropout.map_or(0, |d| d.key),
                dropout_threshold: dropout.map_or(0, |d| d.threshold),
                dropout_scale: dropout.map_or(0.0, |d| d.scale),
                dropout_image: images.start as u32,
                dropout_channels: y.shape.c as u32,
                dropout_first: first4 * layout::CHANNELS as u32,
                ..Parameters::default()
            };
            let gemm = Gemm {
                entry: "conv2d_forward",
                gather_filter: false,
                switches,
                input,
                segments: vec![Segment { filter, filter_base, input_base, channels4: channels4(&x) }],
                scale: epilogue.scale.map(|id| context.whole(id, false)).transpose()?,
                bias: epilogue.bias.map(|id| context.whole(id, false)).transpose()?,
                operand: residual.as_ref().map(|&((binding, _), _)| binding),
                output,
                parameters,
            };
            launches.extend(gemm.launches(context)?);
        }
    }
    Ok(launches)
}
