//! A queue of runs under way: which one is measured, how far it is, what came of the others, and how long it will take.

use std::time::Duration;

use compute::bench::event::Phase;
use compute::bench::record::{Record, Status};
use compute::bench::spec::RunSpec;
use compute::bench::supervisor::Update;

/// A queue of runs and how far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The runs.
    pub specs: Vec<RunSpec>,
    /// What came of each; absent until it is known.
    pub outcomes: Vec<Option<Outcome>>,
    /// The run that is measured.
    pub current: Option<Current>,
    /// Whether the user cancelled the whole queue.
    pub is_cancelled: bool,
    /// When the queue began, on the window's clock.
    pub began: Duration,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It has a record.
    Recorded {
        /// The outcome.
        status: Status,
        /// Samples a second; only for outcome `ok`.
        throughput_per_sec: Option<f64>,
        /// Why the outcome is not `ok`.
        reason: Option<String>,
    },
    /// It was left out, and why.
    Skipped(String),
}

/// The run that is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Current {
    /// Its place in the queue.
    pub index: usize,
    /// What it does; absent until it says.
    pub phase: Option<Phase>,
    /// Iterations of the phase.
    pub iterations: usize,
    /// Iterations to do, when known.
    pub of: Option<usize>,
    /// Whether the user cancelled it.
    pub is_cancelled: bool,
}

impl Progress {
    /// A queue that begins at `now`.
    pub fn new(specs: Vec<RunSpec>, now: Duration) -> Self {
        let outcomes = vec![None; specs.len()];
        Self { specs, outcomes, current: None, is_cancelled: false, began: now }
    }

    /// Takes what the supervisor reports. What does not belong to this queue changes nothing.
    pub fn update(&mut self, update: &Update) {
        match update {
            Update::Started { index } => {
                self.current =
                    Some(Current { index: *index, phase: None, iterations: 0, of: None, is_cancelled: false });
            }
            Update::Phase { index, phase } => {
                if let Some(current) = self.current_mut(*index) {
                    *current = Current { phase: Some(*phase), iterations: 0, of: None, ..*current };
                }
            }
            Update::Progress { index, iterations, of, .. } => {
                if let Some(current) = self.current_mut(*index) {
                    *current = Current { iterations: *iterations, of: *of, ..*current };
                }
            }
            Update::Finished { index, record, .. } => self.end(*index, Outcome::of(record)),
            Update::Skipped { index, reason } => self.end(*index, Outcome::Skipped(reason.clone())),
        }
    }

    /// Number of runs whose outcome is known.
    pub fn n_ended(&self) -> usize {
        self.outcomes.iter().flatten().count()
    }

    /// Runs that have not begun, in order.
    pub fn waiting(&self) -> impl Iterator<Item = &RunSpec> {
        let current = self.current.as_ref().map(|current| current.index);
        let waiting =
            self.outcomes.iter().enumerate().filter(move |(i, outcome)| outcome.is_none() && current != Some(*i));
        waiting.map(|(i, _)| &self.specs[i])
    }

    /// How much of the queue is done, 0 to 1.
    pub fn fraction(&self) -> f32 {
        let current = self.current.as_ref().map_or(0.0, Current::fraction);
        ((self.n_ended() as f32 + current) / self.specs.len().max(1) as f32).min(1.0)
    }

    /// How long the rest will take at the pace so far; absent until a run has ended.
    pub fn time_left(&self, now: Duration) -> Option<Duration> {
        let done = self.fraction();
        let elapsed = now.saturating_sub(self.began).as_secs_f32();
        (self.n_ended() > 0 && done > 0.0).then(|| Duration::from_secs_f32((elapsed * (1.0 - done) / done).min(1e7)))
    }

    fn current_mut(&mut self, index: usize) -> Option<&mut Current> {
        self.current.as_mut().filter(|current| current.index == index)
    }

    fn end(&mut self, index: usize, outcome: Outcome) {
        if let Some(slot) = self.outcomes.get_mut(index) {
            *slot = Some(outcome);
        }
        if self.current.as_ref().is_some_and(|current| current.index == index) {
            self.current = None;
        }
    }
}

impl Current {
    /// How much of the run is done, 0 to 1. The measurement is taken for the larger half of it.
    fn fraction(&self) -> f32 {
        let within = self.of.filter(|of| *of > 0).map_or(0.0, |of| (self.iterations as f32 / of as f32).min(1.0));
        let (from, to) = match self.phase {
            None | Some(Phase::Open) => (0.0, 0.05),
            Some(Phase::Verify) => (0.05, 0.15),
            Some(Phase::Load) => (0.15, 0.25),
            Some(Phase::WarmUp) => (0.25, 0.4),
            Some(Phase::Measure) => (0.4, 1.0),
            Some(Phase::Profile) => (1.0, 1.0),
        };
        from + (to - from) * within
    }
}

impl Outcome {
    fn of(record: &Record) -> Self {
        Self::Recorded {
            status: record.status,
            throughput_per_sec: record.throughput_per_sec,
            reason: record.reason.clone(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use compute::bench::spec::Bounds;
    use compute::engine::EngineKind;
    use compute::models::Model;
    use compute::plan::Pass;
    use compute::shape::Precision;

    use super::*;
    use crate::chart::throughput::tests::{bad, ok};

    pub(crate) fn spec(model: Model) -> RunSpec {
        RunSpec {
            model,
            pass: Pass::Forward,
            precision: Precision::F32,
            minibatch: 16,
            engine: EngineKind::Fake,
            device: "fake".into(),
            tier: Default::default(),
            bounds: Bounds::default(),
            profile: false,
            input_size: None,
            script: None,
        }
    }

    fn finished(index: usize, record: Record) -> Update {
        Update::Finished { index, record: Box::new(record), device: None }
    }

    #[test]
    fn a_queue_moves_from_nothing_to_everything() {
        let mut progress = Progress::new(vec![spec(Model::Alexnet), spec(Model::Vgg16)], Duration::ZERO);
        let updates = [
            Update::Started { index: 0 },
            Update::Phase { index: 0, phase: Phase::Load },
            Update::Phase { index: 0, phase: Phase::Measure },
            Update::Progress { index: 0, iterations: 50, of: Some(100), latest_ms: 1.0 },
            finished(0, ok("alexnet", 16, 10.0)),
            Update::Started { index: 1 },
            Update::Progress { index: 1, iterations: 7, of: None, latest_ms: 1.0 },
            finished(1, bad("vgg16", 16, Status::Crashed)),
        ];
        let mut before = progress.fraction();
        assert_eq!((before, progress.waiting().count()), (0.0, 2));
        for update in &updates {
            progress.update(update);
            assert!(progress.fraction() >= before, "{update:?} goes backwards");
            before = progress.fraction();
        }
        assert_eq!((before, progress.n_ended(), progress.current.is_none()), (1.0, 2, true));
        assert!(matches!(&progress.outcomes[1], Some(Outcome::Recorded { status: Status::Crashed, .. })));
    }

    #[test]
    fn the_time_left_follows_the_pace_so_far() {
        let specs = vec![spec(Model::Alexnet), spec(Model::Vgg16), spec(Model::Resnet50), spec(Model::Googlenet)];
        let mut progress = Progress::new(specs, Duration::from_secs(100));
        assert_eq!(progress.time_left(Duration::from_secs(105)), None, "nothing is known yet");
        progress.update(&finished(0, ok("alexnet", 16, 10.0)));
        assert_eq!(progress.time_left(Duration::from_secs(110)), Some(Duration::from_secs(30)));
        progress.update(&Update::Skipped { index: 1, reason: "past the memory edge".into() });
        assert_eq!(progress.time_left(Duration::from_secs(110)), Some(Duration::from_secs(10)));
    }

    #[test]
    fn what_does_not_belong_to_the_queue_changes_nothing() {
        let mut progress = Progress::new(vec![spec(Model::Alexnet)], Duration::ZERO);
        progress.update(&Update::Started { index: 0 });
        let before = progress.clone();
        progress.update(&Update::Phase { index: 3, phase: Phase::Measure });
        progress.update(&finished(9, ok("alexnet", 16, 10.0)));
        assert_eq!(progress, before);
    }
}
