//! What the user should know, above the chart, until it is dismissed.

use eframe::egui;

use super::action::Action;
use super::state::{NoticeKind, State};
use super::{text, theme};

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    for (index, notice) in state.notices.iter().enumerate() {
        let color = match notice.kind {
            NoticeKind::Info => ui.visuals().text_color(),
            NoticeKind::Problem | NoticeKind::SaveProblem => ui.visuals().error_fg_color,
        };
        egui::Frame::new()
            .fill(ui.visuals().faint_bg_color)
            .stroke(ui.visuals().widgets.noninteractive.bg_stroke)
            .corner_radius(4)
            .inner_margin(egui::Margin::symmetric(8, 4))
            .show(ui, |ui| {
                ui.horizontal(|ui| {
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                        let dismiss = ui.add(egui::Button::new("×").frame(false));
                        if dismiss.accessible_name(text::dismiss(&notice.text)).clicked() {
                            actions.push(Action::DismissNotice(index));
                        }
                        if notice.kind == NoticeKind::SaveProblem && ui.button(text::save_as()).clicked() {
                            actions.push(Action::SaveAs);
                        }
                        ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| {
                            ui.add(egui::Label::new(egui::RichText::new(&notice.text).color(color)).wrap());
                        });
                    });
                });
            });
        ui.add_space(theme::GRID);
    }
}
