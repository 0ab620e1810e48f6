use compute::bench::record::{Clock, Record, ResultFile, Status, Timing};
use compute::engine::Device;
use compute::plan::Pass;
use compute::shape::Precision;

use super::*;
use crate::chart::series::{Index, SourceId};

/// A file with one device.
pub(crate) fn file(records: Vec<Record>) -> ResultFile {
    ResultFile { devices: vec![device("vulkan-0", "H200")], records, ..ResultFile::default() }
}

pub(crate) fn device(id: &str, name: &str) -> Device {
    Device { id: id.into(), name: name.into(), ..Device::default() }
}

/// A measured forward pass in f32.
pub(crate) fn ok(model: &str, minibatch: usize, median_ms: f64) -> Record {
    Record {
        model: model.into(),
        definition: format!("{model}/1 0123456789abcdef"),
        minibatch,
        engine: "wgsl".to_owned(),
        device: Some(0),
        started: "2026-01-01T00:00:00Z".into(),
        timing: Some(Timing {
            clock: Clock::Device,
            iterations: 100,
            median_ms,
            mean_ms: median_ms,
            stddev_ms: 0.1,
            p5_ms: median_ms * 0.9,
            p95_ms: median_ms * 1.1,
            ci95_ms: [median_ms * 0.8, median_ms * 1.25],
            samples_ms: vec![median_ms],
            host_median_ms: None,
            drift: None,
            warm_up_iterations: 10,
            extra: Default::default(),
        }),
        throughput_per_sec: Some(minibatch as f64 * 1000.0 / median_ms),
        ..Record::blank(Pass::Forward, Precision::F32, Status::Ok)
    }
}

/// The same run with a bad outcome.
pub(crate) fn bad(model: &str, minibatch: usize, status: Status) -> Record {
    Record {
        status,
        reason: Some(format!("{status}, says the driver")),
        timing: None,
        throughput_per_sec: None,
        ..ok(model, minibatch, 1.0)
    }
}

fn of(file: &ResultFile, settings: &Settings) -> Chart {
    let index = &Index::new(SourceId(0), file);
    chart(&[Source { id: SourceId(0), name: "here", file, index }], &HashSet::new(), settings)
}

#[test]
fn groups_follow_the_suite_and_unknown_models_come_last() {
    let records = ["resnet50", "yolo", "alexnet", "bert"].map(|model| ok(model, 16, 10.0)).to_vec();
    let names: Vec<String> = of(&file(records), &Settings::default()).groups.into_iter().map(|g| g.model).collect();
    assert_eq!(names, ["alexnet", "resnet50", "bert", "yolo"]);
}

#[test]
fn whiskers_of_a_throughput_are_those_of_the_time_turned_round() {
    let file = file(vec![ok("alexnet", 16, 10.0)]);
    for (unit, expected, interval) in
        [(Unit::SamplesPerSec, 1600.0, [1280.0, 2000.0]), (Unit::MsPerIteration, 10.0, [8.0, 12.5])]
    {
        let chart = of(&file, &Settings { unit, ..Settings::default() });
        let record = RecordRef { source: SourceId(0), index: 0 };
        assert_eq!(
            chart.groups[0].bars,
            [Bar::Value { record, value: expected, interval: Some(interval), is_doubtful: false }]
        );
        assert_eq!(chart.scale.map(|scale| scale.max), Some(interval[1]));
    }
}

#[test]
fn every_bad_outcome_keeps_its_place_with_its_mark() {
    let statuses = [
        Status::OutOfMemory,
        Status::ExceedsDeviceLimit,
        Status::NotSupported,
        Status::Failed,
        Status::Crashed,
        Status::TimedOut,
        Status::Cancelled,
        Status::Incorrect,
    ];
    for status in statuses {
        let chart = of(&file(vec![ok("alexnet", 64, 10.0), bad("vgg16", 64, status)]), &Settings::default());
        let record = RecordRef { source: SourceId(0), index: 1 };
        assert_eq!(chart.groups[1].bars, [Bar::Mark { record, status }], "{status}");
    }
}

#[test]
fn a_success_without_a_usable_number_is_a_mark_not_a_bar() {
    for broken in [f64::NAN, f64::INFINITY, 0.0, -3.0] {
        let mut record = ok("alexnet", 16, 10.0);
        record.throughput_per_sec = Some(broken);
        let chart = of(&file(vec![record]), &Settings::default());
        assert!(matches!(chart.groups[0].bars[0], Bar::Mark { status: Status::Ok, .. }), "{broken}");
        assert_eq!(chart.scale, None);
    }
}

#[test]
fn a_number_beside_a_bad_outcome_is_not_shown() {
    let record = Record { status: Status::Incorrect, ..ok("alexnet", 16, 10.0) };
    let chart = of(&file(vec![record]), &Settings::default());
    assert!(matches!(chart.groups[0].bars[0], Bar::Mark { status: Status::Incorrect, .. }));
}

#[test]
fn the_latest_of_equal_runs_counts() {
    let mut later = ok("alexnet", 16, 5.0);
    later.started = "2026-02-01T00:00:00Z".into();
    let chart = of(&file(vec![later, ok("alexnet", 16, 10.0)]), &Settings::default());
    assert_eq!(chart.groups[0].bars[0].record(), Some(RecordRef { source: SourceId(0), index: 0 }));
}

#[test]
fn what_was_not_run_leaves_its_place_empty() {
    let (here, there) = (file(vec![ok("alexnet", 16, 10.0), ok("vgg16", 16, 90.0)]), file(vec![ok("vgg16", 16, 80.0)]));
    let indices = [Index::new(SourceId(0), &here), Index::new(SourceId(1), &there)];
    let sources = [
        Source { id: SourceId(0), name: "here", file: &here, index: &indices[0] },
        Source { id: SourceId(1), name: "there", file: &there, index: &indices[1] },
    ];
    let both = chart(&sources, &HashSet::new(), &Settings::default());
    assert_eq!(both.series.len(), 2);
    assert_eq!(both.groups[0].bars[1], Bar::Absent);
    assert!(matches!(both.groups[1].bars[1], Bar::Value { value, .. } if value == 200.0));

    let hidden = HashSet::from([both.series[0].clone()]);
    let one = chart(&sources, &hidden, &Settings::default());
    assert_eq!((one.series.len(), one.groups.len()), (1, 1), "a hidden series takes its groups with it");
}

#[test]
fn the_minibatch_with_most_records_is_shown_unless_one_is_chosen() {
    let records = vec![ok("alexnet", 16, 10.0), ok("vgg16", 16, 90.0), ok("alexnet", 64, 30.0)];
    let file = file(records);
    for (asked, shown) in [(None, 16), (Some(64), 64), (Some(7), 16)] {
        let chart = of(&file, &Settings { minibatch: asked, ..Settings::default() });
        assert_eq!(chart.minibatch, Some(shown), "{asked:?}");
        assert_eq!(chart.minibatches, [16, 64]);
    }
}

#[test]
fn pass_and_precision_choose_records() {
    let mut half = ok("alexnet", 16, 6.0);
    half.precision = Precision::F16;
    let mut training = ok("resnet50", 16, 40.0);
    training.pass = Pass::ForwardBackward;
    let file = file(vec![ok("alexnet", 16, 10.0), half, training]);

    let both = of(&file, &Settings::default());
    assert_eq!((both.series.len(), both.precisions.as_slice()), (2, [Precision::F32, Precision::F16].as_slice()));
    let half = of(&file, &Settings { precision: Some(Precision::F16), ..Settings::default() });
    assert_eq!(half.series.len(), 1);
    assert_eq!(half.precisions.len(), 2, "the other precision can still be chosen");
    let gone = of(&file, &Settings { precision: Some(Precision::Bf16), ..Settings::default() });
    assert_eq!(gone.series.len(), 2, "a precision that nothing has hides nothing");
    let training = of(&file, &Settings { pass: Pass::ForwardBackward, ..Settings::default() });
    assert_eq!(training.groups.iter().map(|group| group.model.as_str()).collect::<Vec<_>>(), ["resnet50"]);
}

#[test]
fn different_definitions_of_a_model_are_pointed_out() {
    let here = file(vec![ok("alexnet", 16, 10.0), ok("vgg16", 16, 9.0)]);
    let mut there = here.clone();
    there.records[0].definition = "alexnet/1 fedcba9876543210".into();
    let indices = [Index::new(SourceId(0), &here), Index::new(SourceId(1), &there)];
    let sources = [
        Source { id: SourceId(0), name: "here", file: &here, index: &indices[0] },
        Source { id: SourceId(1), name: "there", file: &there, index: &indices[1] },
    ];
    let chart = chart(&sources, &HashSet::new(), &Settings::default());
    assert_eq!(chart.cautions, [Caution::DefinitionsDiffer { model: "alexnet".into() }]);
}

#[test]
fn no_records_make_an_empty_chart() {
    let chart = of(&ResultFile::default(), &Settings::default());
    assert_eq!((chart.groups.len(), chart.minibatch, chart.scale), (0, None, None));
}
