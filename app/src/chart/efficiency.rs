//! Minibatch efficiency: what each series of one model gains from larger minibatches, and where memory ends it.
//!
//! efficiency = throughput at a minibatch ÷ the best throughput of the series. The marginal time is that of each sample
//! which a larger minibatch adds: (time of an iteration − time at the minibatch before) ÷ (samples added).
//!
//! Source of the reading: the comparison of 2017 that the product continues (`datasets/`), which draws milliseconds a sample
//! over the minibatch and takes a curve that bends up again for falling efficiency.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use compute::bench::record::{Record, Status};

use super::series::{RecordRef, Series, Source};
use super::settings::Settings;
use super::shown::{Shown, counts_before};
use super::throughput::ModelOrder;

/// Efficiency from which a minibatch is large enough.
const ENOUGH: f64 = 0.95;

/// Loss of throughput behind the best minibatch that is no noise any more.
const BEND: f64 = 0.02;

/// The curves of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Efficiency {
    /// Models that some series measured at several minibatches.
    pub models: Vec<String>,
    /// The model shown; absent when there is none.
    pub model: Option<String>,
    /// Minibatches that anything was measured at, ascending.
    pub minibatches: Vec<usize>,
    /// One curve a series.
    pub curves: Vec<Curve>,
}

/// One series over its minibatches.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The series.
    pub series: Series,
    /// What was measured, by ascending minibatch; never empty.
    pub points: Vec<Point>,
    /// The smallest minibatch above all measured ones that did not fit, and its record.
    pub edge: Option<(usize, RecordRef)>,
}

/// One minibatch of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The record.
    pub record: RecordRef,
    /// The minibatch.
    pub minibatch: usize,
    /// Samples a second.
    pub per_sec: f64,
    /// Throughput over the series' best, 0 to 1.
    pub efficiency: f64,
    /// Milliseconds of each sample that this minibatch has more than the one before; absent for the first.
    pub marginal_ms: Option<f64>,
}

impl Point {
    /// Milliseconds a sample.
    pub fn ms_per_sample(&self) -> f64 {
        1000.0 / self.per_sec
    }
}

impl Curve {
    /// The minibatch with the best throughput.
    pub fn best(&self) -> Point {
        let best = self.points.iter().copied().max_by(|a, b| a.per_sec.total_cmp(&b.per_sec));
        best.expect("a curve has points")
    }

    /// The smallest minibatch that is within 5% of the best.
    pub fn enough(&self) -> Point {
        self.points.iter().copied().find(|point| point.efficiency >= ENOUGH).unwrap_or_else(|| self.best())
    }

    /// The minibatch behind which samples take longer again, and the largest share of throughput lost there.
    pub fn bend(&self) -> Option<(usize, f64)> {
        let best = self.best();
        let behind = self.points.iter().filter(|point| point.minibatch > best.minibatch);
        let loss = behind.map(|point| 1.0 - point.efficiency).fold(0.0, f64::max);
        (loss > BEND).then_some((best.minibatch, loss))
    }
}

/// The curves of whatever is not hidden, for the model, pass and precision of the settings.
pub fn efficiency(sources: &[Source<'_>], hidden: &HashSet<Series>, settings: &Settings) -> Efficiency {
    let shown = Shown::new(sources, hidden, settings);
    // Models that some series has at two minibatches; only the curves of one of them are made.
    let mut models: BTreeSet<ModelOrder<'_>> = BTreeSet::new();
    let n_runs = |source: &Source<'_>| source.index.series.len() * source.index.models.len();
    let mut seen: Vec<Vec<Option<usize>>> = sources.iter().map(|source| vec![None; n_runs(source)]).collect();
    for found in shown.records() {
        let run = found.key.series * found.source.index.models.len() + found.key.model;
        let first = *seen[found.number][run].get_or_insert(found.key.minibatch);
        if first != found.key.minibatch {
            models.insert(ModelOrder::of(found.model()));
        }
    }
    let asked = settings.model.as_deref().filter(|asked| models.iter().any(|model| model.name == *asked));
    let Some(model) = asked.or_else(|| models.first().map(|model| model.name)) else { return Efficiency::default() };
    let mut latest: BTreeMap<(&Series, usize), (RecordRef, &Record)> = BTreeMap::new();
    for found in shown.records().filter(|found| found.model() == model) {
        let candidate = (found.reference(), found.record());
        let kept = latest.entry((found.series(), found.key.minibatch)).or_insert(candidate);
        if counts_before(candidate.1, kept.1) {
            *kept = candidate;
        }
    }
    let mut of_series: BTreeMap<&Series, Vec<(usize, RecordRef, &Record)>> = BTreeMap::new();
    for ((series, minibatch), (reference, record)) in latest {
        of_series.entry(series).or_default().push((minibatch, reference, record));
    }
    let curves: Vec<Curve> = of_series.into_iter().filter_map(|(series, records)| curve(series, &records)).collect();
    let minibatches: BTreeSet<usize> = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.minibatch).chain(curve.edge.map(|edge| edge.0)))
        .collect();
    Efficiency {
        models: models.into_iter().map(|model| model.name.to_owned()).collect(),
        model: Some(model.to_owned()).filter(|_| !curves.is_empty()),
        minibatches: minibatches.into_iter().collect(),
        curves,
    }
}

/// A curve of records by ascending minibatch; absent when there are not two minibatches to compare.
fn curve(series: &Series, records: &[(usize, RecordRef, &Record)]) -> Option<Curve> {
    let mut points: Vec<Point> = Vec::new();
    let is_sound = |record: &Record| record.status == Status::Ok && record.doubt().is_none();
    for &(minibatch, record, content) in records.iter().filter(|(_, _, record)| is_sound(record)) {
        let Some(per_sec) = content.throughput_per_sec.filter(|value| value.is_finite() && *value > 0.0) else {
            continue;
        };
        let ms = |point: &Point| point.minibatch as f64 * point.ms_per_sample();
        let mut point = Point { record, minibatch, per_sec, efficiency: 0.0, marginal_ms: None };
        point.marginal_ms =
            points.last().map(|before| (ms(&point) - ms(before)) / (minibatch - before.minibatch) as f64);
        points.push(point);
    }
    let largest = points.last()?.minibatch;
    let edge = records.iter().find(|(minibatch, _, record)| *minibatch > largest && record.status.is_memory_edge());
    let edge = edge.map(|&(minibatch, reference, _)| (minibatch, reference));
    if points.len() + usize::from(edge.is_some()) < 2 {
        return None;
    }
    let best = points.iter().map(|point| point.per_sec).fold(0.0, f64::max);
    for point in &mut points {
        point.efficiency = point.per_sec / best;
    }
    Some(Curve { series: series.clone(), points, edge })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::series::{Index, SourceId};
    use crate::chart::throughput::tests::{bad, file, ok};

    fn of(records: Vec<Record>, settings: &Settings) -> Efficiency {
        let file = file(records);
        let index = &Index::new(SourceId(0), &file);
        efficiency(&[Source { id: SourceId(0), name: "here", file: &file, index }], &HashSet::new(), settings)
    }

    /// Iterations of 10, 11, 14, 26 and 60 ms: 100, 182, 286, 308 and 267 samples a second.
    fn sweep() -> Vec<Record> {
        let times = [(1, 10.0), (2, 11.0), (4, 14.0), (8, 26.0), (16, 60.0)];
        let mut records: Vec<Record> = times.iter().map(|&(minibatch, ms)| ok("vgg16", minibatch, ms)).collect();
        records.push(bad("vgg16", 32, Status::OutOfMemory));
        records.push(bad("vgg16", 64, Status::OutOfMemory));
        records
    }

    #[test]
    fn efficiency_refers_to_the_best_throughput_of_the_series() {
        let found = of(sweep(), &Settings::default());
        let curve = &found.curves[0];
        assert_eq!(
            (found.model.as_deref(), found.minibatches.as_slice()),
            (Some("vgg16"), [1, 2, 4, 8, 16, 32].as_slice())
        );
        let shares: Vec<f64> = curve.points.iter().map(|point| (point.efficiency * 1000.0).round() / 1000.0).collect();
        assert_eq!(shares, [0.325, 0.591, 0.929, 1.0, 0.867]);
        let marginal: Vec<Option<f64>> =
            curve.points.iter().map(|p| p.marginal_ms.map(|ms| (ms * 100.0).round() / 100.0)).collect();
        assert_eq!(marginal, [None, Some(1.0), Some(1.5), Some(3.0), Some(4.25)]);
        assert_eq!((curve.best().minibatch, curve.enough().minibatch), (8, 8));
        let (at, loss) = curve.bend().expect("it bends behind 8");
        assert_eq!((at, (loss * 1000.0).round()), (8, 133.0));
        assert_eq!(curve.edge.map(|edge| edge.0), Some(32), "the smallest that did not fit");
    }

    #[test]
    fn a_smaller_minibatch_that_is_nearly_as_good_is_enough() {
        let records = vec![ok("alexnet", 16, 10.0), ok("alexnet", 32, 19.5), ok("alexnet", 64, 38.5)];
        let curve = &of(records, &Settings::default()).curves[0];
        assert_eq!((curve.best().minibatch, curve.enough().minibatch, curve.bend()), (64, 16, None));
    }

    #[test]
    fn a_model_of_one_minibatch_has_no_curve() {
        let found =
            of(vec![ok("alexnet", 16, 10.0), ok("resnet50", 16, 10.0), ok("resnet50", 32, 19.0)], &Settings::default());
        assert_eq!((found.models.as_slice(), found.curves.len()), (["resnet50".to_owned()].as_slice(), 1));
        let asked = Settings { model: Some("alexnet".into()), ..Settings::default() };
        assert_eq!(of(vec![ok("alexnet", 16, 10.0)], &asked), Efficiency::default());
    }

    #[test]
    fn memory_that_ends_below_a_measured_minibatch_is_no_edge() {
        let records = vec![bad("alexnet", 8, Status::OutOfMemory), ok("alexnet", 16, 10.0), ok("alexnet", 32, 19.0)];
        assert_eq!(of(records, &Settings::default()).curves[0].edge, None);
    }

    #[test]
    fn a_precision_that_nobody_has_hides_nothing() {
        let records = vec![ok("alexnet", 16, 10.0), ok("alexnet", 32, 19.0)];
        let asked = Settings { precision: Some(compute::shape::Precision::Bf16), ..Settings::default() };
        assert_eq!(of(records.clone(), &asked), of(records, &Settings::default()));
    }
}
