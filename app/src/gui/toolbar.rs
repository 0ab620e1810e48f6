//! The bar along the top: opening and saving.

use eframe::egui;

use super::action::Action;
use super::state::{Saved, State};
use super::{text, theme};

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let frame = egui::Frame::side_top_panel(ui.style()).inner_margin(egui::Margin::symmetric(8, 8));
    egui::Panel::top("toolbar").frame(frame).show(ui, |ui| {
        ui.horizontal(|ui| {
            if ui.button(text::OPEN).on_hover_text(text::OPEN_HINT).clicked() {
                actions.push(Action::Open);
            }
            let save = ui.add_enabled(state.has_results(), egui::Button::new(text::SAVE_AS));
            let save = save.on_hover_text(text::SAVE_AS_HINT).on_disabled_hover_text(text::NOTHING_TO_SAVE);
            if save.clicked() {
                actions.push(Action::SaveAs);
            }
            ui.add_space(2.0 * theme::GRID);
            match &state.saved {
                Saved::Nothing => {}
                Saved::InMemory => {
                    ui.colored_label(ui.visuals().warn_fg_color, text::SAVED_IN_MEMORY);
                }
                Saved::At(path) => {
                    ui.add(egui::Label::new(egui::RichText::new(text::saved_at(path)).small().weak()).truncate());
                }
            }
        });
    });
}
