//! The page on throughput: controls, then the chart under its question, or what to do when there is nothing to show.

use compute::bench::suite::Suite;
use compute::plan::Pass;
use eframe::egui;

use super::action::Action;
use super::state::State;
use super::{chart_view, library_panel, mark, text, theme};
use crate::chart::series::Series;
use crate::chart::settings::{Settings, Sort};

/// Series that the legend names before the rest is only counted; their bars say who they are.
const MOST_NAMED: usize = 24;

/// Draws the page and returns where the picture is that can be exported.
pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) -> Option<egui::Rect> {
    let chart = &state.chart;
    controls_ui(ui, state, actions);
    ui.add_space(theme::GRID);
    let picture = ui.available_rect_before_wrap();
    let unit = chart.unit.unwrap_or(state.settings.unit);
    ui.heading(text::question(unit));
    if let Some(minibatch) = chart.minibatch {
        let baseline = chart.baseline.as_ref().map(|series| series_name(state, series));
        ui.weak(text::subtitle(state.settings.pass, minibatch, unit, baseline.as_deref()));
    }
    for caution in &chart.cautions {
        ui.colored_label(ui.visuals().warn_fg_color, text::caution(caution));
    }
    if chart.groups.is_empty() {
        ui.add_space(8.0 * theme::GRID);
        ui.vertical_centered(|ui| ui.weak(text::nothing_shown()));
        return None;
    }
    ui.add_space(theme::GRID);
    ui.scope(|ui| legend_ui(ui, state, &chart.series));
    ui.add_space(theme::GRID);
    chart_view::ui(ui, state, actions);
    Some(picture)
}

/// What is shown while there are no results: the way to the first one.
pub(super) fn empty_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    ui.vertical_centered(|ui| {
        ui.add_space(ui.available_height() * 0.3);
        ui.heading(text::empty_title());
        ui.add_space(2.0 * theme::GRID);
        ui.scope(|ui| {
            ui.set_max_width(440.0);
            ui.label(text::empty_text());
            ui.add_space(theme::GRID);
            ui.weak(text::empty_or());
        });
        ui.add_space(4.0 * theme::GRID);
        match state.run_refusal() {
            Some(reason) => {
                ui.weak(reason);
            }
            None => {
                let devices: Vec<String> =
                    state.devices.targets().into_iter().map(|target| target.listing.device.name).collect();
                if ui.add(theme::primary_button(ui, &text::run_quick_on(&devices))).clicked() {
                    actions.push(Action::RunSuite(Suite::Quick));
                }
            }
        }
        if !state.library.published.is_empty() {
            ui.add_space(8.0 * theme::GRID);
            ui.weak(text::empty_published());
            ui.add_space(2.0 * theme::GRID);
            library_panel::comparisons_ui(ui, actions);
        }
    });
}

fn controls_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let mut settings = state.settings.clone();
    ui.horizontal_wrapped(|ui| {
        pass_ui(ui, &mut settings);
        ui.separator();
        choice_ui(ui, text::precision(), 64.0, |ui, width| precision_ui(ui, width, state, &mut settings));
        choice_ui(ui, text::minibatch(), 76.0, |ui, width| minibatch_ui(ui, width, state, &mut settings));
        choice_ui(ui, text::unit_label(), 104.0, |ui, width| unit_ui(ui, width, state, &mut settings));
        choice_ui(ui, text::relative(), 152.0, |ui, width| baseline_ui(ui, width, state, &mut settings));
        choice_ui(ui, text::sort(), 104.0, |ui, width| {
            combo_ui(ui, "sort", width, &mut settings.sort, Sort::ALL, |sort| text::order(*sort).to_owned())
        });
        ui.checkbox(&mut settings.is_logarithmic, text::logarithmic());
    });
    if settings != state.settings {
        actions.push(Action::Settings(settings));
    }
}

/// Inference or training.
pub(super) fn pass_ui(ui: &mut egui::Ui, settings: &mut Settings) {
    for pass in Pass::ALL {
        let chosen = ui.selectable_value(&mut settings.pass, pass, text::pass(pass));
        chosen.on_hover_text(text::pass_hint(pass));
    }
}

/// A label and the box of a width that it names, which no line breaks apart.
pub(super) fn choice_ui(
    ui: &mut egui::Ui,
    label: &str,
    width: f32,
    add: impl FnOnce(&mut egui::Ui, f32) -> egui::Response,
) {
    let font = egui::TextStyle::Body.resolve(ui.style());
    let named = ui.painter().layout_no_wrap(label.to_owned(), font, egui::Color32::PLACEHOLDER).size().x;
    let size = egui::vec2(named + ui.spacing().item_spacing.x + width, ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, egui::Layout::left_to_right(egui::Align::Center), |ui| {
        let label = ui.label(egui::RichText::new(label).weak());
        add(ui, width).labelled_by(label.id);
    });
}

/// A box of every choice, with the names that they have.
pub(super) fn combo_ui<T: Clone + PartialEq>(
    ui: &mut egui::Ui,
    id: &str,
    width: f32,
    chosen: &mut T,
    choices: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> String,
) -> egui::Response {
    let combo = egui::ComboBox::from_id_salt(id).selected_text(name(chosen)).width(width).truncate();
    combo
        .show_ui(ui, |ui| {
            for choice in choices {
                let label = name(&choice);
                ui.selectable_value(chosen, choice, label);
            }
        })
        .response
}

pub(super) fn precision_ui(ui: &mut egui::Ui, width: f32, state: &State, settings: &mut Settings) -> egui::Response {
    // What the chart does not have, it does not filter by; the box says so.
    let mut shown = settings.precision.filter(|precision| state.chart.precisions.contains(precision));
    let before = shown;
    let choices = std::iter::once(None).chain(state.chart.precisions.iter().copied().map(Some));
    let response = combo_ui(ui, "precision", width, &mut shown, choices, |precision| {
        precision.map_or(text::all_precisions(), |precision| precision.name()).to_owned()
    });
    if shown != before {
        settings.precision = shown;
    }
    response
}

fn minibatch_ui(ui: &mut egui::Ui, width: f32, state: &State, settings: &mut Settings) -> egui::Response {
    let mut shown = state.chart.minibatch;
    let choices = state.chart.minibatches.iter().copied().map(Some);
    let name = |minibatch: &Option<usize>| minibatch.map(|minibatch| minibatch.to_string()).unwrap_or_default();
    let response = combo_ui(ui, "minibatch", width, &mut shown, choices, name);
    if shown != state.chart.minibatch {
        settings.minibatch = shown;
    }
    response
}

fn unit_ui(ui: &mut egui::Ui, width: f32, state: &State, settings: &mut Settings) -> egui::Response {
    let mut shown = state.chart.unit.unwrap_or(settings.unit);
    let before = shown;
    let choices = state.chart.units.iter().copied();
    let response = combo_ui(ui, "unit", width, &mut shown, choices, |unit| text::unit(*unit).to_owned());
    if shown != before {
        settings.unit = shown;
    }
    response
}

fn baseline_ui(ui: &mut egui::Ui, width: f32, state: &State, settings: &mut Settings) -> egui::Response {
    let mut shown = state.chart.baseline.clone();
    let choices = std::iter::once(None).chain(state.chart.series.iter().cloned().map(Some));
    let name = |series: &Option<Series>| match series {
        Some(series) => series_name(state, series),
        None => text::absolute().to_owned(),
    };
    let response = combo_ui(ui, "baseline", width, &mut shown, choices, name);
    if shown != state.chart.baseline {
        settings.baseline = shown;
    }
    response
}

/// The series with their colors.
pub(super) fn legend_ui(ui: &mut egui::Ui, state: &State, series: &[Series]) {
    ui.spacing_mut().interact_size.y = 0.0;
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0 * theme::GRID;
        for series in series.iter().take(MOST_NAMED) {
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
            mark::paint_of(ui, state, series).bar(ui, chip);
            ui.painter().galley(egui::pos2(rect.left() + 4.0 * theme::GRID, rect.top()), galley, color);
        }
        if series.len() > MOST_NAMED {
            ui.label(egui::RichText::new(text::more(series.len() - MOST_NAMED)).small().weak());
        }
    });
}

/// A series' name; with its source where series of several sources are shown, unless the user named it.
pub(super) fn series_name(state: &State, series: &Series) -> String {
    let name = state.library.name(series);
    let is_from_one = state.chart.series.iter().all(|other| other.source == series.source);
    match state.library.source(series.source) {
        Some(source) if !is_from_one && !state.library.names.contains_key(series) => {
            text::series_of(source.name, &name)
        }
        _ => name,
    }
}
