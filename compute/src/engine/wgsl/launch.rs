//! What a step becomes: launches of kernels on ranges of buffers, before any of it touches the device.
//!
//! The step modules make [`Launch`]es from a [`Lowering`]; the session compiles their kernels, binds their buffers and
//! dispatches them in order. Each launch sees the memory writes of those before it.

use std::cell::RefCell;
use std::ops::Range;

use super::layout;
use crate::engine::EngineError;
use crate::ops::{BufferId, View};
use crate::plan::{Buffer, Contents, Plan};
use crate::shape::{Element, FilterShape};

/// One dispatch.
///
/// In the shader, storage buffers are group 0, bindings `0..bindings.len()`, and the parameters are a uniform block at
/// the binding after them. The workgroup's number is `workgroup_id.x + workgroup_id.y · num_workgroups.x`; numbers
/// past the end occur and must do nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Launch {
    /// What to compile.
    pub kernel: Kernel,
    /// The storage buffers in the order of their binding numbers.
    pub bindings: Vec<Binding>,
    /// The uniform block, floats by their bits; the session pads it to a multiple of four words. Empty: no block.
    pub parameters: Vec<u32>,
    /// Number of workgroups; the session folds it into two dimensions.
    pub workgroups: u64,
    /// Floating-point operations, roughly: bounds the time of a submission.
    pub flops: u64,
    /// Bytes read and written, roughly: bounds the time of a submission.
    pub bytes: u64,
}

/// A compute pipeline: an entry point of a shader file with its constants. Equal kernels are compiled once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kernel {
    /// Stem of the file in `shaders/`; see [`super::header::source`] for those known.
    pub file: &'static str,
    /// Entry point.
    pub entry: &'static str,
    /// Each becomes `const NAME: u32 = value;` in front of the shader's text.
    pub constants: Vec<(&'static str, u32)>,
    /// What `element` and `element4` stand for in the shader: `F32` or `F16`.
    pub element: Element,
}

/// A range of a buffer, bound as a storage buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Binding {
    /// The memory.
    pub source: Source,
    /// First byte, a multiple of [`Limits::offset_alignment`].
    pub offset: u64,
    /// Length, a multiple of four.
    pub bytes: u64,
    /// Whether the shader declares it `read_write`. One memory must not be bound both ways in one launch.
    pub writable: bool,
}

/// Memory that a binding lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// A buffer of the plan.
    Buffer(BufferId),
    /// A workspace of the session; its contents last within one step only.
    Workspace(u32),
}

/// What lowering must respect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// Largest range of one storage binding, in bytes.
    pub max_binding_bytes: u64,
    /// Largest buffer, in bytes.
    pub max_buffer_bytes: u64,
    /// Offsets of bindings are multiples of this, in bytes; at most 256.
    pub offset_alignment: u64,
    /// Workgroup memory of one workgroup, in bytes: at least 16 KiB.
    pub max_workgroup_bytes: u32,
    /// Invocations of one workgroup: at least 256.
    pub max_invocations: u32,
    /// Storage bindings of one kernel: at least 8.
    pub max_storage_bindings: u32,
    /// A launch of more floating-point operations is to be split: it could take more than about 100 ms.
    pub max_flops_per_dispatch: u64,
    /// A launch that moves more bytes is to be split.
    pub max_bytes_per_dispatch: u64,
    /// Workgroups that keep the device busy: split-k is worth it below.
    pub busy_workgroups: u32,
}

/// What the step modules make launches from.
pub(super) struct Lowering<'a> {
    plan: &'a Plan,
    limits: Limits,
    workspaces: RefCell<Vec<u64>>,
}

impl<'a> Lowering<'a> {
    /// Lowering of one plan for a device with these limits.
    pub(super) fn new(plan: &'a Plan, limits: Limits) -> Self {
        Self { plan, limits, workspaces: RefCell::default() }
    }

    /// The device's limits.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Type of stored activations: `F32` or `F16`.
    pub(super) fn element(&self) -> Element {
        self.plan.precision.storage()
    }

    /// A buffer of the plan.
    pub(super) fn buffer(&self, id: BufferId) -> &Buffer {
        self.plan.buffer(id)
    }

    /// Shape of a filter or of its gradient.
    pub(super) fn filter(&self, id: BufferId) -> FilterShape {
        match self.plan.buffer(id).contents {
            Contents::Filter(shape) => shape,
            other => unreachable!("a convolution's weight is a filter, not {other:?}"),
        }
    }

    /// Bytes of a buffer on the device.
    pub(super) fn bytes(&self, id: BufferId) -> u64 {
        let buffer = self.plan.buffer(id);
        layout::padded_bytes(buffer.contents, buffer.element)
    }

    /// Binding of a whole buffer.
    ///
    /// # Errors
    /// [`EngineError::ExceedsDeviceLimit`] when it is larger than one binding may be.
    pub(super) fn whole(&self, id: BufferId, writable: bool) -> Result<Binding, EngineError> {
        self.range(id, 0..self.bytes(id), writable).map(|(binding, _)| binding)
    }

    /// Binding of some bytes of a buffer: it starts at the last aligned byte at or before `bytes.start`; the distance
    /// in bytes is returned beside it and goes to the kernel as a parameter.
    ///
    /// # Errors
    /// [`EngineError::ExceedsDeviceLimit`] when the range is larger than one binding may be.
    pub(super) fn range(&self, id: BufferId, bytes: Range<u64>, writable: bool) -> Result<(Binding, u64), EngineError> {
        let offset = bytes.start - bytes.start % self.limits.offset_alignment;
        let length = bytes.end - offset;
        if length > self.limits.max_binding_bytes {
            return Err(EngineError::ExceedsDeviceLimit {
                what: format!("one binding of {:?}", self.plan.buffer(id).name),
                needed: length,
                limit: "max_storage_buffer_binding_size".into(),
                allowed: self.limits.max_binding_bytes,
            });
        }
        Ok((Binding { source: Source::Buffer(id), offset, bytes: length, writable }, bytes.start - offset))
    }

    /// Binding of some images of an activation, and what the kernel adds to an index of four elements: the distance to
    /// the first of these images plus the view's first channel. An index within the range is then
    /// `base + ((n·H + h)·W + w)·row + c/4` with `row` of [`row4`].
    ///
    /// # Errors
    /// [`EngineError::NotSupported`] for a view whose channels don't start or end at a multiple of four,
    /// [`EngineError::ExceedsDeviceLimit`] when the images are larger than one binding may be.
    pub(super) fn images(
        &self,
        view: &View,
        images: Range<usize>,
        writable: bool,
    ) -> Result<(Binding, u32), EngineError> {
        let aligned = view.channel_offset.is_multiple_of(layout::CHANNELS)
            && (view.shape.c.is_multiple_of(layout::CHANNELS) || view.is_whole());
        if !aligned {
            return Err(EngineError::NotSupported {
                reason: format!(
                    "a slice of {} channels at channel {} of {:?}: both must be multiples of {}",
                    view.shape.c,
                    view.channel_offset,
                    self.plan.buffer(view.buffer).name,
                    layout::CHANNELS
                ),
            });
        }
        let element = self.plan.buffer(view.buffer).element.bytes() as u64;
        let image = self.image_bytes(view);
        let range = images.start as u64 * image..images.end as u64 * image;
        let (binding, distance) = self.range(view.buffer, range, writable)?;
        let base = (distance / element + view.channel_offset as u64) / layout::CHANNELS as u64;
        Ok((binding, base as u32))
    }

    /// Bytes of one image of the buffer behind a view.
    pub(super) fn image_bytes(&self, view: &View) -> u64 {
        let element = self.plan.buffer(view.buffer).element.bytes() as u64;
        (view.shape.h * view.shape.w * layout::padded_channels(view.buffer_channels)) as u64 * element
    }

    /// Ranges of images, as few as possible, such that the images of every view can be bound and a launch over a range
    /// stays within the budget of one dispatch.
    ///
    /// # Errors
    /// [`EngineError::ExceedsDeviceLimit`] when a single image can't be bound.
    pub(super) fn image_ranges(&self, views: &[&View], flops_per_image: u64) -> Result<Vec<Range<usize>>, EngineError> {
        let minibatch = views[0].shape.n;
        let mut most = minibatch as u64;
        let mut bytes_per_image = 0;
        for view in views {
            let image = self.image_bytes(view).max(1);
            bytes_per_image += image;
            // A range may start up to one alignment before its first image.
            let allowed = self.limits.max_binding_bytes.saturating_sub(self.limits.offset_alignment) / image;
            if allowed == 0 {
                return Err(EngineError::ExceedsDeviceLimit {
                    what: format!("one image of {:?}", self.plan.buffer(view.buffer).name),
                    needed: image,
                    limit: "max_storage_buffer_binding_size".into(),
                    allowed: self.limits.max_binding_bytes,
                });
            }
            most = most.min(allowed);
        }
        most = most.min((self.limits.max_flops_per_dispatch / flops_per_image.max(1)).max(1));
        most = most.min((self.limits.max_bytes_per_dispatch / bytes_per_image.max(1)).max(1));
        Ok(even_ranges(minibatch, (minibatch as u64).div_ceil(most) as usize))
    }

    /// Binding of a workspace of at least `bytes`. Workspaces are shared by all steps; each index is as large as the
    /// largest request for it.
    ///
    /// # Errors
    /// [`EngineError::ExceedsDeviceLimit`] when it is larger than one binding may be.
    pub(super) fn workspace(&self, index: u32, bytes: u64, writable: bool) -> Result<Binding, EngineError> {
        let bytes = bytes.next_multiple_of(256);
        if bytes > self.limits.max_binding_bytes {
            return Err(EngineError::ExceedsDeviceLimit {
                what: "workspace".into(),
                needed: bytes,
                limit: "max_storage_buffer_binding_size".into(),
                allowed: self.limits.max_binding_bytes,
            });
        }
        let mut workspaces = self.workspaces.borrow_mut();
        if workspaces.len() <= index as usize {
            workspaces.resize(index as usize + 1, 0);
        }
        workspaces[index as usize] = workspaces[index as usize].max(bytes);
        Ok(Binding { source: Source::Workspace(index), offset: 0, bytes, writable })
    }

    /// Bytes of each workspace requested so far.
    pub(super) fn into_workspaces(self) -> Vec<u64> {
        self.workspaces.into_inner()
    }
}

/// Groups of four channels from one position of a view to the next.
pub(super) const fn row4(view: &View) -> u32 {
    (layout::padded_channels(view.buffer_channels) / layout::CHANNELS) as u32
}

/// Groups of four channels of a view.
pub(super) const fn channels4(view: &View) -> u32 {
    (layout::padded_channels(view.shape.c) / layout::CHANNELS) as u32
}

/// `0..total` cut into `parts` ranges whose lengths differ by at most one; none is empty.
pub(super) fn even_ranges(total: usize, parts: usize) -> Vec<Range<usize>> {
    let parts = parts.clamp(1, total.max(1));
    (0..parts).map(|i| total * i / parts..total * (i + 1) / parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_ranges_cover_everything_once() {
        for (total, parts) in [(1, 1), (7, 3), (64, 5), (3, 9)] {
            let ranges = even_ranges(total, parts);
            assert_eq!(ranges.iter().map(ExactSizeIterator::len).sum::<usize>(), total);
            assert!(ranges.iter().all(|range| !range.is_empty()), "{ranges:?}");
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
        }
    }
}
