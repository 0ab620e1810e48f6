//! This machine: its devices, what can be chosen and why not, and the buttons that start a run.

use compute::bench::suite::{Selection, Suite};
use compute::engine::{Device, DeviceKind, Listing};
use eframe::egui;

use super::action::Action;
use super::devices::{Choice, Search};
use super::state::State;
use super::{text, theme};
use crate::chart::number;

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    ui.add_space(theme::GRID);
    ui.strong(text::this_machine());
    ui.add_space(theme::GRID);
    match &state.devices.search {
        Search::Looking => {
            ui.weak(text::looking());
        }
        Search::Failed(reason) => {
            ui.colored_label(ui.visuals().error_fg_color, text::search_failed(reason));
            look_again_ui(ui, actions);
        }
        Search::Found(choices) if choices.is_empty() => {
            ui.label(text::no_device());
            look_again_ui(ui, actions);
        }
        Search::Found(choices) => {
            for (index, choice) in choices.iter().enumerate() {
                choice_ui(ui, state, index, choice, actions);
            }
        }
    }
    if state.devices.has_only_processor() {
        ui.label(egui::RichText::new(text::only_processor()).small().weak());
    }
    if state.devices.has_software() {
        let mut is_allowed = state.devices.is_software_allowed;
        let allow = ui.checkbox(&mut is_allowed, text::allow_software()).on_hover_text(text::allow_software_hint());
        if allow.changed() {
            actions.push(Action::AllowSoftware(is_allowed));
        }
    }
    ui.add_space(2.0 * theme::GRID);
    run_ui(ui, state, actions);
    ui.add_space(2.0 * theme::GRID);
    ui.separator();
}

fn look_again_ui(ui: &mut egui::Ui, actions: &mut Vec<Action>) {
    if ui.button(text::look_again()).clicked() {
        actions.push(Action::FindDevices);
    }
}

fn choice_ui(ui: &mut egui::Ui, state: &State, index: usize, choice: &Choice, actions: &mut Vec<Action>) {
    let device = &choice.listing.device;
    let refusal = state.devices.refusal(choice);
    let can_choose = refusal.is_none() && !state.is_running();
    let label = format!("{} · {}", device.name, text::engine(choice.listing.engine.name()));
    let mut is_chosen = choice.is_chosen;
    let response = ui.add_enabled(can_choose, egui::Checkbox::new(&mut is_chosen, label));
    let response = response.on_hover_text(describe(&choice.listing));
    let response = match refusal {
        Some(reason) => response.on_disabled_hover_text(reason),
        None => response.on_disabled_hover_text(text::run_while_running()),
    };
    if response.changed() {
        actions.push(Action::ChooseDevice { index, is_chosen });
    }
    let is_software = device.kind == DeviceKind::Software;
    let line = choice.listing.unavailable.clone().unwrap_or_else(|| summary(device));
    if line.is_empty() && !is_software {
        return;
    }
    ui.scope(|ui| {
        ui.spacing_mut().interact_size.y = 0.0;
        ui.spacing_mut().item_spacing.x = theme::GRID;
        ui.horizontal_wrapped(|ui| {
            // Below the name, not below its box.
            ui.add_space(ui.spacing().icon_width + ui.spacing().icon_spacing);
            if is_software {
                badge_ui(ui, text::software(), ui.visuals().error_fg_color);
            }
            if choice.listing.unavailable.is_some() {
                badge_ui(ui, text::unavailable(), ui.visuals().warn_fg_color);
            }
            ui.label(egui::RichText::new(line).small().weak());
        });
    });
}

fn badge_ui(ui: &mut egui::Ui, label: &str, color: egui::Color32) {
    let label = egui::RichText::new(label).small().color(color);
    egui::Frame::new()
        .stroke(egui::Stroke::new(1.0, color))
        .corner_radius(3)
        .inner_margin(egui::Margin::symmetric(4, 0))
        .show(ui, |ui| ui.label(label));
}

/// Programming interface and memory, in one line.
fn summary(device: &Device) -> String {
    let memory = device.memory_bytes.map(number::bytes);
    device.api.clone().into_iter().chain(memory).collect::<Vec<_>>().join(" · ")
}

/// Everything known, for hovering.
fn describe(Listing { device, remarks, .. }: &Listing) -> String {
    let parts = [Some(&device.name), device.driver.as_ref(), device.api.as_ref(), Some(&device.id)];
    parts.into_iter().flatten().chain(remarks).map(String::as_str).collect::<Vec<_>>().join("\n")
}

fn run_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let refusal = state.run_refusal();
    ui.vertical_centered_justified(|ui| {
        for suite in Suite::ALL {
            let label = text::run_suite(suite);
            let button =
                if suite == Suite::Quick { theme::primary_button(ui, label) } else { egui::Button::new(label) };
            let response = ui.add_enabled(refusal.is_none(), button);
            let response = response.on_hover_ui(|ui| {
                let (runs, longest) = state.estimate(&Selection { suite: Some(suite), ..Selection::default() });
                ui.label(text::suite_hint(suite));
                ui.label(text::estimate(runs, longest));
            });
            if response.on_disabled_hover_text(refusal.unwrap_or_default()).clicked() {
                actions.push(Action::RunSuite(suite));
            }
        }
        let response = ui.add_enabled(refusal.is_none(), egui::Button::new(text::custom()));
        if response.on_disabled_hover_text(refusal.unwrap_or_default()).clicked() {
            actions.push(Action::OpenCustom);
        }
    });
    if let Some(reason) = refusal {
        ui.label(egui::RichText::new(reason).small().weak());
    }
}
