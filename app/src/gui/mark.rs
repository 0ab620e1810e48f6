//! What stands for one record in a chart: how it looks, and that it can be pointed at, chosen and read aloud.

use compute::engine::EngineKind;
use eframe::egui;
use eframe::egui::{Color32, Pos2, Rect, Sense, Shape, Stroke, pos2, vec2};

use super::action::Action;
use super::state::State;
use super::theme;
use crate::chart::series::{RecordRef, Series};

/// A place that selects a record, or lets go of it; `label` says what is there. It is lit up when it is pointed at.
pub(super) fn mark_ui(
    ui: &egui::Ui,
    state: &State,
    area: Rect,
    record: RecordRef,
    label: &str,
    actions: &mut Vec<Action>,
) -> egui::Response {
    let is_selected = state.selected == Some(record);
    let response = ui.interact(area, ui.scope_id().with(label), Sense::click());
    response.widget_info(|| egui::WidgetInfo::selected(egui::Role::Button, true, is_selected, label));
    if is_selected || response.hovered() || response.has_focus() {
        let fill = ui.visuals().selection.bg_fill.gamma_multiply(if is_selected { 0.5 } else { 0.3 });
        ui.painter().rect_filled(area, 2.0, fill);
    }
    if response.clicked() {
        actions.push(Action::Select((!is_selected).then_some(record)));
    }
    response
}

/// How the bars of a series look: a color of its own, and a hatch for the reference on the processor.
pub(super) fn paint_of(ui: &egui::Ui, state: &State, series: &Series) -> Paint {
    let color = theme::series_color(state.library.color(series), ui.visuals().dark_mode);
    Paint { color, is_hatched: series.engine == EngineKind::Cpu.name() }
}

/// How bars look.
pub(super) struct Paint {
    pub(super) color: Color32,
    is_hatched: bool,
}

impl Paint {
    /// A color alone.
    pub(super) const fn plain(color: Color32) -> Self {
        Self { color, is_hatched: false }
    }

    pub(super) fn bar(&self, ui: &egui::Ui, rect: Rect) {
        self.bar_of(ui, false, rect);
    }

    /// A bar, hatched where its value is doubtful or estimated too.
    pub(super) fn bar_of(&self, ui: &egui::Ui, is_unsure: bool, rect: Rect) {
        if !self.is_hatched && !is_unsure {
            ui.painter().rect_filled(rect, 1.0, self.color);
            return;
        }
        ui.painter().rect_filled(rect, 1.0, self.color.gamma_multiply(0.35));
        let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
        let mut x = rect.left() - rect.height();
        while x < rect.right() {
            let stroke = Stroke::new(1.5, self.color);
            painter.line_segment([pos2(x, rect.bottom()), pos2(x + rect.height(), rect.top())], stroke);
            x += 1.5 * theme::GRID;
        }
        ui.painter().rect_stroke(rect, 1.0, Stroke::new(1.0, self.color), egui::StrokeKind::Inside);
    }
}

/// Stands where a run had another outcome than a number.
pub(super) fn cross_ui(ui: &egui::Ui, center: Pos2, color: Color32) {
    let stroke = Stroke::new(2.0, color);
    let arm = 0.9 * theme::GRID;
    for direction in [vec2(arm, arm), vec2(arm, -arm)] {
        ui.painter().add(Shape::line_segment([center - direction, center + direction], stroke));
    }
}

/// Line of an interval.
pub(super) fn interval_stroke(ui: &egui::Ui) -> Stroke {
    Stroke::new(1.5, ui.visuals().strong_text_color())
}

/// An interval that lies from left to right.
pub(super) fn interval_ui(ui: &egui::Ui, y: f32, low: f32, high: f32) {
    let (stroke, cap) = (interval_stroke(ui), theme::GRID);
    ui.painter().hline(low..=high, y, stroke);
    for x in [low, high] {
        ui.painter().vline(x, y - cap..=y + cap, stroke);
    }
}
