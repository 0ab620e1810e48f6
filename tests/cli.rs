//! The command line as its users meet it: exit status, messages, files.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The shortest run there is.
const SHORT: [&str; 9] =
    ["--engine", "cpu", "--minibatch", "1", "--iterations", "3", "--max-seconds", "0.1", "--pass=forward"];

/// The program, in a folder of its own and with its data below it.
fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchmark"));
    command.current_dir(folder).env("HOME", folder).env_remove("XDG_DATA_HOME").stdin(Stdio::null());
    command
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    program(folder.path()).args(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Runs and expects an exit status.
fn run_to(folder: &TempDir, arguments: &[&str], status: i32) -> Output {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    output
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A result file of one record, as another machine could have written it.
fn write_file(folder: &TempDir, name: &str, driver: &str, throughput: f64) {
    let file = json!({
        "schema": "batchmark/1", "created": "2017-05-09T12:34:56Z", "program": "0.1.0",
        "host": { "os": "Linux", "cpu": "CPU" },
        "devices": [{ "id": "gpu0", "name": "GPU", "kind": "discrete", "driver": driver }],
        "records": [{
            "model": "resnet50", "definition": "resnet50/1 00", "pass": "forward", "precision": "f32", "minibatch": 64,
            "engine": "wgsl", "device": 0, "started": "2017-05-09T12:34:56Z", "status": "ok",
            "throughput_per_sec": throughput,
        }],
    });
    fs::write(folder.path().join(name), file.to_string()).expect("the folder is writable");
}

fn load(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("the file exists")).expect("it is JSON")
}

#[test]
fn wrong_arguments_list_the_valid_ones() {
    let folder = folder();
    fs::write(folder.path().join("thesis.txt"), "chapter 1").expect("the folder is writable");
    write_file(&folder, "a.json", "1", 100.0);
    let cases: [(&[&str], &str); 17] = [
        (&["run", "--model", "resnet5"], "expected one of: alexnet, overfeat, vgg_a, vgg16, googlenet, resnet50"),
        (&["run", "--model", "alexnet,nonsense"], "unknown model \"nonsense\""),
        (&["memory", "--model", "resnet5"], "resnet101, resnet152"),
        (&["run", "--precision", "fp32"], "expected one of: f32, tf32, f16, bf16"),
        (&["run", "--pass", "backward"], "expected one of: forward, forward_backward"),
        (&["run", "--engine", "cuda-x"], "unknown engine \"cuda-x\", expected one of: "),
        (&["run", "--engine", "fake"], "unknown engine \"fake\""),
        (&["run", "--suite", "huge"], "expected one of: quick, standard, sweep"),
        (&["run", "--device", "gpu-17"], "unknown device \"gpu-17\"; there are: "),
        (&["run", "--minibatch", "0"], "expected a whole number from 1 to"),
        (&["run", "--minibatch", "99999999999999"], "expected a whole number from 1 to"),
        (&["run", "--max-seconds", "NaN"], "expected a number above 0"),
        (&["run", "--out", "nowhere/a.json"], "there is no folder \"nowhere\""),
        (&["run", "--out", "thesis.txt"], "\"thesis.txt\" is not a Batchmark result file"),
        (&["show", "--format", "xlsx", "a.json"], "expected one of: text, csv, md, json"),
        (&["compare", "a.json", "--baseline", "2"], "expected one of: 1 (a.json, GPU, wgsl)"),
        (&["export", "a.json", "--format", "csv", "--out", "./a.json"], "name another --out"),
    ];
    for (arguments, expected) in cases {
        let output = run_to(&folder, arguments, 2);
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("thesis.txt")).expect("still there"), "chapter 1");
    run_to(&folder, &["rnu"], 2);
    run_to(&folder, &["show"], 2);
}

/// Parameters and multiply-accumulates from the layer tables of the published benchmarks.
#[test]
fn models_have_the_published_sizes() {
    let models: Value = serde_json::from_str(&stdout(&run_to(&folder(), &["models", "--json"], 0))).expect("JSON");
    let expected = [
        ("alexnet", 224, 61_100_840u64, 714_188_480u64),
        ("overfeat", 231, 145_920_872, 2_801_403_904),
        ("vgg_a", 224, 132_863_336, 7_609_090_048),
        ("vgg16", 224, 138_357_544, 15_470_264_320),
        ("googlenet", 224, 6_998_552, 1_582_671_872),
        ("resnet50", 224, 25_557_032, 4_089_184_256),
        ("resnet101", 224, 44_549_160, 7_801_405_440),
        ("resnet152", 224, 60_192_808, 11_513_626_624),
    ];
    assert_eq!(models.as_array().map(Vec::len), Some(expected.len()));
    for (model, (name, side, parameters, macs)) in models.as_array().into_iter().flatten().zip(expected) {
        assert_eq!(model["name"], name);
        assert_eq!(model["input"], json!([3, side, side]), "{name}");
        assert_eq!((&model["parameters"], &model["macs"]), (&json!(parameters), &json!(macs)), "{name}");
        assert_eq!((&model["definition"], &model["classes"]), (&json!(format!("{name}/1")), &json!(1000)), "{name}");
        assert_eq!(model["hash"].as_str().map(str::len), Some(16), "{name}");
    }
    let text = stdout(&run_to(&folder(), &["models"], 0));
    assert!(text.contains("15470264320"), "{text}");
}

#[test]
fn memory_is_told_without_a_device() {
    let bars = [
        ("vgg16", "forward", 2.4e9),
        ("vgg16", "forward_backward", 7.5e9),
        ("resnet50", "forward", 1.2e9),
        ("resnet50", "forward_backward", 7.0e9),
    ];
    let output = run_to(&folder(), &["memory", "--model", "vgg16,resnet50", "--json"], 0);
    let rows: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(bars.len()));
    for (row, (model, pass, bar)) in rows.as_array().into_iter().flatten().zip(bars) {
        assert_eq!((&row["model"], &row["pass"], &row["minibatch"]), (&json!(model), &json!(pass), &json!(64)));
        let bytes = row["planned_bytes"].as_f64().expect("a number");
        assert!(bytes > 1e8 && bytes <= bar, "{model} {pass}: {bytes}");
    }
    let arguments =
        ["memory", "--model", "alexnet", "--pass", "forward", "--precision", "f32,f16", "--minibatch", "1,2"];
    let text = stdout(&run_to(&folder(), &arguments, 0));
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(text.starts_with("model") && text.contains("planned (GiB)"), "{text}");
}

#[test]
fn devices_are_listed_for_people_and_programs() {
    let text = stdout(&run_to(&folder(), &["devices"], 0));
    assert!(text.lines().any(|line| line.starts_with("cpu ") && line.contains("available")), "{text}");
    let listings: Value = serde_json::from_str(&stdout(&run_to(&folder(), &["devices", "--json"], 0))).expect("JSON");
    assert!(listings.as_array().into_iter().flatten().any(|listing| listing["engine"] == "cpu"), "{listings}");
}

/// What `batchmark devices` says of the CUDA engine, as text and in JSON, where the loader looks into `libraries` first
/// and no NVIDIA driver is installed; `None` where one is.
#[cfg(target_os = "linux")]
fn cuda_in(libraries: &Path) -> Option<(String, Value)> {
    let installed =
        ["/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"];
    if installed.iter().any(|folder| Path::new(folder).join("libcuda.so.1").exists()) {
        eprintln!("skipped: an NVIDIA driver is installed");
        return None;
    }
    let folder = folder();
    let devices = |arguments: &[&str]| {
        let mut command = program(folder.path());
        command.env("LD_LIBRARY_PATH", libraries).env_remove("BATCHMARK_LIBRARIES").arg("devices").args(arguments);
        let output = command.output().expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let listings: Value = serde_json::from_str(&devices(&["--json"])).expect("JSON");
    let found = listings.as_array().into_iter().flatten().find(|listing| listing["engine"] == "cuda");
    Some((devices(&[]), found.expect("the engine is listed").clone()))
}

/// R17, R24: nothing of NVIDIA's is installed.
#[cfg(target_os = "linux")]
#[test]
fn without_a_driver_the_cuda_engine_says_what_to_install() {
    let nothing = folder();
    let Some((text, listing)) = cuda_in(nothing.path()) else { return };
    let said = listing["unavailable"].as_str().expect("a reason");
    assert!(said.starts_with("no NVIDIA driver was found in ") && said.contains("install its driver"), "{said}");
    assert!(text.contains(&format!("cuda, no device: unavailable: {said}\n")), "{text}");
    assert!(text.lines().any(|line| line.starts_with("cpu ") && line.ends_with("available")), "{text}");
}

/// R18, R24: a driver that reports no device, one that is too old, and a toolkit's stub of one.
#[cfg(target_os = "linux")]
#[test]
fn a_driver_without_device_is_told_from_one_too_old_and_a_stub() {
    const NEEDED: &str = include_str!("../compute/src/engine/cuda/library/open.rs");
    let functions =
        NEEDED.split("Part::Driver => &[\n").nth(1).and_then(|rest| rest.split(']').next()).expect("a list");
    let functions: Vec<&str> = functions.split('"').skip(1).step_by(2).collect();
    assert!(functions.len() > 20, "{functions:?}");
    for (version, status, init, expected) in [
        (13000, 0, 100, "the NVIDIA driver (CUDA 13.0) has no device; check that nvidia-smi lists the GPU"),
        (11080, 0, 0, "it supports CUDA 11.8 and is too old, CUDA 12.0 is needed"),
        (0, 34, 34, "it is a toolkit's stub and not a driver"),
    ] {
        let libraries = folder();
        let mut source = format!(
            "int cuDriverGetVersion(int* version) {{ *version = {version}; return {status}; }}\n\
             int cuInit(unsigned flags) {{ return {init}; }}\n"
        );
        for name in functions.iter().copied().filter(|name| *name != "cuInit") {
            source += &format!("int {name}(void) {{ return 0; }}\n");
        }
        let text = libraries.path().join("driver.c");
        fs::write(&text, source).expect("the folder is writable");
        let library = libraries.path().join("libcuda.so.1");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"])
            .args([&library, &text])
            .output();
        let Ok(built) = built else {
            eprintln!("skipped: there is no C compiler cc to build a driver with");
            return;
        };
        assert!(built.status.success(), "{}", stderr(&built));
        let Some((text, listing)) = cuda_in(libraries.path()) else { return };
        let said = listing["unavailable"].as_str().expect("a reason");
        assert!(said.contains(expected), "{expected:?} in {said}");
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn each_bad_file_is_named_in_a_line_and_the_others_load() {
    let folder = folder();
    write_file(&folder, "good.json", "1", 100.0);
    let good = fs::read_to_string(folder.path().join("good.json")).expect("just written");
    let bad = [
        (
            "foreign.json",
            "{\"results\": []}".to_owned(),
            "its format is not known, expected a result file of one of: Batchmark",
        ),
        ("truncated.json", good[..good.len() / 2].to_owned(), "it is cut off at line 1"),
        ("nan.json", good.replace("100.0", "NaN"), "it has a NaN or an infinity"),
        ("deep.json", format!("{{\"schema\":{}", "[".repeat(100_000)), "is broken at line 1"),
        ("types.json", good.replace("[{\"model\"", "\"x\",[{\"model\""), "it is not JSON"),
        (
            "records.json",
            "{\"schema\": \"batchmark/1\", \"records\": 1}".to_owned(),
            "\"records\" is a number, expected a list",
        ),
    ];
    let mut arguments = vec!["show", "good.json", "missing.json", "huge.json", "."];
    for (name, text, _) in &bad {
        fs::write(folder.path().join(name), text).expect("the folder is writable");
        arguments.push(name);
    }
    let huge = fs::File::create(folder.path().join("huge.json")).expect("the folder is writable");
    huge.set_len(1 << 30).expect("sparse files need no room");
    let output = run_to(&folder, &arguments, 1);
    assert!(stdout(&output).contains("resnet50"), "the good file is shown");
    let said = stderr(&output);
    let others =
        [("missing.json", "can't be read: "), ("huge.json", "expected at most 256 MiB"), (".", "it is a folder")];
    for (name, expected) in bad.iter().map(|(name, _, expected)| (*name, *expected)).chain(others) {
        let lines: Vec<&str> = said.lines().filter(|line| line.starts_with(&format!("error: {name:?} "))).collect();
        assert!(lines.len() == 1 && lines[0].contains(expected), "{name}: {lines:?}");
    }
}

/// A file of every format that is known, as its program writes it; a log of a device's state holds no results.
#[test]
fn files_of_other_programs_are_imported() {
    let folder = folder();
    let fixtures = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../compute/src/import/fixtures"));
    let mut count = 0;
    for fixture in fs::read_dir(fixtures).expect("the folder exists").flatten() {
        let path = fixture.path();
        let path = path.to_str().expect("UTF-8");
        if path.ends_with("nvidia_smi.csv") {
            let output = run_to(&folder, &["import", path, "--out", "smi.json"], 1);
            assert!(stderr(&output).contains("utilization 66%"), "{}", stderr(&output));
            continue;
        }
        run_to(&folder, &["import", path, "--out", "all.json", "--device", "NVIDIA GeForce RTX 4090"], 0);
        count += 1;
    }
    let rows = run_to(&folder, &["show", "all.json", "--format", "json"], 0);
    let rows: Value = serde_json::from_str(&stdout(&rows)).expect("JSON");
    let rows = rows.as_array().expect("a list");
    assert!(count > 10 && rows.len() > 3 * count, "{count} files, {} records", rows.len());
    assert!(rows.iter().all(|row| row["device"].is_string()));
}

/// Pickles run code when they are loaded.
#[test]
fn what_is_no_result_file_says_what_was_expected() {
    let folder = folder();
    fs::write(folder.path().join("results.pkl"), b"\x80\x04\x95").expect("the folder is writable");
    fs::write(folder.path().join("half.csv"), "model,infer_samples_per_sec\n").expect("the folder is writable");
    let output = run_to(&folder, &["import", "results.pkl", "half.csv", "--out", "out.json"], 1);
    let said = stderr(&output);
    for expected in ["results.pkl\" can't be imported: it is a Python pickle", "half.csv\" looks like a file of timm"] {
        assert!(said.contains(expected), "{expected:?} in {said}");
    }
    assert!(!folder.path().join("out.json").exists(), "nothing is written where nothing was read");
}

/// The acceptance of a buyer: 2000 in money, 24 GiB, training two networks in mixed precision.
#[test]
fn gpus_are_ranked_for_a_buyer() {
    let folder = folder();
    let arguments = [
        "decide",
        "--model",
        "resnet50,vgg16",
        "--budget",
        "2000",
        "--memory",
        "24",
        "--precision",
        "f16",
        "--top",
        "50",
    ];
    let output = run_to(&folder, &[&arguments[..], &["--format", "json"]].concat(), 0);
    let rows: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let rows = rows.as_array().expect("a list");
    assert!(!rows.is_empty());
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    for row in rows {
        assert!(number(row, "price") <= 2000.0 && number(row, "memory_gib") >= 24.0, "{row}");
        let evidence = row["evidence"].as_str().expect("every number says where it comes from");
        assert!(evidence.contains("published by") || evidence.contains("estimated from"), "{evidence}");
    }
    let rates: Vec<f64> = rows.iter().map(|row| number(row, "throughput_per_sec")).collect();
    assert!(rates.is_sorted_by(|a, b| a >= b), "{rates:?}");
    let people = stdout(&run_to(&folder, &arguments, 0));
    assert!(people.contains("Not candidates: ") && people.contains("needs "), "{people}");
    // A price of the user's, and what is no GPU.
    let given = run_to(&folder, &[&arguments[..], &["--price", "GeForce RTX 3090=700", "--by", "price"]].concat(), 0);
    assert!(stdout(&given).contains("you"), "{}", stdout(&given));
    run_to(&folder, &["decide", "--price", "RTX=700"], 2);
}

#[test]
fn a_bad_record_is_left_out_and_a_newer_file_is_read() {
    let folder = folder();
    write_file(&folder, "a.json", "1", 100.0);
    let mut file = load(&folder.path().join("a.json"));
    file["schema"] = json!("batchmark/2");
    let bad = json!({ "model": "resnet50", "minibatch": "many" });
    file["records"].as_array_mut().expect("a list").push(bad);
    fs::write(folder.path().join("a.json"), file.to_string()).expect("the folder is writable");
    let output = run_to(&folder, &["show", "a.json", "--format", "json"], 1);
    let rows: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    let said = stderr(&output);
    assert!(said.contains("a.json: written by a newer version of the program (schema \"batchmark/2\""), "{said}");
    assert!(said.contains("a.json: record 1 left out: minibatch is \"many\""), "{said}");
}

#[test]
fn files_are_compared_and_exported() {
    let folder = folder();
    write_file(&folder, "a.json", "535.1", 100.0);
    write_file(&folder, "b.json", "580.1", 12345.678);
    let text = stdout(&run_to(&folder, &["compare", "a.json", "b.json"], 0));
    for expected in ["[1] a.json, GPU, wgsl (baseline)", "[2]/[1]", "12300", "- device driver: [1] 535.1, [2] 580.1"] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let text = stdout(&run_to(&folder, &["compare", "a.json", "b.json", "--baseline", "2", "--format", "md"], 0));
    assert!(text.contains("| [1]/[2] |"), "{text}");
    for (format, expected) in
        [("csv", ",12345.678,"), ("md", "| 12300 |"), ("json", "\"throughput_per_sec\": 12345.678")]
    {
        let arguments = ["export", "a.json", "b.json", "--format", format, "--out", "out"];
        assert!(stderr(&run_to(&folder, &arguments, 0)).contains("2 records written to out"));
        let text = fs::read_to_string(folder.path().join("out")).expect("it was written");
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let arguments = ["export", "a.json", "--format", "csv", "--out", "nowhere/out"];
    assert!(stderr(&run_to(&folder, &arguments, 1)).contains("\"nowhere/out\" can't be written"));
}

#[test]
fn a_run_is_measured_printed_and_saved() {
    let folder = folder();
    let output = run_to(
        &folder,
        &[&["run", "--model", "alexnet", "--out", "a.json", "--label", "desk"], &SHORT[..]].concat(),
        0,
    );
    assert!(stdout(&output).contains("alexnet"), "{}", stdout(&output));
    assert!(stderr(&output).contains("[1/1] alexnet forward f32 minibatch 1, cpu on "), "{}", stderr(&output));
    assert!(stderr(&output).ends_with("saved in a.json\n"), "{}", stderr(&output));
    let file = load(&folder.path().join("a.json"));
    let record = &file["records"][0];
    assert_eq!((&record["status"], &record["verification"]["passed"]), (&json!("ok"), &json!(true)), "{record}");
    assert_eq!((&record["timing"]["iterations"], &file["host"]["label"]), (&json!(3), &json!("desk")));
    let output = run_to(&folder, &[&["run", "--model", "alexnet", "--json"], &SHORT[..]].concat(), 0);
    fs::write(folder.path().join("b.json"), &output.stdout).expect("the folder is writable");
    let said = stderr(&run_to(&folder, &["compare", "a.json", "b.json"], 0));
    assert_eq!(said, "", "what is printed is a sound result file");
    let saved = folder.path().join(".local/share/batchmark/results");
    assert_eq!(fs::read_dir(saved).expect("results without --out go to the data folder").count(), 1);
}

#[test]
fn a_profile_is_printed_and_stored() {
    let folder = folder();
    let arguments = [&["run", "--model", "alexnet", "--profile", "--out", "a.json"], &SHORT[..]].concat();
    let text = stdout(&run_to(&folder, &arguments, 0));
    let expected = ["Profile of alexnet forward f32 minibatch 1, cpu on ", "Ceilings measured: ", "the worst last:"];
    assert!(expected.iter().all(|expected| text.contains(expected)), "{text}");
    assert!(text.lines().any(|line| line.starts_with("conv1 ") && line.contains("conv2d_forward")), "{text}");
    let file = load(&folder.path().join("a.json"));
    let profile = &file["records"][0]["profile"];
    let steps = profile["steps"].as_array().map_or(0, Vec::len);
    let losses = text.split("the worst last:\n").nth(1).map_or(0, |table| table.lines().count());
    assert!(steps >= 11 && losses == 11, "{steps} steps, {losses} lines of losses");
    assert!(profile["ceilings"]["gemm_flop_per_sec"].as_f64().is_some_and(|rate| rate > 0.0), "{profile}");
    run_to(&folder, &["show", "a.json"], 0);
}

#[test]
fn two_programs_on_one_file_lose_nothing() {
    let folder = folder();
    let start = |minibatch: &str| {
        let mut command = program(folder.path());
        command
            .args(["run", "--model", "alexnet", "--out", "shared.json"])
            .args(SHORT)
            .args(["--minibatch", minibatch]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    };
    let children = [start("1"), start("2")];
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let records = load(&folder.path().join("shared.json"))["records"].clone();
    assert_eq!(records.as_array().map(Vec::len), Some(3), "{records}");
}

#[test]
fn what_can_not_be_saved_is_said_once_and_saved_elsewhere() {
    let folder = folder();
    let path = folder.path().join("a.json");
    write_file(&folder, "a.json", "1", 100.0);
    let mut permissions = fs::metadata(&path).expect("just written").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).expect("the file is ours");
    let arguments = [&["run", "--model", "alexnet", "--out", "a.json", "--minibatch", "2"], &SHORT[..]].concat();
    let said = stderr(&run_to(&folder, &arguments, 1));
    assert_eq!(said.matches("the measurement goes on").count(), 1, "{said}");
    let elsewhere = said.lines().last().and_then(|line| line.strip_prefix("saved in ")).expect("the last line");
    assert_eq!(
        load(Path::new(elsewhere))["records"].as_array().map(Vec::len),
        Some(3),
        "the old record and two new ones"
    );
    assert_eq!(load(&path)["records"].as_array().map(Vec::len), Some(1), "the file is as it was");
}

#[test]
fn without_a_home_results_are_printed() {
    let arguments = [&["run", "--model", "alexnet"], &SHORT[..]].concat();
    let output = program(folder().path()).env("HOME", "/dev/null/none").args(&arguments).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("name a file with --out, else results are only printed"), "{}", stderr(&output));
    assert!(stdout(&output).contains("alexnet"), "{}", stdout(&output));
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_is_finished() {
    let folder = folder();
    let mut command = program(folder.path());
    command.args(["run", "--model", "alexnet,resnet152,vgg16", "--out", "a.json"]).args(SHORT);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
    let first = said.by_ref().map_while(Result::ok).find(|line| line.starts_with("[1/3]"));
    assert!(first.as_ref().is_some_and(|line| line.contains("samples/s")), "{first:?}");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill exists").success());
    let rest: Vec<String> = said.map_while(Result::ok).collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(1), "{rest:?}");
    let file = load(&folder.path().join("a.json"));
    let status: Vec<&str> =
        file["records"].as_array().into_iter().flatten().filter_map(|r| r["status"].as_str()).collect();
    assert_eq!(status, ["ok", "cancelled", "cancelled"], "{rest:?}");
}
