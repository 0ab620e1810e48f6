use serde_json::Value;

use super::*;
use crate::bench::store::parse;

/// A result file of two records: one measured, one out of memory, with text that wants to break out.
fn file() -> ResultFile {
    let text = r#"{
        "schema": "batchmark/1", "created": "", "program": "0",
        "devices": [{ "id": "gpu0", "name": "Fast, \"new\" | GPU\u001b[31m", "kind": "discrete" }],
        "records": [
            { "model": "resnet50", "definition": "resnet50/1 00", "pass": "forward", "precision": "f16", "minibatch": 64,
              "engine": "wgsl", "device": 0, "started": "2017-05-09T12:34:56Z", "status": "ok",
              "throughput_per_sec": 14234.567, "achieved_flop_per_sec": 5.8123e13,
              "timing": { "clock": "device", "iterations": 3, "median_ms": 4.4961, "mean_ms": 4.5, "stddev_ms": 0.01,
                          "p5_ms": 4.4, "p95_ms": 4.6, "ci95_ms": [4.49, 4.51], "samples_ms": [4.4, 4.4961, 4.6] },
              "memory": { "planned_bytes": 1073741824 }, "notes": ["power-limited 40% of the time"] },
            { "model": "vgg16", "definition": "vgg16/1 00", "pass": "forward_backward", "precision": "f32",
              "minibatch": 512, "engine": "wgsl", "device": 0, "started": "", "status": "out_of_memory",
              "reason": "9 GiB could not\nbe allocated", "memory": { "planned_bytes": 9663676416 } }
        ]
    }"#;
    parse(std::path::Path::new("a.json"), text.as_bytes()).unwrap().file
}

fn rendered(format: Format) -> String {
    records(&[Source { name: "a.json", file: &file() }]).render(format)
}

#[test]
fn numbers_have_three_significant_digits() {
    let cases = [
        (14234.567, "14200"),
        (4.5149, "4.51"),
        (999.9, "1000"),
        (99.96, "100"),
        (0.99999, "1.00"),
        (0.012345, "0.0123"),
        (3.2e-7, "3.20e-7"),
        (1e20, "1.00e20"),
        (-1.5, "-1.50"),
        (0.0, "0"),
    ];
    for (value, text) in cases {
        assert_eq!(significant(value), text);
    }
}

#[test]
fn text_is_aligned_with_outcomes_in_words() {
    let text = rendered(Format::Text);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains("file"), "{text}");
    let end = |line: &str, word: &str| line.find(word).map(|start| start + word.len());
    let column = end(lines[0], "samples/s");
    assert!(column.is_some() && column == end(lines[1], "14200") && column == end(lines[2], "out of memory"), "{text}");
    assert_eq!(end(lines[0], "planned (GiB)"), end(lines[2], "9.00"), "{text}");
    assert!(lines[1].ends_with("power-limited 40% of the time") && lines[2].ends_with("9 GiB could not be allocated"));
    let (file, other) = (file(), ResultFile::default());
    let several = records(&[Source { name: "a.json", file: &file }, Source { name: "b.json", file: &other }]);
    assert!(several.render(Format::Text).contains("\na.json"), "several files are told apart");
}

#[test]
fn csv_has_full_precision_and_one_line_a_record() {
    let text = rendered(Format::Csv);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cell = |row: usize, key: &str| rows[row].get(header.iter().position(|name| name == key).unwrap()).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(cell(0, "throughput_per_sec"), "14234.567");
    assert_eq!(cell(0, "achieved_flop_per_sec"), "58123000000000");
    assert_eq!(cell(0, "device"), "Fast, \"new\" | GPU\u{1b}[31m");
    assert_eq!((cell(1, "status"), cell(1, "throughput_per_sec")), ("out_of_memory", ""));
    assert_eq!(cell(1, "planned_bytes"), "9663676416");
    assert!(header.iter().all(|name| !name.is_empty()), "{header:?}");
}

#[test]
fn markdown_keeps_foreign_text_in_its_cell() {
    let text = rendered(Format::Markdown);
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.lines().all(|line| bars(line) == bars(text.lines().next().unwrap())), "{text}");
    assert!(text.contains("| out of memory |") && text.contains("---:"), "{text}");
}

#[test]
fn json_has_null_where_there_is_no_number() {
    let rows: Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
    assert_eq!(rows[0]["throughput_per_sec"], 14234.567);
    assert_eq!((&rows[1]["throughput_per_sec"], &rows[1]["status"]), (&Value::Null, &Value::from("out_of_memory")));
}

#[test]
fn an_unknown_format_lists_the_valid_ones() {
    let message = "xlsx".parse::<Format>().unwrap_err().to_string();
    assert_eq!(message, "unknown format \"xlsx\", expected one of: text, csv, md, json");
}
