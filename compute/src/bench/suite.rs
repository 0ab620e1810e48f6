//! Suites: fixed, versioned lists of runs, so that machines compare; and which device and engine they run on.

mod choice;
#[cfg(test)]
mod tests;

use crate::engine::{Listing, Tier};
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::{Precision, UnknownName, parse_name};

use super::spec::{Bounds, RunSpec};

pub use choice::{ChooseError, choose};

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
    /// The most of the vendor's libraries that the CUDA engine may use.
    pub tier: Tier,
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
    /// Whether each run is profiled.
    pub profile: bool,
}

/// A device and the engine to run on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// What the engine says of the device.
    pub listing: Listing,
    /// Why it was chosen, to be said when the user named neither engine nor device.
    pub reason: Option<String>,
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

impl Suite {
    fn models(self) -> &'static [Model] {
        match self {
            Self::Quick => &[Model::Alexnet, Model::Resnet50],
            Self::Standard => &Model::ALL,
            Self::Sweep => &[Model::Alexnet, Model::VggA, Model::Resnet50],
        }
    }

    fn minibatches(self) -> &'static [usize] {
        match self {
            Self::Quick => &[16],
            Self::Standard => &[64],
            Self::Sweep => &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
        }
    }

    /// Quick's four runs have to end within a minute on a GPU, loading and verification included; a sweep has sixty
    /// runs.
    fn bounds(self) -> Bounds {
        let max_seconds = match self {
            Self::Quick => 6.0,
            Self::Standard => Bounds::default().max_seconds,
            Self::Sweep => 20.0,
        };
        Bounds { max_seconds, ..Bounds::default() }
    }
}

/// The runs of a selection on the targets, in the order they are measured: minibatches grow within a series, so that the
/// memory edge ends it.
pub fn runs(selection: &Selection, targets: &[Target]) -> Vec<RunSpec> {
    let suite = selection.suite;
    // Without a suite, what is not named is the standard suite's, in f32.
    let lists = suite.unwrap_or(Suite::Standard);
    let models = distinct(&selection.models, lists.models());
    let passes = distinct(&selection.passes, &Pass::ALL);
    let mut minibatches = distinct(&selection.minibatches, lists.minibatches());
    minibatches.sort_unstable();
    let bounds = suite.map_or(Bounds::default(), Suite::bounds);
    let bounds = Bounds {
        iterations: selection.iterations.unwrap_or(bounds.iterations),
        max_seconds: selection.max_seconds.unwrap_or(bounds.max_seconds),
    };
    let mut runs = Vec::new();
    for target in targets {
        let precisions = distinct(&selection.precisions, &own_precisions(suite, &target.listing));
        for &model in &models {
            for &pass in &passes {
                for &precision in &precisions {
                    runs.extend(minibatches.iter().map(|&minibatch| RunSpec {
                        model,
                        pass,
                        precision,
                        minibatch,
                        engine: target.listing.engine,
                        device: target.listing.device.id.clone(),
                        tier: selection.tier,
                        bounds,
                        profile: selection.profile,
                        input_size: None,
                        script: None,
                    }));
                }
            }
        }
    }
    runs
}

/// f32, and in the standard suite the best half precision that the target computes.
fn own_precisions(suite: Option<Suite>, listing: &Listing) -> Vec<Precision> {
    let half = [Precision::F16, Precision::Bf16].into_iter().find(|half| listing.precisions.contains(half));
    let half = half.filter(|_| suite == Some(Suite::Standard));
    [Precision::F32].into_iter().chain(half).collect()
}

/// What was named, each once and in that order, else the default.
fn distinct<T: Copy + PartialEq>(named: &[T], default: &[T]) -> Vec<T> {
    let all = if named.is_empty() { default } else { named };
    let mut once = Vec::with_capacity(all.len());
    for value in all {
        if !once.contains(value) {
            once.push(*value);
        }
    }
    once
}
