//! Where elements lie on the device, and values in logical order to and from there.
//!
//! Activations are NHWC, filters `[k, r, s, c]`. Channels, and a filter's outputs, are padded with zeros to 16 bytes;
//! vectors to eight elements.

use bytemuck::Pod;
use half::{bf16, f16};
use rayon::prelude::*;

use super::launch::vector;
use crate::plan::Contents;
use crate::shape::{Element, FilterShape, Shape};

/// Elements that a vector's length is padded to a multiple of: the most that any element type puts into 16 bytes.
const VECTOR_PADDING: usize = 8;

/// How one buffer is stored. A *row* is what lies together on both sides of the border: an image of an activation, the
/// filter of one output channel, or a whole vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    contents: Contents,
    element: Element,
    /// Rows that hold values, and those that are stored.
    rows: usize,
    stored_rows: usize,
    /// Elements of a row in logical order and with padding.
    logical: usize,
    stored: usize,
}

impl Layout {
    /// Layout of a buffer in a plan whose activations are of type `storage`, which decides the padding.
    pub(super) fn new(contents: Contents, element: Element, storage: Element) -> Self {
        let padded = |channels: usize| channels.next_multiple_of(vector(storage));
        let (rows, stored_rows, logical, stored) = match contents {
            Contents::Activation(Shape { n, c, h, w }) => (n, n, c * h * w, padded(c) * h * w),
            Contents::Filter(shape) => (shape.k, padded(shape.k), shape.depth(), padded(shape.c) * shape.r * shape.s),
            Contents::Vector(length) => (1, 1, length, length.next_multiple_of(VECTOR_PADDING)),
        };
        Self { contents, element, rows, stored_rows, logical, stored }
    }

    /// Bytes on the device.
    pub(super) const fn bytes(&self) -> u64 {
        (self.stored_rows * self.stored) as u64 * self.element.bytes() as u64
    }

    /// The bytes that the device holds for `values` in logical order, each rounded to nearest even.
    pub(super) fn pack(&self, values: &[f32]) -> Vec<u8> {
        assert_eq!(values.len(), self.rows * self.logical, "values of {:?}", self.contents);
        match self.element {
            Element::F32 => self.pack_as(values, |value| value),
            Element::F16 => self.pack_as(values, f16::from_f32),
            Element::Bf16 => self.pack_as(values, bf16::from_f32),
            Element::U32 => self.pack_as(values, |value| value as u32),
            Element::U8 => self.pack_as(values, |value| value as u8),
        }
    }

    fn pack_as<T: Pod + Send + Sync>(&self, values: &[f32], convert: impl Fn(f32) -> T + Sync) -> Vec<u8> {
        let size = size_of::<T>();
        let mut bytes = vec![0u8; self.stored_rows * self.stored * size];
        bytes.par_chunks_mut(self.stored * size).zip(values.par_chunks(self.logical)).for_each(|(row, values)| {
            self.visit(|logical, place| {
                row[place * size..(place + 1) * size].copy_from_slice(bytemuck::bytes_of(&convert(values[logical])));
            });
        });
        bytes
    }

    /// The values in `bytes`, in logical order.
    pub(super) fn unpack(&self, bytes: &[u8]) -> Vec<f32> {
        match self.element {
            Element::F32 => self.unpack_as(bytes, |value: f32| value),
            Element::F16 => self.unpack_as(bytes, f16::to_f32),
            Element::Bf16 => self.unpack_as(bytes, bf16::to_f32),
            Element::U32 => self.unpack_as(bytes, |value: u32| value as f32),
            Element::U8 => self.unpack_as(bytes, |value: u8| f32::from(value)),
        }
    }

    fn unpack_as<T: Pod + Send + Sync>(&self, bytes: &[u8], convert: impl Fn(T) -> f32 + Sync) -> Vec<f32> {
        let size = size_of::<T>();
        let mut values = vec![0.0; self.rows * self.logical];
        values.par_chunks_mut(self.logical).zip(bytes.par_chunks(self.stored * size)).for_each(|(values, row)| {
            self.visit(|logical, place| {
                values[logical] = convert(bytemuck::pod_read_unaligned(&row[place * size..(place + 1) * size]));
            });
        });
        values
    }

    /// Calls `f` with the place in logical order and the place on the device of every element of a row.
    fn visit(&self, mut f: impl FnMut(usize, usize)) {
        let (channels, plane) = match self.contents {
            Contents::Vector(length) => return (0..length).for_each(|i| f(i, i)),
            Contents::Activation(Shape { c, h, w, .. }) => (c, h * w),
            Contents::Filter(FilterShape { c, r, s, .. }) => (c, r * s),
        };
        let padded = self.stored / plane;
        for position in 0..plane {
            for c in 0..channels {
                f(c * plane + position, position * padded + c);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_unpacks() {
        let shapes = [
            Contents::Vector(5),
            Contents::Activation(Shape::new(3, 5, 2, 7)),
            Contents::Filter(FilterShape { k: 70, c: 3, r: 3, s: 5 }),
            Contents::Filter(FilterShape { k: 64, c: 8, r: 1, s: 1 }),
        ];
        for contents in shapes {
            for element in [Element::F32, Element::F16, Element::Bf16, Element::U32, Element::U8] {
                for storage in [Element::F32, Element::Bf16] {
                    let values: Vec<f32> = (0..contents.elements()).map(|i| (i % 200) as f32).collect();
                    let layout = Layout::new(contents, element, storage);
                    let bytes = layout.pack(&values);
                    assert_eq!(bytes.len() as u64, layout.bytes(), "{contents:?}");
                    assert_eq!(layout.unpack(&bytes), values, "{contents:?} of {element:?}");
                }
            }
        }
    }

    #[test]
    fn elements_lie_where_the_kernels_look() {
        let shape = FilterShape { k: 5, c: 3, r: 2, s: 3 };
        let layout = Layout::new(Contents::Filter(shape), Element::F32, Element::F32);
        let values: Vec<f32> = (0..shape.elements()).map(|i| i as f32 + 1.0).collect();
        let packed: Vec<f32> = bytemuck::pod_collect_to_vec(&layout.pack(&values));
        let (k, c, r, s) = (4, 2, 1, 2);
        assert_eq!(packed[((k * 2 + r) * 3 + s) * 4 + c], values[((k * 3 + c) * 2 + r) * 3 + s]);
        assert_eq!(packed[((k * 2 + r) * 3 + s) * 4 + 3], 0.0, "the fourth channel is padding");
        assert_eq!(packed.len(), 8 * 2 * 3 * 4, "outputs are padded to eight");
        let shape = Shape::new(2, 3, 2, 2);
        let layout = Layout::new(Contents::Activation(shape), Element::F32, Element::F16);
        let values: Vec<f32> = (0..shape.elements()).map(|i| i as f32 + 1.0).collect();
        let packed: Vec<f32> = bytemuck::pod_collect_to_vec(&layout.pack(&values));
        assert_eq!(packed[(4 + 3) * 8 + 2], values[(3 + 2) * 4 + 3], "the last position's last channel");
    }
}
