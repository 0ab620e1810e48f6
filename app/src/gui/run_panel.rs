//! The queue of runs while it is measured: what runs, how far it is, what comes next and what came of the rest.

use compute::bench::spec::RunSpec;
use eframe::egui;

use super::action::Action;
use super::progress::{Current, Outcome, Progress};
use super::state::State;
use super::{text, theme};

/// Runs that are named before the rest is only counted.
const NAMED_RUNS: usize = 3;

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let Some(progress) = &state.progress else { return };
    let frame = egui::Frame::side_top_panel(ui.style()).inner_margin(egui::Margin::symmetric(8, 8));
    egui::Panel::bottom("runs").frame(frame).resizable(false).show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                buttons_ui(ui, progress, actions);
                ui.with_layout(egui::Layout::left_to_right(egui::Align::Center), |ui| current_ui(ui, progress));
            });
        });
        bar_ui(ui, state, progress);
        ui.add_space(theme::GRID);
        ui.columns_const(|[left, right]| {
            finished_ui(left, progress);
            waiting_ui(right, progress);
        });
    });
}

fn buttons_ui(ui: &mut egui::Ui, progress: &Progress, actions: &mut Vec<Action>) {
    if ui.add_enabled(!progress.is_cancelled, egui::Button::new(text::cancel_all())).clicked() {
        actions.push(Action::CancelAll);
    }
    let can_cancel = !progress.is_cancelled && progress.current.as_ref().is_some_and(|current| !current.is_cancelled);
    if ui.add_enabled(can_cancel, egui::Button::new(text::cancel_current())).clicked() {
        actions.push(Action::CancelCurrent);
    }
}

fn current_ui(ui: &mut egui::Ui, progress: &Progress) {
    let place = (progress.n_ended() + 1).min(progress.specs.len());
    ui.label(egui::RichText::new(text::run_place(place, progress.specs.len())).strong());
    if let Some(current) = &progress.current
        && let Some(spec) = progress.specs.get(current.index)
    {
        ui.label(run_name(progress, spec));
        ui.add(egui::Label::new(egui::RichText::new(phase(progress, current)).weak()).truncate());
    } else {
        ui.weak(if progress.is_cancelled { text::cancelling() } else { text::starting() });
    }
}

fn phase(progress: &Progress, current: &Current) -> String {
    if progress.is_cancelled || current.is_cancelled {
        return text::cancelling().to_owned();
    }
    let phase = current.phase.map_or(text::starting(), text::phase);
    if current.iterations == 0 {
        return phase.to_owned();
    }
    format!("{phase}, {}", text::iterations(current.iterations, current.of))
}

fn bar_ui(ui: &mut egui::Ui, state: &State, progress: &Progress) {
    ui.horizontal(|ui| {
        let left = progress.time_left(state.now).map_or_else(|| text::time_left_unknown().to_owned(), text::time_left);
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            // Of fixed width, so that the bar's length does not follow the words.
            let size = egui::vec2(36.0 * theme::GRID, ui.spacing().interact_size.y);
            let layout = egui::Layout::right_to_left(egui::Align::Center);
            ui.allocate_ui_with_layout(size, layout, |ui| {
                ui.set_min_width(size.x);
                ui.label(egui::RichText::new(left).small());
            });
            let bar = egui::ProgressBar::new(progress.fraction()).desired_height(2.0 * theme::GRID).corner_radius(4);
            let bar = bar.fill(ui.visuals().hyperlink_color);
            let response = ui.add(bar.desired_width(ui.available_width()));
            let value = f64::from(progress.fraction());
            response.widget_info(|| {
                let mut info = egui::WidgetInfo::labeled(egui::Role::ProgressIndicator, true, text::progress());
                info.value = Some(value);
                info
            });
        });
    });
}

fn finished_ui(ui: &mut egui::Ui, progress: &Progress) {
    if progress.n_ended() == 0 {
        return;
    }
    ui.label(egui::RichText::new(text::finished_runs()).small().weak());
    let ended =
        progress.specs.iter().zip(&progress.outcomes).filter_map(|(spec, outcome)| Some((spec, outcome.as_ref()?)));
    let ended: Vec<_> = ended.collect();
    // The latest ones: a log that scrolls by itself would be read by no one.
    for (spec, outcome) in ended.iter().rev().take(NAMED_RUNS).rev() {
        let (said, reason) = match outcome {
            Outcome::Recorded { throughput_per_sec: Some(per_sec), .. } => (text::throughput(*per_sec), None),
            Outcome::Recorded { status, reason, .. } => (text::mark(*status).to_owned(), reason.as_deref()),
            Outcome::Skipped(reason) => (text::skipped().to_owned(), Some(reason.as_str())),
        };
        let line = egui::RichText::new(format!("{}: {said}", run_name(progress, spec))).small();
        let response = ui.add(egui::Label::new(line).truncate());
        if let Some(reason) = reason {
            response.on_hover_text(reason);
        }
    }
}

fn waiting_ui(ui: &mut egui::Ui, progress: &Progress) {
    if progress.waiting().next().is_none() {
        return;
    }
    ui.label(egui::RichText::new(text::next_runs()).small().weak());
    for spec in progress.waiting().take(NAMED_RUNS) {
        ui.add(egui::Label::new(egui::RichText::new(run_name(progress, spec)).small()).truncate());
    }
    let rest = progress.waiting().count().saturating_sub(NAMED_RUNS);
    if rest > 0 {
        ui.label(egui::RichText::new(text::more(rest)).small().weak());
    }
}

/// A run; with its device where the queue has several.
fn run_name(progress: &Progress, spec: &RunSpec) -> String {
    let is_one_device = progress.specs.iter().all(|other| (&other.device, other.engine) == (&spec.device, spec.engine));
    if is_one_device { text::run(spec) } else { text::run_on(spec) }
}
