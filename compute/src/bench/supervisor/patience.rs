//! How long a worker may be silent in what it is doing.

use std::time::Duration;

use super::SilenceLimits;
use crate::bench::event::{Event, Phase};
use crate::bench::spec::RunSpec;
use crate::bench::verify;
use crate::plan::Pass;
use crate::shape::Precision;

/// Rate in FLOP/s that the slowest device in use is trusted to reach, for bounds on silence: the reference engine on two
/// old cores, or shaders on a software adapter. Wrong by a factor of ten it costs patience, not correctness.
const SLOWEST_FLOP_PER_SEC: f64 = 2e9;

/// An iteration that took so many times as long as the last hangs.
const TIMES_THE_LAST: f64 = 20.0;

/// The bound on silence of one run.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    limits: &'a SilenceLimits,
    phase: Option<Phase>,
    /// Longest that an iteration of the run, and one of the verified minibatch, can reasonably take.
    iteration: Duration,
    verified: Duration,
    latest: Option<Duration>,
}

impl<'a> Patience<'a> {
    pub(super) fn new(limits: &'a SilenceLimits, spec: &RunSpec) -> Self {
        let flops: u64 = spec.graph().map_or(0, |graph| {
            let layers = graph.layers(Precision::F32);
            layers
                .iter()
                .map(|layer| match spec.pass {
                    Pass::Forward => layer.forward_flops,
                    Pass::ForwardBackward => layer.forward_backward_flops,
                })
                .sum()
        });
        let estimate = |minibatch: usize| secs(flops as f64 * minibatch as f64 / SLOWEST_FLOP_PER_SEC);
        // Verification may compute its reference, too.
        let verified = estimate(2 * verify::MINIBATCH);
        Self { limits, phase: None, iteration: estimate(spec.minibatch), verified, latest: None }
    }

    /// Takes note of an event.
    pub(super) fn heard(&mut self, event: &Event) {
        match event {
            Event::Phase { phase } => self.phase = Some(*phase),
            Event::Progress { latest_ms, .. } => self.latest = Some(secs(latest_ms / 1e3)),
            Event::Ready { .. } | Event::Devices { .. } | Event::Finished { .. } => {}
        }
    }

    /// How long silence is borne now.
    pub(super) fn limit(&self) -> Duration {
        match (self.phase, self.latest) {
            (None, _) => self.limits.ready,
            (Some(Phase::Open | Phase::Load), _) => self.limits.prepare,
            (Some(Phase::Verify), _) => self.limits.prepare + self.verified,
            // The plans that measure the ceilings are loaded, too.
            (Some(Phase::Profile), latest) => {
                self.limits.prepare + latest.unwrap_or(self.iteration).mul_f64(TIMES_THE_LAST)
            }
            (Some(Phase::WarmUp | Phase::Measure), None) => self.limits.iterate + self.iteration,
            (Some(Phase::WarmUp | Phase::Measure), Some(latest)) => {
                self.limits.iterate.max(latest.mul_f64(TIMES_THE_LAST))
            }
        }
    }

    /// What the worker is doing, for a sentence that ends in "while …".
    pub(super) fn doing(&self) -> &'static str {
        self.phase.map_or("starting", Phase::label)
    }
}

/// At most a week, whatever the number.
fn secs(secs: f64) -> Duration {
    const WEEK: f64 = 604_800.0;
    if secs.is_finite() { Duration::from_secs_f64(secs.clamp(0.0, WEEK)) } else { Duration::ZERO }
}
