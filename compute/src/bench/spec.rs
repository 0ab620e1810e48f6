//! Everything that determines one measurement.

use serde::{Deserialize, Serialize};

use super::record::{Record, Status};
use super::telemetry;
use crate::engine::{EngineKind, Tier, fake};
use crate::graph::Graph;
use crate::models::Model;
use crate::ops::ShapeError;
use crate::plan::Pass;
use crate::shape::Precision;

/// One run: what is measured, on what, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The network.
    pub model: Model,
    /// The pass.
    pub pass: Pass,
    /// The precision.
    pub precision: Precision,
    /// Samples in one iteration.
    pub minibatch: usize,
    /// The engine.
    pub engine: EngineKind,
    /// The device, by [`crate::engine::Device::id`].
    pub device: String,
    /// The most of the vendor's libraries that the CUDA engine may use.
    #[serde(default)]
    pub tier: Tier,
    /// How long to measure.
    pub bounds: Bounds,
    /// Whether the steps of an iteration are timed one by one after the measurement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profile: bool,
    /// Side of the input where it is not the published one; tests only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_size: Option<usize>,
    /// What the fake engine plays; required by it, absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<fake::Script>,
}

/// Iterations and time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Iterations to measure; fewer only when the time bound says so.
    pub iterations: usize,
    /// Bound on warm-up and measurement together, in seconds. At least three iterations are measured whatever it says.
    pub max_seconds: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { iterations: 100, max_seconds: 60.0 }
    }
}

impl RunSpec {
    /// The network to be measured.
    ///
    /// # Errors
    /// [`ShapeError`] when [`Self::input_size`] is too small for it.
    pub fn graph(&self) -> Result<Graph, ShapeError> {
        self.model.graph_sized(self.input_size.unwrap_or(self.model.input_size()), 1000)
    }

    /// A record of this run with an outcome and nothing measured, begun now.
    pub fn record(&self, status: Status, reason: Option<String>) -> Record {
        let definition = match self.graph() {
            Ok(graph) => format!("{} {}", graph.definition(), graph.definition_hash()),
            Err(_) => self.model.name().to_owned(),
        };
        Record {
            model: self.model.name().to_owned(),
            definition,
            minibatch: self.minibatch,
            engine: self.engine.name().to_owned(),
            started: telemetry::now_utc(),
            reason,
            ..Record::blank(self.pass, self.precision, status)
        }
    }

    /// The series that a minibatch sweep belongs to: everything but the minibatch.
    pub fn series(&self) -> (Model, Pass, Precision, EngineKind, &str) {
        (self.model, self.pass, self.precision, self.engine, &self.device)
    }
}
