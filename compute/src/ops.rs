//! The operations that networks are made of: a closed set, one file an operation.
//!
//! Each file holds the operation's parameters, its output shape and multiply-adds, and the steps that a plan makes of
//! it: what is to be computed on which numbered buffers, never how. [`crate::plan`] fuses operations into steps;
//! engines implement the steps under the same file stems and entry-point names.

pub mod average_pool;
pub mod batch_norm;
pub mod cast;
pub mod conv2d;
pub mod dropout;
pub mod max_pool;
pub mod softmax;

use crate::shape::Shape;

pub use average_pool::AveragePool;
pub use batch_norm::BatchNorm;
pub use conv2d::Conv2d;
pub use dropout::Dropout;
pub use max_pool::MaxPool;

/// One operation of a network.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// The network's input.
    Input,
    /// Convolution.
    Conv2d(Conv2d),
    /// Fully connected layer with `outputs` outputs and a bias: a convolution whose window is the whole map.
    Linear {
        /// Number of outputs.
        outputs: usize,
    },
    /// Batch normalization over `n`, `h`, `w`.
    BatchNorm(BatchNorm),
    /// Rectified linear unit, `max(x, 0)`.
    Relu,
    /// Sum of two inputs of one shape.
    Add,
    /// Concatenation along channels.
    Concat,
    /// Maximum over windows.
    MaxPool(MaxPool),
    /// Average over the whole map.
    AveragePool(AveragePool),
    /// Dropout: in training each element is zeroed with a probability, the others scaled up; identity in inference.
    Dropout(Dropout),
}

/// Inputs that an operation can't take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The window is larger than the padded map.
    #[error("a window of {window} does not fit into a map of {map}, padding included")]
    WindowTooLarge {
        /// Side of the window.
        window: usize,
        /// Side of the padded map.
        map: usize,
    },
    /// Inputs that must agree do not.
    #[error("inputs of shapes {a} and {b} do not agree")]
    Mismatch {
        /// The first input.
        a: Shape,
        /// The input that differs from it.
        b: Shape,
    },
}

impl Op {
    /// Output shape for the given input shapes.
    ///
    /// # Errors
    /// [`ShapeError`] when a window is larger than its padded map, or inputs of a sum or a concatenation disagree.
    pub fn output(&self, inputs: &[Shape]) -> Result<Shape, ShapeError> {
        let x = inputs[0];
        match self {
            Self::Conv2d(conv) => conv.output(x),
            Self::Linear { outputs } => Ok(Shape::new(x.n, *outputs, 1, 1)),
            Self::MaxPool(pool) => pool.output(x),
            Self::AveragePool(_) => Ok(Shape::new(x.n, x.c, 1, 1)),
            Self::Add => match inputs.iter().find(|&&other| other != x) {
                Some(&b) => Err(ShapeError::Mismatch { a: x, b }),
                None => Ok(x),
            },
            Self::Concat => match inputs.iter().find(|o| (o.n, o.h, o.w) != (x.n, x.h, x.w)) {
                Some(&b) => Err(ShapeError::Mismatch { a: x, b }),
                None => Ok(Shape { c: inputs.iter().map(|o| o.c).sum(), ..x }),
            },
            Self::Input | Self::BatchNorm(_) | Self::Relu | Self::Dropout(_) => Ok(x),
        }
    }

    /// The convolution that this operation is for an input of shape `x`, if it is one.
    pub fn as_conv2d(&self, x: Shape) -> Option<Conv2d> {
        match self {
            Self::Conv2d(conv) => Some(conv.clone()),
            Self::Linear { outputs } => Some(Conv2d { k: *outputs, r: x.h, s: x.w, stride: 1, pad: 0, bias: true }),
            _ => None,
        }
    }

    /// Trainable parameters: weights and biases, and scale and shift of batch norm.
    pub fn parameters(&self, x: Shape) -> u64 {
        match self {
            Self::BatchNorm(_) => 2 * x.c as u64,
            _ => self.as_conv2d(x).map_or(0, |conv| conv.parameters(x)),
        }
    }

    /// Multiply-accumulates of the forward pass; convolutions and fully connected layers only.
    pub fn macs(&self, x: Shape) -> u64 {
        self.as_conv2d(x).map_or(0, |conv| conv.macs(x))
    }
}

/// Number of one buffer of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// Some consecutive channels of an activation buffer: the whole of it, or one branch's slice of a concatenation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The buffer.
    pub buffer: BufferId,
    /// Shape of the view: `c` counts the view's channels.
    pub shape: Shape,
    /// First channel of the view in its buffer.
    pub channel_offset: usize,
    /// Channels of the whole buffer.
    pub buffer_channels: usize,
}

impl View {
    /// A view of a whole buffer of the given shape.
    pub const fn whole(buffer: BufferId, shape: Shape) -> Self {
        Self { buffer, shape, channel_offset: 0, buffer_channels: shape.c }
    }

    /// Whether the view is all of its buffer.
    pub const fn is_whole(&self) -> bool {
        self.shape.c == self.buffer_channels
    }
}

/// What is done to a gradient before it is written, in this order: multiply by `scale`, add what the destination
/// holds, zero where the rectified forward value is zero.
///
/// Formula per element: `v = scale · g (+ dx)`; `dx = v · [mask > 0]`. Afterwards every [`batch_norm::Reduction`] sums
/// over the finished `dx`.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientEpilogue {
    /// Factor on the new gradient: `1 / (1 - p)` behind dropout of probability `p`, else 1.
    pub scale: f32,
    /// Whether the destination already holds the gradient from another consumer, to be added.
    pub accumulate: bool,
    /// Forward value of the destination, where that is never negative (behind ReLU): its zeros get no gradient. Dropout
    /// needs no mask of its own: what it dropped is zero.
    pub relu_mask: Option<View>,
    /// Sums that the batch norms before the destination need, over the finished gradient.
    pub reductions: Vec<batch_norm::Reduction>,
}
