//! One figure of a foreign file in its own terms, and how sure each fact about it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::bench::record::Clock;
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

/// How sure a fact is.
#[derive(Clone, Debug)]
pub(super) enum Fact<T> {
    /// The file says so.
    Stated(T),
    /// Concluded, with the note that says from what.
    Guessed(T, &'static str),
    /// Not known, but may be given.
    Unknown,
    /// Has no meaning here.
    Inapplicable,
}

/// What was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The forward pass, called inference.
    Inference,
    /// The forward pass.
    Forward,
    /// The backward pass alone.
    Backward,
    /// Forward and backward without an update.
    ForwardBackward,
    /// Forward, backward and the update of the parameters.
    TrainStep,
}

impl Phase {
    /// The word for it in a figure.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::ForwardBackward => "forward_backward",
            Self::TrainStep => "train_step",
        }
    }

    /// The pass that it is compared with.
    pub(super) const fn pass(self) -> Pass {
        match self {
            Self::Inference | Self::Forward => Pass::Forward,
            Self::Backward | Self::ForwardBackward | Self::TrainStep => Pass::ForwardBackward,
        }
    }
}

/// What an entry is worth to us.
#[derive(Clone, Debug)]
pub(super) enum Measured {
    /// Samples a second.
    PerSec(f64),
    /// Milliseconds of one iteration.
    Millis(f64),
    /// Milliseconds of every iteration, by which clock.
    Samples(Vec<f64>, Clock),
    /// A figure in a unit of its own.
    Other,
    /// The run failed, for this reason.
    Failed(String),
}

/// One figure in its file's own terms.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The model as the file calls it.
    pub(super) model: String,
    /// The name shown, where it is none of our networks; empty where that is `model`.
    pub(super) shown: String,
    /// Which of our networks it is.
    pub(super) network: Option<Model>,
    /// Size of a sample, such as `224x224`.
    pub(super) input: Option<String>,
    /// What was run.
    pub(super) phase: Phase,
    /// What was run in the file's own words, where `phase` does not say it.
    pub(super) phase_words: Option<String>,
    /// The precision.
    pub(super) precision: Fact<Precision>,
    /// The precision as the file calls it.
    pub(super) precision_word: String,
    /// Samples in one iteration.
    pub(super) minibatch: Fact<usize>,
    /// Name of the device.
    pub(super) device: Fact<String>,
    /// Devices that worked together.
    pub(super) n_devices: Option<usize>,
    /// The framework with its version.
    pub(super) engine: String,
    /// Versions by name.
    pub(super) libraries: BTreeMap<String, String>,
    /// Unit of `value`.
    pub(super) metric: &'static str,
    /// The figure as the file has it.
    pub(super) value: f64,
    /// What the figure is worth to us.
    pub(super) measured: Measured,
    /// When it was measured, as the file says it.
    pub(super) date: Option<String>,
    /// Why it can't be true.
    pub(super) doubt: Option<String>,
    /// Remarks.
    pub(super) notes: Vec<String>,
    /// What the file says beyond this.
    pub(super) extra: Map<String, Value>,
}

impl Entry {
    /// An entry of which only the figure is known.
    pub(super) fn new(model: &str, phase: Phase, metric: &'static str, value: f64, measured: Measured) -> Self {
        Self {
            model: model.to_owned(),
            shown: String::new(),
            network: None,
            input: None,
            phase,
            phase_words: None,
            precision: Fact::Unknown,
            precision_word: String::new(),
            minibatch: Fact::Unknown,
            device: Fact::Unknown,
            n_devices: None,
            engine: String::new(),
            libraries: BTreeMap::new(),
            metric,
            value,
            measured,
            date: None,
            doubt: None,
            notes: Vec::new(),
            extra: Map::new(),
        }
    }
}
