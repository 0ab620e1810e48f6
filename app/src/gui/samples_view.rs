//! The times of a record's iterations, small: as a histogram and in their order.

use eframe::egui;
use eframe::egui::{Align2, Color32, Rect, Sense, TextStyle, pos2, vec2};

use super::theme;
use crate::chart::number::full;

const HEIGHT: f32 = 14.0 * theme::GRID;
const BINS: usize = 32;

/// How often each time occurs.
pub(super) fn histogram_ui(ui: &mut egui::Ui, samples_ms: &[f64], color: Color32) {
    let Some((low, high)) = range(samples_ms) else { return };
    let area = area_ui(ui, low, high);
    let counts = bins(samples_ms, low, high);
    let most = counts.iter().copied().max().unwrap_or(1).max(1) as f32;
    let width = area.width() / BINS as f32;
    for (bin, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let left = area.left() + bin as f32 * width;
        // A single outlier has to be seen beside a hundred others.
        let height = (area.height() * *count as f32 / most).max(1.5);
        let bar = Rect::from_min_max(pos2(left, area.bottom() - height), pos2(left + width - 0.5, area.bottom()));
        ui.painter().rect_filled(bar, 0.0, color);
    }
}

/// Each time at its place in the measurement.
pub(super) fn timeline_ui(ui: &mut egui::Ui, samples_ms: &[f64], color: Color32) {
    let Some((low, high)) = range(samples_ms) else { return };
    let (room, _) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::hover());
    let small = TextStyle::Small.resolve(ui.style());
    let weak = ui.visuals().weak_text_color();
    let label = |at, align, value: f64| ui.painter().text(at, align, full(value), small.clone(), weak);
    let top = label(room.left_top(), Align2::LEFT_TOP, high);
    let bottom = label(room.left_bottom(), Align2::LEFT_BOTTOM, low);
    let area =
        Rect::from_min_max(pos2(top.right().max(bottom.right()) + theme::GRID, room.top()), room.max).shrink(2.0);
    ui.painter().rect_filled(area.expand(2.0), 2.0, ui.visuals().faint_bg_color);
    let step = area.width() / (samples_ms.len().max(2) - 1) as f32;
    for (place, sample) in samples_ms.iter().enumerate().filter(|(_, sample)| sample.is_finite()) {
        let share = ((sample - low) / (high - low).max(f64::MIN_POSITIVE)) as f32;
        let at = pos2(area.left() + place as f32 * step, area.bottom() - area.height() * share);
        ui.painter().circle_filled(at, 1.5, color);
    }
}

/// Makes room for a plot over times, and paints its ends.
fn area_ui(ui: &mut egui::Ui, low: f64, high: f64) -> Rect {
    let (room, _) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT + 4.0 * theme::GRID), Sense::hover());
    let area = Rect::from_min_size(room.min, vec2(room.width(), HEIGHT));
    ui.painter().rect_filled(area, 2.0, ui.visuals().faint_bg_color);
    let small = TextStyle::Small.resolve(ui.style());
    let weak = ui.visuals().weak_text_color();
    let high = format!("{} ms", full(high));
    ui.painter().text(room.left_bottom(), Align2::LEFT_BOTTOM, full(low), small.clone(), weak);
    ui.painter().text(room.right_bottom(), Align2::RIGHT_BOTTOM, high, small, weak);
    area
}

/// The smallest and the largest time.
fn range(samples_ms: &[f64]) -> Option<(f64, f64)> {
    let usable = samples_ms.iter().copied().filter(|sample| sample.is_finite());
    usable.map(|sample| (sample, sample)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Number of times in each of [`BINS`] equal parts of the range.
fn bins(samples_ms: &[f64], low: f64, high: f64) -> [usize; BINS] {
    let mut counts = [0; BINS];
    for sample in samples_ms.iter().filter(|sample| sample.is_finite()) {
        let share = (sample - low) / (high - low).max(f64::MIN_POSITIVE);
        counts[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_one_part() {
        let samples = [1.0, 1.0, 1.5, 2.0, f64::NAN];
        assert_eq!(range(&samples), Some((1.0, 2.0)));
        let counts = bins(&samples, 1.0, 2.0);
        assert_eq!((counts[0], counts[BINS / 2], counts[BINS - 1], counts.iter().sum::<usize>()), (2, 1, 1, 4));
        assert_eq!(bins(&[3.0, 3.0], 3.0, 3.0)[0], 2, "equal times have no range");
        assert_eq!(range(&[]), None);
    }
}
