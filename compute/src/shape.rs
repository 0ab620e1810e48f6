//! Tensor shapes, element types and precisions. Layout in memory is an engine's business, not this module's.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shape of an activation: minibatch, channels, height, width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Samples in the minibatch.
    pub n: usize,
    /// Channels.
    pub c: usize,
    /// Height.
    pub h: usize,
    /// Width.
    pub w: usize,
}

impl Shape {
    /// A shape `[n, c, h, w]`.
    pub const fn new(n: usize, c: usize, h: usize, w: usize) -> Self {
        Self { n, c, h, w }
    }

    /// Number of elements.
    pub const fn elements(self) -> usize {
        self.n * self.c * self.h * self.w
    }

    /// Number of spatial positions of the whole minibatch, `n · h · w`: the rows of an implicit GEMM.
    pub const fn positions(self) -> usize {
        self.n * self.h * self.w
    }

    /// The same shape with another minibatch.
    pub const fn with_minibatch(self, n: usize) -> Self {
        Self { n, ..self }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}x{}", self.n, self.c, self.h, self.w)
    }
}

/// Shape of a filter: output channels, input channels, height, width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FilterShape {
    /// Output channels.
    pub k: usize,
    /// Input channels.
    pub c: usize,
    /// Height of the window.
    pub r: usize,
    /// Width of the window.
    pub s: usize,
}

impl FilterShape {
    /// Number of elements.
    pub const fn elements(self) -> usize {
        self.k * self.c * self.r * self.s
    }

    /// Multiply-adds that make one output element, `c · r · s`: the depth of an implicit GEMM.
    pub const fn depth(self) -> usize {
        self.c * self.r * self.s
    }
}

/// Type of one stored element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Unsigned byte: which element of its window a maximum came from.
    U8,
    /// Unsigned integer: class labels.
    U32,
}

impl Element {
    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }
}

/// Arithmetic of a run. In training `F16` and `Bf16` mean mixed precision: f32 master weights, half activations, f32
/// accumulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// IEEE single precision multiply-adds.
    F32,
    /// TensorFloat-32 multiplications of f32 storage.
    Tf32,
    /// IEEE half precision storage, f32 accumulation.
    F16,
    /// bfloat16 storage, f32 accumulation.
    Bf16,
}

impl Precision {
    /// Every precision, in the order they are listed to users.
    pub const ALL: [Self; 4] = [Self::F32, Self::Tf32, Self::F16, Self::Bf16];

    /// Element type that activations are stored in.
    pub const fn storage(self) -> Element {
        match self {
            Self::F32 | Self::Tf32 => Element::F32,
            Self::F16 => Element::F16,
            Self::Bf16 => Element::Bf16,
        }
    }

    /// Factor put on the loss gradient so that small gradients survive in storage; gradients of weights are divided
    /// by it again. A power of two, hence exact.
    ///
    /// Source: Micikevicius et al., "Mixed Precision Training", 2018, section 3.2.
    pub const fn loss_scale(self) -> f32 {
        match self {
            Self::F16 => 1024.0,
            Self::F32 | Self::Tf32 | Self::Bf16 => 1.0,
        }
    }

    /// The name used in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Precision {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        parse_name("precision", text, &Self::ALL, Self::name)
    }
}

/// A name that is none of the valid ones.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} {given:?}, expected one of: {valid}")]
pub struct UnknownName {
    /// What was to be named, such as `"model"`.
    pub kind: &'static str,
    /// What was given.
    pub given: String,
    /// The valid names, separated by commas.
    pub valid: String,
}

/// Finds the value of `all` whose name is `text`.
///
/// # Errors
/// [`UnknownName`] with the valid names, when there is none.
pub fn parse_name<T: Copy>(
    kind: &'static str,
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    all.iter().copied().find(|&value| name(value) == text).ok_or_else(|| UnknownName {
        kind,
        given: text.to_owned(),
        valid: all.iter().map(|&value| name(value)).collect::<Vec<_>>().join(", "),
    })
}
