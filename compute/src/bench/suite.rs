//! Suites: fixed, versioned lists of runs, so that machines compare; and which device and engine they run on.

use crate::engine::{EngineKind, Listing};
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::{Precision, UnknownName, parse_name};

use super::spec::{Bounds, RunSpec};

/// A fixed list of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// alexnet and resnet50, both passes, minibatch 16, a time bound each.
    Quick,
    /// Eight networks, both passes, f32 and the best half precision, minibatch 64.
    Standard,
    /// alexnet, vgg_a and resnet50, both passes, minibatch 1, 2, 4 … to the memory edge, at most 512.
    Sweep,
}

/// What the user asked for; an empty list means the suite's or engine's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The suite, if one was named.
    pub suite: Option<Suite>,
    /// Networks.
    pub models: Vec<Model>,
    /// Passes.
    pub passes: Vec<Pass>,
    /// Precisions.
    pub precisions: Vec<Precision>,
    /// Minibatches.
    pub minibatches: Vec<usize>,
    /// Iterations and time, where they are not the suite's.
    pub iterations: Option<usize>,
    /// Bound of seconds a run.
    pub max_seconds: Option<f64>,
}

/// A device and the engine to run on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What the engine says of the device.
    pub listing: Listing,
    /// Why it was chosen, to be said when the user named neither engine nor device.
    pub reason: Option<String>,
}

/// Why no device could be chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChooseError {
    /// Nothing fits what was asked for.
    #[error("{asked}; there are: {available}")]
    NoMatch {
        /// What was asked for and why it can't be had.
        asked: String,
        /// Devices and engines that exist.
        available: String,
    },
}

impl Suite {
    /// Every suite.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Standard, Self::Sweep];

    /// The name used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Sweep => "sweep",
        }
    }
}

impl std::str::FromStr for Suite {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        parse_name("suite", text, &Self::ALL, Self::name)
    }
}

/// Devices to run on. Without engine and device: a real GPU through WGSL, else the CPU reference with the reason; a
/// software adapter only when it is named.
///
/// # Errors
/// [`ChooseError`] when a named engine or device does not exist or is unavailable.
pub fn choose(_listings: &[Listing], _engines: &[EngineKind], _devices: &[String]) -> Result<Vec<Target>, ChooseError> {
    todo!()
}

/// The runs of a selection on the targets, in the order they are measured.
pub fn runs(_selection: &Selection, _targets: &[Target]) -> Vec<RunSpec> {
    let _ = Bounds::default();
    todo!()
}
