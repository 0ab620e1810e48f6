//! Sizes of convolutions as their kernels take them, and which kernels suit them.

use super::reading::{GATHER, NARROW, PATCH, POINTWISE, Reading, Tile};
use super::{PATCH_ROWS, ROWS, STEP_BYTES};
use crate::engine::cuda::launch::Lowering;
use crate::ops::View;
use crate::ops::conv2d::Window;

/// Positions of the output below which tiles would be mostly empty.
const MIN_OUTPUTS: u32 = 32;

/// Most taps of a window.
const MAX_TAPS: u32 = 255;

/// Sizes of a convolution, channels padded.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) n: u32,
    pub(super) h: u32,
    pub(super) w: u32,
    pub(super) c: u32,
    pub(super) k: u32,
    pub(super) p: u32,
    pub(super) q: u32,
    pub(super) r: u32,
    pub(super) s: u32,
    pub(super) stride: u32,
    pub(super) pad: u32,
    /// Channels in a step of the reduction.
    pub(super) step: u32,
}

impl Sizes {
    /// None where the kernels do not reach, or other kernels are the better choice by far.
    pub(super) fn new(x: &View, y: &View, window: Window, lowering: &Lowering) -> Option<Self> {
        let sizes = Self {
            n: x.shape.n as u32,
            h: x.shape.h as u32,
            w: x.shape.w as u32,
            c: lowering.padded(x.shape.c),
            k: lowering.padded(y.shape.c),
            p: y.shape.h as u32,
            q: y.shape.w as u32,
            r: window.r as u32,
            s: window.s as u32,
            stride: window.stride as u32,
            pad: window.pad as u32,
            step: STEP_BYTES / lowering.element().bytes() as u32,
        };
        let is_served = lowering.facts.capability == (9, 0);
        // Fully connected layers have few rows and a long reduction: left to kernels that cut it.
        let is_connected = sizes.p * sizes.q == 1;
        let is_fit = sizes.outputs() >= MIN_OUTPUTS && sizes.r * sizes.s <= MAX_TAPS;
        (is_served && !is_connected && is_fit).then_some(sizes)
    }

    /// Whether every kernel takes the elements. Those of TF32 are forward, and of the general readings.
    pub(super) fn is_half(&self) -> bool {
        self.step * 2 == STEP_BYTES
    }

    /// Positions of the output.
    pub(super) fn outputs(&self) -> u32 {
        self.n * self.p * self.q
    }

    /// The first words of every structure of parameters.
    pub(super) fn words(&self) -> Vec<u32> {
        let Self { n, h, w, c, k, p, q, r, s, stride, pad, .. } = *self;
        vec![n, h, w, c, k, r, s, stride, pad, p, q]
    }

    /// Rows of a patch under one tile.
    pub(super) fn patch_rows(&self, flat: bool) -> u32 {
        if flat { ROWS + 2 * self.pad * (self.w + self.pad + 1) } else { (8 + 2 * self.pad) * (16 + 2 * self.pad) }
    }

    /// Every reading with its tiles and file, of forward or backward data.
    pub(super) fn choices(&self, is_forward: bool) -> Vec<(Reading, &'static Tile, &'static str)> {
        let mut choices = Vec::new();
        let mut add = |reading, tiles: &'static [Tile], forward, backward_data| {
            let columns = if is_forward { self.k } else { self.c };
            let file = if is_forward { forward } else { backward_data };
            // Half of the tile would be empty.
            let fitting = tiles.iter().filter(|tile| tile.columns == 64 || columns > tile.columns / 2);
            choices.extend(fitting.map(|tile| (reading, tile, file)));
        };
        let is_pointwise = self.r * self.s == 1 && self.stride == 1 && self.pad == 0;
        if is_pointwise {
            add(Reading::Pointwise, &POINTWISE, "conv2d_wgmma_pointwise", "conv2d_wgmma_pointwise_backward_data");
        }
        // Wide tiles gain nothing where memory is the bound.
        let tiles = if is_pointwise { &GATHER[1..] } else { &GATHER };
        add(Reading::Gather, tiles, "conv2d_wgmma", "conv2d_wgmma_backward_data");
        let keeps_size = self.r == self.s && self.r == 2 * self.pad + 1 && self.stride == 1;
        if keeps_size && self.r >= 3 {
            // Flat tiles waste less, but their patches grow with the map.
            let fitting = [true, false].into_iter().find(|&flat| self.patch_rows(flat) <= PATCH_ROWS);
            if let Some(flat) = fitting {
                add(Reading::Patch { flat }, &PATCH, "conv2d_wgmma_patch", "conv2d_wgmma_patch");
            }
        }
        let depth = if is_forward { self.c } else { self.k };
        if keeps_size && self.r == 3 && depth <= 64 && self.is_half() {
            add(Reading::Narrow, &NARROW, "conv2d_wgmma_narrow", "conv2d_wgmma_narrow");
        }
        choices
    }

    /// Tiles along the rows of one residue class of a map of `h` by `w` that is filled with a stride.
    pub(super) fn row_tiles(&self, reading: Reading, h: u32, w: u32) -> u32 {
        match reading {
            Reading::Gather | Reading::Pointwise => (self.n * h * w).div_ceil(ROWS),
            Reading::Patch { flat: true } => (self.n * (h + self.pad) * (w + self.pad)).div_ceil(ROWS),
            Reading::Patch { flat: false } | Reading::Narrow => self.n * h.div_ceil(16) * w.div_ceil(8),
        }
    }
}
