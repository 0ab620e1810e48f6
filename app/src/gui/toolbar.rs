//! The bar along the top: files, pages, export, and how the window looks.

use eframe::egui;

use super::action::Action;
use super::state::{Export, Saved, State, Tab, Theme};
use super::text::{self, Language};
use super::theme;

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let frame = egui::Frame::side_top_panel(ui.style()).inner_margin(egui::Margin::symmetric(8, 8));
    egui::Panel::top("toolbar").frame(frame).show(ui, |ui| {
        ui.horizontal(|ui| {
            files_ui(ui, state, actions);
            ui.separator();
            for tab in Tab::ALL {
                if ui.selectable_label(state.tab == tab, name(tab)).clicked() {
                    actions.push(Action::Turn(tab));
                }
            }
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                ui.menu_button(text::view(), |ui| look_ui(ui, state, actions));
                ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| saved_ui(ui, state));
            });
        });
    });
}

fn name(tab: Tab) -> &'static str {
    match tab {
        Tab::Throughput => text::tab_throughput(),
        Tab::Efficiency => text::tab_efficiency(),
        Tab::Memory => text::tab_memory(),
        Tab::Decide => text::tab_decide(),
        Tab::Table => text::tab_table(),
    }
}

fn files_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    if ui.button(text::open()).on_hover_text(text::open_hint()).clicked() {
        actions.push(Action::Open);
    }
    let is_new = |path: &&std::path::PathBuf| state.library.files.iter().all(|entry| entry.path != **path);
    if state.recent.iter().any(|path| is_new(&path)) {
        ui.menu_button(text::recent(), |ui| {
            for path in state.recent.iter().filter(is_new) {
                if ui.button(path.display().to_string()).clicked() {
                    actions.push(Action::AddFiles(vec![path.clone()]));
                }
            }
        });
    }
    let save = ui.add_enabled(state.has_results(), egui::Button::new(text::save_as()));
    let save = save.on_hover_text(text::save_as_hint()).on_disabled_hover_text(text::nothing_to_save());
    if save.clicked() {
        actions.push(Action::SaveAs);
    }
    let has_records = state.library.has_records();
    ui.add_enabled_ui(has_records, |ui| {
        ui.menu_button(text::export(), |ui| {
            for export in Export::ALL {
                // The table is no picture, and the ranking of GPUs is no set of records.
                let is_picture = matches!(export, Export::Png | Export::Svg);
                let can_export = match state.tab {
                    Tab::Table => !is_picture,
                    Tab::Decide => is_picture,
                    _ => true,
                };
                if ui.add_enabled(can_export, egui::Button::new(export_name(export))).clicked() {
                    actions.push(Action::Export(export));
                }
            }
        });
    });
}

fn export_name(export: Export) -> &'static str {
    match export {
        Export::Png => text::export_png(),
        Export::Svg => text::export_svg(),
        Export::Csv => text::export_csv(),
        Export::Markdown => text::export_markdown(),
        Export::Results => text::export_results(),
    }
}

fn saved_ui(ui: &mut egui::Ui, state: &State) {
    match &state.saved {
        Saved::Nothing => {}
        Saved::InMemory => {
            ui.colored_label(ui.visuals().warn_fg_color, text::saved_in_memory());
        }
        Saved::At(path) => {
            let saved = text::saved_at(path);
            let label = egui::Label::new(egui::RichText::new(&saved).small().weak()).truncate();
            ui.add(label).on_hover_text(saved);
        }
    }
}

fn look_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let mut look = state.look;
    ui.label(egui::RichText::new(text::language()).small().weak());
    for language in Language::ALL {
        ui.radio_value(&mut look.language, language, language.name());
    }
    ui.add_space(theme::GRID);
    ui.label(egui::RichText::new(text::view()).small().weak());
    let themes =
        [(Theme::System, text::theme_system()), (Theme::Light, text::theme_light()), (Theme::Dark, text::theme_dark())];
    for (theme, name) in themes {
        ui.radio_value(&mut look.theme, theme, name);
    }
    ui.add_space(theme::GRID);
    ui.label(egui::RichText::new(text::scale()).small().weak());
    for percent in [100u8, 125, 150, 200] {
        ui.radio_value(&mut look.zoom, f32::from(percent) / 100.0, format!("{percent} %"));
    }
    if look != state.look {
        actions.push(Action::Look(look));
    }
}
