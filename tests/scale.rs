//! A library of a thousand files with a hundred thousand records: how long loading and each frame keep the window's thread.
//! Times depend on the machine, so this runs only when it is asked for:
//!
//! ```text
//! cargo test --release --package batchmark --test integration --locked -- --ignored --nocapture scale::
//! ```

use std::path::PathBuf;
use std::time::{Duration, Instant};

use batchmark::gui::Window;
use batchmark::gui::action::Action;
use batchmark::gui::message::Message;
use batchmark::gui::state::{State, Tab};
use compute::bench::store::Loaded;
use eframe::egui;
use serde_json::{Value, json};

const FILES: usize = 1000;
const RECORDS: usize = 100;
const MODELS: [&str; 5] = ["alexnet", "vgg16", "googlenet", "resnet50", "resnet152"];

/// A file of a hundred records: five models, both passes, ten minibatches.
fn loaded(number: usize) -> Loaded {
    let record = |place: usize| {
        let (model, pass) = (MODELS[place % 5], ["forward", "forward_backward"][place / 5 % 2]);
        let minibatch = 1 << (place / 10);
        let median_ms = 1.0 + number as f64 / 100.0 + place as f64 / 7.0;
        json!({
            "model": model, "definition": format!("{model}/1 0123456789abcdef"),
            "pass": pass, "precision": "f32", "minibatch": minibatch,
            "engine": "cuda", "device": 0, "started": "2026-01-01T00:00:00Z", "status": "ok",
            "throughput_per_sec": minibatch as f64 * 1000.0 / median_ms,
            "timing": {
                "clock": "device", "iterations": 100, "median_ms": median_ms, "mean_ms": median_ms, "stddev_ms": 0.1,
                "p5_ms": median_ms, "p95_ms": median_ms, "ci95_ms": [median_ms, median_ms],
                "samples_ms": vec![median_ms; 100],
            },
        })
    };
    let file = json!({
        "schema": "batchmark/1", "created": "2026-01-01T00:00:00Z", "program": "0.1.0",
        "devices": [{ "id": format!("gpu-{number}"), "name": format!("GPU {number}"), "kind": "discrete" }],
        "records": (0..RECORDS).map(record).collect::<Vec<Value>>(),
    });
    Loaded { file: serde_json::from_value(file).expect("a result file"), notes: Vec::new(), n_left_out: 0 }
}

/// Resident memory of this process in MiB; absent where the system does not say.
fn resident_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

#[test]
#[ignore = "it measures times of this machine"]
fn a_hundred_thousand_records_stay_smooth() {
    let paths: Vec<PathBuf> = (0..FILES).map(|number| format!("/results/{number}.json").into()).collect();
    let mut state = State::default();
    state.apply(Action::AddFiles(paths.clone()));
    let mut longest = Duration::ZERO;
    let mut total = Duration::ZERO;
    // As in the window: what has arrived is taken in, then the chart is made.
    for batch in paths.chunks(10) {
        let batch: Vec<(PathBuf, Box<Loaded>)> =
            batch.iter().map(|path| (path.clone(), Box::new(loaded(number_of(path))))).collect();
        let began = Instant::now();
        for (path, loaded) in batch {
            state.receive(Message::Loaded { path, result: Ok(loaded) });
        }
        state.refresh();
        longest = longest.max(began.elapsed());
        total += began.elapsed();
    }
    println!(
        "taking in {FILES} files: {total:?} on the window's thread, {longest:?} at a time, {:?} MiB",
        resident_mib()
    );
    assert!(longest < Duration::from_millis(16), "{longest:?}");

    for tab in Tab::ALL {
        let began = Instant::now();
        state.apply(Action::Turn(tab));
        state.refresh();
        let turned = began.elapsed();
        let frame = frame_time(&mut state);
        println!("{tab:?}: turned to in {turned:?}, a frame in {frame:?}");
        assert!(turned < Duration::from_millis(16) && frame < Duration::from_millis(8), "{tab:?} {turned:?} {frame:?}");
    }
}

fn number_of(path: &std::path::Path) -> usize {
    path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok()).expect("a number")
}

/// Median time of a frame, from input to shapes.
fn frame_time(state: &mut State) -> Duration {
    let context = egui::Context::default();
    let mut window = Window::with_state(&context, std::mem::take(state));
    let mut frame = eframe::Frame::_new_kittest();
    let screen = egui::Rect::from_min_size(egui::Pos2::ZERO, egui::vec2(1920.0, 1080.0));
    let mut times: Vec<Duration> = (0..30)
        .map(|_| {
            let input = egui::RawInput { screen_rect: Some(screen), ..egui::RawInput::default() };
            let began = Instant::now();
            let mut output = context.run_ui(input, |ui| {
                eframe::App::logic(&mut window, ui.ctx(), &mut frame);
                eframe::App::ui(&mut window, ui, &mut frame);
            });
            let time = began.elapsed();
            output.textures_delta.clear();
            time
        })
        .collect();
    times.sort();
    *state = window.into_state();
    times[times.len() / 2]
}
