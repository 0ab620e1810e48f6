//! Everything a record says, for the bar that is selected.

use compute::bench::record::Record;
use compute::engine::Device;
use eframe::egui;

use super::action::Action;
use super::state::State;
use super::text::{self, detail};
use super::theme;
use crate::chart::number::{bytes, full, rate, three_digits};
use crate::chart::series::Source;
use crate::chart::throughput::Unit;

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let Some((source, record, device)) = state.selected.and_then(|record| state.library.record(record)) else { return };
    egui::Panel::right("details").default_size(272.0).min_size(220.0).max_size(420.0).show(ui, |ui| {
        ui.add_space(theme::GRID);
        ui.horizontal(|ui| {
            ui.strong(text::DETAILS);
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                let close = ui.add(egui::Button::new("×").frame(false));
                if close.accessible_name(text::CLOSE_DETAILS).clicked() {
                    actions.push(Action::Select(None));
                }
            });
        });
        egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
            ui.spacing_mut().interact_size.y = 0.0;
            egui::Grid::new("details").num_columns(2).spacing([12.0, 4.0]).show(ui, |ui| {
                for (label, value) in lines(&source, record, device) {
                    ui.label(egui::RichText::new(label).small().weak());
                    let value = egui::RichText::new(value).small();
                    ui.add(egui::Label::new(value).wrap().selectable(true));
                    ui.end_row();
                }
            });
            if let Some(reason) = &record.reason {
                ui.add_space(2.0 * theme::GRID);
                ui.label(egui::RichText::new(reason).color(ui.visuals().error_fg_color));
            }
            for note in &record.notes {
                ui.add_space(theme::GRID);
                ui.label(egui::RichText::new(note).small().color(ui.visuals().warn_fg_color));
            }
        });
    });
}

/// Labels and values, in the order they are shown.
fn lines(source: &Source<'_>, record: &Record, device: Option<&Device>) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        (detail::MODEL, record.model.clone()),
        (detail::PASS, text::pass(record.pass).to_owned()),
        (detail::PRECISION, record.precision.to_string()),
        (detail::MINIBATCH, record.minibatch.to_string()),
        (detail::OUTCOME, record.status.to_string()),
    ];
    let mut add = |label, value: Option<String>| lines.extend(value.map(|value| (label, value)));
    add(
        detail::THROUGHPUT,
        record.throughput_per_sec.map(|per_sec| format!("{} {}", full(per_sec), text::unit(Unit::SamplesPerSec))),
    );
    if let Some(timing) = &record.timing {
        let [low, high] = timing.ci95_ms;
        add(detail::MEDIAN, Some(format!("{} {}", full(timing.median_ms), text::unit(Unit::MsPerIteration))));
        add(detail::INTERVAL, Some(text::range_ms(low, high)));
        add(detail::PERCENTILES, Some(text::range_ms(timing.p5_ms, timing.p95_ms)));
        add(detail::MEAN, Some(format!("{} ± {} ms", full(timing.mean_ms), full(timing.stddev_ms))));
        add(detail::ITERATIONS, Some(timing.iterations.to_string()));
        add(detail::CLOCK, Some(text::clock(timing.clock).to_owned()));
        add(detail::DRIFT, timing.drift.map(|drift| format!("{:+.1} %", drift * 100.0)));
    }
    add(detail::ACHIEVED, record.achieved_flop_per_sec.map(|per_sec| rate(per_sec, "FLOP/s")));
    add(detail::MEMORY_PLANNED, record.memory.planned_bytes.map(bytes));
    add(detail::MEMORY_PEAK, record.memory.peak_bytes.map(bytes));
    add(
        detail::VERIFICATION,
        record.verification.as_ref().map(|check| text::verification(check.passed, check.error, check.tolerance)),
    );
    if let Some(telemetry) = &record.telemetry {
        add(detail::CORE_CLOCK, telemetry.clock_mhz.map(|clock| format!("{} MHz", three_digits(clock))));
        add(detail::POWER, telemetry.power_watt.map(|power| format!("{} W", three_digits(power))));
        add(detail::TEMPERATURE, telemetry.temperature_celsius.map(|temperature| format!("{temperature:.0} °C")));
        add(detail::UTILIZATION, telemetry.utilization.map(|share| format!("{:.0} %", share * 100.0)));
        for (reason, share) in &telemetry.throttled {
            add(detail::THROTTLED, Some(text::throttled(reason, *share)));
        }
    }
    add(detail::TUNING, record.tuning_ms.map(|ms| format!("{} ms", three_digits(ms))));
    add(detail::DEVICE, device.map(|device| device.name.clone()));
    add(detail::DRIVER, device.and_then(|device| device.driver.clone()));
    add(detail::ENGINE, Some(text::engine(&record.engine).to_owned()));
    for (library, version) in &record.libraries {
        add(detail::LIBRARY, Some(format!("{library} {version}")));
    }
    add(detail::FROM, Some(source.name.to_owned()));
    add(detail::STARTED, Some(record.started.clone()));
    add(detail::DEFINITION, Some(record.definition.clone()));
    add(detail::KERNELS, (!record.kernels.is_empty()).then(|| record.kernels.join("\n")));
    lines
}
