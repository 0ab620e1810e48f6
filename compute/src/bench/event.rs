//! The stream between supervisor and worker: one JSON object a line, requests in, events out.

use serde::{Deserialize, Serialize};

use super::record::Record;
use super::spec::RunSpec;
use crate::engine::{Device, EngineKind, Listing, fake};

/// What a worker is asked; one line on its standard input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// List every device of every engine.
    Devices {
        /// Lists this script's devices instead of the machine's; tests only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<fake::Script>,
    },
    /// Measure one run.
    Run {
        /// The run.
        spec: Box<RunSpec>,
    },
}

impl Request {
    /// Engines that a worker lists, in the order of its answers: those that can't crash first.
    pub(super) fn engines_listed(has_script: bool) -> impl Iterator<Item = EngineKind> {
        let engines: &[EngineKind] = if has_script { &[EngineKind::Fake] } else { &EngineKind::ALL };
        engines.iter().rev().copied()
    }
}

/// What a worker says; one line on its standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The worker has started and takes requests.
    Ready {
        /// Version of the program, which must be the supervisor's.
        version: String,
    },
    /// Answer to [`Request::Devices`], once for each engine: a driver that crashes while it is asked takes with it what
    /// was not said before.
    Devices {
        /// The engine.
        engine: EngineKind,
        /// Its devices, or why there are none.
        listings: Vec<Listing>,
    },
    /// A run has entered a phase.
    Phase {
        /// The phase.
        phase: Phase,
    },
    /// Iterations of the current phase so far; also a sign of life.
    Progress {
        /// Iterations done.
        iterations: usize,
        /// Iterations to do, when known.
        of: Option<usize>,
        /// Milliseconds of the latest iteration.
        latest_ms: f64,
    },
    /// A run has ended, well or not. The worker takes the next request afterwards.
    Finished {
        /// The outcome.
        record: Box<Record>,
        /// The device it ran on, when it could be opened.
        device: Option<Box<Device>>,
    },
}

/// Phases of a run, in order. Verification has a small plan of its own, which is gone before the measured one is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The device is being opened.
    Open,
    /// Outputs at a small minibatch are compared with the reference.
    Verify,
    /// Buffers are allocated, kernels compiled and tuned.
    Load,
    /// Iterations until two successive windows agree.
    WarmUp,
    /// Measured iterations.
    Measure,
    /// Iterations with a time for each step, and the device's ceilings; only where that was asked for.
    Profile,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 6] = [Self::Open, Self::Verify, Self::Load, Self::WarmUp, Self::Measure, Self::Profile];

    /// What is said of it while it lasts.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Open => "opening the device",
            Self::Load => "loading",
            Self::Verify => "verifying",
            Self::WarmUp => "warming up",
            Self::Measure => "measuring",
            Self::Profile => "profiling",
        }
    }
}
