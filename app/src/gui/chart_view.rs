//! Draws a chart's bars: models from top to bottom, one bar a series, values and outcomes in words at their ends.

use compute::engine::EngineKind;
use eframe::egui;
use eframe::egui::{Align2, Color32, Pos2, Rect, Sense, Shape, Stroke, TextStyle, pos2, vec2};

use super::action::Action;
use super::chart_panel::series_name;
use super::state::State;
use super::{text, theme};
use crate::chart::number::three_digits;
use crate::chart::scale::Scale;
use crate::chart::series::Series;
use crate::chart::throughput::{Bar, Chart, Group};

const BAR_HEIGHT: f32 = 4.0 * theme::GRID;
const BAR_GAP: f32 = theme::GRID;
const GROUP_GAP: f32 = 4.0 * theme::GRID;
const AXIS_HEIGHT: f32 = 5.0 * theme::GRID;
/// Width kept for the models' names.
const NAME_WIDTH: f32 = 20.0 * theme::GRID;
/// Width kept behind the longest bar for the longest outcome.
const VALUE_WIDTH: f32 = 30.0 * theme::GRID;
/// Bars up to which those outside the visible part are kept too.
const ALWAYS_REACHABLE_BARS: usize = 200;
/// Room kept for the scroll bar.
const SCROLL_WIDTH: f32 = 3.0 * theme::GRID;

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let view = View::new(ui, &state.chart);
    view.axis_ui(ui);
    let names: Vec<String> = state.chart.series.iter().map(|series| series_name(state, series)).collect();
    let height = state.chart.groups.len() as f32 * view.group_height();
    let n_bars = state.chart.groups.len() * state.chart.series.len();
    egui::ScrollArea::vertical().auto_shrink(false).show_viewport(ui, |ui, viewport| {
        let (area, _) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
        view.grid_ui(ui, area);
        for (index, group) in state.chart.groups.iter().enumerate() {
            let top = index as f32 * view.group_height();
            let is_visible = top <= viewport.max.y && top + view.group_height() >= viewport.min.y;
            // Keyboard and screen reader reach what is scrolled away, unless that would make drawing slow.
            if is_visible || n_bars <= ALWAYS_REACHABLE_BARS {
                view.group_ui(ui, state, area.top() + top, group, &names, actions);
            }
        }
    });
}

/// Where things lie.
struct View<'a> {
    chart: &'a Chart,
    scale: Scale,
    left: f32,
    right: f32,
}

impl<'a> View<'a> {
    fn new(ui: &egui::Ui, chart: &'a Chart) -> Self {
        let area = ui.available_rect_before_wrap();
        let left = area.left() + NAME_WIDTH;
        let right = (area.right() - VALUE_WIDTH - SCROLL_WIDTH).max(left + 10.0);
        let scale = chart.scale.clone().unwrap_or_else(|| Scale::from_zero_to(0.0, 1));
        Self { chart, scale, left, right }
    }

    fn group_height(&self) -> f32 {
        self.chart.series.len() as f32 * (BAR_HEIGHT + BAR_GAP) - BAR_GAP + GROUP_GAP
    }

    fn x(&self, value: f64) -> f32 {
        self.left + (self.right - self.left) * self.scale.position(value)
    }

    fn axis_ui(&self, ui: &mut egui::Ui) {
        let (area, _) = ui.allocate_exact_size(vec2(ui.available_width(), AXIS_HEIGHT), Sense::hover());
        if self.chart.scale.is_none() {
            return;
        }
        let font = TextStyle::Small.resolve(ui.style());
        let color = ui.visuals().weak_text_color();
        let mut end = f32::NEG_INFINITY;
        for tick in &self.scale.ticks {
            let at = pos2(self.x(*tick), area.bottom() - theme::GRID);
            let label = ui.painter().layout_no_wrap(three_digits_or_zero(*tick), font.clone(), color);
            let left = at.x - label.size().x / 2.0;
            // Labels that would run into each other are left out, their grid lines are not.
            if left > end + theme::GRID {
                end = left + label.size().x;
                ui.painter().galley(pos2(left, at.y - label.size().y), label, color);
            }
        }
        let unit = pos2(self.right + 2.0 * theme::GRID, area.bottom() - theme::GRID);
        ui.painter().text(
            unit.max(pos2(end + 2.0 * theme::GRID, 0.0)),
            Align2::LEFT_BOTTOM,
            self.chart.unit.map_or("×", text::unit),
            font,
            color,
        );
    }

    fn grid_ui(&self, ui: &egui::Ui, area: Rect) {
        if self.chart.scale.is_none() {
            return;
        }
        let stroke = ui.visuals().widgets.noninteractive.bg_stroke;
        for tick in &self.scale.ticks {
            ui.painter().vline(self.x(*tick).round(), area.y_range(), stroke);
        }
    }

    fn group_ui(
        &self,
        ui: &egui::Ui,
        state: &State,
        top: f32,
        group: &Group,
        names: &[String],
        actions: &mut Vec<Action>,
    ) {
        let height = self.group_height() - GROUP_GAP;
        let at = pos2(self.left - 2.0 * theme::GRID, top + height / 2.0);
        let font = TextStyle::Body.resolve(ui.style());
        ui.painter().text(at, Align2::RIGHT_CENTER, &group.model, font, ui.visuals().text_color());
        for (index, bar) in group.bars.iter().enumerate() {
            let top = top + index as f32 * (BAR_HEIGHT + BAR_GAP);
            let row = Rect::from_min_max(pos2(self.left, top), pos2(self.right + VALUE_WIDTH, top + BAR_HEIGHT));
            let series = &self.chart.series[index];
            let paint = paint_of(ui, state, series);
            self.bar_ui(ui, state, row, bar, &paint, &group.model, &names[index], actions);
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "where, what, how and under which name; a type for it would be used once"
    )]
    fn bar_ui(
        &self,
        ui: &egui::Ui,
        state: &State,
        row: Rect,
        bar: &Bar,
        paint: &Paint,
        model: &str,
        series: &str,
        actions: &mut Vec<Action>,
    ) {
        let (says, hover) = self.words(state, bar);
        let Some(record) = bar.record() else {
            let at = row.left_center() + vec2(theme::GRID, 0.0);
            ui.painter().text(at, Align2::LEFT_CENTER, "–", small(ui), ui.visuals().weak_text_color());
            return;
        };
        let is_selected = state.selected == Some(record);
        let response = ui.interact(row, ui.scope_id().with((model, series)), Sense::click());
        let label = text::bar(model, series, &says);
        response.widget_info(|| egui::WidgetInfo::selected(egui::Role::Button, true, is_selected, &label));
        if is_selected || response.hovered() || response.has_focus() {
            let fill = ui.visuals().selection.bg_fill.gamma_multiply(if is_selected { 0.5 } else { 0.3 });
            ui.painter().rect_filled(row.expand2(vec2(0.0, BAR_GAP / 2.0)), 2.0, fill);
        }
        match bar {
            Bar::Value { value, interval, .. } => {
                let end = pos2(self.x(*value).max(row.left() + 1.0), row.bottom());
                paint.bar(ui, Rect::from_min_max(row.min, end));
                let whisker = interval.map(|[low, high]| (self.x(low), self.x(high)));
                if let Some((low, high)) = whisker {
                    whisker_ui(ui, row.center().y, low, high);
                }
                let after = whisker.map_or(end.x, |(_, high)| high.max(end.x)) + 1.5 * theme::GRID;
                let color = ui.visuals().strong_text_color();
                ui.painter().text(
                    pos2(after, row.center().y),
                    Align2::LEFT_CENTER,
                    three_digits(*value),
                    small(ui),
                    color,
                );
            }
            Bar::Mark { status, .. } => {
                let center = row.left_center() + vec2(2.0 * theme::GRID, 0.0);
                cross_ui(ui, center, paint.color);
                let at = center + vec2(2.0 * theme::GRID, 0.0);
                let color = ui.visuals().weak_text_color();
                ui.painter().text(at, Align2::LEFT_CENTER, text::mark(*status), small(ui), color);
            }
            Bar::Absent => {}
        }
        if response.on_hover_text_at_pointer(hover).clicked() {
            actions.push(Action::Select((!is_selected).then_some(record)));
        }
    }

    /// What a bar says in short, and at length.
    fn words(&self, state: &State, bar: &Bar) -> (String, String) {
        let found = bar.record().and_then(|record| state.library.record(record));
        let reason = found.and_then(|(_, record, _)| record.reason.clone());
        match bar {
            Bar::Value { value, interval, .. } => {
                (text::value(*value, self.chart.unit), text::full_value(*value, *interval, self.chart.unit))
            }
            Bar::Mark { status, .. } => {
                let mark = text::mark(*status).to_owned();
                (mark.clone(), reason.unwrap_or(mark))
            }
            Bar::Absent => (text::not_measured().to_owned(), String::new()),
        }
    }
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
    pub(super) fn bar(&self, ui: &egui::Ui, rect: Rect) {
        if !self.is_hatched {
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

fn whisker_ui(ui: &egui::Ui, y: f32, low: f32, high: f32) {
    let stroke = Stroke::new(1.5, ui.visuals().strong_text_color());
    let cap = theme::GRID;
    ui.painter().hline(low..=high, y, stroke);
    for x in [low, high] {
        ui.painter().vline(x, y - cap..=y + cap, stroke);
    }
}

fn cross_ui(ui: &egui::Ui, center: Pos2, color: Color32) {
    let stroke = Stroke::new(2.0, color);
    let arm = 0.9 * theme::GRID;
    for direction in [vec2(arm, arm), vec2(arm, -arm)] {
        ui.painter().add(Shape::line_segment([center - direction, center + direction], stroke));
    }
}

fn small(ui: &egui::Ui) -> egui::FontId {
    TextStyle::Small.resolve(ui.style())
}

/// A round value of an axis.
pub(super) fn three_digits_or_zero(tick: f64) -> String {
    // A tick is round by itself; trailing zeros behind the point say nothing.
    let text = three_digits(tick);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
