//! Values in logical order to and from their place on the device.

use bytemuck::Pod;
use half::f16;
use rayon::prelude::*;

use super::layout::{self, PANEL};
use crate::plan::Contents;
use crate::shape::{Element, FilterShape, Shape};

/// Blocks that a buffer consists of: images of an activation, panels of a filter, or the whole vector.
pub(super) struct Blocks {
    contents: Contents,
    element: Element,
    /// Number of blocks.
    pub count: usize,
    /// Elements of one, padding included.
    stored: usize,
    /// Elements of one in logical order; the last filter panel may hold fewer.
    logical: usize,
}

impl Blocks {
    /// Blocks of a buffer.
    pub(super) fn new(contents: Contents, element: Element) -> Self {
        let (count, logical) = match contents {
            Contents::Activation(shape) => (shape.n, shape.c * shape.h * shape.w),
            Contents::Filter(shape) => (layout::panels(shape.k), PANEL * shape.depth()),
            Contents::Vector(length) => (1, length),
        };
        Self { contents, element, count, stored: layout::padded_elements(contents) / count.max(1), logical }
    }

    /// Bytes of one block on the device.
    pub(super) fn bytes(&self) -> usize {
        self.stored * self.element.bytes()
    }

    /// Hands `upload` the bytes of `count` blocks from `first` on as the device holds them; floats are rounded to nearest
    /// even.
    pub(super) fn pack<R>(&self, values: &[f32], first: usize, count: usize, upload: impl FnOnce(&[u8]) -> R) -> R {
        let values = values.chunks(self.logical).skip(first).take(count).collect::<Vec<_>>();
        match self.element {
            Element::F32 => upload(bytemuck::cast_slice(&self.pack_as(&values, |value| value))),
            Element::F16 => upload(bytemuck::cast_slice(&self.pack_as(&values, f16::from_f32))),
            Element::U32 => upload(bytemuck::cast_slice(&self.pack_as(&values, |value| value as u32))),
            Element::U8 => upload(&self.pack_as(&values, |value| value as u8)),
            Element::Bf16 => unreachable!("no kernel stores bfloat16"),
        }
    }

    fn pack_as<T: Pod + Send + Sync>(&self, values: &[&[f32]], convert: impl Fn(f32) -> T + Sync) -> Vec<T> {
        let mut packed = vec![T::zeroed(); values.len() * self.stored];
        packed.par_chunks_mut(self.stored).zip(values).for_each(|(block, values)| {
            self.visit(values.len(), |logical, place| block[place] = convert(values[logical]));
        });
        packed
    }

    /// Values in `bytes`, which hold blocks from `first` on, put into their logical places of `values`.
    pub(super) fn unpack(&self, bytes: &[u8], first: usize, values: &mut [f32]) {
        let values = &mut values[first * self.logical..];
        match self.element {
            Element::F32 => self.unpack_as(bytes, values, |value: f32| value),
            Element::F16 => self.unpack_as(bytes, values, f16::to_f32),
            Element::U32 => self.unpack_as(bytes, values, |value: u32| value as f32),
            Element::U8 => self.unpack_as(bytes, values, |value: u8| f32::from(value)),
            Element::Bf16 => unreachable!("no kernel stores bfloat16"),
        }
    }

    fn unpack_as<T: Pod + Send + Sync>(&self, bytes: &[u8], values: &mut [f32], convert: impl Fn(T) -> f32 + Sync) {
        let stored: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
        values.par_chunks_mut(self.logical).zip(stored.par_chunks(self.stored)).for_each(|(values, block)| {
            self.visit(values.len(), |logical, place| values[logical] = convert(block[place]));
        });
    }

    /// Calls `f` with the place in logical order and the place on the device, both within the block, of every element
    /// of a block with `length` elements.
    fn visit(&self, length: usize, f: impl FnMut(usize, usize)) {
        match self.contents {
            Contents::Vector(_) => visit_vector(length, f),
            Contents::Activation(shape) => visit_image(shape, f),
            Contents::Filter(shape) => visit_panel(shape, length / shape.depth(), f),
        }
    }
}

fn visit_vector(length: usize, mut f: impl FnMut(usize, usize)) {
    (0..length).for_each(|i| f(i, i));
}

fn visit_image(shape: Shape, mut f: impl FnMut(usize, usize)) {
    let (c4, plane) = (layout::padded_channels(shape.c), shape.h * shape.w);
    for position in 0..plane {
        for c in 0..shape.c {
            f(c * plane + position, position * c4 + c);
        }
    }
}

fn visit_panel(shape: FilterShape, outputs: usize, mut f: impl FnMut(usize, usize)) {
    // A cache line of each output channel at a time: 64 lines are read and 16 rows of 64 written.
    const LINE: usize = 16;
    let (c4, window, depth) = (layout::padded_channels(shape.c), shape.r * shape.s, shape.depth());
    for start in (0..depth).step_by(LINE) {
        let mut rows = [0; LINE];
        let length = LINE.min(depth - start);
        for (row, crs) in rows.iter_mut().zip(start..start + length) {
            *row = ((crs % window) * c4 + crs / window) * PANEL;
        }
        for k in 0..outputs {
            let line = k * depth + start;
            for (i, row) in rows[..length].iter().enumerate() {
                f(line + i, row + k);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(contents: Contents, element: Element) {
        let values: Vec<f32> = (0..contents.elements()).map(|i| (i % 200) as f32).collect();
        let blocks = Blocks::new(contents, element);
        let bytes = blocks.pack(&values, 0, blocks.count, <[u8]>::to_vec);
        assert_eq!(bytes.len() as u64, layout::padded_bytes(contents, element), "{contents:?}");
        let mut back = vec![f32::NAN; values.len()];
        let half = blocks.count / 2;
        let (front, rest) = bytes.split_at(half * blocks.bytes());
        blocks.unpack(front, 0, &mut back);
        blocks.unpack(rest, half, &mut back);
        assert_eq!(back, values, "{contents:?}");
    }

    #[test]
    fn what_is_packed_unpacks() {
        for element in [Element::F32, Element::F16, Element::U32, Element::U8] {
            check(Contents::Vector(5), element);
            check(Contents::Activation(Shape::new(3, 5, 2, 7)), element);
            check(Contents::Filter(FilterShape { k: 70, c: 3, r: 3, s: 5 }), element);
            check(Contents::Filter(FilterShape { k: 64, c: 8, r: 1, s: 1 }), element);
        }
    }

    #[test]
    fn elements_lie_where_the_layout_says() {
        let shape = FilterShape { k: 70, c: 3, r: 2, s: 3 };
        let blocks = Blocks::new(Contents::Filter(shape), Element::F32);
        let values: Vec<f32> = (0..shape.elements()).map(|i| i as f32).collect();
        let packed: Vec<f32> = blocks.pack(&values, 0, blocks.count, bytemuck::pod_collect_to_vec);
        let (k, c, r, s) = (67, 2, 1, 2);
        let place = (((k / 64 * 2 + r) * 3 + s) * 4 + c) * 64 + k % 64;
        assert_eq!(packed[place], values[((k * 3 + c) * 2 + r) * 3 + s]);
        assert_eq!(packed[(((r * 3) + s) * 4 + 3) * 64], 0.0, "the fourth channel is padding");
    }
}
