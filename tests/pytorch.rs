//! The comparison with PyTorch (`tests/pytorch/`) and PyTorch's result file (`datasets/pytorch/`), as far as they go
//! without a GPU: canned figures in, table and result file out.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use compute::bench::record::Status;
use compute::models::Model;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Rows as `baseline.py` writes them.
const BASELINE: &str = "\
# {\"device\": \"NVIDIA H200\", \"memory_bytes\": 150000000000, \"torch\": \"2.11.0+cu130\", \"cudnn\": \"91900\"}
resnet50,64,bf16,forward,graph,4.5000,14222.2,4.400 4.500 4.600
resnet50,64,bf16,forward,compile,2.9490,21702.3,2.948 2.949 2.950
resnet50,1,bf16,forward,compile,0.4670,2141.3
vgg_a,64,bf16,forward,graph,2.6300,24334.6
alexnet,64,f32,forward_backward,eager,error,OutOfMemoryError: CUDA out of memory
# time limit, 12 rows not measured
";

/// Runs a script of the comparison; nothing where there is no Python.
fn python(folder: &TempDir, arguments: &[&str]) -> Option<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/pytorch").join(arguments[0]);
    let mut command = Command::new("python3");
    command.current_dir(folder.path()).env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    match command.arg(script).args(&arguments[1..]).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped, there is no Python: {error}");
            None
        }
    }
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn record(model: &str, minibatch: usize, throughput: f64) -> Value {
    json!({
        "model": model, "definition": format!("{model}/1 00"), "pass": "forward", "precision": "bf16",
        "minibatch": minibatch, "engine": "cuda", "device": 0, "started": "2026-11-30T12:00:00Z", "status": "ok",
        "throughput_per_sec": throughput,
    })
}

#[test]
fn both_programs_stand_in_one_table_with_their_targets() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ours = json!({
        "schema": "batchmark/1", "created": "2026-11-30T12:00:00Z", "program": "0.1.0",
        "devices": [{ "id": "GPU-1", "name": "NVIDIA H200", "kind": "discrete" }],
        "records": [record("resnet50", 64, 29_000.0), record("resnet50", 1, 2_000.0), record("vgg_a", 64, 29_100.0)],
    });
    fs::write(folder.path().join("ours.json"), ours.to_string()).expect("the folder is writable");
    fs::write(folder.path().join("rows.csv"), BASELINE).expect("the folder is writable");
    let arguments = ["compare.py", "--only-ours", "ours.json", "--baseline", "rows.csv", "--out", "both"];
    let Some(output) = python(&folder, &arguments) else { return };
    let table = stdout(&output);
    let expected = [
        "| resnet50 | forward | bf16 | 64 | compile | 21,702 | 29,000 | 1.34 | 50% | 1.25 x | 27,128 | met |",
        // The roofline's share is lower than the factor.
        "| vgg_a | forward | bf16 | 64 | graph | 24,335 | 29,100 | 1.20 | 75% | 75% of roofline | 29,055 | met |",
        "| resnet50 | forward | bf16 | 1 | compile | 2,141 | 2,000 | 0.93 |  | 1.25 x | 2,677 | missed by 25.3% |",
        "| alexnet | forward_backward | f32 | 64 | none |  | not measured |  |  |  |  |  |",
        "2 of 3 targets met.",
    ];
    for line in expected {
        assert!(table.lines().any(|other| other == line), "{line}\n{table}");
    }
    let csv = fs::read_to_string(folder.path().join("both/comparison.csv")).expect("the table is written");
    assert_eq!(csv.lines().count(), 5, "{csv}");

    // The result file is one that the program loads, of the same network on the same device.
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_batchmark"));
        stdout(&command.current_dir(folder.path()).args(arguments).output().expect("the program starts"))
    };
    let rows: Value =
        serde_json::from_str(&program(&["show", "both/pytorch.json", "--format", "json"])).expect("it is JSON");
    let row = |i: usize, key: &str| rows[i][key].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(4), "{rows}");
    assert_eq!((row(0, "engine"), row(0, "device_id")), (json!("pytorch"), json!("GPU-1")));
    assert_eq!((row(0, "median_ms"), row(0, "definition")), (json!(2.949), json!("resnet50/1 00")));
    assert_eq!(row(3, "status"), json!("out_of_memory"));
    let compared = program(&["compare", "both/pytorch.json", "ours.json"]);
    assert!(compared.contains("NVIDIA H200, pytorch (baseline)") && compared.contains("1.34"), "{compared}");
}

/// What a colleague with PyTorch sends is of the networks that this program has.
#[test]
fn a_colleague_without_the_program_gets_a_result_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tf32 = "vgg16,64,tf32,forward,eager,error,NotSupported: TF32 needs an NVIDIA GPU\n";
    fs::write(folder.path().join("rows.csv"), format!("{BASELINE}{tf32}")).expect("the folder is writable");
    let arguments = ["../../datasets/pytorch/run.py", "--csv", "rows.csv", "--out", "theirs"];
    let Some(output) = python(&folder, &arguments) else { return };
    let said = stdout(&output);
    assert!(said.contains("3 of 5 rows measured, NVIDIA H200"), "{said}");
    let text = fs::read(folder.path().join("theirs/pytorch.json")).expect("the file is written");
    let path = Path::new("theirs/pytorch.json");
    let file = compute::bench::store::parse(path, &text).expect("it is a result file").file;
    assert_eq!((file.program.as_str(), file.records.len()), ("datasets/pytorch/run.py", 5));
    for record in &file.records {
        let graph = record.model.parse::<Model>().expect("a network of the suite").graph();
        assert_eq!(record.definition, format!("{} {}", graph.definition(), graph.definition_hash()));
        assert_eq!((record.engine.as_str(), record.libraries["pytorch"].as_str()), ("PyTorch 2.11.0", "2.11.0+cu130"));
    }
    let statuses: Vec<Status> = file.records.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Ok, Status::Ok, Status::OutOfMemory, Status::NotSupported]);
}

/// A time limit costs the least: the halves first, and in each group torch.compile last.
#[test]
fn the_important_rows_come_first() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(output) = python(&folder, &["baseline.py", "--list"]) else { return };
    let rows = stdout(&output);
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows.len(), (8 * 2 * 4 + 1) * 4);
    assert_eq!(rows[..2], ["resnet50,64,bf16,forward,graph", "resnet50,64,bf16,forward,channels_last"]);
    let place = |row: &str| rows.iter().position(|other| *other == row).unwrap_or_else(|| panic!("no {row}"));
    assert!(place("resnet152,64,bf16,forward,eager") < place("resnet50,1,bf16,forward,compile"));
    assert!(place("resnet152,64,bf16,forward,compile") < place("resnet50,64,bf16,forward_backward,graph"));

    let selected =
        ["baseline.py", "--list", "--rows", "resnet50/forward/bf16/1,*/forward_backward/f32", "--modes", "eager"];
    let selected = python(&folder, &selected).map(|output| stdout(&output)).unwrap_or_default();
    assert_eq!(selected.lines().count(), 1 + 8, "{selected}");
    let unknown = python(&folder, &["baseline.py", "--list", "--models", "resnet5"]).expect("Python is there");
    assert_eq!(unknown.status.code(), Some(2));
}
