//! The library: this machine's results and the files, with their series and colors.

use std::path::PathBuf;

use compute::import::Unknown;
use compute::shape::Precision;
use eframe::egui;

use super::action::Action;
use super::library::{Content, Entry};
use super::published::Comparison;
use super::state::State;
use super::{mark, text, theme};
use crate::chart::series::Series;

/// Files up to which those outside the visible part are drawn too, so that keyboard and screen reader reach them.
const ALWAYS_REACHABLE_FILES: usize = 50;

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    if !state.library.session_series.is_empty() {
        ui.add_space(theme::GRID);
        ui.strong(text::this_session());
        series_ui(ui, state, &state.library.session_series, actions);
        ui.add_space(theme::GRID);
        ui.separator();
    }
    ui.add_space(theme::GRID);
    ui.strong(text::files());
    ui.add_space(theme::GRID);
    if state.library.files.is_empty() {
        ui.label(egui::RichText::new(text::no_files()).small().weak());
    }
    let is_long = state.library.files.len() > ALWAYS_REACHABLE_FILES;
    for entry in &state.library.files {
        let height = entry_height(ui, entry);
        let top = ui.cursor().top();
        if is_long && (top > ui.clip_rect().bottom() || top + height < ui.clip_rect().top()) {
            ui.add_space(height);
            continue;
        }
        ui.push_id(entry.id, |ui| entry_ui(ui, state, entry, actions));
        let rest = height - (ui.cursor().top() - top);
        if is_long && rest > 0.0 {
            ui.add_space(rest);
        }
    }
    path_ui(ui, state, actions);
    published_ui(ui, state, actions);
}

/// Published results: both comparisons, then every set, folded up.
fn published_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    if state.library.published.is_empty() {
        return;
    }
    ui.add_space(theme::GRID);
    ui.separator();
    ui.add_space(theme::GRID);
    // A long title must not push the panel's edge.
    ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Truncate);
    ui.strong(text::published()).on_hover_text(text::published_hint());
    ui.add_space(theme::GRID);
    comparisons_ui(ui, actions);
    for entry in &state.library.published {
        let title = entry.title().unwrap_or(&entry.name);
        let folded = egui::CollapsingHeader::new(egui::RichText::new(shortened(title)).small()).id_salt(&entry.name);
        let shown = folded.show(ui, |ui| series_ui(ui, state, &entry.series, actions));
        shown.header_response.on_hover_text(title);
    }
}

/// A title that fits into the panel: headers that fold don't cut theirs off.
fn shortened(title: &str) -> String {
    const LENGTH: usize = 36;
    match title.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", title[..end].trim_end()),
        None => title.to_owned(),
    }
}

/// One button a comparison.
pub(super) fn comparisons_ui(ui: &mut egui::Ui, actions: &mut Vec<Action>) {
    for comparison in Comparison::ALL {
        let (name, hint) = match comparison {
            Comparison::Gpus2017 => (text::comparison_2017(), text::comparison_2017_hint()),
            Comparison::Frameworks2019 => (text::comparison_2019(), text::comparison_2019_hint()),
        };
        if ui.button(name).on_hover_text(hint).clicked() {
            actions.push(Action::ComparePublished(comparison));
        }
    }
}

/// Height of a file in a long library, where every line has one height.
fn entry_height(ui: &egui::Ui, entry: &Entry) -> f32 {
    let lines = 1 + match &entry.content {
        Content::Loading | Content::Failed(_) => 1,
        Content::Loaded(loaded) => entry.series.len().max(1) + entry.unknown.len() + loaded.notes.len(),
    };
    lines as f32 * (ui.spacing().interact_size.y + ui.spacing().item_spacing.y) + theme::GRID
}

fn entry_ui(ui: &mut egui::Ui, state: &State, entry: &Entry, actions: &mut Vec<Action>) {
    file_ui(ui, entry, actions);
    match &entry.content {
        Content::Loading => {
            ui.label(egui::RichText::new(text::loading()).small().weak());
        }
        Content::Failed(reason) => {
            ui.label(egui::RichText::new(reason).small().color(ui.visuals().error_fg_color));
        }
        Content::Loaded(loaded) => {
            if entry.series.is_empty() {
                ui.label(egui::RichText::new(text::no_records()).small().weak());
            }
            series_ui(ui, state, &entry.series, actions);
            for unknown in &entry.unknown {
                let what = match unknown {
                    Unknown::Device => text::unknown_device(),
                    Unknown::Precision => text::unknown_precision(),
                    Unknown::Minibatch => text::unknown_minibatch(),
                };
                ui.label(egui::RichText::new(what).small().color(ui.visuals().warn_fg_color));
            }
            for note in &loaded.notes {
                ui.label(egui::RichText::new(note).small().color(ui.visuals().warn_fg_color));
            }
        }
    }
    ui.add_space(theme::GRID);
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
                let name = ui.add(egui::Button::new(&entry.name).frame(false).truncate());
                let name = name.on_hover_text(format!("{}\n{}", entry.path.display(), text::label_file()));
                egui::Popup::menu(&name).close_behavior(egui::PopupCloseBehavior::CloseOnClickOutside).show(|ui| {
                    let title = ui.label(egui::RichText::new(text::file_label()).small().weak());
                    let mut label = entry.label().unwrap_or_default().to_owned();
                    let field = egui::TextEdit::singleline(&mut label).hint_text(&entry.name).desired_width(220.0);
                    if ui.add(field).labelled_by(title.id).changed() {
                        actions.push(Action::Label { file: entry.id, label });
                    }
                    given_ui(ui, entry, actions);
                });
            });
        });
    });
}

/// What the file does not say, where there is something, for the user to say.
fn given_ui(ui: &mut egui::Ui, entry: &Entry, actions: &mut Vec<Action>) {
    let mut given = entry.given.clone();
    let is_open = |unknown: Unknown, is_given: bool| is_given || entry.unknown.contains(&unknown);
    let mut is_done = false;
    if is_open(Unknown::Device, given.device.is_some()) {
        ui.add_space(theme::GRID);
        let title = ui.label(egui::RichText::new(text::given_device()).small().weak());
        // What is being typed is kept until it is entered: every change would read the file anew.
        let id = egui::Id::unique(("given device", entry.id));
        let known = given.device.clone().unwrap_or_default();
        let mut typed = ui.data(|data| data.get_temp::<String>(id)).unwrap_or(known);
        let field = ui.add(egui::TextEdit::singleline(&mut typed).desired_width(220.0)).labelled_by(title.id);
        ui.data_mut(|data| data.insert_temp(id, typed.clone()));
        if field.lost_focus() {
            ui.data_mut(|data| data.remove_temp::<String>(id));
            given.device = Some(typed.trim().to_owned()).filter(|name| !name.is_empty());
            is_done = true;
        }
    }
    if is_open(Unknown::Precision, given.precision.is_some()) {
        ui.add_space(theme::GRID);
        ui.label(egui::RichText::new(text::given_precision()).small().weak());
        ui.horizontal(|ui| {
            for precision in Precision::ALL {
                is_done |= ui.selectable_value(&mut given.precision, Some(precision), precision.name()).clicked();
            }
        });
    }
    if is_open(Unknown::Minibatch, given.minibatch.is_some()) {
        ui.add_space(theme::GRID);
        let title = ui.label(egui::RichText::new(text::given_minibatch()).small().weak());
        let id = egui::Id::unique(("given minibatch", entry.id));
        let known = given.minibatch.unwrap_or(0);
        let mut minibatch = ui.data(|data| data.get_temp::<usize>(id)).unwrap_or(known);
        let drag = ui.add(egui::DragValue::new(&mut minibatch).range(0..=65_536)).labelled_by(title.id);
        ui.data_mut(|data| data.insert_temp(id, minibatch));
        if drag.lost_focus() || drag.drag_stopped() {
            ui.data_mut(|data| data.remove_temp::<usize>(id));
            given.minibatch = Some(minibatch).filter(|minibatch| *minibatch > 0);
            is_done = true;
        }
    }
    if is_done && given != entry.given {
        actions.push(Action::Tell { file: entry.id, given });
    }
}

fn series_ui(ui: &mut egui::Ui, state: &State, all: &[Series], actions: &mut Vec<Action>) {
    for series in all {
        ui.horizontal(|ui| {
            let mut is_shown = !state.library.hidden.contains(series);
            let label = state.library.name(series);
            let color = chip_ui(ui, state, series, is_shown, &label);
            egui::Popup::menu(&color).close_behavior(egui::PopupCloseBehavior::CloseOnClickOutside).show(|ui| {
                edit_ui(ui, state, series, actions);
            });
            // A long name must not push the panel's edge.
            ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Truncate);
            let checkbox = egui::Checkbox::new(&mut is_shown, egui::RichText::new(&label).small());
            if ui.add(checkbox).on_hover_text(&label).changed() {
                actions.push(Action::ShowSeries { series: series.clone(), is_shown });
            }
        });
    }
}

/// Name, color and baseline of a series.
fn edit_ui(ui: &mut egui::Ui, state: &State, series: &Series, actions: &mut Vec<Action>) {
    let label = ui.label(egui::RichText::new(text::series_name()).small().weak());
    let mut name = state.library.names.get(series).cloned().unwrap_or_default();
    let field = egui::TextEdit::singleline(&mut name).hint_text(text::series(series)).desired_width(220.0);
    if ui.add(field).labelled_by(label.id).changed() {
        actions.push(Action::Rename { series: series.clone(), name });
    }
    ui.add_space(theme::GRID);
    ui.label(egui::RichText::new(text::series_color()).small().weak());
    ui.horizontal(|ui| {
        for color in 0..theme::N_COLORS {
            let fill = theme::series_color(color, ui.visuals().dark_mode);
            let (rect, response) = ui.allocate_exact_size(egui::Vec2::splat(5.0 * theme::GRID), egui::Sense::click());
            let is_chosen = state.library.color(series) % theme::N_COLORS == color;
            response.widget_info(|| {
                egui::WidgetInfo::selected(egui::Role::RadioButton, true, is_chosen, text::color(color + 1))
            });
            ui.painter().rect_filled(rect.shrink(2.0), 2.0, fill);
            if is_chosen || response.has_focus() || response.hovered() {
                let stroke = egui::Stroke::new(1.5, ui.visuals().strong_text_color());
                ui.painter().rect_stroke(rect, 3.0, stroke, egui::StrokeKind::Inside);
            }
            if response.clicked() && !is_chosen {
                actions.push(Action::Recolor { series: series.clone(), color });
            }
        }
    });
    ui.add_space(theme::GRID);
    let is_baseline = state.settings.baseline.as_ref() == Some(series);
    let label = if is_baseline { text::drop_baseline() } else { text::use_as_baseline() };
    if ui.button(label).clicked() {
        let baseline = (!is_baseline).then(|| series.clone());
        actions.push(Action::Settings(crate::chart::settings::Settings { baseline, ..state.settings.clone() }));
    }
}

/// The color of a series; hollow where it is not shown. A click opens what can be changed.
fn chip_ui(ui: &mut egui::Ui, state: &State, series: &Series, is_shown: bool, name: &str) -> egui::Response {
    let (rect, response) = ui.allocate_exact_size(egui::Vec2::splat(3.0 * theme::GRID), egui::Sense::click());
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Button, true, text::edit(name)));
    let paint = mark::paint_of(ui, state, series);
    if is_shown {
        paint.bar(ui, rect);
    } else {
        let stroke = egui::Stroke::new(1.5, paint.color);
        ui.painter().rect_stroke(rect, 2.0, stroke, egui::StrokeKind::Inside);
    }
    if response.has_focus() || response.hovered() {
        let stroke = egui::Stroke::new(1.5, ui.visuals().strong_text_color());
        ui.painter().rect_stroke(rect.expand(2.0), 2.0, stroke, egui::StrokeKind::Outside);
    }
    response.on_hover_text(text::edit_series())
}

fn path_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    ui.add_space(theme::GRID);
    ui.horizontal(|ui| {
        let add_width = 12.0 * theme::GRID;
        let mut typed = state.path.text.clone();
        let field = egui::TextEdit::singleline(&mut typed).hint_text(text::path_hint());
        let field = field.desired_width(ui.available_width() - add_width - 2.0 * theme::GRID);
        let response = ui.add(field).accessible_name(text::path_field());
        if state.path.wants_focus {
            response.request_focus();
        }
        let is_entered = response.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
        let path = PathBuf::from(typed.trim());
        let is_given = !path.as_os_str().is_empty();
        if response.changed() {
            actions.push(Action::EditPath(typed));
        }
        let add = ui.add_enabled(is_given, egui::Button::new(text::add()).min_size(egui::vec2(add_width, 0.0)));
        if is_given && (add.clicked() || is_entered) {
            actions.push(Action::AddFiles(vec![path]));
        }
    });
}
