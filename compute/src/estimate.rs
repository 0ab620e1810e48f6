//! Estimates of what a GPU reaches that nobody measured, each with the interval that a measurement is expected in.
//!
//! # Method
//!
//! 1. *Nominal time* (`work`): operations, bytes and number of the steps of the plan against the catalog's peak in the
//!    precision, its bandwidth, and 20 µs a step.
//! 2. *Evidence* ([`Evidence`]): the figures measured by this program and the published ones of the suite's networks, of
//!    one GPU and not doubted. Of versions and settings of one framework in one source the fastest counts.
//! 3. *Factors* (`terms`): the logarithm of measured over nominal time is a sum of factors of the software (framework,
//!    source, its precisions, networks, launches and traffic), of the GPU (vendor, generation, generation in a precision,
//!    the GPU, the GPU in a source), of the network in a precision, and slopes over peak and minibatch.
//! 4. *Shrinkage* (`posterior`): each factor is normal around 0 with a variance of its kind. So a generation with few
//!    figures leans on its vendor, and a vendor on all; what the evidence is silent about stays at 0 and widens the
//!    interval.
//! 5. *Interval*: the variance of that sum, with the spread of GPUs and of single figures, times 1.645 on either side.
//! 6. [`TooLittle`] instead of a guess: no peak or bandwidth in the catalog, no figure with that software on a GPU of that
//!    vendor, or no figure of that generation and fewer than two others of its vendor.
//!
//! An estimate is always of some [`Software`]: one GPU differs by a factor of three and more between frameworks and their
//! years. That of a source which measured other GPUs is sharp, that of a framework in general is wide. Networks, GPUs
//! and software are those of the evidence given: an estimate says nothing about other programs.
//!
//! # How good it is
//!
//! [`evaluate`] sets every GPU aside in turn with all its figures, and estimates them from the rest. With the bundled sets
//! and the figures measured on one H200, on 2026-12-01 (error: median of `|estimate / measured - 1|`; inside: share of the
//! measured figures in the 90% interval; factor: from an estimate to an end of its interval):
//!
//! | held out | figures | GPUs | error | inside | factor |
//! | --- | ---: | ---: | ---: | ---: | ---: |
//! | a GPU, with software that its source ran on others | 1589 | 40 | 13.6% | 91.7% | 1.56 |
//! | - in f32 | 1046 | 22 | 12.9% | 93.0% | 1.55 |
//! | - in tf32 | 59 | 14 | 14.1% | 91.5% | 1.58 |
//! | - in f16 | 479 | 33 | 15.7% | 88.7% | 1.56 |
//! | - Kepler and Maxwell | 118 | 5 | 6 to 13% | 89 to 100% | 1.6 |
//! | - Pascal, Volta, Turing | 1253 | 17 | 13 to 16% | 90 to 98% | 1.56 |
//! | - Ampere | 176 | 10 | 14.4% | 86.9% | 1.58 |
//! | - Hopper | 6 | 3 | 7.8% | 100% | 1.58 |
//! | - Ada Lovelace | 19 | 2 | 21.6% | 100% | 1.69 |
//! | - Blackwell | 17 | 3 | 15.9% | 88.2% | 1.62 |
//! | a GPU, with software that its source ran on no other | 97 | 2 | 41.0% | 79.4% | 2.30 |
//! | a whole generation | 1535 | 39 | 19.1% | 92.3% | 1.73 |
//!
//! What these numbers hide: half of the figures are of one source (DLInfBench, 2017 to 2019), and generations since Hopper
//! have few. Of networks that are exactly those of the suite the error is 16.5%, with 89% inside. Where GPU and source are
//! both set aside, which is an estimate of a framework in general, it is 22%, with 94% inside and a factor of 2.2. For the
//! ratio of two GPUs that are both set aside it is 15%, with 92% inside and a factor of 1.8; that to a measured GPU has
//! the estimate's error. These were computed once, outside the program. For this program's own engines the only
//! GPU is the H200, so how they fare on another is known from other software alone, and nothing has tested it yet.

mod evaluation;
mod evidence;
mod fit;
mod posterior;
mod terms;
#[cfg(test)]
mod tests;
mod work;

use std::fmt;

use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

pub use evaluation::{Evaluation, HeldOut, Score, evaluate};
pub use evidence::{Evidence, MEASURED};
pub use fit::{Fit, Known};

/// Share of the figures that the stated interval is meant to hold.
pub const CONFIDENCE: f64 = 0.9;

/// Quantile of the standard normal distribution that leaves `(1 - CONFIDENCE) / 2` above it.
const QUANTILE: f64 = 1.645;

/// What is computed, whoever computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Workload {
    /// The network.
    pub model: Model,
    /// The pass.
    pub pass: Pass,
    /// The precision.
    pub precision: Precision,
    /// Samples in one iteration.
    pub minibatch: usize,
}

/// Whose software an estimate is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Software {
    /// The framework, or the engine of this program, in lower case without its version: `"pytorch"`, `"cuda"`.
    pub family: String,
    /// The source of figures that it is meant as: with that source's versions, settings and way of measuring. Absent for
    /// the framework as any source may run it, whose interval is wide.
    pub source: Option<String>,
}

/// An estimate with the interval that a measurement is expected in.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Samples a second: half of all measurements are expected above it.
    pub throughput_per_sec: f64,
    /// Lower and upper end of the interval, in samples a second.
    pub interval: [f64; 2],
    /// Share of measurements expected in the interval, [`CONFIDENCE`].
    pub confidence: f64,
    /// What it rests on, in words: how many figures of this software, this generation and this GPU.
    pub basis: String,
}

/// Throughput of one GPU over that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The first over the second.
    pub ratio: f64,
    /// Lower and upper end of the interval that the ratio of two measurements is expected in.
    pub interval: [f64; 2],
    /// Share of such ratios expected in the interval, [`CONFIDENCE`].
    pub confidence: f64,
}

/// Why there is no estimate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLittle {
    /// The catalog has no peak of the GPU in the precision, or the GPU does not compute in it by itself.
    #[error("no peak of {gpu:?} in {precision} is known")]
    Peak {
        /// Name of the GPU.
        gpu: String,
        /// The precision.
        precision: Precision,
    },
    /// The catalog has no bandwidth of the GPU.
    #[error("no memory bandwidth of {gpu:?} is known")]
    Bandwidth {
        /// Name of the GPU.
        gpu: String,
    },
    /// There is no figure of the software on a GPU of the vendor: what it makes of another's says little.
    #[error("there is no figure with {software} on a GPU of {vendor}")]
    Software {
        /// The software.
        software: Software,
        /// The vendor.
        vendor: String,
    },
    /// There is no figure of the generation, and too few generations of the vendor have any to tell how they differ.
    #[error(
        "there is no figure of generation {generation:?}, and {n_generations} other generations of {vendor} are too few to tell"
    )]
    Generation {
        /// The vendor.
        vendor: String,
        /// The generation.
        generation: String,
        /// Generations of the vendor that there are figures of.
        n_generations: usize,
    },
    /// The minibatch is zero.
    #[error("a minibatch must hold at least one sample")]
    EmptyMinibatch,
}

impl Software {
    /// The framework or engine that a record's `engine` names, as any source may run it.
    pub fn anywhere(engine: &str) -> Self {
        Self { family: evidence::family(engine), source: None }
    }

    /// The framework or engine that a record's `engine` names, as this program or a script of it measures it.
    pub fn measured(engine: &str) -> Self {
        Self { source: Some(MEASURED.to_owned()), ..Self::anywhere(engine) }
    }

    /// What [`fmt::Display`] writes: a framework, or one as a source of figures runs it, such as `"pytorch of timm_results"`.
    pub fn named(text: &str) -> Self {
        match text.split_once(" of ") {
            Some((family, source)) => Self { source: Some(source.trim().to_owned()), ..Self::anywhere(family.trim()) },
            None => Self::anywhere(text),
        }
    }

    /// Whether this is the other, or one source of it.
    fn is_of(&self, other: &Self) -> bool {
        self.family == other.family && (other.source.is_none() || self.source == other.source)
    }
}

impl fmt::Display for Software {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{} of {source}", self.family),
            None => f.write_str(&self.family),
        }
    }
}
