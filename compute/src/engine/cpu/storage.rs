//! Memory of a resident plan: its slots, and scratch of the convolutions. What the numbers in it mean is the steps'
//! business.

use std::collections::TryReserveError;

use crate::engine::EngineError;
use crate::ops::{BufferId, View};
use crate::plan::{Buffer, Plan};
use crate::shape::{Element, Shape};

/// The slots of a plan. Every slot is a vector of f32; bytes and labels are kept in its bits.
pub(super) struct Storage {
    buffers: Vec<Buffer>,
    slots: Vec<Vec<f32>>,
}

/// Some channels of an activation, for reading.
#[derive(Clone, Copy)]
pub(super) struct Tensor<'a> {
    data: &'a [f32],
    pub(super) shape: Shape,
    channel_offset: usize,
    buffer_channels: usize,
}

impl Storage {
    /// Allocates the slots of a plan, zeroed.
    pub(super) fn allocate(plan: &Plan) -> Result<Self, EngineError> {
        let buffers = plan.buffers.clone();
        let slots = plan.slots.iter().enumerate().map(|(slot, &bytes)| {
            let what = || {
                let names = buffers.iter().filter(|buffer| buffer.slot == slot).map(|buffer| buffer.name.as_str());
                format!("the slot of {}", names.take(3).collect::<Vec<_>>().join(", "))
            };
            zeroed(bytes.div_ceil(4) as usize)
                .map_err(|_| EngineError::OutOfMemory { requested_bytes: bytes, what: what() })
        });
        let slots = slots.collect::<Result<_, _>>()?;
        Ok(Self { buffers, slots })
    }

    /// Bytes of the slots.
    pub(super) fn bytes(&self) -> u64 {
        self.slots.iter().map(|slot| 4 * slot.len() as u64).sum()
    }

    /// Fills a buffer, converted to its element type.
    pub(super) fn write(&mut self, id: BufferId, values: &[f32]) -> Result<(), EngineError> {
        let buffer = &self.buffers[id.0 as usize];
        let elements = buffer.contents.elements();
        if values.len() != elements {
            let reason = format!("{} values for {elements} elements", values.len());
            return Err(EngineError::Failed { what: format!("writing {}", buffer.name), reason });
        }
        let slot = &mut self.slots[buffer.slot];
        match buffer.element {
            Element::U8 => {
                let bytes: &mut [u8] = bytemuck::cast_slice_mut(slot);
                bytes.iter_mut().zip(values).for_each(|(byte, &value)| *byte = value as u8);
            }
            Element::U32 => {
                let words: &mut [u32] = bytemuck::cast_slice_mut(slot);
                words.iter_mut().zip(values).for_each(|(word, &value)| *word = value as u32);
            }
            _ => slot[..elements].copy_from_slice(values),
        }
        Ok(())
    }

    /// Values of a buffer.
    pub(super) fn read(&self, id: BufferId) -> Vec<f32> {
        match self.buffers[id.0 as usize].element {
            Element::U8 => self.bytes_of(id).iter().map(|&byte| f32::from(byte)).collect(),
            Element::U32 => self.words(id).iter().map(|&word| word as f32).collect(),
            _ => self.values(id).to_vec(),
        }
    }

    /// Elements of an f32 buffer, for reading.
    pub(super) fn values(&self, id: BufferId) -> &[f32] {
        let buffer = &self.buffers[id.0 as usize];
        &self.slot(id)[..buffer.contents.elements()]
    }

    /// Elements of a buffer of bytes, for reading.
    pub(super) fn bytes_of(&self, id: BufferId) -> &[u8] {
        let buffer = &self.buffers[id.0 as usize];
        &bytemuck::cast_slice(self.slot(id))[..buffer.contents.elements()]
    }

    /// Elements of a buffer of labels, for reading.
    pub(super) fn words(&self, id: BufferId) -> &[u32] {
        let buffer = &self.buffers[id.0 as usize];
        &bytemuck::cast_slice(self.slot(id))[..buffer.contents.elements()]
    }

    /// An activation, for reading.
    pub(super) fn tensor(&self, view: &View) -> Tensor<'_> {
        Tensor {
            data: self.values(view.buffer),
            shape: view.shape,
            channel_offset: view.channel_offset,
            buffer_channels: view.buffer_channels,
        }
    }

    /// Lends the slot of a buffer out to be written while others are read, to be given back by [`Self::put`].
    pub(super) fn take(&mut self, id: BufferId) -> Vec<f32> {
        let buffer = &self.buffers[id.0 as usize];
        let slot = std::mem::take(&mut self.slots[buffer.slot]);
        assert!(!slot.is_empty(), "the slot of {} is written twice at once", buffer.name);
        slot
    }

    /// Takes a lent slot back.
    pub(super) fn put(&mut self, id: BufferId, slot: Vec<f32>) {
        self.slots[self.buffers[id.0 as usize].slot] = slot;
    }

    fn slot(&self, id: BufferId) -> &[f32] {
        let buffer = &self.buffers[id.0 as usize];
        let slot = &self.slots[buffer.slot];
        assert!(!slot.is_empty(), "the slot of {} is read while it is written", buffer.name);
        slot
    }
}

impl<'a> Tensor<'a> {
    /// One map `[h, w]`.
    pub(super) fn plane(&self, n: usize, c: usize) -> &'a [f32] {
        let size = self.shape.h * self.shape.w;
        let first = (n * self.buffer_channels + self.channel_offset + c) * size;
        &self.data[first..first + size]
    }

    /// One sample `[c, h, w]`.
    pub(super) fn sample(&self, n: usize) -> &'a [f32] {
        let size = self.shape.h * self.shape.w;
        let first = (n * self.buffer_channels + self.channel_offset) * size;
        &self.data[first..first + self.shape.c * size]
    }

    /// `count` channels from channel `first` on.
    pub(super) fn channels(&self, first: usize, count: usize) -> Self {
        let shape = Shape { c: count, ..self.shape };
        Self { shape, channel_offset: self.channel_offset + first, ..*self }
    }

    /// The same numbers as maps of one row.
    pub(super) fn flattened(&self) -> Self {
        Self { shape: Shape { h: 1, w: self.shape.h * self.shape.w, ..self.shape }, ..*self }
    }
}

/// Position of a map of a view in a buffer: sample and channel of map `plane_idx`, if it belongs to the view.
pub(super) fn place(view: &View, plane_idx: usize) -> Option<(usize, usize)> {
    let n = plane_idx / view.buffer_channels;
    let c = (plane_idx % view.buffer_channels).checked_sub(view.channel_offset)?;
    (n < view.shape.n && c < view.shape.c).then_some((n, c))
}

/// Elements of f64 that a step needs for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Workspace {
    /// Columns of an input.
    pub(super) columns: usize,
    /// Columns of an output's gradient, or a block of widened weights.
    pub(super) weights: usize,
    /// Products of a GEMM.
    pub(super) products: usize,
}

/// Workspace that is allocated.
pub(super) struct Scratch {
    pub(super) columns: Vec<f64>,
    pub(super) weights: Vec<f64>,
    pub(super) products: Vec<f64>,
}

impl Workspace {
    /// What suffices for both.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            columns: self.columns.max(other.columns),
            weights: self.weights.max(other.weights),
            products: self.products.max(other.products),
        }
    }

    /// Bytes of all.
    pub(super) const fn bytes(self) -> u64 {
        8 * (self.columns + self.weights + self.products) as u64
    }

    /// Allocates it.
    pub(super) fn allocate(self) -> Result<Scratch, EngineError> {
        let part = |elements: usize| {
            zeroed(elements).map_err(|_| EngineError::OutOfMemory {
                requested_bytes: 8 * elements as u64,
                what: "the workspace of the convolutions".to_owned(),
            })
        };
        Ok(Scratch { columns: part(self.columns)?, weights: part(self.weights)?, products: part(self.products)? })
    }
}

impl Scratch {
    /// Bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        8 * (self.columns.len() + self.weights.len() + self.products.len()) as u64
    }
}

fn zeroed<T: Copy + Default>(elements: usize) -> Result<Vec<T>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(elements)?;
    values.resize(elements, T::default());
    Ok(values)
}
