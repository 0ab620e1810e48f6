//! Launches of the implicit GEMM that forward and backward data share: tiles, parts of the depth, their reduction, and
//! the budget of a dispatch.

use bytemuck::{Pod, Zeroable};

use super::tile::{self, Extent, Tiling};
use super::{Work, buffers, parts_bytes};
use crate::engine::EngineError;
use crate::engine::wgsl::launch::{Binding, Kernel, Launch, Lowering};

/// The uniform block of `conv2d.wgsl`, in its order; see there for what each field means.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Parameters {
    pub(super) rows: u32,
    pub(super) columns4: u32,
    pub(super) depth: u32,
    pub(super) first_workgroup: u32,
    pub(super) workgroups: u32,
    pub(super) column_tiles: u32,
    pub(super) row_tiles: u32,
    pub(super) steps: u32,
    pub(super) steps_per_part: u32,
    pub(super) first_part: u32,
    pub(super) parts: u32,
    pub(super) row_plane: u32,
    pub(super) row_w: u32,
    pub(super) input_base: u32,
    pub(super) input_row: u32,
    pub(super) input_h: u32,
    pub(super) input_w: u32,
    pub(super) stride: i32,
    pub(super) start_h: i32,
    pub(super) start_w: i32,
    pub(super) tap_step: i32,
    pub(super) taps_r: u32,
    pub(super) taps_s: u32,
    pub(super) channels4: u32,
    pub(super) advance_r: u32,
    pub(super) advance_s: u32,
    pub(super) advance_c: u32,
    pub(super) filter_base: u32,
    pub(super) filter_panel: u32,
    pub(super) filter_r: u32,
    pub(super) filter_s: u32,
    pub(super) output_base: u32,
    pub(super) output_row: u32,
    pub(super) output_plane: u32,
    pub(super) output_i: u32,
    pub(super) output_j: u32,
    pub(super) output_start: u32,
    pub(super) operand_base: u32,
    pub(super) operand_row: u32,
    pub(super) vector_base: u32,
    pub(super) factor: f32,
    pub(super) dropout_key: u32,
    pub(super) dropout_threshold: u32,
    pub(super) dropout_scale: f32,
    pub(super) dropout_image: u32,
    pub(super) dropout_channels: u32,
    pub(super) dropout_first: u32,
}

impl Parameters {
    fn words(self, first_workgroup: u32, workgroups: u32) -> Vec<u32> {
        bytemuck::cast_slice(&[Self { first_workgroup, workgroups, ..self }]).to_vec()
    }
}

/// What follows a sum, as switches of the shader.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub(super) factor: bool,
    pub(super) scale: bool,
    pub(super) bias: bool,
    pub(super) residual: bool,
    pub(super) accumulate: bool,
    pub(super) relu: bool,
    pub(super) dropout: bool,
    pub(super) mask: bool,
    /// The rows are not all of the output's positions.
    pub(super) strided: bool,
}

/// Some channels of the input and the filter's part that belongs to them: all of the depth, or a piece of it where the
/// filter is larger than a binding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) filter: Binding,
    pub(super) filter_base: u32,
    pub(super) input_base: u32,
    pub(super) channels4: u32,
}

/// One implicit GEMM: buffers and index arithmetic are settled, tiles are not.
#[derive(Clone, Debug)]
pub(super) struct Gemm {
    /// Entry point that sums and finishes.
    pub(super) entry: &'static str,
    /// Whether the depth runs along the filter's columns: backward data.
    pub(super) gather_filter: bool,
    pub(super) switches: Switches,
    pub(super) input: Binding,
    pub(super) segments: Vec<Segment>,
    pub(super) scale: Option<Binding>,
    pub(super) bias: Option<Binding>,
    /// The residual or the mask.
    pub(super) operand: Option<Binding>,
    pub(super) output: Binding,
    /// All but tiles and what a segment says.
    pub(super) parameters: Parameters,
}

impl Gemm {
    /// The launches, in order.
    ///
    /// # Errors
    /// [`EngineError::ExceedsDeviceLimit`] when the partial sums of several segments can't be held.
    pub(super) fn launches(&self, context: &Lowering<'_>) -> Result<Vec<Launch>, EngineError> {
        let limits = context.limits();
        let segments = self.segments.len() as u64;
        let part_bytes = self.extent(&self.segments[0]).part_bytes();
        let most_parts = parts_bytes(limits) / part_bytes.max(1) / segments;
        let tilings: Vec<_> = self
            .segments
            .iter()
            .map(|segment| tile::choose(self.extent(segment), most_parts.max(1), limits.busy_workgroups))
            .collect();
        let parts: u64 = tilings.iter().map(|tiling| tiling.parts).sum();
        if parts == 1 {
            return Ok(self.sum(context, &self.segments[0], tilings[0], None));
        }
        let workspace = context.workspace(0, part_bytes * parts, true)?;
        let mut launches = Vec::new();
        let mut first_part = 0;
        for (segment, &tiling) in self.segments.iter().zip(&tilings) {
            launches.extend(self.sum(context, segment, tiling, Some((workspace, first_part as u32))));
            first_part += tiling.parts;
        }
        launches.extend(self.reduce(context, Binding { writable: false, ..workspace }, parts));
        Ok(launches)
    }

    fn extent(&self, segment: &Segment) -> Extent {
        let p = &self.parameters;
        Extent {
            rows: p.rows.into(),
            columns: u64::from(p.columns4) * 4,
            depth: u64::from(p.taps_r * p.taps_s) * u64::from(segment.channels4) * 4,
        }
    }

    /// Sums of one segment: finished, or left as parts from the given one on.
    fn sum(
        &self,
        context: &Lowering<'_>,
        segment: &Segment,
        tiling: Tiling,
        parts: Option<(Binding, u32)>,
    ) -> Vec<Launch> {
        let extent = self.extent(segment);
        let channels4 = segment.channels4.max(1);
        let taps_s = self.parameters.taps_s.max(1);
        // One step of the depth goes on by four groups of four channels.
        let parameters = Parameters {
            depth: extent.depth as u32,
            column_tiles: tiling.column_tiles(extent) as u32,
            row_tiles: tiling.row_tiles(extent) as u32,
            steps: extent.steps() as u32,
            steps_per_part: tiling.steps_per_part(extent) as u32,
            first_part: parts.map_or(0, |(_, first)| first),
            input_base: segment.input_base,
            channels4,
            taps_s,
            advance_c: 4 % channels4,
            advance_s: 4 / channels4 % taps_s,
            advance_r: 4 / channels4 / taps_s,
            filter_base: segment.filter_base,
            ..self.parameters
        };
        let (entry, switches, output) = match parts {
            Some((workspace, _)) => ("conv2d_partial", Switches::default(), workspace),
            None => (self.entry, self.switches, self.output),
        };
        let kernel = self.kernel(context, entry, (tiling.m, tiling.n), self.gather_filter, switches);
        let unused = segment.filter;
        let bindings = match parts {
            Some(_) => vec![self.input, segment.filter, unused, unused, unused, output],
            None => vec![
                self.input,
                segment.filter,
                self.scale.unwrap_or(unused),
                self.bias.unwrap_or(unused),
                self.operand.unwrap_or(unused),
                output,
            ],
        };
        let bytes = self.input.bytes + segment.filter.bytes + output.bytes;
        let workgroups = tiling.workgroups(extent);
        Work { kernel, bindings, workgroups, flops: extent.flops(), bytes }
            .launches(context.limits(), |first, count| parameters.words(first, count))
    }

    fn reduce(&self, context: &Lowering<'_>, workspace: Binding, parts: u64) -> Vec<Launch> {
        let kernel = self.kernel(context, "conv2d_reduce", (64, 64), false, self.switches);
        let bindings = vec![
            workspace,
            workspace,
            self.scale.unwrap_or(workspace),
            self.bias.unwrap_or(workspace),
            self.operand.unwrap_or(workspace),
            self.output,
        ];
        let p = &self.parameters;
        let quads = u64::from(p.rows) * u64::from(p.columns4);
        let parameters = Parameters { parts: parts as u32, ..*p };
        let (flops, bytes) = (quads * 4 * parts, quads * 16 * (parts + 1));
        Work { kernel, bindings, workgroups: quads.div_ceil(256), flops, bytes }
            .launches(context.limits(), |first, count| parameters.words(first, count))
    }

    fn kernel(
        &self,
        context: &Lowering<'_>,
        entry: &'static str,
        (m, n): (u32, u32),
        gather_filter: bool,
        switches: Switches,
    ) -> Kernel {
        let constants = vec![
            ("TILE_M", m),
            ("TILE_N", n),
            ("BUFFERS", buffers(context.limits(), m, n)),
            ("GATHER_FILTER", gather_filter.into()),
            ("STRIDED", switches.strided.into()),
            ("FACTOR", switches.factor.into()),
            ("SCALE", switches.scale.into()),
            ("BIAS", switches.bias.into()),
            ("RESIDUAL", switches.residual.into()),
            ("ACCUMULATE", switches.accumulate.into()),
            ("RELU", switches.relu.into()),
            ("DROPOUT", switches.dropout.into()),
            ("MASK", switches.mask.into()),
        ];
        Kernel { file: "conv2d", entry, constants, element: context.element() }
    }
}
