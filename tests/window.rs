//! The window, by its labels and by a few pictures. Nothing is measured: messages of the background are made up.

use batchmark::gui::Window;
use batchmark::gui::action::Action;
use batchmark::gui::message::Message;
use batchmark::gui::state::State;
use compute::bench::record::ResultFile;
use compute::bench::spec::{Bounds, RunSpec};
use compute::bench::store::Loaded;
use compute::engine::{Device, DeviceKind, EngineKind, Listing};
use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;
use eframe::egui;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use egui_kittest::{Harness, HarnessBuilder};
use serde_json::{Value, json};

mod behavior;
mod pictures;

/// The smallest size that is supported.
const SIZE: [f32; 2] = [1000.0, 640.0];

fn open(state: State) -> Harness<'static, Window> {
    open_with(Harness::builder(), SIZE, state)
}

fn open_with(builder: HarnessBuilder<Window>, size: [f32; 2], state: State) -> Harness<'static, Window> {
    let mut window = builder
        .with_size(size)
        .with_os(egui::os::OperatingSystem::Nix)
        .build_eframe(|context| Window::with_state(&context.egui_ctx, state));
    window.run();
    window
}

/// Passes a message on as the background does, and draws until nothing moves.
fn receive(window: &mut Harness<'_, Window>, message: Message) {
    let context = window.ctx.clone();
    window.state_mut().receive(&context, message);
    window.run();
}

fn click(window: &mut Harness<'_, Window>, label: &str) {
    window.get_by_label(label).click();
    window.run();
}

fn type_into(window: &mut Harness<'_, Window>, label: &str, text: &str) {
    window.get_by_label(label).focus();
    window.run();
    window.get_by_label(label).type_text(text);
    window.run();
}

fn is_enabled(window: &Harness<'_, Window>, label: &str) -> bool {
    !window.get_by_label(label).accesskit_node().is_disabled()
}

fn listing(name: &str, kind: DeviceKind) -> Listing {
    let engine = if kind == DeviceKind::Cpu { EngineKind::Cpu } else { EngineKind::Wgsl };
    let device = Device { id: name.to_lowercase(), name: name.into(), kind, ..Device::default() };
    Listing { engine, device, precisions: vec![Precision::F32, Precision::F16], remarks: Vec::new(), unavailable: None }
}

fn record(model: &str, precision: &str, outcome: Value) -> Value {
    let mut record = json!({
        "model": model, "definition": format!("{model}/1 0123456789abcdef"), "pass": "forward",
        "precision": precision, "minibatch": 64, "engine": "wgsl", "device": 0,
        "started": "2026-01-01T00:00:00Z",
    });
    record.as_object_mut().expect("an object").extend(outcome.as_object().expect("an object").clone());
    record
}

fn measured(median_ms: f64) -> Value {
    json!({
        "status": "ok", "throughput_per_sec": 64_000.0 / median_ms,
        "timing": {
            "clock": "device", "iterations": 100, "median_ms": median_ms, "mean_ms": median_ms * 1.01,
            "stddev_ms": median_ms * 0.02, "p5_ms": median_ms * 0.97, "p95_ms": median_ms * 1.05,
            "ci95_ms": [median_ms * 0.96, median_ms * 1.06], "samples_ms": [median_ms],
        },
        "verification": { "error": 2.5e-7, "tolerance": 1e-4, "passed": true },
    })
}

/// A file of a machine that is `factor` times slower than another.
fn file(device: &str, factor: f64) -> Loaded {
    let failed = |status: &str| json!({ "status": status, "reason": "the driver says so" });
    let records = vec![
        record("alexnet", "f32", measured(6.2 * factor)),
        record("alexnet", "f16", measured(3.1 * factor)),
        record("vgg16", "f32", measured(98.0 * factor)),
        record("vgg16", "f16", failed("out_of_memory")),
        record("googlenet", "f32", failed("crashed")),
        record("googlenet", "f16", measured(11.4 * factor)),
        record("resnet50", "f32", measured(70.7 * factor)),
        record("resnet50", "f16", failed("not_supported")),
    ];
    let file = json!({
        "schema": "batchmark/1", "created": "2026-01-01T00:00:00Z", "program": "0.1.0",
        "devices": [{ "id": device.to_lowercase(), "name": device, "kind": "discrete" }], "records": records,
    });
    let file: ResultFile = serde_json::from_value(file).expect("the file follows the schema");
    Loaded { file, notes: Vec::new(), n_left_out: 0 }
}

/// A window with two files.
fn with_files() -> State {
    let mut state = State::default();
    for (path, loaded) in [("/results/anna-4090.json", file("RTX 4090", 1.0)), ("/results/lab.json", file("L40S", 1.3))]
    {
        state.apply(Action::AddFiles(vec![path.into()]));
        state.receive(Message::Loaded { path: path.into(), result: Ok(Box::new(loaded)) });
    }
    state.receive(Message::Devices(Ok(vec![
        listing("RTX 4090", DeviceKind::Discrete),
        listing("llvmpipe", DeviceKind::Software),
        listing("AMD Ryzen 9", DeviceKind::Cpu),
    ])));
    state.refresh();
    state
}

fn running() -> State {
    let spec = |model, pass| RunSpec {
        model,
        pass,
        precision: Precision::F32,
        minibatch: 16,
        engine: EngineKind::Fake,
        device: "rtx 4090".into(),
        tier: Default::default(),
        bounds: Bounds::default(),
        profile: false,
        input_size: None,
        script: None,
    };
    let mut state = with_files();
    let passes = Pass::ALL.into_iter();
    state.begin(passes.flat_map(|pass| [spec(Model::Alexnet, pass), spec(Model::Resnet50, pass)]).collect());
    state
}

/// A sweep of one model: 100, 160, 200 and 190 samples a second, then no memory.
fn sweep() -> State {
    let mut loaded = file("RTX 4090", 1.0);
    let records = [(1, 10.0), (2, 12.5), (4, 20.0), (8, 42.1)].map(|(minibatch, median_ms): (u64, f64)| {
        let mut record = record("vgg16", "f32", measured(median_ms));
        record["minibatch"] = minibatch.into();
        record["throughput_per_sec"] = (minibatch as f64 * 1000.0 / median_ms).into();
        record
    });
    let mut edge = record("vgg16", "f32", json!({ "status": "out_of_memory", "reason": "the driver says so" }));
    edge["minibatch"] = 16.into();
    let records = records.into_iter().chain([edge]).map(|record| serde_json::from_value(record).expect("a record"));
    loaded.file.records = records.collect();
    let mut state = State::default();
    state.apply(Action::AddFiles(vec!["/results/sweep.json".into()]));
    state.receive(Message::Loaded { path: "/results/sweep.json".into(), result: Ok(Box::new(loaded)) });
    state
}
