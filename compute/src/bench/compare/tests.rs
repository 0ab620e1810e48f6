use serde_json::json;

use super::*;
use crate::bench::export::Format;
use crate::bench::record::ResultFile;

/// A file of one device with the given driver and cuDNN-like library; records are (model, definition, minibatch,
/// throughput or none for out of memory, started).
fn file(driver: &str, library: &str, records: &[(&str, &str, usize, Option<f64>, &str)]) -> ResultFile {
    let record = |&(model, definition, minibatch, throughput, started): &(&str, &str, usize, Option<f64>, &str)| {
        json!({
            "model": model, "definition": definition, "pass": "forward", "precision": "f32", "minibatch": minibatch,
            "engine": "wgsl", "device": 0, "started": started, "throughput_per_sec": throughput,
            "status": if throughput.is_some() { "ok" } else { "out_of_memory" }, "libraries": { "cudnn": library },
        })
    };
    serde_json::from_value(json!({
        "schema": "batchmark/1", "created": "", "program": "0.1.0", "host": { "os": "Linux", "cpu": "CPU" },
        "devices": [{ "id": "gpu0", "name": "GPU", "kind": "discrete", "driver": driver }],
        "records": records.iter().map(record).collect::<Vec<_>>(),
    }))
    .unwrap()
}

fn compared(files: &[&ResultFile], baseline: usize) -> Comparison {
    let names = ["a.json", "b.json", "c.json"];
    let sources: Vec<Source<'_>> = files.iter().zip(names).map(|(file, name)| Source { name, file }).collect();
    compare(&sources, baseline).unwrap()
}

#[test]
fn rows_stand_side_by_side_with_ratios() {
    let a = file("1", "9", &[("resnet50", "r/1 0", 64, Some(100.0), "1"), ("alexnet", "a/1 0", 64, Some(1.0), "1")]);
    let b = file("1", "9", &[("resnet50", "r/1 0", 64, Some(150.0), "1"), ("alexnet", "a/1 0", 64, None, "1")]);
    let comparison = compared(&[&a, &b], 1);
    let text = comparison.table().render(Format::Text);
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split("  ").map(str::trim).filter(|s| !s.is_empty()).collect()).collect();
    assert_eq!(lines[0], ["model", "pass", "precision", "minibatch", "[1] samples/s", "[2] samples/s", "[2]/[1]"]);
    assert_eq!(lines[1], ["alexnet", "forward", "f32", "64", "1.00", "out of memory"], "the suite's order");
    assert_eq!(lines[2], ["resnet50", "forward", "f32", "64", "100", "150", "1.50"]);
    assert_eq!((comparison.warnings, comparison.differences), (vec![], vec![]));
    assert_eq!(compared(&[&a, &b], 2).rows[1].outcomes[0].as_ref().unwrap().ratio, Some(100.0 / 150.0));
}

#[test]
fn minibatches_are_never_mixed() {
    let a = file("1", "9", &[("resnet50", "r/1 0", 64, Some(100.0), "1")]);
    let b = file("1", "9", &[("resnet50", "r/1 0", 32, Some(50.0), "1")]);
    let rows = compared(&[&a, &b], 1).rows;
    assert_eq!(rows.iter().map(|row| row.key.minibatch).collect::<Vec<_>>(), [32, 64]);
    assert!(rows.iter().flat_map(|row| &row.outcomes).flatten().all(|outcome| outcome.ratio != Some(0.5)));
    assert!(rows[0].outcomes[0].is_none() && rows[1].outcomes[1].is_none());
}

/// R11: bars of two definitions are not compared without a word.
#[test]
fn another_definition_is_warned_of_and_has_no_ratio() {
    let a = file("1", "9", &[("resnet50", "resnet50/1 aa", 64, Some(100.0), "1")]);
    let b = file("1", "9", &[("resnet50", "resnet50/1 bb", 64, Some(150.0), "1")]);
    let comparison = compared(&[&a, &b], 1);
    assert_eq!(
        comparison.warnings,
        [
            r#"resnet50 is not the same network in [1] and in b.json, GPU, wgsl: definition "resnet50/1 aa" against "resnet50/1 bb""#
        ]
    );
    assert_eq!(comparison.rows[0].outcomes[1].as_ref().unwrap().ratio, None);
}

#[test]
fn differences_of_the_environment_are_listed() {
    let a = file("535.1", "9.1", &[("resnet50", "r/1 0", 64, Some(100.0), "1")]);
    let mut b = file("580.1", "9.14", &[("resnet50", "r/1 0", 64, Some(50.0), "1")]);
    b.host.os = "Windows".to_owned();
    let found = compared(&[&a, &b], 1).differences;
    let found: Vec<_> =
        found.iter().map(|d| (d.property.as_str(), d.values[0].as_deref(), d.values[1].as_deref())).collect();
    assert_eq!(
        found,
        [
            ("device driver", Some("535.1"), Some("580.1")),
            ("library cudnn", Some("9.1"), Some("9.14")),
            ("operating system", Some("Linux"), Some("Windows")),
        ]
    );
}

#[test]
fn the_latest_record_counts_unless_it_was_cancelled() {
    let mut a = file(
        "1",
        "9",
        &[
            ("vgg16", "v/1 0", 1, Some(2.0), "2026-02"),
            ("vgg16", "v/1 0", 1, Some(1.0), "2026-01"),
            ("vgg16", "v/1 0", 1, None, "2026-03"),
        ],
    );
    a.records[2].status = Status::Cancelled;
    assert_eq!(compared(&[&a], 1).rows[0].outcomes[0].as_ref().unwrap().record.throughput_per_sec, Some(2.0));
}

#[test]
fn implausible_proportions_are_warned_of() {
    let mut a = file("1", "9", &[("resnet50", "r/1 0", 64, Some(1.0), "1"), ("vgg16", "v/1 0", 64, Some(1.0), "1")]);
    a.records[0].achieved_flop_per_sec = Some(1e12);
    a.records[1].achieved_flop_per_sec = Some(21e12);
    let warnings = compared(&[&a], 1).warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("vgg16 achieves 21 times the FLOP/s of resnet50"), "{warnings:?}");
    a.records[1].minibatch = 32;
    assert_eq!(compared(&[&a], 1).warnings, Vec::<String>::new());
}

#[test]
fn a_baseline_that_is_not_there_lists_the_columns() {
    let a = file("1", "9", &[("resnet50", "r/1 0", 64, Some(100.0), "1")]);
    for baseline in [0, 2] {
        let error = compare(&[Source { name: "a.json", file: &a }], baseline).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("there is no column {baseline} to be the baseline, expected one of: 1 (a.json, GPU, wgsl)")
        );
    }
    assert_eq!(compare(&[Source { name: "a.json", file: &ResultFile::default() }], 1).unwrap().rows, []);
}
