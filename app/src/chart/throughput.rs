//! Grouped throughput bars: one group a model, one bar a series, an outcome's mark where there is no bar.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use compute::bench::record::{Record, Status};
use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;

use super::scale::Scale;
use super::series::{RecordRef, Series, Source};

/// Number of ticks that the value axis aims at.
const TICKS: usize = 6;

/// What the bars show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Samples a second; more is better.
    #[default]
    SamplesPerSec,
    /// Milliseconds an iteration; less is better.
    MsPerIteration,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Self; 2] = [Self::SamplesPerSec, Self::MsPerIteration];
}

/// Which records are shown, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The pass.
    pub pass: Pass,
    /// The precision; absent for every precision side by side.
    pub precision: Option<Precision>,
    /// The minibatch; absent for the one with the most records.
    pub minibatch: Option<usize>,
    /// What the bars show.
    pub unit: Unit,
}

impl Default for Settings {
    fn default() -> Self {
        Self { pass: Pass::Forward, precision: None, minibatch: None, unit: Unit::default() }
    }
}

/// A chart, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Series in the order of the bars of a group.
    pub series: Vec<Series>,
    /// One group a model.
    pub groups: Vec<Group>,
    /// The minibatch shown; absent when there are no records.
    pub minibatch: Option<usize>,
    /// What the bars show.
    pub unit: Unit,
    /// The value axis; absent when there is no value.
    pub scale: Option<Scale>,
    /// Minibatches that can be chosen.
    pub minibatches: Vec<usize>,
    /// Precisions that can be chosen.
    pub precisions: Vec<Precision>,
    /// What a reader must know before comparing bars.
    pub cautions: Vec<Caution>,
}

/// The bars of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name of the model.
    pub model: String,
    /// One bar for each series of the chart, in its order.
    pub bars: Vec<Bar>,
}

/// What stands in the place of one series in one group.
#[derive(Clone, Debug, PartialEq)]
pub enum Bar {
    /// A measured value.
    Value {
        /// The record.
        record: RecordRef,
        /// The value, in the chart's unit.
        value: f64,
        /// 95% confidence interval in the same unit; absent when the record has none.
        interval: Option<[f64; 2]>,
    },
    /// An outcome without a value.
    Mark {
        /// The record.
        record: RecordRef,
        /// The outcome; [`Status::Ok`] when a record claims success but holds no usable number.
        status: Status,
    },
    /// This was not run.
    Absent,
}

/// What a reader must know before comparing bars.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caution {
    /// Bars of this model were measured on different definitions of it.
    DefinitionsDiffer {
        /// Name of the model.
        model: String,
    },
}

impl Bar {
    /// The record behind it.
    pub const fn record(&self) -> Option<RecordRef> {
        match self {
            Self::Value { record, .. } | Self::Mark { record, .. } => Some(*record),
            Self::Absent => None,
        }
    }
}

/// The chart of whatever is not hidden. Of several records of the same run the latest counts.
pub fn chart(sources: &[Source<'_>], hidden: &HashSet<Series>, settings: &Settings) -> Chart {
    let visible: Vec<Candidate<'_>> = sources
        .iter()
        .flat_map(|source| {
            source.file.records.iter().enumerate().map(move |(index, record)| Candidate {
                reference: RecordRef { source: source.id, index },
                series: Series::of(source.id, source.file, record),
                record,
            })
        })
        .filter(|candidate| candidate.record.pass == settings.pass && !hidden.contains(&candidate.series))
        .collect();

    let precisions: BTreeSet<Precision> = visible.iter().map(|candidate| candidate.record.precision).collect();
    let precision = settings.precision.filter(|precision| precisions.contains(precision));
    let visible: Vec<Candidate<'_>> =
        visible.into_iter().filter(|c| precision.is_none_or(|precision| c.record.precision == precision)).collect();

    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for candidate in &visible {
        *counts.entry(candidate.record.minibatch).or_insert(0) += 1;
    }
    let chosen = settings.minibatch.filter(|minibatch| counts.contains_key(minibatch));
    let minibatch = chosen.or_else(|| counts.iter().max_by_key(|(_, n_records)| **n_records).map(|(m, _)| *m));

    let mut latest: BTreeMap<(ModelOrder, &Series), &Candidate<'_>> = BTreeMap::new();
    for candidate in visible.iter().filter(|candidate| Some(candidate.record.minibatch) == minibatch) {
        let kept = latest.entry((ModelOrder::of(&candidate.record.model), &candidate.series)).or_insert(candidate);
        if candidate.record.started >= kept.record.started {
            *kept = candidate;
        }
    }
    let series: BTreeSet<&Series> = latest.keys().map(|(_, series)| *series).collect();
    let models: BTreeSet<&ModelOrder> = latest.keys().map(|(model, _)| model).collect();
    let groups: Vec<Group> = models
        .into_iter()
        .map(|model| Group {
            model: model.name.clone(),
            bars: series
                .iter()
                .map(|series| latest.get(&(model.clone(), *series)).map_or(Bar::Absent, |c| c.bar(settings.unit)))
                .collect(),
        })
        .collect();

    Chart {
        scale: largest(&groups).map(|largest| Scale::from_zero_to(largest, TICKS)),
        cautions: cautions(latest.values().map(|candidate| candidate.record)),
        series: series.into_iter().cloned().collect(),
        groups,
        minibatch,
        unit: settings.unit,
        minibatches: counts.into_keys().collect(),
        precisions: precisions.into_iter().collect(),
    }
}

/// A record that may be shown.
struct Candidate<'a> {
    reference: RecordRef,
    series: Series,
    record: &'a Record,
}

impl Candidate<'_> {
    fn bar(&self, unit: Unit) -> Bar {
        let record = self.reference;
        match value(self.record, unit) {
            Some((value, interval)) if self.record.status == Status::Ok => Bar::Value { record, value, interval },
            _ => Bar::Mark { record, status: self.record.status },
        }
    }
}

/// Models in the order of the suite, unknown ones behind them by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ModelOrder {
    rank: usize,
    name: String,
}

impl ModelOrder {
    fn of(name: &str) -> Self {
        let rank = Model::ALL.iter().position(|model| model.name() == name).unwrap_or(Model::ALL.len());
        Self { rank, name: name.to_owned() }
    }
}

/// Value and confidence interval of a record in a unit. Throughput = minibatch / median time, so its interval is the
/// time's turned round.
fn value(record: &Record, unit: Unit) -> Option<(f64, Option<[f64; 2]>)> {
    let usable = |value: f64| (value.is_finite() && value > 0.0).then_some(value);
    let timing = record.timing.as_ref();
    let [low_ms, high_ms] = timing.map_or([f64::NAN; 2], |timing| timing.ci95_ms);
    let interval_ms = usable(low_ms).zip(usable(high_ms)).filter(|(low, high)| low <= high);
    let per_sec = |ms: f64| record.minibatch as f64 * 1000.0 / ms;
    match unit {
        Unit::SamplesPerSec => {
            let value = record.throughput_per_sec.or_else(|| timing.map(|timing| per_sec(timing.median_ms)))?;
            Some((usable(value)?, interval_ms.map(|(low, high)| [per_sec(high), per_sec(low)])))
        }
        Unit::MsPerIteration => {
            let value = timing.map(|timing| timing.median_ms).or_else(|| record.throughput_per_sec.map(per_sec))?;
            Some((usable(value)?, interval_ms.map(|(low, high)| [low, high])))
        }
    }
}

/// The largest value or end of a whisker.
fn largest(groups: &[Group]) -> Option<f64> {
    groups
        .iter()
        .flat_map(|group| &group.bars)
        .filter_map(|bar| match bar {
            Bar::Value { value, interval, .. } => Some(interval.map_or(*value, |[_, high]| high.max(*value))),
            Bar::Mark { .. } | Bar::Absent => None,
        })
        .reduce(f64::max)
}

fn cautions<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<Caution> {
    let mut definitions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for record in records {
        definitions.entry(&record.model).or_default().insert(&record.definition);
    }
    definitions
        .into_iter()
        .filter(|(_, definitions)| definitions.len() > 1)
        .map(|(model, _)| Caution::DefinitionsDiffer { model: model.to_owned() })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
