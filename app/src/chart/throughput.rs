//! Grouped throughput bars: one group a model, one bar a series, an outcome's mark where there is no bar.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use compute::bench::record::{Record, Status};
use compute::engine::Device;
use compute::models::Model;
use compute::shape::Precision;

use super::scale::Scale;
use super::series::{RecordRef, Series, Source};
use super::shown::{Shown, counts_before};

pub use super::settings::{Settings, Sort, Unit};

/// Number of ticks that the value axis aims at.
const TICKS: usize = 6;

/// A chart, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Series in the order of the bars of a group.
    pub series: Vec<Series>,
    /// One group a model.
    pub groups: Vec<Group>,
    /// The minibatch shown; absent when there are no records.
    pub minibatch: Option<usize>,
    /// What the bars show; absent for ratios to a baseline.
    pub unit: Option<Unit>,
    /// The series that ratios refer to; absent for absolute values.
    pub baseline: Option<Series>,
    /// The value axis; absent when there is no value.
    pub scale: Option<Scale>,
    /// Minibatches that can be chosen.
    pub minibatches: Vec<usize>,
    /// Precisions that can be chosen.
    pub precisions: Vec<Precision>,
    /// Units that some record has a value in.
    pub units: Vec<Unit>,
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
        /// The value, in the chart's unit, or as a ratio to its baseline.
        value: f64,
        /// 95% confidence interval in the same unit; absent when the record has none.
        interval: Option<[f64; 2]>,
        /// Whether something speaks against it: it sets neither axis nor order.
        is_doubtful: bool,
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
    /// Its length, if it has one.
    pub const fn value(&self) -> Option<f64> {
        match self {
            Self::Value { value, .. } => Some(*value),
            Self::Mark { .. } | Self::Absent => None,
        }
    }

    /// Whether something speaks against its value.
    pub const fn is_doubtful(&self) -> bool {
        matches!(self, Self::Value { is_doubtful: true, .. })
    }

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
    let shown = Shown::new(sources, hidden, settings);
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for found in shown.records() {
        *counts.entry(found.key.minibatch).or_insert(0) += 1;
    }
    let chosen = settings.minibatch.filter(|minibatch| counts.contains_key(minibatch));
    let minibatch = chosen.or_else(|| counts.iter().max_by_key(|(_, n_records)| **n_records).map(|(m, _)| *m));

    // By model, source and series, all by number but the model, which has one number a source.
    let mut latest: HashMap<(&str, usize, usize), Candidate<'_>> = HashMap::new();
    for found in shown.records().filter(|found| Some(found.key.minibatch) == minibatch) {
        let record = found.record();
        let candidate = Candidate { reference: found.reference(), record, device: found.source.device_of(record) };
        let kept = latest.entry((found.model(), found.number, found.key.series)).or_insert(candidate);
        if counts_before(record, kept.record) {
            *kept = candidate;
        }
    }
    let numbers: HashSet<(usize, usize)> = latest.keys().map(|(_, source, series)| (*source, *series)).collect();
    let series: BTreeMap<&Series, (usize, usize)> =
        numbers.into_iter().map(|(source, series)| (&sources[source].index.series[series], (source, series))).collect();
    let models: BTreeSet<ModelOrder<'_>> = latest.keys().map(|(model, ..)| ModelOrder::of(model)).collect();
    let baseline = settings.baseline.as_ref().filter(|baseline| series.contains_key(baseline));
    let units: Vec<Unit> =
        Unit::ALL.into_iter().filter(|unit| latest.values().any(|c| c.value(*unit).is_some())).collect();
    // What no record has is not asked for.
    let unit = if units.contains(&settings.unit) { settings.unit } else { Unit::default() };
    let reference = baseline.and_then(|baseline| series.get(baseline).copied());
    let group = |model: ModelOrder<'_>| {
        let of = |(source, series): (usize, usize)| latest.get(&(model.name, source, series));
        let bar = |place: (usize, usize)| match (of(place), reference) {
            (None, _) => Bar::Absent,
            (Some(candidate), None) => candidate.bar(unit),
            (Some(candidate), Some(reference)) => candidate.ratio(of(reference), unit),
        };
        Group { model: model.name.to_owned(), bars: series.values().copied().map(bar).collect() }
    };
    let mut groups: Vec<Group> = models.into_iter().map(group).collect();
    sort(&mut groups, settings.sort);

    Chart {
        scale: scale(&groups, settings.is_logarithmic),
        cautions: cautions(latest.values().map(|candidate| candidate.record)),
        unit: baseline.is_none().then_some(unit),
        baseline: baseline.cloned(),
        series: series.into_keys().cloned().collect(),
        groups,
        minibatch,
        minibatches: counts.into_keys().collect(),
        precisions: shown.precisions.into_iter().collect(),
        units,
    }
}

/// Puts the groups into another order than the suite's.
fn sort(groups: &mut [Group], by: Sort) {
    let sound = |bar: &Bar| if bar.is_doubtful() { None } else { bar.value() };
    let longest = |group: &Group| group.bars.iter().filter_map(sound).fold(0.0, f64::max);
    match by {
        Sort::Suite => {}
        Sort::Name => groups.sort_by(|a, b| a.model.cmp(&b.model)),
        Sort::Value => groups.sort_by(|a, b| longest(b).total_cmp(&longest(a))),
        Sort::Parameters => groups.sort_by_key(|group| parameters(&group.model).unwrap_or(u64::MAX)),
    }
}

/// Number of parameters of a model of the suite.
fn parameters(model: &str) -> Option<u64> {
    static KNOWN: LazyLock<HashMap<&str, u64>> =
        LazyLock::new(|| Model::ALL.iter().map(|model| (model.name(), model.graph().parameters())).collect());
    KNOWN.get(model).copied()
}

fn scale(groups: &[Group], is_logarithmic: bool) -> Option<Scale> {
    let bars = || groups.iter().flat_map(|group| &group.bars);
    let are_all_doubtful = bars().filter(|bar| bar.value().is_some()).all(Bar::is_doubtful);
    let ends = bars().filter(|bar| are_all_doubtful || !bar.is_doubtful()).filter_map(|bar| match bar {
        Bar::Value { value, interval, .. } => Some((*value, interval.map_or(*value, |[_, high]| high.max(*value)))),
        Bar::Mark { .. } | Bar::Absent => None,
    });
    let (smallest, largest) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some(if is_logarithmic { Scale::logarithmic(smallest, largest) } else { Scale::from_zero_to(largest, TICKS) })
}

/// A record that is shown.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    reference: RecordRef,
    record: &'a Record,
    device: Option<&'a Device>,
}

impl Candidate<'_> {
    fn value(&self, unit: Unit) -> Option<(f64, Option<[f64; 2]>)> {
        value(self.record, self.device, unit).filter(|_| self.record.status == Status::Ok)
    }

    fn bar(&self, unit: Unit) -> Bar {
        let record = self.reference;
        match self.value(unit) {
            Some((value, interval)) => {
                Bar::Value { record, value, interval, is_doubtful: self.record.doubt().is_some() }
            }
            _ => Bar::Mark { record, status: self.record.status },
        }
    }

    /// How many times as good as the baseline it is.
    fn ratio(&self, baseline: Option<&Self>, unit: Unit) -> Bar {
        let Some((reference, _)) = baseline.and_then(|baseline| baseline.value(unit)) else {
            return if self.record.status == Status::Ok { Bar::Absent } else { self.bar(unit) };
        };
        match self.bar(unit) {
            Bar::Value { record, value, interval, is_doubtful } if unit.is_more_better() => Bar::Value {
                record,
                is_doubtful,
                value: value / reference,
                interval: interval.map(|bounds| bounds.map(|bound| bound / reference)),
            },
            Bar::Value { record, value, interval, is_doubtful } => Bar::Value {
                record,
                is_doubtful,
                value: reference / value,
                interval: interval.map(|[low, high]| [reference / high, reference / low]),
            },
            other => other,
        }
    }
}

/// Models in the order of the suite, unknown ones behind them by name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModelOrder<'a> {
    rank: usize,
    pub(super) name: &'a str,
}

impl<'a> ModelOrder<'a> {
    pub(super) fn of(name: &'a str) -> Self {
        let rank = Model::ALL.iter().position(|model| model.name() == name).unwrap_or(Model::ALL.len());
        Self { rank, name }
    }
}

/// Value and confidence interval of a record in a unit. Throughput = minibatch / median time, so its interval is the
/// time's turned round.
fn value(record: &Record, device: Option<&Device>, unit: Unit) -> Option<(f64, Option<[f64; 2]>)> {
    let usable = |value: f64| (value.is_finite() && value > 0.0).then_some(value);
    let timing = record.timing.as_ref();
    let [low_ms, high_ms] = timing.map_or([f64::NAN; 2], |timing| timing.ci95_ms);
    let interval_ms = usable(low_ms).zip(usable(high_ms)).filter(|(low, high)| low <= high);
    let samples = record.minibatch as f64;
    let per_sec = |ms: f64| samples * 1000.0 / ms;
    let median_ms =
        timing.map(|timing| timing.median_ms).or_else(|| record.throughput_per_sec.map(per_sec)).and_then(usable);
    // A rate that is proportional to the throughput, whose relative interval it has.
    let rate = |value: f64| {
        let interval = median_ms.zip(interval_ms).map(|(ms, (low, high))| [value * ms / high, value * ms / low]);
        Some((usable(value)?, interval))
    };
    match unit {
        Unit::SamplesPerSec => {
            let value = record.throughput_per_sec.or_else(|| median_ms.map(per_sec))?;
            Some((usable(value)?, interval_ms.map(|(low, high)| [per_sec(high), per_sec(low)])))
        }
        Unit::MsPerIteration => Some((median_ms?, interval_ms.map(|(low, high)| [low, high]))),
        Unit::MsPerSample => {
            Some((median_ms? / samples, interval_ms.map(|(low, high)| [low / samples, high / samples])))
        }
        Unit::TeraFlopPerSec => rate(record.achieved_flop_per_sec? / 1e12),
        Unit::PeakShare => {
            let peak = device?.extra.get("peak_flop_per_sec")?.get(record.precision.name())?.as_f64()?;
            rate(record.achieved_flop_per_sec? / peak * 100.0)
        }
        Unit::SamplesPerJoule => rate(record.throughput_per_sec? / record.telemetry.as_ref()?.power_watt?),
    }
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
