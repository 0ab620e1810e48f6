//! The library: this machine's results and the files, with their series and colors.

use std::path::PathBuf;

use eframe::egui;

use super::action::Action;
use super::library::{Content, Entry, THIS_MACHINE};
use super::state::State;
use super::{chart_view, text, theme};
use crate::chart::series::{Series, Source, SourceId};

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let sources = state.library.sources();
    let source = |id: SourceId| sources.iter().find(|source| source.id == id);
    if let Some(session) = source(THIS_MACHINE) {
        ui.add_space(theme::GRID);
        ui.strong(text::THIS_SESSION);
        series_ui(ui, state, session, actions);
        ui.add_space(theme::GRID);
        ui.separator();
    }
    ui.add_space(theme::GRID);
    ui.strong(text::FILES);
    ui.add_space(theme::GRID);
    if state.library.files.is_empty() {
        ui.label(egui::RichText::new(text::NO_FILES).small().weak());
    }
    for entry in &state.library.files {
        file_ui(ui, entry, actions);
        match &entry.content {
            Content::Loading => {
                ui.label(egui::RichText::new(text::LOADING).small().weak());
            }
            Content::Failed(reason) => {
                let reason = egui::RichText::new(reason).small().color(ui.visuals().error_fg_color);
                ui.label(reason);
            }
            Content::Loaded(loaded) => {
                match source(entry.id) {
                    Some(source) => series_ui(ui, state, source, actions),
                    None => {
                        ui.label(egui::RichText::new(text::NO_RECORDS).small().weak());
                    }
                }
                for note in &loaded.notes {
                    ui.label(egui::RichText::new(note).small().color(ui.visuals().warn_fg_color));
                }
            }
        }
        ui.add_space(theme::GRID);
    }
    path_ui(ui, state, actions);
}

fn file_ui(ui: &mut egui::Ui, entry: &Entry, actions: &mut Vec<Action>) {
    ui.horizontal(|ui| {
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let remove = egui::Button::new("×").frame(false);
            let what = text::remove_file(&entry.name);
            let response = ui.add(remove).accessible_name(&what).on_hover_text(&what);
            if response.clicked() {
                actions.push(Action::RemoveFile(entry.id));
            }
            ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                let label = egui::Label::new(&entry.name).truncate();
                ui.add(label).on_hover_text(entry.path.display().to_string());
            });
        });
    });
}

fn series_ui(ui: &mut egui::Ui, state: &State, source: &Source<'_>, actions: &mut Vec<Action>) {
    for series in Series::all(source) {
        ui.horizontal(|ui| {
            let mut is_shown = !state.library.hidden.contains(&series);
            chip_ui(ui, state, &series, is_shown);
            let label = text::series(&series);
            let checkbox = egui::Checkbox::new(&mut is_shown, egui::RichText::new(&label).small());
            if ui.add(checkbox).changed() {
                actions.push(Action::ShowSeries { series, is_shown });
            }
        });
    }
}

/// The color of a series; hollow where it is not shown.
fn chip_ui(ui: &mut egui::Ui, state: &State, series: &Series, is_shown: bool) {
    let (rect, _) = ui.allocate_exact_size(egui::Vec2::splat(3.0 * theme::GRID), egui::Sense::hover());
    let paint = chart_view::paint_of(ui, state, series);
    if is_shown {
        paint.bar(ui, rect);
    } else {
        let stroke = egui::Stroke::new(1.5, paint.color);
        ui.painter().rect_stroke(rect, 2.0, stroke, egui::StrokeKind::Inside);
    }
}

fn path_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    ui.add_space(theme::GRID);
    ui.horizontal(|ui| {
        let add_width = 12.0 * theme::GRID;
        let mut typed = state.path.text.clone();
        let field = egui::TextEdit::singleline(&mut typed).hint_text(text::PATH_HINT);
        let field = field.desired_width(ui.available_width() - add_width - 2.0 * theme::GRID);
        let response = ui.add(field).accessible_name(text::PATH_FIELD);
        if state.path.wants_focus {
            response.request_focus();
        }
        let is_entered = response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        let path = PathBuf::from(typed.trim());
        let is_given = !path.as_os_str().is_empty();
        if response.changed() {
            actions.push(Action::EditPath(typed));
        }
        let add = ui.add_enabled(is_given, egui::Button::new(text::ADD).min_size(egui::vec2(add_width, 0.0)));
        if is_given && (add.clicked() || is_entered) {
            actions.push(Action::AddFiles(vec![path]));
        }
    });
}
