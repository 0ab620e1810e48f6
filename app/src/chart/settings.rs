//! What charts show, as the user chooses it.

use compute::plan::Pass;
use compute::shape::Precision;
use serde::{Deserialize, Serialize};

use super::series::Series;

/// What the bars show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Samples a second; more is better.
    #[default]
    SamplesPerSec,
    /// Milliseconds an iteration; less is better.
    MsPerIteration,
    /// Milliseconds a sample; less is better.
    MsPerSample,
    /// 10¹² floating-point operations a second; more is better.
    TeraFlopPerSec,
    /// Operations a second in percent of the device's peak for the precision; more is better.
    PeakShare,
    /// Samples a joule; more is better.
    SamplesPerJoule,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 6] = [
        Self::SamplesPerSec,
        Self::MsPerIteration,
        Self::MsPerSample,
        Self::TeraFlopPerSec,
        Self::PeakShare,
        Self::SamplesPerJoule,
    ];

    /// Whether a larger value is the better one.
    pub const fn is_more_better(self) -> bool {
        !matches!(self, Self::MsPerIteration | Self::MsPerSample)
    }
}

/// The order of the models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sort {
    /// The suite's.
    #[default]
    Suite,
    /// By name.
    Name,
    /// The longest bar first.
    Value,
    /// By number of parameters, the smallest first.
    Parameters,
}

impl Sort {
    /// Every order.
    pub const ALL: [Self; 4] = [Self::Suite, Self::Name, Self::Value, Self::Parameters];
}

/// Which records are shown, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The pass.
    pub pass: Pass,
    /// The precision; absent for every precision side by side.
    pub precision: Option<Precision>,
    /// The minibatch; absent for the one with the most records.
    pub minibatch: Option<usize>,
    /// What the bars show.
    pub unit: Unit,
    /// The series that all others are compared with; absent for absolute values.
    pub baseline: Option<Series>,
    /// Whether the axis is logarithmic.
    pub is_logarithmic: bool,
    /// The order of the models.
    pub sort: Sort,
    /// The model whose minibatches are shown; absent for the first that has several.
    pub model: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pass: Pass::Forward,
            precision: None,
            minibatch: None,
            unit: Unit::default(),
            baseline: None,
            is_logarithmic: false,
            sort: Sort::default(),
            model: None,
        }
    }
}
