//! Everything a record says, for the bar that is selected.

use compute::bench::origin::Origin;
use compute::bench::record::Record;
use compute::engine::Device;
use eframe::egui;

use super::action::Action;
use super::state::State;
use super::text::{self, detail};
use super::{mark, samples_view, theme};
use crate::chart::number::{bytes, full, rate, three_digits};
use crate::chart::series::{Series, Source};
use crate::chart::settings::Unit;

/// Draws the panel where a record is selected, and returns its width.
pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) -> Option<f32> {
    let (source, record, device) = state.selected.and_then(|record| state.library.record(record))?;
    let width = state.panels.details.unwrap_or(272.0);
    let panel = egui::Panel::right("details").default_size(width).min_size(220.0).max_size(420.0).show(ui, |ui| {
        ui.add_space(theme::GRID);
        ui.horizontal(|ui| {
            ui.strong(text::details());
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                let close = ui.add(egui::Button::new("×").frame(false));
                if close.accessible_name(text::close_details()).clicked() {
                    actions.push(Action::Select(None));
                }
                if let Some(selected) = state.selected
                    && ui.small_button(text::copy_markdown()).clicked()
                {
                    actions.push(Action::CopyRecord(selected));
                }
            });
        });
        egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.spacing_mut().interact_size.y = 0.0;
            grid_ui(ui, "measured", measured(record));
            samples_ui(ui, state, &source, record);
            differences_ui(ui, state, &source, record, device);
            if let Some(reason) = &record.reason {
                ui.add_space(2.0 * theme::GRID);
                ui.label(egui::RichText::new(reason).color(ui.visuals().error_fg_color));
            }
            for note in &record.notes {
                ui.add_space(theme::GRID);
                // What a source says of its figure is no warning.
                let is_warning = record.origin.is_none();
                let visuals = ui.visuals();
                let color = if is_warning { visuals.warn_fg_color } else { visuals.weak_text_color() };
                ui.label(egui::RichText::new(note).small().color(color));
            }
            if let Some(origin) = &record.origin {
                if let Some(doubt) = &origin.doubt {
                    ui.add_space(theme::GRID);
                    ui.label(egui::RichText::new(text::doubtful(doubt)).color(ui.visuals().error_fg_color));
                }
                ui.add_space(2.0 * theme::GRID);
                grid_ui(ui, "origin", origin_lines(origin));
            }
            ui.add_space(2.0 * theme::GRID);
            grid_ui(ui, "around", around(&source, record, device));
            if !record.kernels.is_empty() {
                ui.add_space(theme::GRID);
                ui.label(egui::RichText::new(detail::kernels()).small().weak());
                let kernels = egui::RichText::new(record.kernels.join("\n")).small();
                ui.add(egui::Label::new(kernels).wrap().selectable(true));
            }
        });
    });
    Some(panel.response.rect.width())
}

/// Labels and their values.
fn grid_ui(ui: &mut egui::Ui, id: &str, lines: Vec<(&'static str, String)>) {
    egui::Grid::new(id).num_columns(2).spacing([12.0, 4.0]).show(ui, |ui| {
        for (label, value) in lines {
            // A label stands at the first line of its value.
            ui.vertical(|ui| ui.add(egui::Label::new(egui::RichText::new(label).small().weak()).extend()));
            let value = egui::RichText::new(value).small();
            ui.add(egui::Label::new(value).wrap().selectable(true));
            ui.end_row();
        }
    });
}

/// Every iteration's time: how they are distributed, and how they went.
fn samples_ui(ui: &mut egui::Ui, state: &State, source: &Source<'_>, record: &Record) {
    let Some(timing) = record.timing.as_ref().filter(|timing| timing.samples_ms.len() > 2) else { return };
    let series = Series::of(source.id, source.file, record);
    let color = mark::paint_of(ui, state, &series).color;
    ui.add_space(2.0 * theme::GRID);
    ui.label(egui::RichText::new(text::histogram()).small().weak());
    samples_view::histogram_ui(ui, &timing.samples_ms, color);
    ui.add_space(theme::GRID);
    ui.label(egui::RichText::new(text::timeline()).small().weak());
    samples_view::timeline_ui(ui, &timing.samples_ms, color);
}

/// What is not the same as in the baseline's record of the same run.
fn differences_ui(ui: &mut egui::Ui, state: &State, source: &Source<'_>, record: &Record, device: Option<&Device>) {
    let Some(baseline) = &state.chart.baseline else { return };
    let Some(other) = state.library.source(baseline.source) else { return };
    let is_same_run = |candidate: &&Record| {
        // The baseline may be another precision of the same run.
        (&candidate.model, candidate.pass, candidate.minibatch) == (&record.model, record.pass, record.minibatch)
            && Series::of(other.id, other.file, candidate) == *baseline
    };
    let Some(reference) = other.file.records.iter().rev().find(is_same_run) else { return };
    if std::ptr::eq(reference, record) {
        return;
    }
    ui.add_space(2.0 * theme::GRID);
    ui.label(egui::RichText::new(text::differences()).small().weak());
    let here = environment(source, record, device);
    let there = environment(&other, reference, other.device_of(reference));
    let mut differences: Vec<String> = Vec::new();
    for (what, value) in &here {
        let reference = there.iter().find(|(other, _)| other == what).map(|(_, value)| value.as_str());
        if reference != Some(value.as_str()) {
            differences.push(text::difference(what, value, reference.unwrap_or("–")));
        }
    }
    if differences.is_empty() {
        differences.push(text::no_differences().to_owned());
    }
    for difference in differences {
        ui.add(egui::Label::new(egui::RichText::new(difference).small()).wrap().selectable(true));
    }
}

/// What decides whether two records can be compared.
fn environment(source: &Source<'_>, record: &Record, device: Option<&Device>) -> Vec<(String, String)> {
    let mut known = vec![(detail::definition().to_owned(), record.definition.clone())];
    let mut add = |what: &str, value: Option<String>| known.extend(value.map(|value| (what.to_owned(), value)));
    add(detail::device(), device.map(|device| device.name.clone()));
    add(detail::driver(), device.and_then(|device| device.driver.clone()));
    add(detail::engine(), Some(text::engine(&record.engine).to_owned()));
    add(detail::host(), Some(format!("{}, {}", source.file.host.os, source.file.host.cpu)));
    let clock = record.telemetry.as_ref().and_then(|telemetry| telemetry.clock_mhz);
    add(detail::core_clock(), clock.map(|clock| format!("{} MHz", three_digits(clock))));
    for (library, version) in &record.libraries {
        add(library, Some(version.clone()));
    }
    known
}

/// What was measured, and how.
fn measured(record: &Record) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        (detail::model(), record.model.clone()),
        (detail::pass(), text::pass(record.pass).to_owned()),
        (detail::precision(), record.precision.to_string()),
        (detail::minibatch(), if record.minibatch > 0 { record.minibatch.to_string() } else { "–".to_owned() }),
        (detail::outcome(), text::status(record.status).to_owned()),
    ];
    let mut add = |label, value: Option<String>| lines.extend(value.map(|value| (label, value)));
    add(
        detail::throughput(),
        record.throughput_per_sec.map(|per_sec| format!("{} {}", full(per_sec), text::unit(Unit::SamplesPerSec))),
    );
    if let Some(timing) = &record.timing {
        let [low, high] = timing.ci95_ms;
        add(detail::median(), Some(format!("{} {}", full(timing.median_ms), text::unit(Unit::MsPerIteration))));
        add(detail::interval(), Some(text::range_ms(low, high)));
        add(detail::percentiles(), Some(text::range_ms(timing.p5_ms, timing.p95_ms)));
        add(detail::mean(), Some(format!("{} ± {} ms", full(timing.mean_ms), full(timing.stddev_ms))));
        add(detail::iterations(), Some(timing.iterations.to_string()));
        add(detail::clock(), Some(text::clock(timing.clock).to_owned()));
        add(detail::drift(), timing.drift.map(|drift| format!("{:+.1} %", drift * 100.0)));
    }
    lines
}

/// What the measurement stands in: memory, verification, the device and its state, the definition.
fn around(source: &Source<'_>, record: &Record, device: Option<&Device>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut add = |label, value: Option<String>| lines.extend(value.map(|value| (label, value)));
    add(detail::achieved(), record.achieved_flop_per_sec.map(|per_sec| rate(per_sec, "FLOP/s")));
    add(detail::memory_planned(), record.memory.planned_bytes.map(bytes));
    add(detail::memory_peak(), record.memory.peak_bytes.map(bytes));
    add(
        detail::verification(),
        record.verification.as_ref().map(|check| text::verification(check.passed, check.error, check.tolerance)),
    );
    if let Some(telemetry) = &record.telemetry {
        add(detail::core_clock(), telemetry.clock_mhz.map(|clock| format!("{} MHz", three_digits(clock))));
        add(detail::power(), telemetry.power_watt.map(|power| format!("{} W", three_digits(power))));
        add(detail::temperature(), telemetry.temperature_celsius.map(|temperature| format!("{temperature:.0} °C")));
        add(detail::utilization(), telemetry.utilization.map(|share| format!("{:.0} %", share * 100.0)));
        for (reason, share) in &telemetry.throttled {
            add(detail::throttled(), Some(text::throttled(reason, *share)));
        }
    }
    add(detail::tuning(), record.tuning_ms.map(|ms| format!("{} ms", three_digits(ms))));
    add(detail::device(), device.map(|device| device.name.clone()));
    add(detail::driver(), device.and_then(|device| device.driver.clone()));
    add(detail::engine(), Some(text::engine(&record.engine).to_owned()));
    for (library, version) in &record.libraries {
        add(detail::library(), Some(format!("{library} {version}")));
    }
    add(detail::from(), Some(source.name.to_owned()));
    let stated = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    add(detail::started(), stated(&record.started));
    add(detail::definition(), stated(&record.definition));
    lines
}

/// Where a figure comes from that was not measured here, and what it looked like there.
fn origin_lines(origin: &Origin) -> Vec<(&'static str, String)> {
    let figure = &origin.figure;
    let precision = Some(figure.precision.as_str()).filter(|precision| !precision.is_empty());
    let words = [Some(figure.model.as_str()), Some(figure.phase.as_str()), precision, figure.input.as_deref()];
    let what: Vec<&str> = words.into_iter().flatten().collect();
    let mut lines =
        vec![(detail::as_published(), format!("{} {}, {}", full(figure.value), figure.metric, what.join(", ")))];
    let mut add = |label, value: &Option<String>| lines.extend(value.clone().map(|value| (label, value)));
    add(detail::title(), &origin.title);
    add(detail::authors(), &origin.authors);
    add(detail::date(), &origin.date);
    add(detail::address(), &origin.url);
    add(detail::licence(), &origin.licence);
    add(detail::obtained(), &origin.obtained);
    lines
}
