//! Gradients of a convolution's filter and bias: rows of the GEMM are the filter's taps and input channels, columns its
//! output channels, the depth runs over the output's positions.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::reduction::{kernel, reduction};
use super::tile::{self, Extent, Tiling};
use super::{DEPTH, Work, bindable_bytes, buffers, flattened, panel_bytes, panel_ranges, parts_bytes};
use crate::engine::EngineError;
use crate::engine::wgsl::launch::{Binding, Kernel, Launch, Lowering, channels4, row4};
use crate::engine::wgsl::layout;
use crate::ops::conv2d::{BackwardWeight, Window};
use crate::ops::{BufferId, View};

/// The uniform block of `conv2d_backward_weight.wgsl`, in its order; see there for what each field means.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Parameters {
    pub(super) rows: u32,
    pub(super) panels: u32,
    pub(super) positions: u32,
    pub(super) first_workgroup: u32,
    pub(super) workgroups: u32,
    pub(super) column_tiles: u32,
    pub(super) row_tiles: u32,
    pub(super) positions_per_part: u32,
    pub(super) first_part: u32,
    pub(super) parts: u32,
    pub(super) part_size: u32,
    pub(super) factor: f32,
    pub(super) dy_base: u32,
    pub(super) dy_row: u32,
    pub(super) dy_channels4: u32,
    pub(super) dy_plane: u32,
    pub(super) dy_h: u32,
    pub(super) dy_w: u32,
    pub(super) advance_n: u32,
    pub(super) advance_p: u32,
    pub(super) advance_q: u32,
    pub(super) x_base: u32,
    pub(super) x_row: u32,
    pub(super) x_h: u32,
    pub(super) x_w: u32,
    pub(super) x_channels4: u32,
    pub(super) taps_s: u32,
    pub(super) stride: i32,
    pub(super) pad: i32,
}

impl Parameters {
    pub(super) fn words(self, first_workgroup: u32, workgroups: u32) -> Vec<u32> {
        bytemuck::cast_slice(&[Self { first_workgroup, workgroups, ..self }]).to_vec()
    }
}

/// Groups of four output channels of a panel.
const PANEL4: u32 = (layout::PANEL / layout::CHANNELS) as u32;

/// Launches of the gradients of filter and bias.
///
/// # Errors
/// [`EngineError::NotSupported`] for a slice of channels that is not a multiple of four,
/// [`EngineError::ExceedsDeviceLimit`] when one image, or 64 output channels of the filter's gradient, can't be bound.
pub(in crate::engine::wgsl) fn backward_weight(
    step: &BackwardWeight,
    context: &Lowering<'_>,
) -> Result<Vec<Launch>, EngineError> {
    let (x, window) = flattened(&step.x, step.window);
    let ranges = context.image_ranges(&[&x, &step.dy], 0)?;
    let mut launches = Vec::new();
    let mut bytes = bindable_bytes(context.limits());
    if ranges.len() > 1 {
        // Each range leaves partial sums: these must fit.
        bytes = bytes.min(parts_bytes(context.limits()) / ranges.len() as u64);
    }
    for panels in panel_ranges(context, step.dw, bytes)? {
        let weight = Weight { x: &x, dy: &step.dy, dw: step.dw, window, factor: step.factor, panels };
        launches.extend(weight.launches(context, &ranges)?);
    }
    if let Some(dbias) = step.dbias {
        launches.extend(bias(context, &step.dy, dbias, step.factor, &ranges)?);
    }
    Ok(launches)
}

/// The gradient of some panels of a filter.
struct Weight<'a> {
    x: &'a View,
    dy: &'a View,
    dw: BufferId,
    window: Window,
    factor: f32,
    panels: Range<usize>,
}

impl Weight<'_> {
    fn launches(&self, context: &Lowering<'_>, ranges: &[Range<usize>]) -> Result<Vec<Launch>, EngineError> {
        let limits = context.limits();
        let panel_bytes = panel_bytes(context, self.dw);
        let bytes = self.panels.start as u64 * panel_bytes..self.panels.end as u64 * panel_bytes;
        let part_bytes = bytes.end - bytes.start;
        // A panel is a multiple of 256 bytes, so that the range begins where its binding does.
        let (result, _) = context.range(self.dw, bytes, true)?;
        let most_parts = parts_bytes(limits) / part_bytes / ranges.len() as u64;
        let tilings: Vec<_> = ranges
            .iter()
            .map(|images| tile::choose(self.extent(images), most_parts.max(1), limits.busy_workgroups))
            .collect();
        let parts: u64 = tilings.iter().map(|tiling| tiling.parts).sum();
        if parts == 1 {
            let parameters = Parameters { factor: self.factor, ..Parameters::default() };
            return self.sum(context, &ranges[0], tilings[0], result, parameters);
        }
        let workspace = context.workspace(0, part_bytes * parts, true)?;
        let mut launches = Vec::new();
        let mut first_part = 0;
        for (images, &tiling) in ranges.iter().zip(&tilings) {
            let part_size = (part_bytes / 16) as u32;
            let parameters = Parameters { first_part, part_size, factor: 1.0, ..Parameters::default() };
            launches.extend(self.sum(context, images, tiling, workspace, parameters)?);
            first_part += tiling.parts as u32;
        }
        let size4 = part_bytes / 16;
        launches.extend(reduction(context, workspace, parts, size4, result, self.factor));
        Ok(launches)
    }

    fn extent(&self, images: &Range<usize>) -> Extent {
        let depth_of_filter = self.window.r * self.window.s * layout::padded_channels(self.x.shape.c);
        Extent {
            rows: depth_of_filter as u64,
            columns: (self.panels.len() * layout::PANEL) as u64,
            depth: (images.len() * self.dy.shape.h * self.dy.shape.w) as u64,
        }
    }

    fn sum(
        &self,
        context: &Lowering<'_>,
        images: &Range<usize>,
        tiling: Tiling,
        result: Binding,
        parameters: Parameters,
    ) -> Result<Vec<Launch>, EngineError> {
        let (x, x_base) = context.images(self.x, images.clone(), false)?;
        let (dy, dy_base) = context.images(self.dy, images.clone(), false)?;
        let extent = self.extent(images);
        let (p, q) = (self.dy.shape.h as u32, self.dy.shape.w as u32);
        let first4 = self.panels.start as u32 * PANEL4;
        let step = DEPTH as u32;
        let parameters = Parameters {
            rows: extent.rows as u32,
            panels: self.panels.len() as u32,
            positions: extent.depth as u32,
            column_tiles: tiling.column_tiles(extent) as u32,
            row_tiles: tiling.row_tiles(extent) as u32,
            positions_per_part: (tiling.steps_per_part(extent) * DEPTH) as u32,
            dy_base: dy_base + first4,
            dy_row: row4(self.dy),
            dy_channels4: channels4(self.dy).min(self.panels.end as u32 * PANEL4) - first4,
            dy_plane: p * q,
            dy_h: p,
            dy_w: q,
            advance_n: step / (p * q),
            advance_p: step / q % p,
            advance_q: step % q,
            x_base,
            x_row: row4(self.x),
            x_h: self.x.shape.h as u32,
            x_w: self.x.shape.w as u32,
            x_channels4: channels4(self.x),
            taps_s: self.window.s as u32,
            stride: self.window.stride as i32,
            pad: self.window.pad as i32,
            ..parameters
        };
        let kernel = Kernel {
            file: "conv2d_backward_weight",
            entry: "conv2d_backward_weight",
            constants: vec![
                ("TILE_M", tiling.m),
                ("TILE_N", tiling.n),
                ("BUFFERS", buffers(context.limits(), tiling.m, tiling.n)),
                ("LANES", 1),
            ],
            element: context.element(),
        };
        let bytes = x.bytes + dy.bytes + extent.part_bytes() * tiling.parts;
        let workgroups = tiling.workgroups(extent);
        let work = Work { kernel, bindings: vec![x, dy, result], workgroups, flops: extent.flops(), bytes };
        Ok(work.launches(context.limits(), |first, count| parameters.words(first, count)))
    }
}

/// Launches of the gradient of a bias: sums over some positions each, then their sum.
fn bias(
    context: &Lowering<'_>,
    dy: &View,
    dbias: BufferId,
    factor: f32,
    ranges: &[Range<usize>],
) -> Result<Vec<Launch>, EngineError> {
    let panels = layout::panels(dy.shape.c) as u32;
    let plane = dy.shape.h * dy.shape.w;
    // A workgroup has 16 threads for each of 16 groups of channels, that is for a panel.
    let lanes = 16;
    let busy = (2 * context.limits().busy_workgroups).div_ceil(panels).max(1) as usize;
    let per_part = (dy.shape.n * plane).div_ceil(busy).max(256);
    let parts_of = |images: &Range<usize>| (images.len() * plane).div_ceil(per_part);
    let parts: usize = ranges.iter().map(parts_of).sum();
    let size4 = u64::from(panels * PANEL4);
    let workspace = context.workspace(0, size4 * 16 * parts as u64, true)?;
    let mut launches = Vec::new();
    let mut first_part = 0;
    for images in ranges {
        let (binding, dy_base) = context.images(dy, images.clone(), false)?;
        let positions = images.len() * plane;
        let parameters = Parameters {
            positions: positions as u32,
            column_tiles: panels,
            positions_per_part: per_part as u32,
            first_part,
            part_size: size4 as u32,
            dy_base,
            dy_row: row4(dy),
            dy_channels4: channels4(dy),
            ..Parameters::default()
        };
        let kernel = kernel(context, "conv2d_backward_bias", lanes);
        let workgroups = u64::from(panels) * parts_of(images) as u64;
        let flops = (positions * dy.shape.c) as u64;
        let bindings = vec![binding, binding, workspace];
        let work = Work { kernel, bindings, workgroups, flops, bytes: binding.bytes };
        launches.extend(work.launches(context.limits(), |first, count| parameters.words(first, count)));
        first_part += parts_of(images) as u32;
    }
    let result = context.whole(dbias, true)?;
    launches.extend(reduction(context, workspace, parts as u64, size4, result, factor));
    Ok(launches)
}
