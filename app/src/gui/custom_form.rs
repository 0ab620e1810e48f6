//! The form of a custom run.

use compute::models::Model;
use compute::plan::Pass;
use compute::shape::Precision;
use eframe::egui;

use super::action::Action;
use super::state::State;
use super::{text, theme};

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    ui.set_width(440.0);
    ui.heading(text::custom_title());
    ui.add_space(2.0 * theme::GRID);
    let mut custom = state.custom.clone();
    egui::Grid::new("custom").num_columns(2).spacing([16.0, 12.0]).show(ui, |ui| {
        ui.label(text::models());
        ui.vertical(|ui| {
            for row in Model::ALL.chunks(3) {
                ui.horizontal(|ui| {
                    for model in row {
                        member_ui(ui, &mut custom.models, *model, model.name(), &Model::ALL);
                    }
                });
            }
        });
        ui.end_row();
        ui.label(text::passes());
        ui.horizontal(|ui| {
            for pass in Pass::ALL {
                member_ui(ui, &mut custom.passes, pass, text::pass(pass), &Pass::ALL)
                    .on_hover_text(text::pass_hint(pass));
            }
        });
        ui.end_row();
        ui.label(text::precisions());
        ui.horizontal(|ui| {
            for precision in precisions(state) {
                member_ui(ui, &mut custom.precisions, precision, precision.name(), &Precision::ALL);
            }
        });
        ui.end_row();
        let label = ui.label(text::minibatches());
        let field = egui::TextEdit::singleline(&mut custom.minibatches).hint_text(text::minibatches_hint());
        ui.add(field.desired_width(f32::INFINITY)).labelled_by(label.id);
        ui.end_row();
        let label = ui.label(text::max_seconds());
        let seconds = egui::DragValue::new(&mut custom.max_seconds).range(1..=3600).suffix(text::max_seconds_suffix());
        ui.add(seconds).labelled_by(label.id);
        ui.end_row();
    });
    ui.add_space(2.0 * theme::GRID);
    let selection = custom.selection();
    let problem = selection.as_ref().err().map(String::as_str).or(state.run_refusal());
    match (problem, &selection) {
        (None, Ok(selection)) => {
            let (runs, longest) = state.estimate(selection);
            ui.weak(text::estimate(runs, longest));
        }
        _ => {
            ui.colored_label(ui.visuals().error_fg_color, problem.unwrap_or_default());
        }
    }
    ui.horizontal(|ui| {
        if ui.add_enabled(problem.is_none(), theme::primary_button(ui, text::start())).clicked() {
            actions.push(Action::RunCustom);
        }
        if ui.button(text::cancel()).clicked() {
            actions.push(Action::CloseOverlay);
        }
    });
    if custom != state.custom {
        actions.insert(0, Action::EditCustom(custom));
    }
}

/// Precisions that a chosen device offers.
fn precisions(state: &State) -> Vec<Precision> {
    let targets = state.devices.targets();
    let offers = |precision: &Precision| targets.iter().any(|target| target.listing.precisions.contains(precision));
    Precision::ALL.into_iter().filter(offers).collect()
}

/// A box that says whether `value` is among `members`, which stay in the order of `all`.
fn member_ui<T: Copy + PartialEq>(
    ui: &mut egui::Ui,
    members: &mut Vec<T>,
    value: T,
    label: &str,
    all: &[T],
) -> egui::Response {
    let mut is_member = members.contains(&value);
    let response = ui.checkbox(&mut is_member, label);
    if response.changed() {
        let was: Vec<T> = std::mem::take(members);
        let is_kept = |other: &T| if *other == value { is_member } else { was.contains(other) };
        *members = all.iter().copied().filter(is_kept).collect();
    }
    response
}
