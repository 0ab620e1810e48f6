//! Where each logical element lies in device memory, and how many bytes that takes.
//!
//! - Activations are NHWC with channels padded to a multiple of [`CHANNELS`]: element `(n, c, h, w)` lies at
//!   `((n·H + h)·W + w)·C4 + c`. Padding channels hold zeros always.
//! - Filters `[k, c, r, s]` are panels of [`PANEL`] output channels: element `(k, c, r, s)` lies at
//!   `(((k/64·R + r)·S + s)·C4 + c)·64 + k%64`, `k` padded to whole panels, `c` to a multiple of four, zeros between.
//! - Vectors are padded with zeros to a multiple of [`PANEL`] elements.

use crate::plan::Contents;
use crate::shape::{Element, FilterShape, Shape};

/// Activations hold a multiple of this many channels, so that kernels load four at a time.
pub(super) const CHANNELS: usize = 4;
/// Output channels of one filter panel, and the multiple that vectors are padded to.
pub(super) const PANEL: usize = 64;

/// Channels of an activation on the device: `c` rounded up to a multiple of four.
pub(super) const fn padded_channels(c: usize) -> usize {
    c.next_multiple_of(CHANNELS)
}

/// Panels of a filter with `k` output channels.
pub(super) const fn panels(k: usize) -> usize {
    k.div_ceil(PANEL)
}

/// Elements of one panel of a filter.
pub(super) const fn panel_elements(shape: FilterShape) -> usize {
    shape.r * shape.s * padded_channels(shape.c) * PANEL
}

/// Elements of one image of an activation.
pub(super) const fn image_elements(shape: Shape) -> usize {
    shape.h * shape.w * padded_channels(shape.c)
}

/// Elements on the device, padding included.
pub(super) const fn padded_elements(contents: Contents) -> usize {
    match contents {
        Contents::Activation(shape) => shape.n * image_elements(shape),
        Contents::Filter(shape) => panels(shape.k) * panel_elements(shape),
        Contents::Vector(length) => length.next_multiple_of(PANEL),
    }
}

/// Bytes on the device, padding included; a multiple of four.
pub(super) const fn padded_bytes(contents: Contents, element: Element) -> u64 {
    padded_elements(contents) as u64 * element.bytes() as u64
}
