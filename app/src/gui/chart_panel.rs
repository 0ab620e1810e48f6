//! The chart with its question and controls, or what to do when there is nothing to show.

use compute::bench::suite::Suite;
use compute::plan::Pass;
use eframe::egui;

use super::action::Action;
use super::state::State;
use super::{chart_view, text, theme};
use crate::chart::series::Series;
use crate::chart::throughput::{Settings, Unit};

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    if state.library.sources().is_empty() {
        empty_ui(ui, state, actions);
        return;
    }
    let chart = &state.chart;
    ui.add_space(theme::GRID);
    ui.heading(text::question(state.settings.unit));
    if let Some(minibatch) = chart.minibatch {
        ui.weak(text::subtitle(state.settings.pass, minibatch, state.settings.unit));
    }
    ui.add_space(theme::GRID);
    controls_ui(ui, state, actions);
    for caution in &chart.cautions {
        ui.colored_label(ui.visuals().warn_fg_color, text::caution(caution));
    }
    if chart.groups.is_empty() {
        ui.add_space(8.0 * theme::GRID);
        ui.vertical_centered(|ui| ui.weak(text::NOTHING_SHOWN));
        return;
    }
    ui.add_space(theme::GRID);
    ui.scope(|ui| legend_ui(ui, state));
    ui.add_space(theme::GRID);
    chart_view::ui(ui, state, actions);
}

fn empty_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    ui.vertical_centered(|ui| {
        ui.add_space(ui.available_height() * 0.3);
        ui.heading(text::EMPTY_TITLE);
        ui.add_space(2.0 * theme::GRID);
        ui.scope(|ui| {
            ui.set_max_width(440.0);
            ui.label(text::EMPTY_TEXT);
            ui.add_space(theme::GRID);
            ui.weak(text::EMPTY_OR);
        });
        ui.add_space(4.0 * theme::GRID);
        if let Some(reason) = state.run_refusal() {
            ui.weak(reason);
            return;
        }
        let devices: Vec<String> =
            state.devices.targets().into_iter().map(|target| target.listing.device.name).collect();
        if ui.add(theme::primary_button(ui, &text::run_quick_on(&devices))).clicked() {
            actions.push(Action::RunSuite(Suite::Quick));
        }
    });
}

fn controls_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let mut settings = state.settings;
    ui.horizontal_wrapped(|ui| {
        for pass in Pass::ALL {
            let chosen = ui.selectable_value(&mut settings.pass, pass, text::pass(pass));
            chosen.on_hover_text(text::pass_hint(pass));
        }
        ui.separator();
        choice_ui(ui, text::PRECISION, |ui| precision_ui(ui, state, &mut settings));
        choice_ui(ui, text::MINIBATCH, |ui| minibatch_ui(ui, state, &mut settings));
        ui.separator();
        for unit in Unit::ALL {
            ui.selectable_value(&mut settings.unit, unit, text::unit(unit));
        }
    });
    if settings != state.settings {
        actions.push(Action::Settings(settings));
    }
}

/// A label and the box that it names.
fn choice_ui(ui: &mut egui::Ui, label: &str, add: impl FnOnce(&mut egui::Ui) -> egui::Response) {
    let label = ui.label(egui::RichText::new(label).weak());
    add(ui).labelled_by(label.id);
}

fn precision_ui(ui: &mut egui::Ui, state: &State, settings: &mut Settings) -> egui::Response {
    // What the chart does not have, it does not filter by; the box says so.
    let shown = settings.precision.filter(|precision| state.chart.precisions.contains(precision));
    let name = |precision: Option<compute::shape::Precision>| precision.map_or(text::ALL_PRECISIONS, |p| p.name());
    let combo = egui::ComboBox::from_id_salt("precision").selected_text(name(shown)).width(64.0);
    combo
        .show_ui(ui, |ui| {
            for precision in std::iter::once(None).chain(state.chart.precisions.iter().copied().map(Some)) {
                ui.selectable_value(&mut settings.precision, precision, name(precision));
            }
        })
        .response
}

fn minibatch_ui(ui: &mut egui::Ui, state: &State, settings: &mut Settings) -> egui::Response {
    let shown = state.chart.minibatch.map(|minibatch| minibatch.to_string()).unwrap_or_default();
    let combo = egui::ComboBox::from_id_salt("minibatch").selected_text(shown).width(64.0);
    combo
        .show_ui(ui, |ui| {
            for minibatch in &state.chart.minibatches {
                ui.selectable_value(&mut settings.minibatch, Some(*minibatch), minibatch.to_string());
            }
        })
        .response
}

fn legend_ui(ui: &mut egui::Ui, state: &State) {
    ui.spacing_mut().interact_size.y = 0.0;
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0 * theme::GRID;
        for series in &state.chart.series {
            let name = series_name(state, series);
            let font = egui::TextStyle::Small.resolve(ui.style());
            let color = ui.visuals().text_color();
            let galley = ui.painter().layout_no_wrap(name.clone(), font, color);
            // Chip and name are one piece, so that no line breaks between them.
            let size = galley.size() + egui::vec2(4.0 * theme::GRID, 0.0);
            let (rect, response) = ui.allocate_exact_size(size, egui::Sense::hover());
            response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &name));
            let chip = egui::Rect::from_center_size(
                egui::pos2(rect.left() + 1.5 * theme::GRID, rect.center().y),
                egui::Vec2::splat(3.0 * theme::GRID),
            );
            chart_view::paint_of(ui, state, series).bar(ui, chip);
            ui.painter().galley(egui::pos2(rect.left() + 4.0 * theme::GRID, rect.top()), galley, color);
        }
    });
}

/// A series' name; with its source where series of several sources are shown.
pub(super) fn series_name(state: &State, series: &Series) -> String {
    let is_from_one = state.chart.series.iter().all(|other| other.source == series.source);
    match state.library.source(series.source) {
        Some(source) if !is_from_one => text::series_of(source.name, series),
        _ => text::series(series),
    }
}
