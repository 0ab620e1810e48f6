//! The page on minibatch efficiency: bars of efficiency, the curve of time a sample below them, and both read out in words.

use eframe::egui;
use eframe::egui::{Align2, Pos2, Rect, Sense, Shape, Stroke, TextStyle, pos2, vec2};

use super::action::Action;
use super::chart_panel::{choice_ui, combo_ui, legend_ui, pass_ui, precision_ui, series_name};
use super::chart_view::three_digits_or_zero;
use super::mark::{Paint, mark_ui, paint_of};
use super::state::State;
use super::{text, theme};
use crate::chart::efficiency::{Curve, Point};
use crate::chart::number::three_digits;
use crate::chart::scale::Scale;
use crate::chart::series::Series;

/// Width kept for the values of an axis.
const AXIS_WIDTH: f32 = 14.0 * theme::GRID;
/// Height kept for the names of both axes.
const AXIS_HEIGHT: f32 = 10.0 * theme::GRID;
/// Height of each plot at least.
const PLOT_HEIGHT: f32 = 30.0 * theme::GRID;
/// Series that are drawn at most: bars of more could not be told apart.
const MOST_CURVES: usize = 24;
/// Share of a minibatch's width that bars fill.
const FILLED: f32 = 0.8;

/// Draws the page and returns where the picture is that can be exported.
pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) -> Option<Rect> {
    controls_ui(ui, state, actions);
    ui.add_space(theme::GRID);
    let picture = ui.available_rect_before_wrap();
    ui.heading(text::efficiency_question());
    let shown = &state.efficiency;
    let Some(model) = &shown.model else {
        ui.add_space(8.0 * theme::GRID);
        ui.vertical_centered(|ui| ui.weak(text::nothing_swept()));
        return None;
    };
    ui.weak(text::efficiency_subtitle(model, state.settings.pass));
    ui.add_space(theme::GRID);
    let curves = drawn(state);
    let series: Vec<Series> = curves.iter().map(|curve| curve.series.clone()).collect();
    ui.scope(|ui| legend_ui(ui, state, &series));
    ui.add_space(theme::GRID);
    egui::ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
        let words = ui.text_style_height(&TextStyle::Small) + theme::GRID;
        let room = ui.available_height() - curves.len().min(6) as f32 * words - 2.0 * AXIS_HEIGHT - 6.0 * theme::GRID;
        let height = (room / 2.0).clamp(PLOT_HEIGHT, 3.0 * PLOT_HEIGHT);
        bars_ui(ui, state, height, actions);
        curves_ui(ui, state, height, actions);
        for curve in curves {
            words_ui(ui, state, curve);
        }
        if shown.curves.len() > curves.len() {
            ui.weak(text::more(shown.curves.len() - curves.len()));
        }
    });
    Some(picture)
}

/// The curves that are drawn.
fn drawn(state: &State) -> &[Curve] {
    let curves = &state.efficiency.curves;
    &curves[..curves.len().min(MOST_CURVES)]
}

fn controls_ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let mut settings = state.settings.clone();
    ui.horizontal_wrapped(|ui| {
        pass_ui(ui, &mut settings);
        ui.separator();
        choice_ui(ui, text::model(), 104.0, |ui, width| {
            let mut model = state.efficiency.model.clone();
            let choices = state.efficiency.models.iter().cloned().map(Some);
            let response = combo_ui(ui, "model", width, &mut model, choices, |model| model.clone().unwrap_or_default());
            if model != state.efficiency.model {
                settings.model = model;
            }
            response
        });
        choice_ui(ui, text::precision(), 64.0, |ui, width| precision_ui(ui, width, state, &mut settings));
    });
    if settings != state.settings {
        actions.push(Action::Settings(settings));
    }
}

/// A plot over minibatches: where its area lies, and where each minibatch.
struct Plot<'a> {
    area: Rect,
    minibatches: &'a [usize],
}

impl<'a> Plot<'a> {
    /// Makes room for a plot, and paints its frame: lines of values with their labels, minibatches, titles of both axes.
    fn new(
        ui: &mut egui::Ui,
        state: &'a State,
        height: f32,
        scale: &Scale,
        title: &str,
        label: impl Fn(f64) -> String,
    ) -> Self {
        let (room, _) = ui.allocate_exact_size(vec2(ui.available_width(), height + AXIS_HEIGHT), Sense::hover());
        let small = TextStyle::Small.resolve(ui.style());
        let (weak, line) = (ui.visuals().weak_text_color(), ui.visuals().widgets.noninteractive.bg_stroke);
        let top = room.top() + 5.0 * theme::GRID;
        let area = Rect::from_min_max(
            pos2(room.left() + AXIS_WIDTH, top),
            pos2(room.right() - 4.0 * theme::GRID, room.bottom() - 5.0 * theme::GRID),
        );
        ui.painter().text(room.left_top(), Align2::LEFT_TOP, title, small.clone(), weak);
        for tick in &scale.ticks {
            let y = area.bottom() - area.height() * scale.position(*tick);
            ui.painter().hline(area.x_range(), y.round(), line);
            ui.painter().text(
                pos2(area.left() - theme::GRID, y),
                Align2::RIGHT_CENTER,
                label(*tick),
                small.clone(),
                weak,
            );
        }
        let plot = Self { area, minibatches: &state.efficiency.minibatches };
        for minibatch in plot.minibatches {
            let at = pos2(plot.x(*minibatch), area.bottom() + theme::GRID);
            ui.painter().text(at, Align2::CENTER_TOP, minibatch.to_string(), small.clone(), weak);
        }
        let at = pos2(room.left(), area.bottom() + theme::GRID);
        ui.painter().text(at, Align2::LEFT_TOP, text::minibatch_axis(), small, weak);
        plot
    }

    /// Distance between a minibatch and its double.
    fn step(&self) -> f32 {
        let (first, last) = (self.minibatches[0], self.minibatches[self.minibatches.len() - 1]);
        self.area.width() / ((last as f32 / first as f32).log2() + 1.0)
    }

    /// Middle of a minibatch, on a logarithmic axis.
    fn x(&self, minibatch: usize) -> f32 {
        self.area.left() + self.step() * ((minibatch as f32 / self.minibatches[0] as f32).log2() + 0.5)
    }

    /// Paints where memory ends: a wall that the series does not pass.
    fn wall_ui(&self, ui: &egui::Ui, minibatch: usize, paint: &Paint) {
        let x = self.x(minibatch) - self.step() / 2.0;
        let wall = Rect::from_x_y_ranges(x..=x + theme::GRID, self.area.y_range());
        let painter = ui.painter().with_clip_rect(wall);
        let stroke = Stroke::new(1.0, paint.color);
        let mut y = wall.top() - theme::GRID;
        while y < wall.bottom() {
            painter.line_segment([pos2(wall.left(), y + theme::GRID), pos2(wall.right(), y)], stroke);
            y += theme::GRID;
        }
        ui.painter().vline(x, self.area.y_range(), Stroke::new(2.0, paint.color));
        let at = pos2(x + 2.0 * theme::GRID, self.area.top() + theme::GRID);
        let small = TextStyle::Small.resolve(ui.style());
        ui.painter().text(at, Align2::LEFT_TOP, text::memory_edge(), small, ui.visuals().weak_text_color());
    }
}

fn bars_ui(ui: &mut egui::Ui, state: &State, height: f32, actions: &mut Vec<Action>) {
    let scale = Scale::from_zero_to(1.0, 5);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let plot = Plot::new(ui, state, height, &scale, text::efficiency_axis(), percent);
    let curves = drawn(state);
    let width = plot.step() * FILLED / curves.len() as f32;
    for (place, curve) in curves.iter().enumerate() {
        let paint = paint_of(ui, state, &curve.series);
        let left = |minibatch| plot.x(minibatch) - plot.step() * FILLED / 2.0 + place as f32 * width;
        for point in &curve.points {
            let top = plot.area.bottom() - plot.area.height() * scale.position(point.efficiency);
            let bar = Rect::from_min_max(
                pos2(left(point.minibatch), top),
                pos2(left(point.minibatch) + (width - 1.0).max(1.0), plot.area.bottom()),
            );
            paint.bar(ui, bar);
            let row = Rect::from_x_y_ranges(bar.x_range(), plot.area.y_range());
            let says = percent(point.efficiency);
            point_ui(ui, state, row, curve, point, &says, actions);
        }
        if let Some((minibatch, record)) = curve.edge {
            plot.wall_ui(ui, minibatch, &paint);
            let row = Rect::from_x_y_ranges(left(minibatch)..=left(minibatch) + width, plot.area.y_range());
            let name = format!("{} {minibatch}", series_name(state, &curve.series));
            mark_ui(ui, state, row, record, &text::bar(&name, text::minibatch(), text::memory_edge()), actions);
        }
    }
}

fn curves_ui(ui: &mut egui::Ui, state: &State, height: f32, actions: &mut Vec<Action>) {
    let curves = drawn(state);
    let largest = curves.iter().flat_map(|curve| &curve.points).map(Point::ms_per_sample).fold(0.0, f64::max);
    let scale = Scale::from_zero_to(largest, 4);
    let plot = Plot::new(ui, state, height, &scale, text::ms_per_sample_axis(), three_digits_or_zero);
    for curve in curves {
        let paint = paint_of(ui, state, &curve.series);
        let at = |point: &Point| {
            let share = scale.position(point.ms_per_sample());
            pos2(plot.x(point.minibatch), plot.area.bottom() - plot.area.height() * share)
        };
        let line: Vec<Pos2> = curve.points.iter().map(at).collect();
        ui.painter().add(Shape::line(line, Stroke::new(2.0, paint.color)));
        for point in &curve.points {
            ui.painter().circle_filled(at(point), 3.0, paint.color);
            let near = Rect::from_center_size(at(point), vec2(3.0 * theme::GRID, 3.0 * theme::GRID));
            let says = format!("{} {}", three_digits(point.ms_per_sample()), text::ms_per_sample_axis());
            point_ui(ui, state, near, curve, point, &says, actions);
        }
        if let Some((minibatch, _)) = curve.edge {
            plot.wall_ui(ui, minibatch, &paint);
        }
    }
}

/// What a point says when it is pointed at, and its details when it is clicked.
fn point_ui(
    ui: &egui::Ui,
    state: &State,
    area: Rect,
    curve: &Curve,
    point: &Point,
    says: &str,
    actions: &mut Vec<Action>,
) {
    let name = series_name(state, &curve.series);
    let label = text::bar(&format!("{} {}", text::minibatch(), point.minibatch), &name, says);
    let marginal = point.marginal_ms.map(|ms| format!("\n{}", text::marginal(ms))).unwrap_or_default();
    let response = mark_ui(ui, state, area, point.record, &label, actions);
    response.on_hover_text_at_pointer(format!(
        "{name}\n{} {}: {says}\n{}{marginal}",
        text::minibatch(),
        point.minibatch,
        text::throughput(point.per_sec)
    ));
}

/// A series read out: which minibatch is enough, where it bends, where memory ends.
fn words_ui(ui: &mut egui::Ui, state: &State, curve: &Curve) {
    let (enough, best) = (curve.enough(), curve.best());
    let name = series_name(state, &curve.series);
    let mut words = vec![text::enough(&name, enough.minibatch, enough.efficiency, best.minibatch)];
    words.extend(curve.bend().map(|(minibatch, loss)| text::bend(minibatch, loss)));
    words.extend(curve.edge.map(|(minibatch, _)| text::edge(minibatch)));
    ui.label(egui::RichText::new(words.join(" ")).small());
}
