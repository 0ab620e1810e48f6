//! What the window looks like: few pictures, looked at again when they change.

use std::path::PathBuf;

use batchmark::gui::state::Tab;
use compute::bench::event::Phase;
use compute::bench::supervisor::Update;
use egui_kittest::SnapshotOptions;

use super::*;

#[test]
fn the_empty_window_looks_as_it_should() {
    let mut state = State::default();
    state.receive(Message::Devices(Ok(vec![
        listing("RTX 4090", DeviceKind::Discrete),
        listing("llvmpipe (LLVM 15.0.6, 256 bits)", DeviceKind::Software),
    ])));
    picture("window_empty_light", egui::Theme::Light, state);
}

#[test]
fn the_chart_looks_as_it_should() {
    let mut state = running();
    state.receive(Message::Run(Update::Started { index: 0 }));
    state.receive(Message::Run(Update::Phase { index: 0, phase: Phase::WarmUp }));
    picture("window_chart_dark", egui::Theme::Dark, state);
}

#[test]
fn the_page_on_efficiency_looks_as_it_should() {
    let mut state = sweep();
    state.apply(Action::Turn(Tab::Efficiency));
    picture("window_efficiency_light", egui::Theme::Light, state);
}

#[test]
fn the_page_on_memory_looks_as_it_should() {
    let mut state = with_files();
    state.apply(Action::Turn(Tab::Memory));
    picture("window_memory_dark", egui::Theme::Dark, state);
}

#[test]
fn the_table_looks_as_it_should() {
    let mut state = with_files();
    state.apply(Action::Turn(Tab::Table));
    picture("window_table_light", egui::Theme::Light, state);
}

/// The README shows it, so its numbers are measured ones.
#[test]
fn results_of_an_h200_look_as_they_should() {
    let mut state = State::default();
    for name in ["h200-cuda-f32.json", "h200-wgsl-standard.json", "pytorch/h200-f32.json"] {
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets/measured")).join(name);
        let path = PathBuf::from(name);
        state.apply(Action::AddFiles(vec![path.clone()]));
        let loaded = compute::bench::store::load(&file).expect("the file can be read");
        state.receive(Message::Loaded { path, result: Ok(Box::new(loaded)) });
    }
    state.receive(Message::Devices(Ok(vec![listing("NVIDIA H200", DeviceKind::Discrete)])));
    state.refresh();
    let resnet50 = state.chart.groups.iter().find(|group| group.model == "resnet50").expect("it was measured");
    state.apply(Action::Select(resnet50.bars[0].record()));
    picture_of_size("window_h200_light", egui::Theme::Light, [1920.0, 1080.0], state);
}

fn picture(name: &str, theme: egui::Theme, state: State) {
    picture_of_size(name, theme, SIZE, state);
}

fn picture_of_size(name: &str, theme: egui::Theme, size: [f32; 2], mut state: State) {
    state.refresh();
    let snapshots = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/snapshots");
    let options = SnapshotOptions::new().output_path(snapshots);
    let mut window = open_with(Harness::builder().with_theme(theme).wgpu(), size, state);
    window.snapshot_options(name, &options);
}
