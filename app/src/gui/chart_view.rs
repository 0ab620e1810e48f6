//! Draws a chart's bars: upright side by side where they fit, else lying below each other; values and outcomes in words
//! at their ends.

mod columns;
mod rows;

use eframe::egui;
use eframe::egui::{Rect, TextStyle};

use super::action::Action;
use super::chart_panel::series_name;
use super::mark::{Paint, mark_ui, paint_of};
use super::state::State;
use super::text;
use crate::chart::number::three_digits;
use crate::chart::scale::Scale;
use crate::chart::throughput::{Bar, Chart};

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let view = View::new(ui, state);
    match columns::Columns::new(ui, &view) {
        Some(columns) => columns.ui(ui, actions),
        None => rows::ui(ui, &view, actions),
    }
}

/// What is drawn, and how.
struct View<'a> {
    state: &'a State,
    chart: &'a Chart,
    scale: Scale,
    /// Name and look of each series.
    series: Vec<(String, Paint)>,
}

impl<'a> View<'a> {
    fn new(ui: &egui::Ui, state: &'a State) -> Self {
        let chart = &state.chart;
        let scale = chart.scale.clone().unwrap_or_else(|| Scale::from_zero_to(0.0, 1));
        let look = |series| (series_name(state, series), paint_of(ui, state, series));
        Self { state, chart, scale, series: chart.series.iter().map(look).collect() }
    }

    /// What the axis counts.
    fn unit(&self) -> &'static str {
        self.chart.unit.map_or("×", text::unit)
    }

    /// The place of a bar, which can be pointed at, chosen and read aloud.
    fn mark_ui(&self, ui: &egui::Ui, area: Rect, bar: &Bar, model: &str, series: &str, actions: &mut Vec<Action>) {
        let Some(record) = bar.record() else { return };
        let (says, hover) = self.words(bar);
        let label = text::bar(model, series, &says);
        mark_ui(ui, self.state, area, record, &label, actions).on_hover_text_at_pointer(hover);
    }

    /// What a bar says in short, and at length.
    fn words(&self, bar: &Bar) -> (String, String) {
        let found = bar.record().and_then(|record| self.state.library.record(record));
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

fn small(ui: &egui::Ui) -> egui::FontId {
    TextStyle::Small.resolve(ui.style())
}

/// A round value of an axis.
pub(super) fn three_digits_or_zero(tick: f64) -> String {
    // A tick is round by itself; trailing zeros behind the point say nothing.
    let text = three_digits(tick);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
