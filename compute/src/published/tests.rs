use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::*;
use crate::bench::origin::{Origin, OriginKind};
use crate::bench::record::{Record, SCHEMA, Status};
use crate::bench::store;
use crate::catalog;
use crate::engine::DeviceKind;
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

/// A row of the published figures, by the names of its columns.
type Row = BTreeMap<String, String>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/published")
}

fn rows(name: &str) -> Vec<Row> {
    let mut table = csv::Reader::from_path(folder().join("figures").join(name)).unwrap();
    table.deserialize().map(|row| row.unwrap()).collect()
}

fn origin(record: &Record) -> &Origin {
    record.origin.as_ref().unwrap()
}

/// Each set with its rows, and each record with the row it is made of. Rows in int8 are left out of the sets.
fn each_record(check: impl Fn(&Set, &Record, &Row)) {
    let sets = sets().unwrap();
    let all = rows("published_results.csv");
    let mut n_used = 0;
    for set in &sets {
        let own: Vec<&Row> = all.iter().filter(|row| row["source_id"] == set.id).collect();
        n_used += own.len();
        let kept: Vec<&Row> = own.into_iter().filter(|row| row["precision"] != "int8").collect();
        assert_eq!(set.file.records.len(), kept.len(), "{}", set.id);
        for (record, row) in set.file.records.iter().zip(kept) {
            check(set, record, row);
        }
    }
    assert_eq!(n_used, all.len(), "a row belongs to no set");
}

#[test]
fn every_row_is_a_record_or_a_counted_omission() {
    let n_int8 = rows("published_results.csv").iter().filter(|row| row["precision"] == "int8").count();
    assert_eq!(n_int8, 27);
    let sources = rows("sources.csv");
    let sets = sets().unwrap();
    let ids: Vec<&str> = sets.iter().map(|set| set.id.as_str()).collect();
    let named: Vec<&str> = sources.iter().map(|row| row["source_id"].as_str()).collect();
    assert_eq!(ids, named);
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for (set, source) in sets.iter().zip(&sources) {
        let n_rows = rows("published_results.csv").iter().filter(|row| row["source_id"] == set.id).count();
        assert_eq!(source["rows"], n_rows.to_string(), "{}", set.id);
        let line = readme.lines().find(|line| line.starts_with(&format!("| `{}` |", set.id))).unwrap();
        assert!(line.contains(&format!("| {n_rows} | {} |", set.file.records.len())), "{line}");
    }
    each_record(|_, _, _| {});
}

#[test]
fn every_record_is_its_row() {
    each_record(|set, record, row| {
        let (origin, figure) = (origin(record), &origin(record).figure);
        let what = format!("{}: {row:?}", set.id);
        assert_eq!((origin.kind, &origin.source), (OriginKind::Published, &row["source_id"]), "{what}");
        assert_eq!(figure.value, row["value"].parse::<f64>().unwrap(), "{what}");
        let texts = [&figure.model, &figure.phase, &figure.precision, &figure.metric];
        assert_eq!(texts, ["model", "phase", "precision", "metric"].map(|column| &row[column]), "{what}");
        assert_eq!(figure.input.as_deref().unwrap_or_default(), row["input_size"], "{what}");
        let n_devices: usize = row["gpu_count"].parse().unwrap();
        assert_eq!(figure.n_devices, Some(n_devices).filter(|&n| n > 1), "{what}");
        let batch = if row["batch"].is_empty() { 0 } else { row["batch"].parse().unwrap() };
        assert_eq!(record.minibatch, batch, "{what}");
        let device = &set.file.devices[record.device.unwrap()];
        let name = if n_devices > 1 { format!("{n_devices} x {}", row["gpu"]) } else { row["gpu"].clone() };
        assert_eq!((&device.name, &device.id), (&name, &name), "{what}");
        assert!(row["note"].is_empty() || record.notes[0] == row["note"], "{what}");
        assert_eq!((record.status, record.started.as_str()), (Status::Ok, ""), "{what}");
        let (framework, _) = row["framework"].split_once(" (").unwrap_or((&row["framework"], ""));
        assert!(record.engine.starts_with(framework), "{} of {what}", record.engine);
        let version = row["framework_version"].as_str();
        assert!(record.engine.contains(version), "{} of {what}", record.engine);
        assert!(version.is_empty() || record.libraries[&framework.to_lowercase()] == version, "{what}");
    });
}

#[test]
fn passes_and_precisions_are_what_the_sources_say() {
    each_record(|_, record, row| {
        let pass = match row["phase"].as_str() {
            "inference" | "forward" => Pass::Forward,
            "forward_backward" | "train_step" | "backward" => Pass::ForwardBackward,
            other => panic!("unknown phase {other:?}"),
        };
        let precision = match row["precision"].as_str() {
            "fp32" | "" => Precision::F32,
            "tf32" => Precision::Tf32,
            "fp16" | "amp" => Precision::F16,
            "bf16" | "amp (bf16)" => Precision::Bf16,
            other => panic!("unknown precision {other:?}"),
        };
        assert_eq!((record.pass, record.precision), (pass, precision), "{row:?}");
        let notes = |words: &str| record.notes.iter().any(|note| note.contains(words));
        assert_eq!(notes("parameter update"), row["phase"] == "train_step", "{row:?}");
        assert_eq!(notes("automatic mixed precision"), row["precision"].starts_with("amp"), "{row:?}");
        assert_eq!(notes("f32 is assumed"), row["precision"].is_empty(), "{row:?}");
    });
}

#[test]
fn throughput_follows_from_the_figure_or_is_absent() {
    each_record(|_, record, row| {
        let value: f64 = row["value"].parse().unwrap();
        let n_devices = row["gpu_count"].parse::<f64>().unwrap().max(1.0);
        let expected = match row["metric"].as_str() {
            "images_per_s" | "samples_per_s" => Some(value),
            "million_samples_per_s" => Some(value * 1e6),
            "ms_per_batch" if row["phase"] != "backward" => {
                row["batch"].parse::<f64>().ok().map(|batch| batch * n_devices / (value / 1000.0))
            }
            "ms_per_batch" | "tokens_per_s" | "items_per_s" | "percent_faster_than_mxnet" => None,
            other => panic!("unknown metric {other:?}"),
        };
        assert_eq!(record.throughput_per_sec, expected, "{row:?}");
    });
}

#[test]
fn the_files_of_the_folder_are_what_is_embedded() {
    let sets = sets().unwrap();
    for set in &sets {
        let path = folder().join(format!("{}.json", set.id));
        let text = std::fs::read_to_string(&path).unwrap();
        let file: ResultFile = serde_json::from_str(&text).unwrap();
        assert!(file == set.file, "{} is not what is embedded: run make.py", set.id);
        // One line a record, so that a change can be read.
        let n_lines = text.lines().filter(|line| line.starts_with("{\"model\":")).count();
        assert_eq!(n_lines, file.records.len(), "{}", set.id);
        let written = serde_json::to_value(&set.file).unwrap();
        let n_extra = set.file.extra.len() + set.file.records.iter().map(|record| record.extra.len()).sum::<usize>();
        assert!(n_extra == 0 && written["program"] == "datasets/published/make.py", "{}", set.id);
    }
    let n_files = std::fs::read_dir(folder())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "json"));
    assert_eq!(n_files.count(), sets.len());
    assert!(SETS.len() < 700 << 10, "{} bytes", SETS.len());
}

#[test]
fn every_set_passes_the_checks_of_a_result_file() {
    for set in sets().unwrap() {
        let path = folder().join(format!("{}.json", set.id));
        let loaded = store::parse(&path, &std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((loaded.n_left_out, loaded.notes.as_slice()), (0, &[] as &[String]), "{}", set.id);
        assert_eq!(loaded.file, set.file, "{}", set.id);
        assert_eq!(set.file.schema, SCHEMA);
        for record in &set.file.records {
            let origin = origin(record);
            let stated = [&origin.title, &origin.date, &origin.url, &origin.licence, &origin.obtained, &origin.authors];
            assert!(stated.iter().all(|text| text.as_ref().is_some_and(|text| !text.is_empty())), "{origin:?}");
            let url = origin.url.as_deref().unwrap_or_default();
            assert!(url.starts_with("https://") && !url.contains(char::is_whitespace), "{url}");
        }
    }
}

/// Names of the suite are kept for its networks, with their definitions as they are now.
#[test]
fn only_networks_of_the_suite_have_its_names() {
    let definitions: BTreeMap<String, String> = Model::ALL
        .map(|model| {
            let graph = model.graph();
            (model.name().to_owned(), format!("{} {}", graph.definition(), graph.definition_hash()))
        })
        .into();
    let mut known = HashSet::new();
    for set in sets().unwrap() {
        for record in &set.file.records {
            let expected = definitions.get(&record.model).map(String::as_str).unwrap_or_default();
            assert_eq!(record.definition, expected, "{} in {}: refresh the table of make.py", record.model, set.id);
            let says = record.notes.iter().any(|note| note.starts_with(&format!("taken to be {} ", record.model)));
            assert_eq!(says, !expected.is_empty(), "{} in {}", record.model, set.id);
            let size = record.model.parse::<Model>().map(Model::input_size).ok().map(|side| format!("{side}x{side}"));
            assert!(size.is_none() || origin(record).figure.input == size, "{} in {}", record.model, set.id);
            known.extend(size.map(|_| record.model.clone()));
        }
    }
    assert_eq!(known.len(), Model::ALL.len(), "{known:?}");
}

#[test]
fn no_two_records_of_a_set_look_alike() {
    for set in sets().unwrap() {
        let mut seen = HashSet::new();
        for record in &set.file.records {
            let figure = &origin(record).figure;
            let key = (&record.engine, record.device, record.precision, &record.model, record.pass, record.minibatch);
            assert!(seen.insert((key, &figure.phase, &figure.input)), "{key:?} twice in {}", set.id);
        }
    }
}

#[test]
fn devices_are_those_of_the_catalog() {
    for set in sets().unwrap() {
        for device in &set.file.devices {
            let (n, name) = match device.name.split_once(" x ") {
                Some((n, name)) => (n.parse().unwrap(), name),
                None => (1, device.name.as_str()),
            };
            if device.kind == DeviceKind::Cpu {
                assert!(name.starts_with("CPU "), "{name}");
                continue;
            }
            let gpu = catalog::find(name).unwrap_or_else(|| panic!("{name} is not in the catalog"));
            assert_eq!(gpu.name, name);
            assert_eq!(device.vendor.as_ref(), Some(&gpu.vendor), "{name}");
            assert_eq!(device.memory_bytes, gpu.memory_bytes.map(|bytes| bytes * n), "{name}");
        }
    }
}

#[test]
fn figures_known_to_be_wrong_are_in_doubt() {
    let sets = sets().unwrap();
    let doubted = |id: &str| {
        let set = sets.iter().find(|set| set.id == id).unwrap();
        set.file.records.iter().filter(|record| origin(record).doubt.is_some()).count()
    };
    assert_eq!(doubted("convnet_benchmarks"), 3 + 1);
    let all: usize = sets.iter().map(|set| doubted(&set.id)).sum();
    assert_eq!(all, 4);
}

#[test]
fn damaged_bytes_are_an_error() {
    assert!(matches!(read(&SETS[..SETS.len() / 2]), Err(PublishedError::Packed(_))));
    assert!(matches!(read(b"no gzip"), Err(PublishedError::Packed(_))));
}
