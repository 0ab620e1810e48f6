//! Watches the worker: starts it, sends it runs, ends it when it is silent for too long or the user cancels, replaces
//! it after any failure, and turns whatever happens into exactly one record a run.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use super::event::Phase;
use super::record::Record;
use super::spec::RunSpec;
use crate::engine::{Device, Listing, fake};

/// How the worker is started.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerCommand {
    /// The program, normally this one.
    pub program: PathBuf,
    /// Its arguments, normally `["worker"]`.
    pub arguments: Vec<String>,
}

/// Cancels runs from another thread. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    all: Arc<AtomicBool>,
    current: Arc<AtomicU64>,
}

/// What a supervisor reports while it works through its runs; `index` is the run's place in the list it was given.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A run was handed to a worker.
    Started {
        /// The run.
        index: usize,
    },
    /// A run entered a phase.
    Phase {
        /// The run.
        index: usize,
        /// The phase.
        phase: Phase,
    },
    /// Iterations of the current phase.
    Progress {
        /// The run.
        index: usize,
        /// Iterations done.
        iterations: usize,
        /// Iterations to do, when known.
        of: Option<usize>,
        /// Milliseconds of the latest iteration.
        latest_ms: f64,
    },
    /// A run has its record; every run gets exactly one `Finished` or `Skipped`.
    Finished {
        /// The run.
        index: usize,
        /// The outcome; its `device` is not set, the store assigns it.
        record: Box<Record>,
        /// The device it ran on, when it could be opened.
        device: Option<Box<Device>>,
    },
    /// A run was left out because a smaller minibatch of its series is past the memory edge.
    Skipped {
        /// The run.
        index: usize,
        /// Why, in one sentence.
        reason: String,
    },
}

/// How long a worker may be silent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SilenceLimits {
    /// Until it says it is ready.
    pub ready: Duration,
    /// While it opens, loads or verifies.
    pub prepare: Duration,
    /// While it iterates, when its iterations are short; long ones get a multiple of their own time.
    pub iterate: Duration,
    /// After it was told to end.
    pub exit: Duration,
}

/// Why a supervisor could not do its work at all.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The worker process did not start or did not answer.
    #[error("the worker process could not be used: {0}")]
    Worker(String),
}

impl Cancel {
    /// A handle with nothing cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the current run and every later one.
    pub fn all(&self) {
        todo!()
    }

    /// Cancels the current run; the next one begins.
    pub fn current(&self) {
        todo!()
    }
}

/// Measures `specs` in order and reports through `on_update`, which must not block for long. Returns when every run has
/// its outcome; cancelled runs that never started get a record too.
pub fn supervise(
    _specs: &[RunSpec],
    _worker: &WorkerCommand,
    _limits: &SilenceLimits,
    _cancel: &Cancel,
    _on_update: &mut dyn FnMut(Update),
) {
    todo!()
}

/// Lists every device of every engine, in a child process, since a driver can crash while it is asked.
///
/// # Errors
/// [`SupervisorError`] when the worker can't be started, crashes or is silent for `timeout`.
pub fn list_devices(
    _worker: &WorkerCommand,
    _timeout: Duration,
    _script: Option<fake::Script>,
) -> Result<Vec<Listing>, SupervisorError> {
    todo!()
}
