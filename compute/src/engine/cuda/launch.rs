//! What a plan's steps become on a CUDA device: candidates, each a list of commands on places in memory.
//!
//! A step's file ([`super::conv2d`], [`super::batch_norm`] …) writes its candidates; [`super::tune`] times them and
//! keeps the fastest; [`super::session`] gives places addresses and captures the commands into one graph.

use std::sync::Arc;

use super::cublaslt::{Matmul, Operands};
use super::cudnn::ExecutionPlan;
use super::layout::Layout;
use crate::engine::EngineError;
use crate::ops::{BufferId, View};
use crate::plan::{Buffer, Pass, Plan};
use crate::shape::{Element, Precision};

/// Memory that a command reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nothing: a null pointer, for what a kernel takes optionally.
    Null,
    /// `offset` bytes into a buffer of the plan.
    Buffer { id: BufferId, offset: u64 },
    /// `offset` bytes into the workspace, which every step may use from its first command to its last.
    Workspace { offset: u64 },
    /// `offset` bytes into memory that the candidate keeps, such as transformed filters.
    Kept { offset: u64 },
    /// Memory outside of the plan's, by its address.
    Address(u64),
    /// [`TICKETS`] counters that are zero, and zero again after every kernel that used them.
    Tickets,
}

/// Counters behind [`Place::Tickets`].
pub(super) const TICKETS: usize = 1 << 16;

/// A kernel: an entry point of a text in `shaders/`, compiled for the plan's precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kernel {
    /// Stem of the file; [`super::kernels`] knows what is put before it.
    pub(super) file: &'static str,
    /// Entry point.
    pub(super) entry: &'static str,
}

/// One launch of a kernel. Its arguments are the pointers, then the parameters as one block of 32-bit words by value
/// (none where there are none).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Launch {
    pub(super) kernel: Kernel,
    pub(super) pointers: Vec<Place>,
    /// The kernel's `Params`, word by word; an f32 as its bits.
    pub(super) parameters: Vec<u32>,
    pub(super) grid: [u32; 3],
    /// Threads of a block.
    pub(super) threads: u32,
    /// Dynamic shared memory of a block.
    pub(super) shared_bytes: u32,
}

/// Something that is put on the stream.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// A kernel of ours.
    Kernel(Launch),
    /// A plan of cuDNN, with where its tensors lie by their numbers in the graph.
    Cudnn { plan: Arc<ExecutionPlan>, tensors: Vec<(i64, Place)>, workspace: Place },
    /// A product of cuBLASLt.
    Matmul { matmul: Arc<Matmul>, operands: Operands<Place>, workspace: Place },
}

/// A launch over contiguous vectors, whose number is the first parameter, `per_block` to a block.
pub(super) fn contiguous<const N: usize>(
    kernel: Kernel,
    pointers: Vec<Place>,
    parameters: [u32; N],
    per_block: u32,
) -> Command {
    Command::Kernel(Launch {
        kernel,
        pointers,
        parameters: parameters.to_vec(),
        grid: [parameters[0].div_ceil(per_block), 1, 1],
        threads: 256,
        shared_bytes: 0,
    })
}

/// One way to compute a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    /// Name in the record, such as `"conv2d_forward_128x128"`.
    pub(super) name: String,
    /// Commands that depend on parameters alone: run once after they are written, in training in every iteration.
    pub(super) prepare: Vec<Command>,
    /// The commands of every iteration.
    pub(super) commands: Vec<Command>,
    /// Bytes behind [`Place::Kept`].
    pub(super) kept_bytes: u64,
    /// Bytes behind [`Place::Workspace`].
    pub(super) workspace_bytes: u64,
}

impl Candidate {
    /// The commands of one iteration: in training, where parameters change in between, with those that prepare them.
    pub(super) fn iteration(&self, is_training: bool) -> impl Iterator<Item = &Command> {
        self.prepare.iter().filter(move |_| is_training).chain(&self.commands)
    }

    /// A candidate of one launch without memory of its own.
    pub(super) fn of(launch: Launch) -> Self {
        Self { name: launch.kernel.entry.to_owned(), commands: vec![Command::Kernel(launch)], ..Self::default() }
    }
}

/// What kernels and candidates depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Compute capability, major and minor.
    pub(super) capability: (u32, u32),
    /// Multiprocessors.
    pub(super) multiprocessors: u32,
    /// Bytes of the L2 cache.
    pub(super) l2_bytes: u64,
    /// Largest shared memory of a block, opted in.
    pub(super) shared_bytes: u32,
}

/// A plan on its way to candidates: where its elements lie.
#[derive(Clone, Copy)]
pub(super) struct Lowering<'a> {
    pub(super) plan: &'a Plan,
    pub(super) facts: Facts,
    /// Whether as little time as possible is to go into the choice among candidates: libraries are not asked.
    pub(super) is_quick: bool,
}

impl<'a> Lowering<'a> {
    pub(super) fn precision(&self) -> Precision {
        self.plan.precision
    }

    /// Type of a stored activation.
    pub(super) fn element(&self) -> Element {
        self.plan.precision.storage()
    }

    pub(super) fn is_training(&self) -> bool {
        self.plan.pass == Pass::ForwardBackward
    }

    pub(super) fn buffer(&self, id: BufferId) -> &'a Buffer {
        self.plan.buffer(id)
    }

    /// How a buffer is stored.
    pub(super) fn layout(&self, id: BufferId) -> Layout {
        let buffer = self.buffer(id);
        Layout::new(buffer.contents, buffer.element, self.element())
    }

    /// Elements in 16 bytes: what channels are padded to a multiple of.
    pub(super) fn vector(&self) -> usize {
        vector(self.element())
    }

    /// Channels with padding.
    pub(super) fn padded(&self, channels: usize) -> u32 {
        channels.next_multiple_of(self.vector()) as u32
    }

    /// Start of a whole buffer.
    pub(super) fn place(&self, id: BufferId) -> Place {
        Place::Buffer { id, offset: 0 }
    }

    /// Start of an optional buffer.
    pub(super) fn optional(&self, id: Option<BufferId>) -> Place {
        id.map_or(Place::Null, |id| self.place(id))
    }

    /// First channel of a view.
    pub(super) fn view(&self, view: &View) -> Place {
        let offset = (view.channel_offset * self.buffer(view.buffer).element.bytes()) as u64;
        Place::Buffer { id: view.buffer, offset }
    }

    /// Elements from one position of a view to the next.
    pub(super) fn row(&self, view: &View) -> u32 {
        self.padded(view.buffer_channels)
    }

    /// # Errors
    /// [`EngineError::NotSupported`] for a view that does not begin, or ends within its buffer, at 16 bytes;
    /// [`EngineError::ExceedsDeviceLimit`] for one of more than 32 GiB.
    pub(super) fn check(&self, view: &View) -> Result<(), EngineError> {
        let chunks = view.shape.positions() as u64 * u64::from(self.row(view)) / self.vector() as u64;
        if chunks > MOST_CHUNKS {
            return Err(EngineError::ExceedsDeviceLimit {
                what: format!("{:?}", self.buffer(view.buffer).name),
                needed: 16 * chunks,
                limit: "bytes of one activation that CUDA kernels address".to_owned(),
                allowed: 16 * MOST_CHUNKS,
            });
        }
        let (first, end, vector) = (view.channel_offset, view.channel_offset + view.shape.c, self.vector());
        if first.is_multiple_of(vector) && (end.is_multiple_of(vector) || end == view.buffer_channels) {
            return Ok(());
        }
        Err(EngineError::NotSupported {
            reason: format!(
                "channels {first} to {end} of {:?} are not multiples of {vector}, which CUDA kernels access at a time",
                self.buffer(view.buffer).name
            ),
        })
    }
}

/// Chunks of 16 bytes of one activation: kernels number them in 32 bits with a sign, and reach a little beyond the end.
const MOST_CHUNKS: u64 = (1 << 31) - (1 << 24);

/// Elements of a type in 16 bytes.
pub(super) fn vector(element: Element) -> usize {
    16 / element.bytes()
}
