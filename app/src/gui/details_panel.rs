//! Everything a record says, for the bar that is selected.

use compute::bench::record::{Clock, Record};
use compute::engine::Device;
use eframe::egui;

use super::action::Action;
use super::state::State;
use super::{text, theme};
use crate::chart::number::{bytes, full, rate, three_digits};
use crate::chart::series::Source;

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
        ("Model", record.model.clone()),
        ("Pass", text::pass(record.pass).to_owned()),
        ("Precision", record.precision.to_string()),
        ("Minibatch", record.minibatch.to_string()),
        ("Outcome", record.status.to_string()),
    ];
    let mut add = |label, value: Option<String>| lines.extend(value.map(|value| (label, value)));
    add("Throughput", record.throughput_per_sec.map(|per_sec| format!("{} samples/s", full(per_sec))));
    if let Some(timing) = &record.timing {
        let [low, high] = timing.ci95_ms;
        add("Median", Some(format!("{} ms an iteration", full(timing.median_ms))));
        add("95% confidence", Some(format!("{} to {} ms", full(low), full(high))));
        add("5% to 95%", Some(format!("{} to {} ms", full(timing.p5_ms), full(timing.p95_ms))));
        add("Mean ± std. dev.", Some(format!("{} ± {} ms", full(timing.mean_ms), full(timing.stddev_ms))));
        add("Iterations", Some(timing.iterations.to_string()));
        add("Clock", Some(clock(timing.clock).to_owned()));
        add("Drift", timing.drift.map(|drift| format!("{:+.1} %", drift * 100.0)));
    }
    add("Achieved", record.achieved_flop_per_sec.map(|per_sec| rate(per_sec, "FLOP/s")));
    add("Memory planned", record.memory.planned_bytes.map(bytes));
    add("Memory peak", record.memory.peak_bytes.map(bytes));
    add(
        "Verification",
        record.verification.as_ref().map(|check| {
            let verdict = if check.passed { "passed" } else { "failed" };
            let error = check.error.map(|error| format!(", error {error:.1e}")).unwrap_or_default();
            format!("{verdict}{error}, tolerance {:.0e}", check.tolerance)
        }),
    );
    if let Some(telemetry) = &record.telemetry {
        add("Core clock", telemetry.clock_mhz.map(|clock| format!("{} MHz", three_digits(clock))));
        add("Power", telemetry.power_watt.map(|power| format!("{} W", three_digits(power))));
        add("Temperature", telemetry.temperature_celsius.map(|temperature| format!("{temperature:.0} °C")));
        add("Utilization", telemetry.utilization.map(|share| format!("{:.0} %", share * 100.0)));
        for (reason, share) in &telemetry.throttled {
            add("Held down by", Some(format!("{reason}, {:.0} % of the time", share * 100.0)));
        }
    }
    add("Tuning", record.tuning_ms.map(|ms| format!("{} ms", three_digits(ms))));
    add("Device", device.map(|device| device.name.clone()));
    add("Driver", device.and_then(|device| device.driver.clone()));
    add("Engine", Some(text::engine(record.engine).to_owned()));
    for (library, version) in &record.libraries {
        add("Library", Some(format!("{library} {version}")));
    }
    add("From", Some(source.name.to_owned()));
    add("Started", Some(record.started.clone()));
    add("Definition", Some(record.definition.clone()));
    add("Kernels", (!record.kernels.is_empty()).then(|| record.kernels.join("\n")));
    lines
}

const fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Device => "device",
        Clock::Host => "host",
    }
}
