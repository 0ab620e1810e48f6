//! Watches the worker: starts it, sends it runs, ends it when it is silent for too long or the user cancels, replaces
//! it after any failure, and turns whatever happens into exactly one record a run.

mod child;
mod patience;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::event::{Event, Phase, Request};
use super::record::{Record, Status};
use super::spec::RunSpec;
use crate::engine::{Device, EngineKind, Listing, fake};
use child::{Child, Heard};
use patience::Patience;

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

impl Default for SilenceLimits {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(30),
            prepare: Duration::from_secs(180),
            iterate: Duration::from_secs(60),
            exit: Duration::from_secs(5),
        }
    }
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
        self.all.store(true, Ordering::SeqCst);
    }

    /// Cancels the current run; the next one begins.
    pub fn current(&self) {
        self.current.fetch_add(1, Ordering::SeqCst);
    }

    fn is_all(&self) -> bool {
        self.all.load(Ordering::SeqCst)
    }

    fn count(&self) -> u64 {
        self.current.load(Ordering::SeqCst)
    }
}

/// Measures `specs` in order and reports through `on_update`, which must not block for long. Returns when every run has
/// its outcome; cancelled runs that never started get a record too.
pub fn supervise(
    specs: &[RunSpec],
    worker: &WorkerCommand,
    limits: &SilenceLimits,
    cancel: &Cancel,
    on_update: &mut dyn FnMut(Update),
) {
    let mut supervisor = Supervisor { worker, limits, cancel, child: None };
    let mut edges: Vec<&RunSpec> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        if cancel.is_all() {
            on_update(finished(index, spec, Status::Cancelled, "cancelled before it began".to_owned()));
            continue;
        }
        let edge = edges.iter().find(|edge| edge.series() == spec.series() && edge.minibatch < spec.minibatch);
        if let Some(edge) = edge {
            let reason = format!("minibatch {} of its series is past the memory edge already", edge.minibatch);
            on_update(Update::Skipped { index, reason });
            continue;
        }
        on_update(Update::Started { index });
        let outcome = supervisor.run(index, spec, on_update);
        if let Update::Finished { record, .. } = &outcome
            && record.status.is_memory_edge()
        {
            edges.push(spec);
        }
        on_update(outcome);
    }
    supervisor.dismiss(true);
}

/// Lists every device of every engine, in a child process, since a driver can crash while it is asked. An engine that
/// did not answer is listed with the reason, as long as another did.
///
/// # Errors
/// [`SupervisorError`] when the worker can't be started, crashes or is silent for `timeout`.
pub fn list_devices(
    worker: &WorkerCommand,
    timeout: Duration,
    script: Option<fake::Script>,
) -> Result<Vec<Listing>, SupervisorError> {
    let deadline = Instant::now() + timeout;
    let mut silent: Vec<EngineKind> = Request::engines_listed(script.is_some()).collect();
    let n_engines = silent.len();
    let mut child = Child::start(worker).map_err(SupervisorError::Worker)?;
    let mut failure = child.send(&Request::Devices { script }).err();
    let mut found = Vec::new();
    while failure.is_none() && !silent.is_empty() {
        match child.hear(deadline) {
            Heard::Event(Event::Devices { engine, mut listings }) => {
                silent.retain(|kind| *kind != engine);
                found.append(&mut listings);
            }
            Heard::Event(_) => {}
            Heard::Nothing => {
                failure = Some(format!("the devices were not listed within {:.1} s", timeout.as_secs_f64()));
            }
            Heard::End(reason) => failure = Some(reason),
        }
    }
    child.end(failure.is_none(), SilenceLimits::default().exit);
    if let Some(reason) = failure {
        if silent.len() == n_engines {
            return Err(SupervisorError::Worker(reason));
        }
        found.extend(silent.into_iter().map(|engine| Listing::nothing(engine, reason.clone())));
    }
    found.sort_by_key(|listing| listing.engine);
    Ok(found)
}

/// How often a supervisor that hears nothing looks whether the run was cancelled.
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);

struct Supervisor<'a> {
    worker: &'a WorkerCommand,
    limits: &'a SilenceLimits,
    cancel: &'a Cancel,
    /// A worker that is ready, with the run it did last.
    child: Option<(Child, RunSpec)>,
}

impl Supervisor<'_> {
    /// Does one run and returns its `Finished`.
    fn run(&mut self, index: usize, spec: &RunSpec, on_update: &mut dyn FnMut(Update)) -> Update {
        let count = self.cancel.count();
        let mut patience = Patience::new(self.limits, spec);
        let mut child = match self.worker_for(spec) {
            Ok(child) => child,
            Err(reason) => return finished(index, spec, Status::Crashed, reason),
        };
        let mut deadline = Instant::now() + patience.limit();
        loop {
            let cancelled = self.cancel.is_all() || self.cancel.count() != count;
            match child.hear(deadline.min(Instant::now() + CANCEL_INTERVAL)) {
                // A record that has come counts, also when the user cancels in the same moment.
                Heard::Event(Event::Finished { record, device }) => {
                    self.keep(child, spec, &record);
                    return Update::Finished { index, record, device };
                }
                _ if cancelled => {
                    child.end(false, self.limits.exit);
                    return finished(index, spec, Status::Cancelled, "cancelled while it ran".to_owned());
                }
                Heard::Event(event) => {
                    patience.heard(&event);
                    deadline = Instant::now() + patience.limit();
                    if let Some(reason) = foreign(&event) {
                        child.end(false, self.limits.exit);
                        return finished(index, spec, Status::Crashed, reason);
                    }
                    if let Some(update) = update(index, event) {
                        on_update(update);
                    }
                }
                Heard::Nothing if Instant::now() < deadline => {}
                Heard::Nothing => {
                    child.end(false, self.limits.exit);
                    let reason = format!(
                        "the worker was silent for {:.0} s while {}",
                        patience.limit().as_secs_f64(),
                        patience.doing()
                    );
                    return finished(index, spec, Status::TimedOut, reason);
                }
                Heard::End(reason) => {
                    child.end(false, self.limits.exit);
                    let reason = format!("{reason} while {}", patience.doing());
                    return finished(index, spec, Status::Crashed, reason);
                }
            }
        }
    }

    /// A worker to which the run was handed: the present one if it runs and last used the same device, else a new one.
    fn worker_for(&mut self, spec: &RunSpec) -> Result<Child, String> {
        let request = Request::Run { spec: Box::new(spec.clone()) };
        if let Some((mut child, last)) = self.child.take() {
            if (last.engine, &last.device) == (spec.engine, &spec.device)
                && child.is_running()
                && child.send(&request).is_ok()
            {
                return Ok(child);
            }
            child.end(true, self.limits.exit);
        }
        let mut child = Child::start(self.worker)?;
        match child.send(&request) {
            Ok(()) => Ok(child),
            // What it said before it ended tells more than the broken pipe.
            Err(reason) => match child.hear(Instant::now() + self.limits.ready) {
                Heard::End(reason) => Err(reason),
                _ => Err(reason),
            },
        }
    }

    /// Keeps a worker for the next run unless the outcome leaves doubts about its device.
    fn keep(&mut self, child: Child, spec: &RunSpec, record: &Record) {
        self.child = Some((child, spec.clone()));
        if leaves_doubts(spec, record) {
            self.dismiss(false);
        }
    }

    fn dismiss(&mut self, in_peace: bool) {
        if let Some((child, _)) = self.child.take() {
            child.end(in_peace, self.limits.exit);
        }
    }
}

/// Whether a worker's device may be unusable after a run: after a failure, also of a profile alone.
fn leaves_doubts(spec: &RunSpec, record: &Record) -> bool {
    let is_good = matches!(record.status, Status::Ok | Status::NotSupported | Status::Incorrect);
    !is_good || spec.profile && record.status == Status::Ok && record.profile.is_none()
}

/// Why an event can't come from a worker of this program.
fn foreign(event: &Event) -> Option<String> {
    let ours = env!("CARGO_PKG_VERSION");
    match event {
        Event::Ready { version } if version != ours => {
            Some(format!("the worker is of version {version:?}, not {ours:?}; the program was replaced while it ran"))
        }
        _ => None,
    }
}

fn update(index: usize, event: Event) -> Option<Update> {
    match event {
        Event::Phase { phase } => Some(Update::Phase { index, phase }),
        Event::Progress { iterations, of, latest_ms } => Some(Update::Progress { index, iterations, of, latest_ms }),
        Event::Ready { .. } | Event::Devices { .. } | Event::Finished { .. } => None,
    }
}

fn finished(index: usize, spec: &RunSpec, status: Status, reason: String) -> Update {
    Update::Finished { index, record: Box::new(spec.record(status, Some(reason))), device: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Tier;
    use crate::models::Model;
    use crate::plan::Pass;
    use crate::shape::Precision;

    /// A device that was lost while a profile was taken is not given to the next run.
    #[test]
    fn a_worker_whose_profile_failed_is_replaced() {
        let mut spec = RunSpec {
            model: Model::Alexnet,
            pass: Pass::Forward,
            precision: Precision::F32,
            minibatch: 1,
            engine: EngineKind::Fake,
            device: "fake-0".to_owned(),
            tier: Tier::default(),
            bounds: Default::default(),
            profile: false,
            input_size: None,
            script: None,
        };
        assert!(!leaves_doubts(&spec, &spec.record(Status::Ok, None)));
        assert!(leaves_doubts(&spec, &spec.record(Status::Failed, None)));
        spec.profile = true;
        assert!(leaves_doubts(&spec, &spec.record(Status::Ok, None)));
        assert!(!leaves_doubts(&spec, &spec.record(Status::NotSupported, None)));
    }
}
