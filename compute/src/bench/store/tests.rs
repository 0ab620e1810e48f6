mod schema;

use std::fs;
use std::io::Write as _;
use std::thread;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::bench::origin::{Figure, Origin, OriginKind};
use crate::bench::record::{Clock, Memory, Telemetry, Timing, Verification};
use crate::plan::Pass;
use crate::shape::Precision;

fn record(minibatch: usize) -> Record {
    let timing = Timing {
        clock: Clock::Device,
        iterations: 2,
        median_ms: 1.5,
        mean_ms: 1.5,
        stddev_ms: 0.1,
        p5_ms: 1.4,
        p95_ms: 1.6,
        ci95_ms: [1.4, 1.6],
        samples_ms: vec![1.4, 1.6],
        host_median_ms: Some(1.7),
        drift: Some(-0.01),
        warm_up_iterations: 3,
        extra: Map::new(),
    };
    Record {
        model: "resnet50".to_owned(),
        definition: "resnet50/1 0123456789abcdef".to_owned(),
        pass: Pass::Forward,
        precision: Precision::F32,
        minibatch,
        engine: "wgsl".to_owned(),
        device: None,
        started: "2017-05-09T12:34:56Z".to_owned(),
        status: Status::Ok,
        reason: None,
        timing: Some(timing),
        throughput_per_sec: Some(minibatch as f64 / 1.5e-3),
        achieved_flop_per_sec: Some(1e12),
        memory: Memory { planned_bytes: Some(1 << 30), ..Memory::default() },
        verification: Some(Verification {
            error: Some(1e-6),
            tolerance: 1e-4,
            passed: true,
            worst: Some("logits".to_owned()),
            extra: Map::new(),
        }),
        telemetry: Some(Telemetry { readings: 1, temperature_celsius: Some(-3.0), ..Telemetry::default() }),
        tuning_ms: Some(10.0),
        profile: None,
        kernels: vec!["conv2d_forward 128x128".to_owned()],
        libraries: [("wgpu".to_owned(), "30".to_owned())].into(),
        notes: Vec::new(),
        origin: None,
        extra: Map::new(),
    }
}

/// A record of a publication that states neither minibatch nor samples a second.
fn published() -> Record {
    let figure = Figure {
        model: "GNMT".to_owned(),
        phase: "train_step".to_owned(),
        precision: "fp16".to_owned(),
        metric: "tokens_per_s".to_owned(),
        value: 86080.0,
        input: None,
        n_devices: Some(2),
    };
    let origin = Origin {
        kind: OriginKind::Published,
        source: "lambda_dlbench".to_owned(),
        title: None,
        authors: None,
        date: None,
        url: Some("https://example.org".to_owned()),
        licence: None,
        obtained: None,
        sha256: None,
        figure,
        doubt: None,
        extra: Map::new(),
    };
    Record { minibatch: 0, timing: None, throughput_per_sec: None, origin: Some(Box::new(origin)), ..record(1) }
}

fn device(name: &str) -> Device {
    Device { id: name.to_lowercase(), name: name.to_owned(), ..Device::default() }
}

fn file(records: Vec<Record>) -> ResultFile {
    ResultFile { schema: SCHEMA.to_owned(), records, ..ResultFile::default() }
}

/// A file with a sound record and the given field of the record replaced.
fn with_field(pointer: &str, value: Value) -> Value {
    let mut file = serde_json::to_value(file(vec![record(1), record(2)])).unwrap();
    *file["records"][0].pointer_mut(pointer).unwrap() = value;
    file
}

#[test]
fn what_is_not_a_result_file_is_refused_with_what_was_expected() {
    let deep = format!("{{\"schema\": \"batchmark/1\", \"x\": {}", "[".repeat(1_000_000));
    let cases: [(&[u8], &str); 16] = [
        (b"", "it is empty, expected a JSON object with \"schema\": \"batchmark/1\""),
        (b"hello", "it is not JSON (expected value at line 1 column 1)"),
        (b"\x1f\x8b\x08\x00", "it is not JSON"),
        (b"\xff\xfe{\x00}\x00", "it is UTF-16 text, expected UTF-8"),
        (b"{\"schema\": \"batchmark/1\", \"created\": \"\xff\"}", "it is not JSON (invalid unicode"),
        (b"{\"schema\": \"batchmark/1\",\n \"records\": [{", "it is cut off at line 2 column"),
        (b"{\"schema\": \"batchmark/1\", \"records\": [NaN]}", "it has a NaN or an infinity at line 1"),
        (b"{\"schema\": \"batchmark/1\", \"records\": [\n-Infinity]}", "it has a NaN or an infinity at line 2"),
        (b"{\"schema\": \"batchmark/1\", \"x\": 1e999}", "it is not JSON (number out of range"),
        (deep.as_bytes(), "it is nested too deeply at line 1"),
        (b"[1, 2]", "it is a list, expected a JSON object"),
        (b"{\"results\": []}", "it has no \"schema\", expected a JSON object"),
        (b"{\"schema\": \"other/1\"}", "its \"schema\" is \"other/1\", expected \"batchmark/1\""),
        (b"{\"schema\": \"batchmark/0\"}", "its \"schema\" is \"batchmark/0\""),
        (b"{\"schema\": 1}", "its \"schema\" is 1, expected"),
        (b"{\"schema\": \"batchmark/1\", \"records\": \"none\"}", "\"records\" is text, expected a list"),
    ];
    for (text, expected) in cases {
        let message = parse(Path::new("a.json"), text).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
        assert!(
            message.starts_with("\"a.json\" is not a Batchmark result file: ") && !message.contains('\n'),
            "{message}"
        );
    }
}

#[test]
fn a_bad_record_is_left_out_by_index_and_field() {
    let cases = [
        ("/minibatch", json!(-1), "minibatch is -1 (invalid value: integer `-1`"),
        ("/minibatch", json!(0), "minibatch is 0, expected at least 1"),
        ("/model", json!([]), "model is [] (invalid type: sequence"),
        ("/status", json!("melted"), "status is \"melted\" (unknown variant `melted`"),
        ("/throughput_per_sec", json!("9,99"), "throughput_per_sec is \"9,99\" (invalid type"),
        ("/throughput_per_sec", json!(-5.0), "throughput_per_sec is -5, expected a number above 0"),
        ("/throughput_per_sec", Value::Null, "status is \"ok\" without a throughput_per_sec"),
        ("/timing/median_ms", json!({}), "timing.median_ms is {} (invalid type"),
        ("/timing/median_ms", json!(0.0), "timing.median_ms is 0, expected a number above 0"),
        ("/timing/samples_ms", json!([1.0, -1.0]), "timing.samples_ms is -1, expected a number of at least 0"),
        ("/timing/samples_ms", json!([1.0, null]), "timing.samples_ms is [1.0,null] (invalid type: null"),
        ("/timing", json!({"clock": "host"}), "timing: missing field `iterations`"),
        ("/verification/tolerance", json!(-1e-3), "verification.tolerance is -0.001"),
        ("/memory/planned_bytes", json!(1.5), "memory.planned_bytes is 1.5 (invalid type"),
    ];
    for (pointer, value, expected) in cases {
        let text = with_field(pointer, value).to_string();
        let loaded = parse(Path::new("a.json"), text.as_bytes()).unwrap();
        assert_eq!(loaded.file.records, [record(2)], "{pointer}");
        assert_eq!(loaded.n_left_out, 1);
        let note = loaded.notes.iter().find(|note| note.starts_with("record 0 left out: ")).expect(pointer);
        assert!(note.contains(expected), "{note}");
    }
    let mut missing = serde_json::to_value(file(vec![record(1)])).unwrap();
    missing["records"][0].as_object_mut().unwrap().remove("engine");
    missing["records"].as_array_mut().unwrap().push(json!({ "device": 3 }));
    missing["records"].as_array_mut().unwrap().push(json!("text"));
    let loaded = parse(Path::new("a.json"), missing.to_string().as_bytes()).unwrap();
    assert_eq!(loaded.notes[1], "record 0 left out: missing field `engine`");
    assert_eq!(loaded.notes[3], "record 2 left out: it is text, expected an object");
}

#[test]
fn a_framework_that_another_program_measured_is_an_engine() {
    let foreign = Record { engine: "pytorch".to_owned(), ..record(1) };
    let text = serde_json::to_string(&file(vec![foreign.clone()])).unwrap();
    let loaded = parse(Path::new("a.json"), text.as_bytes()).unwrap();
    assert_eq!((loaded.file.records, loaded.n_left_out), (vec![foreign], 0));
}

#[test]
fn a_device_that_can_not_be_read_keeps_its_place() {
    let mut record = record(1);
    record.device = Some(1);
    let mut value =
        serde_json::to_value(ResultFile { devices: vec![device("A"), device("B")], ..file(vec![record]) }).unwrap();
    value["devices"][0] = json!({ "id": "a", "name": "A", "kind": "tensor_unit" });
    value["host"] = json!("anna");
    let loaded = parse(Path::new("a.json"), value.to_string().as_bytes()).unwrap();
    assert_eq!(loaded.file.devices, [Device { kind: crate::engine::DeviceKind::Other, ..device("A") }, device("B")]);
    assert!(loaded.notes.iter().any(|note| note.starts_with("device 0 can't be read in full: ")), "{:?}", loaded.notes);
    assert!(loaded.notes.iter().any(|note| note.starts_with("\"host\" left out: ")), "{:?}", loaded.notes);
    value["records"][0]["device"] = json!(2);
    let loaded = parse(Path::new("a.json"), value.to_string().as_bytes()).unwrap();
    let note = "record 0 left out: device is 2, the file lists 2";
    assert!(loaded.notes.iter().any(|found| found == note), "{:?}", loaded.notes);
}

#[test]
fn a_newer_schema_loads_what_it_can_and_loses_nothing_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("newer.json");
    let mut value = serde_json::to_value(file(vec![record(1), record(2)])).unwrap();
    value["schema"] = json!("batchmark/2");
    value["weather"] = json!({ "celsius": 21.5 });
    value["records"][0]["status"] = json!("melted");
    value["records"][1]["joules"] = json!(0.1);
    fs::write(&path, value.to_string()).unwrap();
    let loaded = load(&path).unwrap();
    assert!(loaded.notes[0].contains("schema \"batchmark/2\", this one knows \"batchmark/1\""), "{:?}", loaded.notes);
    assert_eq!((loaded.file.records.len(), loaded.n_left_out), (1, 1));
    let mut store = Store::open(Some(&path), None).unwrap();
    store.add(record(3), None).unwrap();
    let after: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!((&after["schema"], &after["weather"]), (&value["schema"], &value["weather"]));
    assert_eq!(after["records"].as_array().unwrap()[..2], value["records"].as_array().unwrap()[..]);
    assert_eq!(after["records"].as_array().unwrap().len(), 3);
}

#[test]
fn a_huge_file_is_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.json");
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    assert!(load(&path).unwrap_err().to_string().ends_with("it has 1024 MiB, expected at most 256 MiB"));
    assert!(load(folder.path()).unwrap_err().to_string().ends_with("it is a folder"));
    let absent = load(&folder.path().join("absent.json")).unwrap_err();
    assert!(matches!(absent, LoadError::Io { .. }), "{absent}");
}

#[test]
fn an_edit_shows_and_reformatting_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    save(&path, &file(vec![record(1)])).unwrap();
    assert_eq!(load(&path).unwrap().notes, Vec::<String>::new());
    let text = fs::read_to_string(&path).unwrap();
    let pretty: Value = serde_json::from_str(&text).unwrap();
    fs::write(&path, format!("\u{feff}{pretty:#}")).unwrap();
    assert_eq!(load(&path).unwrap().notes, Vec::<String>::new());
    fs::write(&path, text.replace("1.5", "1.4")).unwrap();
    let loaded = load(&path).unwrap();
    assert!(loaded.file.edited && loaded.notes[0].starts_with("edited since it was measured"), "{:?}", loaded.notes);
    // Adding records makes a new digest, which must not hide the edit.
    Store::open(Some(&path), None).unwrap().add(record(2), None).unwrap();
    let loaded = load(&path).unwrap();
    assert!(loaded.file.edited && loaded.notes[0].contains("were edited"), "{:?}", loaded.notes);
}

#[test]
fn an_edit_can_not_be_washed_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let change = |edit: &dyn Fn(&mut Map<String, Value>)| {
        let mut content: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        edit(content.as_object_mut().unwrap());
        fs::write(&path, content.to_string()).unwrap();
    };
    save(&path, &file(vec![record(1)])).unwrap();
    change(&|content| {
        content.remove("digest");
    });
    Store::open(Some(&path), None).unwrap().add(record(2), None).unwrap();
    assert!(load(&path).unwrap().file.edited, "records without a digest got one");
    change(&|content| {
        content.remove("edited");
    });
    assert!(load(&path).unwrap().file.edited, "the mark was removed");
    change(&|content| {
        content.insert("digest".to_owned(), Value::Null);
    });
    let elsewhere = folder.path().join("b.json");
    save(&elsewhere, &load(&path).unwrap().file).unwrap();
    assert!(load(&elsewhere).unwrap().file.edited, "records without a digest got one in another place");
}

/// A digest speaks for what was measured here. Figures of others, as a script wrote them, need none.
#[test]
fn figures_of_others_need_no_digest() {
    let check = |records: Vec<Record>, is_edited: bool| {
        let written = serde_json::to_vec(&ResultFile { digest: None, ..file(records) }).unwrap();
        let loaded = parse(Path::new("others.json"), &written).unwrap();
        assert_eq!((loaded.file.edited, loaded.notes.len()), (is_edited, usize::from(is_edited)), "{:?}", loaded.notes);
    };
    check(vec![published(), published()], false);
    check(vec![published(), record(1)], true);
    check(vec![record(1)], true);
}

/// R15: a program that is killed after four of five runs leaves a whole file with four records.
#[test]
fn the_file_is_whole_after_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let mut store = Store::open(Some(&path), None).unwrap();
    for n_records in 1..=4 {
        store.add(record(n_records), Some(&device("A"))).unwrap();
        let loaded = load(&path).unwrap();
        assert_eq!((loaded.file.records.len(), loaded.notes), (n_records, Vec::new()));
    }
}

/// Results that are published with the program are as they were measured.
#[test]
fn published_results_are_unedited_and_of_the_present_networks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/measured");
    let mut n_files = 0;
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let loaded = load(&path).unwrap();
        assert_eq!(loaded.notes, Vec::<String>::new(), "{path:?}");
        for record in &loaded.file.records {
            let graph = record.model.parse::<crate::models::Model>().unwrap().graph();
            assert_eq!(record.definition, format!("{} {}", graph.definition(), graph.definition_hash()), "{path:?}");
        }
        n_files += 1;
    }
    assert!(n_files > 0);
}

#[test]
fn a_record_with_impossible_numbers_is_kept_as_a_failure() {
    let mut store = Store::open(None, None).unwrap();
    store.add(Record { throughput_per_sec: Some(f64::INFINITY), ..record(1) }, None).unwrap();
    let kept = &store.file().records[0];
    assert_eq!((kept.status, kept.throughput_per_sec), (Status::Failed, None));
    assert!(kept.reason.as_deref().unwrap().contains("throughput_per_sec is inf"), "{kept:?}");
}

#[test]
fn a_failed_save_keeps_the_records_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("below");
    let path = below.join("a.json");
    let mut store = Store::open(Some(&path), Some("bench 3")).unwrap();
    let error = store.add(record(1), Some(&device("A"))).unwrap_err();
    assert!(error.to_string().contains("can't be written: "), "{error}");
    assert!(!store.is_saved());
    fs::create_dir(&below).unwrap();
    store.add(record(2), Some(&device("A"))).unwrap();
    assert!(store.is_saved());
    let loaded = load(&path).unwrap();
    assert_eq!(loaded.file.records.len(), 2);
    assert_eq!(loaded.file.devices, [device("A")]);
    assert_eq!(loaded.file.host.label.as_deref(), Some("bench 3"));
    assert_eq!(loaded.notes, Vec::<String>::new());
    let names: Vec<_> = fs::read_dir(&below).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.json"], "nothing is left beside the file");
}

#[test]
fn something_else_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thesis.txt");
    fs::write(&path, "chapter 1").unwrap();
    assert!(Store::open(Some(&path), None).is_err());
    let mut store = Store::open(None, None).unwrap();
    store.add(record(1), None).unwrap();
    let error = store.save_as(&path).unwrap_err().to_string();
    assert!(error.contains("something else is there"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "chapter 1");
}

#[cfg(unix)]
#[test]
fn permissions_and_links_outlive_a_save() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("a.json"), folder.path().join("link.json"));
    save(&path, &file(vec![record(1)])).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, &link).unwrap();
    save(&link, &file(vec![record(2)])).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(load(&path).unwrap().file.records.len(), 2);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
    assert!(save(&path, &file(vec![record(3)])).unwrap_err().to_string().contains("read-only"));
}

#[test]
fn files_merge_with_their_devices_and_machines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    let on = |minibatch, device| Record { device: Some(device), ..record(minibatch) };
    let ours = ResultFile { devices: vec![device("A"), device("B")], ..file(vec![on(1, 0), on(2, 1), on(2, 1)]) };
    let mut theirs = ResultFile { devices: vec![device("B"), device("C")], ..file(vec![on(2, 0), on(3, 1)]) };
    save(&path, &ours).unwrap();
    save(&path, &theirs).unwrap();
    save(&path, &ours).unwrap();
    let merged = load(&path).unwrap().file;
    assert_eq!(merged.devices, [device("A"), device("B"), device("C")]);
    assert_eq!(merged.records, [on(1, 0), on(2, 1), on(2, 1), on(3, 2)]);
    theirs.host.cpu = "another".to_owned();
    save(&path, &theirs).unwrap();
    let merged = load(&path).unwrap().file;
    assert_eq!((merged.devices.len(), merged.records.len()), (5, 6));
    assert_eq!(host_of(&merged, &merged.records[5]).cpu, "another");
    assert_eq!(host_of(&merged, &merged.records[0]).cpu, "");
}

#[test]
fn programs_that_share_a_file_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.json");
    thread::scope(|scope| {
        for program in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let mut store = Store::open(Some(path), None).unwrap();
                for run in 1..=10 {
                    store.add(record(100 * program + run), Some(&device(&format!("GPU {program}")))).unwrap();
                }
            });
        }
    });
    let loaded = load(&path).unwrap();
    let mut minibatches: Vec<usize> = loaded.file.records.iter().map(|record| record.minibatch).collect();
    minibatches.sort_unstable();
    let expected: Vec<usize> = (0..4).flat_map(|program| (1..=10).map(move |run| 100 * program + run)).collect();
    assert_eq!(minibatches, expected);
    assert!(loaded.file.records.iter().all(|record| {
        loaded.file.devices[record.device.unwrap()].name == format!("GPU {}", record.minibatch / 100)
    }));
    assert_eq!(loaded.notes, Vec::<String>::new());
}

#[test]
fn a_stuck_lock_of_a_dead_program_does_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let mut left = fs::File::create(folder.path().join(".a.json.lock")).unwrap();
    left.write_all(b"left by a program that was killed").unwrap();
    save(&folder.path().join("a.json"), &file(vec![record(1)])).unwrap();
}

/// Any JSON value of small depth.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,4}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Fields that no version of the schema has.
fn any_extra() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(("x_[a-z]{0,6}", any_json()), 0..4).prop_map(|fields| fields.into_iter().collect())
}

fn any_record() -> impl Strategy<Value = Record> {
    let positive = || (1e-300..1e300f64).boxed();
    (
        (1..usize::MAX, any_extra(), any_extra(), any_extra()),
        (positive(), positive(), prop::collection::vec(0.0..1e6f64, 0..5), any::<f64>()),
        (".{0,12}", prop::option::of(0..2usize), any::<Option<u64>>()),
    )
        .prop_map(
            |(
                (minibatch, extra, timing_extra, memory_extra),
                (median, rate, samples, drift),
                (text, device, bytes),
            )| {
                let mut record = record(minibatch);
                let timing = record.timing.as_mut().unwrap();
                timing.median_ms = median;
                timing.samples_ms = samples;
                timing.drift = Some(drift).filter(|drift| drift.is_finite());
                timing.extra = timing_extra;
                record.throughput_per_sec = Some(rate);
                record.memory = Memory { peak_bytes: bytes, extra: memory_extra, ..Memory::default() };
                record.reason = Some(text);
                Record { device, extra, ..record }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_saved_is_what_loads(records in prop::collection::vec(any_record(), 0..4), extra in any_extra()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let file = ResultFile { devices: vec![device("A"), device("B")], extra, ..file(records) };
        save(&path, &file).unwrap();
        let loaded = load(&path).unwrap();
        prop_assert_eq!(&loaded.notes, &Vec::<String>::new());
        prop_assert_eq!(ResultFile { digest: None, ..loaded.file.clone() }, file);
        let before = fs::read(&path).unwrap();
        save(&path, &loaded.file).unwrap();
        prop_assert!(before == fs::read(&path).unwrap(), "a second save changed the file");
    }

    #[test]
    fn no_text_makes_the_reader_panic(cut in 0..4000usize, place in 0..4000usize, byte in any::<u8>()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        save(&path, &ResultFile { devices: vec![device("A")], ..file(vec![record(1), record(2)]) }).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let length = bytes.len();
        bytes[place % length] = byte;
        bytes.truncate(if cut % 2 == 0 { length } else { cut % length });
        // An error or notes are both fine.
        let _ = parse(&path, &bytes);
    }
}

#[test]
fn a_published_figure_needs_neither_minibatch_nor_throughput() {
    let (record, nonsense) = (published(), |value| {
        let mut record = published();
        record.origin.as_mut().unwrap().figure.value = value;
        record
    });
    let text = text(&file(vec![record.clone()])).unwrap();
    let loaded = parse(Path::new("f"), text.as_bytes()).unwrap();
    assert_eq!((loaded.file.records, loaded.n_left_out), (vec![record.clone()], 0));
    assert!(fault::check(&nonsense(f64::NAN), 0).unwrap_err().contains("origin.figure.value"));
    // Without its origin the same record is a fault.
    assert!(fault::check(&Record { origin: None, ..record }, 0).unwrap_err().contains("minibatch is 0"));
}
