//! What a measured time can depend on, beside the nominal one: the columns of the linear model.

use super::work::Nominal;
use super::{Software, Workload};
use crate::catalog::Gpu;
use crate::models::Model;
use crate::shape::Precision;

/// One factor on the time, in logarithms. Those of narrow groups are deviations from those of the broader ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Term {
    /// All figures.
    All,
    /// The share of launches in the nominal time: how much more or less than 20 µs a step takes to start.
    Launch,
    /// The logarithm of the minibatch, beyond what the nominal time says.
    Minibatch,
    /// The logarithm of the peak: how far software keeps up with larger GPUs in this precision.
    Peak(Precision),
    /// A network in a precision.
    ModelPrecision(Model, Precision),
    /// A framework.
    Family(String),
    /// A framework in one source: its version, its settings, how the source measures.
    Series(Software),
    /// The series' own form of a network.
    SeriesModel(Software, Model),
    /// The series' own progress in a precision.
    SeriesPrecision(Software, Precision),
    /// The series' own cost of a launch.
    SeriesLaunch(Software),
    /// The series' own traffic, such as from fusing less or more.
    SeriesMemory(Software),
    /// A vendor.
    Vendor(String),
    /// A generation.
    Generation(String),
    /// A generation in a precision.
    GenerationPrecision(String, Precision),
    /// A GPU.
    Gpu(String),
    /// A GPU in one source: its board, cooling and host.
    GpuSeries(String, Software),
}

impl Term {
    /// Standard deviation of the factor before anything is known, in logarithms; of slopes, for one unit.
    ///
    /// Expectation maximization over the bundled evidence gave, on 2026-12-01: framework 0.49, series 0.10, its networks
    /// 0.13, precisions 0.23, launches 1.6, memory 0.8, vendor 0.08, generation 0.04, in a precision 0.14, GPU 0.12, in a
    /// series 0.13, network in a precision 0.10, peak 0.14, minibatch 0.05. Vendors and generations are given more, as
    /// the evidence has two vendors and most of it four generations; memory less, as large slopes mislead where a source is
    /// not known. Those of the software and the GPU, a fifth to a half larger or smaller one at a time, moved the median
    /// error of held-out figures by less than a percentage point.
    pub(super) const fn prior_sd(&self) -> f64 {
        match self {
            Self::All => 3.0,
            Self::Launch | Self::SeriesLaunch(_) => 1.5,
            Self::Family(_) => 0.5,
            Self::SeriesMemory(_) | Self::Vendor(_) => 0.3,
            Self::SeriesPrecision(..) => 0.2,
            Self::Series(_) | Self::SeriesModel(..) | Self::GenerationPrecision(..) | Self::Peak(_) => 0.15,
            Self::Gpu(_) | Self::GpuSeries(..) => 0.12,
            Self::ModelPrecision(..) | Self::Generation(_) => 0.1,
            Self::Minibatch => 0.05,
        }
    }
}

/// Standard deviation of a figure around all of its factors, in logarithms. Source as of [`Term::prior_sd`]: 0.17.
pub(super) const NOISE_SD: f64 = 0.18;

/// Terms with the amounts that they enter with.
pub(super) type Terms = Vec<(Term, f64)>;

/// The terms of a workload on a GPU with this peak and nominal time.
pub(super) fn terms(gpu: &Gpu, peak: f64, nominal: Nominal, workload: &Workload, software: &Software) -> Terms {
    let Workload { model, precision, minibatch, .. } = *workload;
    // Slopes are counted from the middle of the evidence, so that they don't move the other factors.
    let peak = (peak / 20e12).ln();
    let minibatch = (minibatch as f64 / 32.0).ln();
    vec![
        (Term::All, 1.0),
        (Term::Launch, nominal.launch_share),
        (Term::Minibatch, minibatch),
        (Term::Peak(precision), peak),
        (Term::ModelPrecision(model, precision), 1.0),
        (Term::Family(software.family.clone()), 1.0),
        (Term::Series(software.clone()), 1.0),
        (Term::SeriesModel(software.clone(), model), 1.0),
        (Term::SeriesPrecision(software.clone(), precision), 1.0),
        (Term::SeriesLaunch(software.clone()), nominal.launch_share),
        (Term::SeriesMemory(software.clone()), nominal.memory_share),
        (Term::Vendor(gpu.vendor.clone()), 1.0),
        (Term::Generation(gpu.architecture.clone()), 1.0),
        (Term::GenerationPrecision(gpu.architecture.clone(), precision), 1.0),
        (Term::Gpu(gpu.name.clone()), 1.0),
        (Term::GpuSeries(gpu.name.clone(), software.clone()), 1.0),
    ]
}
