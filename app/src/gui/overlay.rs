//! What lies over the window and wants an answer.

use std::path::PathBuf;

use eframe::egui;

use super::action::Action;
use super::state::{CloseQuestion, Overlay, State};
use super::{custom_form, text, theme};

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    if ui.input(|input| !input.raw.hovered_files.is_empty()) {
        drop_hint_ui(ui);
    }
    let Some(overlay) = &state.overlay else { return };
    let modal = egui::Modal::new(egui::Id::unique("overlay")).show(ui.ctx(), |ui| match overlay {
        Overlay::Custom => custom_form::ui(ui, state, actions),
        Overlay::SavePath(path) => path_ui(ui, text::save_title(), path, actions, Action::EditSavePath, Action::SaveTo),
        Overlay::ExportPath(export, path) => {
            let export = *export;
            let edit = move |typed| Action::EditExportPath(export, typed);
            path_ui(ui, text::export_title(), path, actions, edit, move |path| Action::ExportTo(export, path));
        }
        Overlay::Close(question) => close_ui(ui, *question, actions),
    });
    if modal.should_close() {
        actions.push(Action::CloseOverlay);
    }
}

fn drop_hint_ui(ui: &egui::Ui) {
    let painter = ui.ctx().layer_painter(egui::LayerId::new(egui::Order::Foreground, egui::Id::unique("drop")));
    let rect = ui.ctx().content_rect();
    painter.rect_filled(rect, 0.0, ui.visuals().panel_fill.gamma_multiply(0.85));
    let font = egui::TextStyle::Heading.resolve(ui.style());
    painter.text(rect.center(), egui::Align2::CENTER_CENTER, text::drop_files(), font, ui.visuals().text_color());
}

/// A field for the path of a file that is to be written.
fn path_ui(
    ui: &mut egui::Ui,
    title: &str,
    path: &str,
    actions: &mut Vec<Action>,
    edit: impl Fn(String) -> Action,
    write: impl Fn(PathBuf) -> Action,
) {
    ui.set_width(440.0);
    ui.heading(title);
    ui.add_space(2.0 * theme::GRID);
    let label = ui.label(text::save_path());
    let mut typed = path.to_owned();
    let field = ui.add(egui::TextEdit::singleline(&mut typed).desired_width(f32::INFINITY)).labelled_by(label.id);
    let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
    let target = PathBuf::from(typed.trim());
    let is_given = !target.as_os_str().is_empty();
    if field.changed() {
        actions.push(edit(typed));
    }
    ui.add_space(2.0 * theme::GRID);
    ui.horizontal(|ui| {
        let is_saved = ui.add_enabled(is_given, theme::primary_button(ui, text::save())).clicked();
        if is_given && (is_saved || is_entered) {
            actions.push(write(target));
        }
        if ui.button(text::cancel()).clicked() {
            actions.push(Action::CloseOverlay);
        }
    });
}

fn close_ui(ui: &mut egui::Ui, question: CloseQuestion, actions: &mut Vec<Action>) {
    let (title, explanation) = match question {
        CloseQuestion::Running => (text::close_while_running(), text::close_while_running_text()),
        CloseQuestion::Unsaved => (text::close_unsaved(), text::close_unsaved_text()),
    };
    ui.set_width(400.0);
    ui.heading(title);
    ui.add_space(theme::GRID);
    ui.label(explanation);
    ui.add_space(3.0 * theme::GRID);
    ui.horizontal(|ui| {
        if ui.add(theme::primary_button(ui, text::keep_open())).clicked() {
            actions.push(Action::CloseOverlay);
        }
        if question == CloseQuestion::Unsaved && ui.button(text::save_as()).clicked() {
            actions.extend([Action::CloseOverlay, Action::SaveAs]);
        }
        if ui.button(text::close_anyway()).clicked() {
            actions.push(Action::CloseAnyway);
        }
    });
}
