mod hostile;

use super::*;
use crate::bench::record::{Record, Status};

/// A file of every importer, in its program's shape, with its name and format.
pub(super) const FIXTURES: [(&str, &str, Format); 18] = [
    ("ours.json", include_str!("fixtures/ours.json"), Format::Batchmark),
    ("benchmark-infer-amp-nchw-pt240-cu124-rtx4090.csv", include_str!("fixtures/timm.csv"), Format::Timm),
    ("train.json", include_str!("fixtures/timm.json"), Format::Timm),
    ("resnet-50.json", include_str!("fixtures/cnn_benchmarks.json"), Format::CnnBenchmarks),
    ("output.log", include_str!("fixtures/torch.log"), Format::ConvnetBenchmarks),
    ("output_alexnet.log", include_str!("fixtures/tensorflow.log"), Format::ConvnetBenchmarks),
    ("output_caffe.log", include_str!("fixtures/caffe.log"), Format::ConvnetBenchmarks),
    ("output_neon.log", include_str!("fixtures/neon.log"), Format::ConvnetBenchmarks),
    ("pytorch-train-throughput-fp16.csv", include_str!("fixtures/lambda_v1.csv"), Format::Lambda),
    ("pytorch-train-throughput-v2-fp32.csv", include_str!("fixtures/lambda_v2.csv"), Format::Lambda),
    ("gpu.csv", include_str!("fixtures/nvidia_smi.csv"), Format::NvidiaSmi),
    ("bench.json", include_str!("fixtures/llama_bench.json"), Format::LlamaBench),
    ("bench.csv", include_str!("fixtures/llama_bench.csv"), Format::LlamaBench),
    ("bench.sql", include_str!("fixtures/llama_bench.sql"), Format::LlamaBench),
    ("bench.md", include_str!("fixtures/llama_bench.md"), Format::LlamaBench),
    ("trt.log", include_str!("fixtures/trtexec.log"), Format::Trtexec),
    ("times.json", include_str!("fixtures/trtexec_times.json"), Format::Trtexec),
    ("ai.txt", include_str!("fixtures/ai_benchmark.log"), Format::AiBenchmark),
];

/// The import of a text, nothing given.
pub(super) fn imported(name: &str, text: &str) -> Imported {
    import(name, text.as_bytes(), &Given::default()).unwrap()
}

/// The message of a text that can't be imported.
pub(super) fn refusal(name: &str, text: &str) -> String {
    import(name, text.as_bytes(), &Given::default()).unwrap_err().to_string()
}

/// The import of the fixture of this name.
pub(super) fn fixture(name: &str) -> Imported {
    let (_, text, _) = FIXTURES.into_iter().find(|(other, ..)| *other == name).unwrap();
    imported(name, text)
}

/// The name of a record's device.
pub(super) fn device<'a>(imported: &'a Imported, record: &Record) -> &'a str {
    &imported.file.devices[record.device.unwrap()].name
}

/// Asserts that two numbers agree to nine digits.
pub(super) fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
}

#[test]
fn formats_are_recognized_by_content() {
    for (name, text, format) in FIXTURES {
        // An ending that says something else changes nothing.
        for name in [name, "x.dat", "x"] {
            assert_eq!(imported(name, text).format, format, "{name}");
        }
    }
}

#[test]
fn encodings_and_line_ends_change_nothing_but_the_digest() {
    let content = |imported: &Imported| {
        let strip = |record: &Record| {
            let mut record = record.clone();
            if let Some(origin) = &mut record.origin {
                origin.sha256 = None;
            }
            record
        };
        (imported.file.records.iter().map(strip).collect::<Vec<_>>(), imported.telemetry.clone())
    };
    for (name, text, _) in FIXTURES {
        let plain = content(&imported(name, text));
        let marked = format!("\u{feff}{text}");
        let utf16 = |bytes: fn(u16) -> [u8; 2]| marked.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        let variants = [
            marked.clone().into_bytes(),
            text.replace('\n', "\r\n").into_bytes(),
            text.replace('\n', "\r\r\n").into_bytes(),
            text.replace('\n', "\r").into_bytes(),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
        ];
        for (place, bytes) in variants.iter().enumerate() {
            let variant = import(name, bytes, &Given::default()).unwrap();
            assert_eq!(content(&variant), plain, "{name}, variant {place}");
        }
    }
}

#[test]
fn records_of_every_format_are_sound_and_survive_a_round_trip() {
    for (name, ..) in FIXTURES {
        let imported = fixture(name);
        for record in imported.file.records.iter().filter(|_| imported.format != Format::Batchmark) {
            let origin = record.origin.as_ref().unwrap();
            assert_eq!((origin.source.as_str(), origin.title.as_deref()), (imported.format.name(), Some(name)));
            assert_eq!(origin.sha256.as_ref().unwrap().len(), 64);
            assert!(!record.engine.is_empty() && !record.model.is_empty(), "{name}: {record:?}");
        }
        let text = serde_json::to_vec(&imported.file).unwrap();
        let read = store::parse(Path::new(name), &text).unwrap();
        assert_eq!((read.n_left_out, read.file.records), (0, imported.file.records), "{name}");
    }
}

#[test]
fn our_own_file_is_read_by_its_store() {
    let ours = fixture("ours.json");
    assert_eq!((ours.file.records[0].throughput_per_sec, ours.file.records[0].origin.clone()), (Some(10000.0), None));
    assert!(ours.notes[0].contains("no digest"), "{:?}", ours.notes);
    let broken = refusal("a.json", "{\"schema\": \"batchmark/1\", \"records\": [");
    assert!(
        broken.starts_with("\"a.json\" looks like a file of Batchmark but can't be imported: it is cut off at line 1")
    );
    let strange = refusal("a.json", "{\"schema\": \"batchmark/x\"}");
    assert!(strange.contains("its \"schema\" is \"batchmark/x\", expected \"batchmark/1\""), "{strange}");
}

#[test]
fn what_is_not_known_is_refused_with_what_was_expected() {
    let cases: [(&[u8], &str); 8] = [
        (b"", "it is empty, expected a result file of one of: Batchmark, timm, cnn-benchmarks, convnet-benchmarks, "),
        (b"hello world\n", "its format is not known, expected a result file of one of: Batchmark, timm"),
        (b"a,b\n1,2\n", "its format is not known"),
        (b"{\"a\": 1}", "its format is not known"),
        (b"{\"a\": 1,\n\"b\"", "it begins like JSON and is broken at line 2"),
        (b"\x89PNG\r\n\x1a\n\0\0", "it is not text"),
        (b"\x80\x03}q\x00.", "it is a Python pickle, which can run code when it is loaded and is never opened; write"),
        (b"PK\x03\x04\x00\x00model/data.pkl", "it is a Python pickle"),
    ];
    for (bytes, expected) in cases {
        let message = import("dir/a.bin", bytes, &Given::default()).unwrap_err().to_string();
        assert!(message.starts_with("\"a.bin\" can't be imported: ") && message.contains(expected), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

/// R39: a byte order mark does not hide the first column, nor do carriage returns the last.
#[test]
fn a_table_of_tabs_with_mark_and_carriage_returns() {
    let text = "\u{feff}model\tinfer_samples_per_sec\r\nresnet50\t905,5\r\nvgg16\t80\r\n";
    let imported = imported("a.tsv", text);
    let rates: Vec<_> = imported.file.records.iter().map(|record| record.throughput_per_sec).collect();
    assert_eq!(rates, [Some(905.5), Some(80.0)]);
}

/// R40: a decimal comma is read where it separates nothing, and refused with its line elsewhere.
#[test]
fn a_decimal_comma_is_read_or_refused() {
    let semicolons = imported("a.csv", "model;samples_per_sec\nresnet50;905,5\n");
    assert_eq!(semicolons.file.records[0].throughput_per_sec, Some(905.5));
    let message = refusal("a.csv", "model,samples_per_sec\nresnet50,\"9,99\"\n");
    assert!(message.contains("line 2: \"samples_per_sec\": \"9,99\" has a comma"), "{message}");
    let message = refusal("a.csv", "model,samples_per_sec\nresnet50,9,99\n");
    assert!(message.contains("line 2: it has 3 cells where the header has 2"), "{message}");
    let message = refusal("a.csv", "model;samples_per_sec\na;905,5\nb;905.5\n");
    assert!(message.contains("line 3: \"samples_per_sec\": \"905.5\" has a decimal '.'"), "{message}");
}

#[test]
fn what_is_given_takes_the_place_of_guesses_and_is_noted_against_the_file() {
    let (name, text, _) = FIXTURES[1];
    let given = Given { device: Some("Card".to_owned()), precision: Some(Precision::Bf16), minibatch: Some(64) };
    let guessed = imported(name, text);
    assert_eq!(guessed.unknown, [Unknown::Device, Unknown::Precision]);
    let told = import(name, text.as_bytes(), &given).unwrap();
    let record = &told.file.records[0];
    assert_eq!((device(&told, record), record.precision, record.minibatch), ("Card", Precision::Bf16, 1024));
    assert!(told.unknown.is_empty());
    assert!(record.notes.contains(&"its file says minibatch 1024, which stays although 64 was given".to_owned()));
    let (name, text, _) = FIXTURES[3];
    let told = import(name, text.as_bytes(), &given).unwrap();
    let notes = told.file.records[0].notes.join("; ");
    assert!(notes.contains("the device was given as \"Card\", its file has \"GeForce GTX 1080 Ti\""), "{notes}");
    assert!(notes.contains("the precision was given as bf16, its file has f32"), "{notes}");
}

#[test]
fn a_file_on_disk_is_named_without_its_folders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.md");
    std::fs::write(&path, include_str!("fixtures/llama_bench.md")).unwrap();
    let loaded = load(&path, &Given::default()).unwrap();
    assert_eq!(loaded.file.records[0].origin.as_ref().unwrap().title.as_deref(), Some("bench.md"));
    assert!(matches!(load(&folder.path().join("none"), &Given::default()), Err(ImportError::Io { .. })));
    let message = load(folder.path(), &Given::default()).unwrap_err().to_string();
    assert!(message.ends_with("can't be imported: it is a folder"), "{message}");
}

#[test]
fn a_zero_is_a_failed_run() {
    let imported = imported("a.csv", "model,infer_samples_per_sec\na,0\nb,0.0\n");
    for record in &imported.file.records {
        assert_eq!((record.status, record.throughput_per_sec), (Status::Failed, None));
        assert!(record.reason.as_ref().unwrap().contains("0 samples/s"), "{:?}", record.reason);
    }
}
