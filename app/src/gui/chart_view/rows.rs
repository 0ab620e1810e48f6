//! Bars from left to right, models from top to bottom: for any number of them.

use eframe::egui;
use eframe::egui::{Align2, Rect, Sense, TextStyle, pos2, vec2};

use super::super::action::Action;
use super::super::mark::{Paint, cross_ui, interval_ui};
use super::super::{text, theme};
use super::{View, small, three_digits_or_zero};
use crate::chart::number::three_digits;
use crate::chart::throughput::{Bar, Group};

const BAR_HEIGHT: f32 = 4.0 * theme::GRID;
const BAR_GAP: f32 = theme::GRID;
const GROUP_GAP: f32 = 4.0 * theme::GRID;
const AXIS_HEIGHT: f32 = 5.0 * theme::GRID;
/// Width kept for the models' names: at least, and at most.
const NAME_WIDTH: [f32; 2] = [20.0 * theme::GRID, 56.0 * theme::GRID];
/// Width kept behind the longest bar for the longest outcome.
const VALUE_WIDTH: f32 = 30.0 * theme::GRID;
/// Bars up to which those outside the visible part are kept too.
const ALWAYS_REACHABLE_BARS: usize = 200;
/// Room kept for the scroll bar.
const SCROLL_WIDTH: f32 = 3.0 * theme::GRID;

pub(super) fn ui(ui: &mut egui::Ui, view: &View<'_>, actions: &mut Vec<Action>) {
    let rows = Rows::new(ui, view);
    rows.axis_ui(ui);
    let groups = &view.chart.groups;
    let height = groups.iter().map(group_height).sum();
    let n_bars = groups.len() * view.series.len();
    egui::ScrollArea::vertical().auto_shrink(false).show_viewport(ui, |ui, viewport| {
        let (area, _) = ui.allocate_exact_size(vec2(ui.available_width(), height), Sense::hover());
        rows.grid_ui(ui, area);
        let mut bottom = 0.0;
        for group in groups {
            let top = bottom;
            bottom += group_height(group);
            let is_visible = top <= viewport.max.y && bottom >= viewport.min.y;
            // Keyboard and screen reader reach what is scrolled away, unless that would make drawing slow.
            if is_visible || n_bars <= ALWAYS_REACHABLE_BARS {
                rows.group_ui(ui, area.top() + top, group, actions);
            }
        }
    });
}

/// Bars of a group that were measured. Others take no place: among many series most models lack some.
fn present(group: &Group) -> usize {
    group.bars.iter().filter(|bar| bar.record().is_some()).count()
}

fn group_height(group: &Group) -> f32 {
    present(group) as f32 * (BAR_HEIGHT + BAR_GAP) - BAR_GAP + GROUP_GAP
}

/// Where things lie.
struct Rows<'a> {
    view: &'a View<'a>,
    names_left: f32,
    left: f32,
    right: f32,
}

impl<'a> Rows<'a> {
    fn new(ui: &egui::Ui, view: &'a View<'a>) -> Self {
        let area = ui.available_rect_before_wrap();
        let font = TextStyle::Body.resolve(ui.style());
        let width = |name: &String| ui.painter().layout_no_wrap(name.clone(), font.clone(), egui::Color32::PLACEHOLDER);
        let names = view.chart.groups.iter().map(|group| width(&group.model).size().x).fold(0.0, f32::max);
        let left = area.left() + (names + 3.0 * theme::GRID).clamp(NAME_WIDTH[0], NAME_WIDTH[1]);
        let right = (area.right() - VALUE_WIDTH - SCROLL_WIDTH).max(left + 10.0);
        Self { view, names_left: area.left(), left, right }
    }

    fn x(&self, value: f64) -> f32 {
        self.left + (self.right - self.left) * self.view.scale.position(value).min(1.0)
    }

    fn axis_ui(&self, ui: &mut egui::Ui) {
        let (area, _) = ui.allocate_exact_size(vec2(ui.available_width(), AXIS_HEIGHT), Sense::hover());
        if self.view.chart.scale.is_none() {
            return;
        }
        let font = TextStyle::Small.resolve(ui.style());
        let color = ui.visuals().weak_text_color();
        let mut end = f32::NEG_INFINITY;
        for tick in &self.view.scale.ticks {
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
            self.view.unit(),
            font,
            color,
        );
    }

    fn grid_ui(&self, ui: &egui::Ui, area: Rect) {
        if self.view.chart.scale.is_none() {
            return;
        }
        let stroke = ui.visuals().widgets.noninteractive.bg_stroke;
        for tick in &self.view.scale.ticks {
            ui.painter().vline(self.x(*tick).round(), area.y_range(), stroke);
        }
    }

    fn group_ui(&self, ui: &egui::Ui, top: f32, group: &Group, actions: &mut Vec<Action>) {
        let height = group_height(group) - GROUP_GAP;
        let middle = top + height / 2.0;
        let color = ui.visuals().text_color();
        let mut job = egui::text::LayoutJob::single_section(
            group.model.clone(),
            egui::TextFormat::simple(TextStyle::Body.resolve(ui.style()), color),
        );
        job.wrap = egui::text::TextWrapping::truncate_at_width(self.left - 2.0 * theme::GRID - self.names_left);
        let name = ui.painter().layout_job(job);
        let at = pos2(self.left - 2.0 * theme::GRID - name.size().x, middle - name.size().y / 2.0);
        ui.painter().galley(at, name, color);
        let measured = group.bars.iter().zip(&self.view.series).filter(|(bar, _)| bar.record().is_some());
        for (index, (bar, (series, paint))) in measured.enumerate() {
            let top = top + index as f32 * (BAR_HEIGHT + BAR_GAP);
            let row = Rect::from_min_max(pos2(self.left, top), pos2(self.right + VALUE_WIDTH, top + BAR_HEIGHT));
            let around = row.expand2(vec2(0.0, BAR_GAP / 2.0));
            self.view.mark_ui(ui, around, bar, &group.model, series, actions);
            self.bar_ui(ui, row, bar, paint);
        }
    }

    fn bar_ui(&self, ui: &egui::Ui, row: Rect, bar: &Bar, paint: &Paint) {
        let weak = ui.visuals().weak_text_color();
        match bar {
            Bar::Value { value, interval, is_doubtful, .. } => {
                let end = pos2(self.x(*value).max(row.left() + 1.0), row.bottom());
                paint.bar_of(ui, *is_doubtful, Rect::from_min_max(row.min, end));
                let whisker = interval.map(|[low, high]| (self.x(low), self.x(high)));
                if let Some((low, high)) = whisker {
                    interval_ui(ui, row.center().y, low, high);
                }
                let after = whisker.map_or(end.x, |(_, high)| high.max(end.x)) + 1.5 * theme::GRID;
                let at = pos2(after, row.center().y);
                let color = ui.visuals().strong_text_color();
                ui.painter().text(at, Align2::LEFT_CENTER, three_digits(*value), small(ui), color);
            }
            Bar::Mark { status, .. } => {
                let center = row.left_center() + vec2(2.0 * theme::GRID, 0.0);
                cross_ui(ui, center, paint.color);
                let at = center + vec2(2.0 * theme::GRID, 0.0);
                ui.painter().text(at, Align2::LEFT_CENTER, text::mark(*status), small(ui), weak);
            }
            Bar::Absent => {}
        }
    }
}
