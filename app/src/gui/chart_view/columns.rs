//! Bars that stand upright, models from left to right: for as many as fit side by side with their values above them.

use std::f32::consts::FRAC_PI_2;

use eframe::egui;
use eframe::egui::epaint::TextShape;
use eframe::egui::{Align2, Rect, Sense, TextStyle, pos2, vec2};

use super::super::action::Action;
use super::super::mark::{Paint, cross_ui, interval_stroke};
use super::super::{text, theme};
use super::{View, small, three_digits_or_zero};
use crate::chart::number::three_digits;
use crate::chart::throughput::{Bar, Group};

/// Width of a bar: at least that of its value, and at most what still looks like one.
const BAR_WIDTH: [f32; 2] = [11.0 * theme::GRID, 18.0 * theme::GRID];
const BAR_GAP: f32 = theme::GRID;
const GROUP_GAP: f32 = 6.0 * theme::GRID;
/// Width kept for the values of the axis.
const AXIS_WIDTH: f32 = 14.0 * theme::GRID;
/// Height kept for the unit above the highest bar and its value, and for the models' names below.
const ABOVE: f32 = 9.0 * theme::GRID;
const BELOW: f32 = 6.0 * theme::GRID;
/// Height from which upright bars can be told apart.
const LEAST_HEIGHT: f32 = 60.0 * theme::GRID;

/// Where things lie.
pub(super) struct Columns<'a> {
    view: &'a View<'a>,
    area: Rect,
    plot: Rect,
    bar_width: f32,
}

impl<'a> Columns<'a> {
    /// The layout; none where bars, values and names don't fit.
    pub(super) fn new(ui: &egui::Ui, view: &'a View<'a>) -> Option<Self> {
        let area = ui.available_rect_before_wrap();
        let plot = Rect::from_min_max(area.min + vec2(AXIS_WIDTH, ABOVE), area.max - vec2(2.0 * theme::GRID, BELOW));
        let (n_groups, n_series) = (view.chart.groups.len() as f32, view.series.len() as f32);
        let group_width = plot.width() / n_groups;
        let bar_width = ((group_width - GROUP_GAP) / n_series - BAR_GAP).min(BAR_WIDTH[1]);
        let font = TextStyle::Body.resolve(ui.style());
        let fits = |name: &str| {
            let galley = ui.painter().layout_no_wrap(name.to_owned(), font.clone(), egui::Color32::PLACEHOLDER);
            galley.size().x <= group_width - theme::GRID
        };
        let is_roomy = bar_width >= BAR_WIDTH[0]
            && area.height() >= LEAST_HEIGHT
            && view.chart.groups.iter().all(|group| fits(&group.model));
        is_roomy.then_some(Self { view, area, plot, bar_width })
    }

    pub(super) fn ui(&self, ui: &mut egui::Ui, actions: &mut Vec<Action>) {
        ui.allocate_rect(self.area, Sense::hover());
        self.axis_ui(ui);
        let width = self.plot.width() / self.view.chart.groups.len() as f32;
        for (index, group) in self.view.chart.groups.iter().enumerate() {
            self.group_ui(ui, self.plot.left() + (index as f32 + 0.5) * width, group, actions);
        }
        let base = egui::Stroke::new(1.0, ui.visuals().weak_text_color());
        ui.painter().hline(self.plot.x_range(), self.plot.bottom().round(), base);
    }

    fn y(&self, value: f64) -> f32 {
        self.plot.bottom() - self.plot.height() * self.view.scale.position(value).min(1.0)
    }

    fn axis_ui(&self, ui: &egui::Ui) {
        if self.view.chart.scale.is_none() {
            return;
        }
        let (weak, line) = (ui.visuals().weak_text_color(), ui.visuals().widgets.noninteractive.bg_stroke);
        ui.painter().text(self.area.min, Align2::LEFT_TOP, self.view.unit(), small(ui), weak);
        let mut end = f32::INFINITY;
        for tick in &self.view.scale.ticks {
            let y = self.y(*tick);
            ui.painter().hline(self.plot.x_range(), y.round(), line);
            // Labels that would run into each other are left out, their grid lines are not.
            if y < end - 4.0 * theme::GRID {
                end = y;
                let at = pos2(self.plot.left() - 2.0 * theme::GRID, y);
                ui.painter().text(at, Align2::RIGHT_CENTER, three_digits_or_zero(*tick), small(ui), weak);
            }
        }
    }

    fn group_ui(&self, ui: &egui::Ui, middle: f32, group: &Group, actions: &mut Vec<Action>) {
        let at = pos2(middle, self.plot.bottom() + 1.5 * theme::GRID);
        let font = TextStyle::Body.resolve(ui.style());
        ui.painter().text(at, Align2::CENTER_TOP, &group.model, font, ui.visuals().text_color());
        let step = self.bar_width + BAR_GAP;
        let left = middle - (group.bars.len() as f32 * step - BAR_GAP) / 2.0;
        for (index, (bar, (series, paint))) in group.bars.iter().zip(&self.view.series).enumerate() {
            let left = left + index as f32 * step;
            let around = Rect::from_min_max(
                pos2(left - BAR_GAP / 2.0, self.plot.top() - 4.0 * theme::GRID),
                pos2(left + self.bar_width + BAR_GAP / 2.0, self.plot.bottom()),
            );
            self.view.mark_ui(ui, around, bar, &group.model, series, actions);
            self.bar_ui(ui, left, bar, paint);
        }
    }

    fn bar_ui(&self, ui: &egui::Ui, left: f32, bar: &Bar, paint: &Paint) {
        let (middle, bottom) = (left + self.bar_width / 2.0, self.plot.bottom());
        let weak = ui.visuals().weak_text_color();
        match bar {
            Bar::Value { value, interval, is_doubtful, .. } => {
                let top = self.y(*value).min(bottom - 1.0);
                paint.bar_of(
                    ui,
                    *is_doubtful,
                    Rect::from_min_max(pos2(left, top), pos2(left + self.bar_width, bottom)),
                );
                let whisker = interval.map(|[low, high]| (self.y(low), self.y(high)));
                if let Some((low, high)) = whisker {
                    whisker_ui(ui, middle, high, low);
                }
                let above = whisker.map_or(top, |(_, high)| high.min(top)) - theme::GRID;
                let color = ui.visuals().strong_text_color();
                let at = pos2(middle, above);
                ui.painter().text(at, Align2::CENTER_BOTTOM, three_digits(*value), small(ui), color);
            }
            Bar::Mark { status, .. } => {
                let center = pos2(middle, bottom - 2.5 * theme::GRID);
                cross_ui(ui, center, paint.color);
                let word = ui.painter().layout_no_wrap(text::mark(*status).to_owned(), small(ui), weak);
                let at = pos2(middle - word.size().y / 2.0, center.y - 2.0 * theme::GRID);
                ui.painter().add(TextShape::new(at, word, weak).with_angle(-FRAC_PI_2));
            }
            Bar::Absent => {
                let at = pos2(middle, bottom - theme::GRID);
                ui.painter().text(at, Align2::CENTER_BOTTOM, "–", small(ui), weak);
            }
        }
    }
}

fn whisker_ui(ui: &egui::Ui, x: f32, top: f32, bottom: f32) {
    let (stroke, cap) = (interval_stroke(ui), theme::GRID);
    ui.painter().vline(x, top..=bottom, stroke);
    for y in [top, bottom] {
        ui.painter().hline(x - cap..=x + cap, y, stroke);
    }
}
