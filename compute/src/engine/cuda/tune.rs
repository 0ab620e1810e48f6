//! Choice among a step's candidates by their time on the device.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::check::{self, Expected};
use super::error::driver_error;
use super::launch::{Candidate, Command, Lowering};
use super::memory::DeviceMemory;
use super::stream::{Addresses, Gpu};
use crate::engine::EngineError;
use crate::shape::Precision;

/// Repetitions in one timing.
const REPETITIONS: usize = 5;
/// What takes longer is timed by itself.
const LONG_SECS: f64 = 1e-3;
/// What took longer when it was compared, and was hopeless, is not timed at all; shorter times hold too much of the host's.
const TELLING_SECS: f64 = 3e-4;
/// A candidate this much slower than the best is not timed a second time.
const HOPELESS: f64 = 1.3;

/// What was learned of candidates so far.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// Name of the fastest, by the step's shapes.
    fastest: HashMap<String, String>,
    /// Candidates whose results were not those of the others.
    pub(super) refused: Vec<String>,
}

impl Choices {
    /// The fastest of `candidates`: the known one where `key` was met before, else by timing them until `deadline`,
    /// after which the first that runs is taken.
    ///
    /// # Errors
    /// When no candidate runs, the error of the last; [`EngineError::DeviceLost`] at once.
    pub(super) fn fastest(
        &mut self,
        gpu: &Gpu,
        candidates: Vec<Candidate>,
        key: &str,
        addresses: Addresses<'_>,
        lowering: &Lowering,
        step: &check::Step,
        deadline: Instant,
    ) -> Result<Candidate, EngineError> {
        let precision = lowering.precision();
        if candidates.len() == 1 {
            return Ok(candidates.into_iter().next().unwrap_or_default());
        }
        if let Some(name) = self.fastest.get(key)
            && let Some(known) = candidates.iter().find(|candidate| candidate.name == *name)
        {
            return Ok(known.clone());
        }
        let mut best: Option<(f64, Candidate)> = None;
        let mut failure = None;
        let mut expected: Option<Expected<'_>> = None;
        for candidate in candidates {
            if best.is_some() && Instant::now() > deadline {
                break;
            }
            match &expected {
                None => expected = Expected::of(&candidate, step, gpu, lowering, addresses).map(Some)?,
                Some(expected) => match expected.compare(&candidate) {
                    Ok((error, secs)) if error <= check::tolerance(precision) => {
                        let slowest = best.as_ref().map_or(f64::INFINITY, |(best, _)| HOPELESS * best);
                        if secs > slowest.max(TELLING_SECS) {
                            continue;
                        }
                    }
                    Ok((error, _)) => {
                        self.refused.push(format!("{} is off by {error:.1e} and is not used", candidate.name));
                        continue;
                    }
                    Err(error @ EngineError::DeviceLost { .. }) => return Err(error),
                    Err(error) => {
                        failure = Some(error);
                        continue;
                    }
                },
            }
            match time(gpu, &candidate, addresses, precision, best.as_ref().map(|(secs, _)| *secs)) {
                Ok(secs) if best.as_ref().is_none_or(|(before, _)| secs < *before) => best = Some((secs, candidate)),
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
        if Instant::now() <= deadline {
            self.fastest.insert(key.to_owned(), candidate.name.clone());
        }
        Ok(candidate)
    }
}

/// When tuning that begins now must be over.
pub(super) fn deadline(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

/// Seconds of one repetition of a candidate's commands: of a short one as part of a graph, since between commands that
/// are enqueued one by one the device waits.
fn time(
    gpu: &Gpu,
    candidate: &Candidate,
    addresses: Addresses<'_>,
    precision: Precision,
    best: Option<f64>,
) -> Result<f64, EngineError> {
    let kept = DeviceMemory::zeroed(&gpu.context, candidate.kept_bytes, &candidate.name)?;
    let addresses = Addresses { kept: kept.address(), ..addresses };
    let enqueue =
        |commands: &[Command]| commands.iter().try_for_each(|command| gpu.enqueue(command, addresses, precision));
    enqueue(&candidate.prepare)?;
    let plain = gpu.seconds(|| enqueue(&candidate.commands))?;
    if plain > LONG_SECS {
        return Ok(plain.min(gpu.seconds(|| enqueue(&candidate.commands))?));
    }
    let graph = gpu.capture(|| (0..REPETITIONS).try_for_each(|_| enqueue(&candidate.commands)))?;
    let Some(graph) = graph else { return Ok(0.0) };
    let mut secs = f64::INFINITY;
    for round in 0..3 {
        let launch = || graph.launch().map_err(|error| driver_error(&format!("timing {}", candidate.name), error));
        let now = gpu.seconds(launch)? / REPETITIONS as f64;
        // The first launch of a graph also loads it.
        if round > 0 {
            secs = secs.min(now);
            if best.is_some_and(|best| now > HOPELESS * best) {
                break;
            }
        }
    }
    Ok(secs)
}
