//! Choice among a step's candidates by their time on the device.

use std::collections::HashMap;
use std::time::Instant;

use super::check::{self, Expected};
use super::error::driver_error;
use super::launch::{Candidate, Command, Lowering};
use super::lower::Lowered;
use super::memory::DeviceMemory;
use super::stream::{Addresses, Gpu};
use crate::engine::EngineError;

/// Repetitions in one timing.
const REPETITIONS: usize = 5;
/// What takes longer is not repeated.
const LONG_SECS: f64 = 1e-3;
/// What takes longer outside of a graph, and is hopeless, is not timed in one; shorter times hold too much of the host's.
const TELLING_SECS: f64 = 3e-4;
/// A candidate this much slower than the best is hopeless.
const HOPELESS: f64 = 1.3;

/// What was learned of candidates so far.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// Name of the fastest, by the step's shapes.
    fastest: HashMap<String, String>,
    /// What is to be said of the choice.
    pub(super) remarks: Vec<String>,
}

impl Choices {
    /// Remembers what is to be said, once.
    fn remark(&mut self, remark: &str) {
        if !self.remarks.iter().any(|other| other == remark) {
            self.remarks.push(remark.to_owned());
        }
    }
}

/// A plan whose candidates are timed.
pub(super) struct Tuner<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) lowering: &'a Lowering<'a>,
    /// Where the plan's buffers and the workspace are; their contents are lost.
    pub(super) addresses: Addresses<'a>,
    /// When tuning must be over: from then on the first candidate that runs is taken.
    pub(super) deadline: Instant,
}

/// A candidate with its seconds.
type Timed = (f64, Candidate);

impl Tuner<'_> {
    /// The fastest candidate of a step: the known one where a step of its shapes was met before, else by timing all whose
    /// results are those of the first; the first itself where there is no memory to compare.
    ///
    /// # Errors
    /// When no candidate runs, the error of the last; [`EngineError::DeviceLost`] at once.
    pub(super) fn fastest(&self, choices: &mut Choices, step: Lowered) -> Result<Candidate, EngineError> {
        let Lowered { mut candidates, key, step } = step;
        let known = choices.fastest.get(&key);
        if let Some(at) = candidates.iter().position(|candidate| known == Some(&candidate.name)) {
            return Ok(candidates.swap_remove(at));
        }
        if candidates.len() == 1 {
            return Ok(candidates.remove(0));
        }
        let mut best: Option<Timed> = None;
        let mut failure = None;
        let mut expected = None;
        for candidate in candidates {
            if best.is_some() && Instant::now() > self.deadline {
                choices
                    .remark("tuning ended by its time bound: some convolutions are computed by the first kernel timed");
                break;
            }
            let outcome = match &expected {
                None => match Expected::of(&candidate, &step, self.gpu, self.lowering, self.addresses) {
                    Ok(results) => {
                        expected = Some(results);
                        self.time(&candidate, None).map(Some)
                    }
                    // There is memory for the plan, and none to compare in.
                    Err(EngineError::OutOfMemory { .. }) => {
                        choices.remark(
                            "no memory was left to tune in: some convolutions are computed by an untimed kernel",
                        );
                        return Ok(candidate);
                    }
                    Err(error) => Err(error),
                },
                Some(expected) => self.compare_and_time(expected, &candidate, best.as_ref(), choices, &step),
            };
            match outcome {
                Ok(Some(secs)) if best.as_ref().is_none_or(|(before, _)| secs < *before) => {
                    best = Some((secs, candidate));
                }
                Ok(_) => {}
                Err(error @ EngineError::DeviceLost { .. }) => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        let Some((_, candidate)) = best else {
            return Err(failure.unwrap_or_else(|| EngineError::NotSupported {
                reason: "no kernel computes this step on this device".into(),
            }));
        };
        if Instant::now() <= self.deadline {
            choices.fastest.insert(key, candidate.name.clone());
        }
        Ok(candidate)
    }

    /// Seconds of a candidate; none where its results are wrong.
    fn compare_and_time(
        &self,
        expected: &Expected<'_>,
        candidate: &Candidate,
        best: Option<&Timed>,
        choices: &mut Choices,
        step: &check::Step,
    ) -> Result<Option<f64>, EngineError> {
        let error = expected.compare(candidate)?;
        if error > check::tolerance(self.lowering.precision()) {
            choices.remark(&format!("{} is off by {error:.1e} in {} and is not used there", candidate.name, step.name));
            return Ok(None);
        }
        self.time(candidate, best).map(Some)
    }

    /// Seconds of one repetition of a candidate's commands: of a short one as part of a graph, since between commands that
    /// are enqueued one by one the device waits.
    fn time(&self, candidate: &Candidate, best: Option<&Timed>) -> Result<f64, EngineError> {
        let gpu = self.gpu;
        let kept = DeviceMemory::zeroed(&gpu.stream, candidate.kept_bytes, &candidate.name)?;
        let addresses = Addresses { kept: kept.address(), ..self.addresses };
        let enqueue = |command: &Command| gpu.enqueue(command, addresses, self.lowering.precision());
        candidate.prepare.iter().try_for_each(enqueue)?;
        let iterate = || candidate.iteration(self.lowering.is_training()).try_for_each(enqueue);
        // It ran before, when it was compared: nothing is loaded at this launch.
        let plain = gpu.seconds(iterate)?;
        let slowest = best.map_or(f64::INFINITY, |(best, _)| HOPELESS * best);
        if plain > slowest.max(TELLING_SECS) {
            return Ok(plain);
        }
        let repetitions = if plain > LONG_SECS { 1 } else { REPETITIONS };
        let graph = gpu.capture(|| (0..repetitions).try_for_each(|_| iterate()))?;
        let Some(graph) = graph else { return Ok(0.0) };
        let mut secs = f64::INFINITY;
        for round in 0..3 {
            let launch = || graph.launch().map_err(|error| driver_error(&format!("timing {}", candidate.name), error));
            let now = gpu.seconds(launch)? / repetitions as f64;
            // The first launch of a graph also loads it.
            if round > 0 {
                secs = secs.min(now);
                if best.is_some_and(|(best, _)| now > HOPELESS * best) {
                    break;
                }
            }
        }
        Ok(secs)
    }
}
