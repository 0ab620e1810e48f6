//! The page on memory: what each model needs by its plan, against the memory of devices, without running anything.

use compute::shape::Precision;
use eframe::egui;
use eframe::egui::{Align2, Rect, Sense, Stroke, TextStyle, pos2, vec2};

use super::action::Action;
use super::chart_panel::{choice_ui, combo_ui, pass_ui};
use super::state::State;
use super::{text, theme};
use crate::chart::memory::Capacity;
use crate::chart::number::bytes;
use crate::chart::scale::Scale;

const ROW_HEIGHT: f32 = 9.0 * theme::GRID;
const BAR_HEIGHT: f32 = 4.0 * theme::GRID;
const NAME_WIDTH: f32 = 20.0 * theme::GRID;
const VALUE_WIDTH: f32 = 22.0 * theme::GRID;
const GIB: f64 = (1u64 << 30) as f64;

/// Draws the page and returns where the picture is that can be exported.
pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) -> Option<Rect> {
    controls_ui(ui, state, actions);
    ui.add_space(theme::GRID);
    let picture = ui.available_rect_before_wrap();
    ui.heading(text::memory_question());
    ui.weak(text::memory_subtitle());
    if state.capacities_are_common() {
        ui.weak(text::memory_no_device());
    }
    ui.add_space(2.0 * theme::GRID);
    egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        bars_ui(ui, state);
        ui.add_space(4.0 * theme::GRID);
        largest_ui(ui, state);
    });
    Some(picture)
}

fn controls_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let (mut settings, mut choice) = (state.settings.clone(), state.memory);
    ui.horizontal_wrapped(|ui| {
        pass_ui(ui, &mut settings);
        ui.separator();
        choice_ui(ui, text::precision(), 64.0, |ui, width| {
            combo_ui(ui, "precision", width, &mut choice.precision, Precision::ALL, ToString::to_string)
        });
        choice_ui(ui, text::minibatch(), 72.0, |ui, width| {
            let powers = std::iter::successors(Some(1), |minibatch| Some(minibatch * 2)).take(13);
            combo_ui(ui, "minibatch", width, &mut choice.minibatch, powers, ToString::to_string)
        });
    });
    if settings != state.settings {
        actions.push(Action::Settings(settings));
    }
    if choice != state.memory {
        actions.push(Action::Memory(choice));
    }
}

/// A bar for each model, and a line for each memory.
fn bars_ui(ui: &mut egui::Ui, state: &State) {
    let needs = &state.needs;
    let needed = needs.rows.iter().filter_map(|need| need.bytes).max().unwrap_or(0) as f64;
    // Memories far beyond every bar would make the bars too short to be told apart.
    let shown: Vec<_> = needs.capacities.iter().filter(|capacity| capacity.bytes as f64 <= 6.0 * needed).collect();
    let largest = shown.iter().map(|capacity| capacity.bytes as f64).fold(needed, f64::max);
    let scale = Scale::from_zero_to(largest / GIB, 6);
    let height = needs.rows.len() as f32 * ROW_HEIGHT + 12.0 * theme::GRID;
    let (room, _) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
    let area = Rect::from_min_max(
        pos2(room.left() + NAME_WIDTH, room.top() + 6.0 * theme::GRID),
        pos2(room.right() - VALUE_WIDTH, room.bottom() - 6.0 * theme::GRID),
    );
    let x = |bytes: f64| area.left() + area.width() * scale.position(bytes / GIB);
    let (small, body) = (TextStyle::Small.resolve(ui.style()), TextStyle::Body.resolve(ui.style()));
    let weak = ui.visuals().weak_text_color();
    for tick in &scale.ticks {
        ui.painter().vline(x(tick * GIB).round(), area.y_range(), ui.visuals().widgets.noninteractive.bg_stroke);
        let at = pos2(x(tick * GIB), area.bottom() + theme::GRID);
        ui.painter().text(at, Align2::CENTER_TOP, bytes((tick * GIB) as u64), small.clone(), weak);
    }
    for (row, need) in needs.rows.iter().enumerate() {
        let top = area.top() + row as f32 * ROW_HEIGHT + (ROW_HEIGHT - BAR_HEIGHT) / 2.0;
        let middle = top + BAR_HEIGHT / 2.0;
        let at = pos2(area.left() - 2.0 * theme::GRID, middle);
        ui.painter().text(at, Align2::RIGHT_CENTER, need.model.name(), body.clone(), ui.visuals().text_color());
        let Some(needed) = need.bytes else { continue };
        let bar = Rect::from_x_y_ranges(area.left()..=x(needed as f64), top..=top + BAR_HEIGHT);
        ui.painter().rect_filled(bar, 1.0, ui.visuals().hyperlink_color);
        let at = pos2(bar.right() + 1.5 * theme::GRID, middle);
        ui.painter().text(at, Align2::LEFT_CENTER, bytes(needed), small.clone(), ui.visuals().strong_text_color());
        let line = Rect::from_x_y_ranges(room.x_range(), top..=top + BAR_HEIGHT);
        let response = ui.interact(line, ui.scope_id().with(need.model.name()), Sense::hover());
        let says = verdicts(state, needed);
        let label = text::bar(need.model.name(), &text::needs(&bytes(needed), needs.minibatch), &says.join(", "));
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &label));
        response.on_hover_text_at_pointer(format!(
            "{}\n{}",
            text::needs(&bytes(needed), needs.minibatch),
            says.join("\n")
        ));
    }
    let mut end = f32::NEG_INFINITY;
    for capacity in shown {
        let at = x(capacity.bytes as f64);
        ui.painter().vline(at, area.y_range(), Stroke::new(2.0, ui.visuals().warn_fg_color));
        let color = ui.visuals().warn_fg_color;
        let name = ui.painter().layout_no_wrap(capacity.name.clone(), small.clone(), color);
        let left = (at - name.size().x / 2.0).min(room.right() - name.size().x);
        // Names that would run into each other are told by the table below.
        if left > end + theme::GRID {
            end = left + name.size().x;
            ui.painter().galley(pos2(left, area.top() - theme::GRID - name.size().y), name, color);
        }
    }
}

/// Whether it fits, for each memory.
fn verdicts(state: &State, needed: u64) -> Vec<String> {
    let verdict = |is_fitting| if is_fitting { text::fits() } else { text::does_not_fit() };
    let one = |capacity: &Capacity| {
        format!("{} ({}): {}", capacity.name, bytes(capacity.bytes), verdict(needed <= capacity.bytes))
    };
    state.needs.capacities.iter().map(one).collect()
}

/// The largest minibatch of each model on each device.
fn largest_ui(ui: &mut egui::Ui, state: &State) {
    ui.strong(text::memory_largest());
    ui.add_space(theme::GRID);
    egui::ScrollArea::horizontal().show(ui, |ui| {
        egui::Grid::new("largest").striped(true).spacing([24.0, 4.0]).show(ui, |ui| {
            ui.label(egui::RichText::new(text::model()).weak());
            for capacity in &state.needs.capacities {
                ui.label(egui::RichText::new(&capacity.name).weak()).on_hover_text(bytes(capacity.bytes));
            }
            ui.end_row();
            for need in &state.needs.rows {
                ui.label(need.model.name());
                for largest in &need.largest {
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| match largest {
                        Some(minibatch) => ui.label(minibatch.to_string()),
                        None => ui.label(egui::RichText::new(text::does_not_fit()).color(ui.visuals().warn_fg_color)),
                    });
                }
                ui.end_row();
            }
        });
    });
}
