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
        Overlay::SavePath(path) => save_path_ui(ui, path, actions),
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
    painter.text(rect.center(), egui::Align2::CENTER_CENTER, text::DROP_FILES, font, ui.visuals().text_color());
}

fn save_path_ui(ui: &mut egui::Ui, path: &str, actions: &mut Vec<Action>) {
    ui.set_width(440.0);
    ui.heading(text::SAVE_TITLE);
    ui.add_space(2.0 * theme::GRID);
    let label = ui.label(text::SAVE_PATH);
    let mut typed = path.to_owned();
    let field = ui.add(egui::TextEdit::singleline(&mut typed).desired_width(f32::INFINITY)).labelled_by(label.id);
    let is_entered = field.lost_focus() && ui.input(|input| input.key_pressed(egui::Key::Enter));
    let target = PathBuf::from(typed.trim());
    let is_given = !target.as_os_str().is_empty();
    if field.changed() {
        actions.push(Action::EditSavePath(typed));
    }
    ui.add_space(2.0 * theme::GRID);
    ui.horizontal(|ui| {
        let is_saved = ui.add_enabled(is_given, theme::primary_button(ui, text::SAVE)).clicked();
        if is_given && (is_saved || is_entered) {
            actions.push(Action::SaveTo(target));
        }
        if ui.button(text::CANCEL).clicked() {
            actions.push(Action::CloseOverlay);
        }
    });
}

fn close_ui(ui: &mut egui::Ui, question: CloseQuestion, actions: &mut Vec<Action>) {
    let (title, explanation) = match question {
        CloseQuestion::Running => (text::CLOSE_WHILE_RUNNING, text::CLOSE_WHILE_RUNNING_TEXT),
        CloseQuestion::Unsaved => (text::CLOSE_UNSAVED, text::CLOSE_UNSAVED_TEXT),
    };
    ui.set_width(400.0);
    ui.heading(title);
    ui.add_space(theme::GRID);
    ui.label(explanation);
    ui.add_space(3.0 * theme::GRID);
    ui.horizontal(|ui| {
        if ui.add(theme::primary_button(ui, text::KEEP_OPEN)).clicked() {
            actions.push(Action::CloseOverlay);
        }
        if question == CloseQuestion::Unsaved && ui.button(text::SAVE_AS).clicked() {
            actions.extend([Action::CloseOverlay, Action::SaveAs]);
        }
        if ui.button(text::CLOSE_ANYWAY).clicked() {
            actions.push(Action::CloseAnyway);
        }
    });
}
