//! The page with every record: sorted, searched, selected, copied.

use compute::bench::export::Format;
use eframe::egui;
use egui_extras::{Column as Width, TableBuilder};

use super::action::Action;
use super::state::State;
use super::{text, theme};
use crate::chart::number::three_digits;
use crate::chart::series::RecordRef;
use crate::chart::table::{self, Column, View};

const ROW_HEIGHT: f32 = 5.0 * theme::GRID;

pub(super) fn ui(ui: &mut egui::Ui, state: &State, actions: &mut Vec<Action>) {
    let mut view = state.table.clone();
    controls_ui(ui, state, &mut view, actions);
    ui.add_space(theme::GRID);
    if state.rows.is_empty() {
        ui.add_space(8.0 * theme::GRID);
        ui.vertical_centered(|ui| ui.weak(text::nothing_found()));
    } else {
        egui::ScrollArea::horizontal().show(ui, |ui| table_ui(ui, state, &mut view, actions));
    }
    if view != state.table {
        actions.push(Action::Table(view));
    }
}

fn controls_ui(ui: &mut egui::Ui, state: &State, view: &mut View, actions: &mut Vec<Action>) {
    ui.horizontal_wrapped(|ui| {
        let field = egui::TextEdit::singleline(&mut view.search).hint_text(text::search()).desired_width(160.0);
        ui.add(field).accessible_name(text::search());
        ui.menu_button(text::columns(), |ui| {
            for column in Column::ALL {
                let mut is_shown = !view.hidden_columns.contains(&column);
                if ui.checkbox(&mut is_shown, title(column)).changed() {
                    view.hidden_columns.retain(|hidden| *hidden != column);
                    if !is_shown {
                        view.hidden_columns.push(column);
                    }
                }
            }
        });
        ui.separator();
        let is_all = !state.rows.is_empty() && state.selected_rows.len() == state.rows.len();
        if ui.button(if is_all { text::select_none() } else { text::select_all() }).clicked() {
            actions.push(Action::SelectRows(!is_all));
        }
        for (label, format) in [(text::copy_markdown(), Format::Markdown), (text::copy_csv(), Format::Csv)] {
            if ui.add_enabled(!state.rows.is_empty(), egui::Button::new(label)).clicked() {
                actions.push(Action::CopyRows(format));
            }
        }
        let all = state.library.sources().iter().map(|source| source.file.records.len()).sum();
        ui.weak(text::rows(state.rows.len(), all, state.selected_rows.len()));
    });
}

fn table_ui(ui: &mut egui::Ui, state: &State, view: &mut View, actions: &mut Vec<Action>) {
    let columns: Vec<Column> = Column::ALL.into_iter().filter(|column| !view.hidden_columns.contains(column)).collect();
    ui.spacing_mut().item_spacing.x = theme::GRID;
    let mut builder = TableBuilder::new(ui)
        .striped(true)
        .sense(egui::Sense::click())
        .cell_layout(egui::Layout::left_to_right(egui::Align::Center))
        .column(Width::exact(6.0 * theme::GRID));
    for column in &columns {
        let width = match column {
            Column::Source | Column::Started => 152.0,
            Column::Device => 112.0,
            Column::Outcome | Column::Median => 92.0,
            Column::Engine | Column::Precision => 60.0,
            _ => 76.0,
        };
        builder = builder.column(Width::initial(width).at_least(48.0).clip(true).resizable(true));
    }
    let table = builder.header(ROW_HEIGHT + theme::GRID, |mut header| {
        header.col(|_| {});
        for column in &columns {
            header.col(|ui| header_ui(ui, *column, view));
        }
    });
    table.body(|body| {
        body.rows(ROW_HEIGHT, state.rows.len(), |mut row| {
            let reference = state.rows[row.index()];
            row.set_selected(state.selected == Some(reference));
            row.col(|ui| selection_ui(ui, state, reference, actions));
            for column in &columns {
                row.col(|ui| cell_ui(ui, state, reference, *column));
            }
            if row.response().clicked() {
                actions.push(Action::Select(Some(reference)));
            }
        });
    });
}

/// Numbers are compared by their right ends.
fn numbers() -> egui::Layout {
    egui::Layout::right_to_left(egui::Align::Center)
}

/// The title of a column; a click sorts by it, another turns the order round.
fn header_ui(ui: &mut egui::Ui, column: Column, view: &mut View) {
    let is_descending = view.order.filter(|(by, _)| *by == column).map(|(_, is_descending)| is_descending);
    let label = egui::RichText::new(title(column)).strong();
    let layout = if column.is_number() { numbers() } else { *ui.layout() };
    let response = ui.with_layout(layout, |ui| {
        ui.add_space(if column.is_number() { 2.0 * theme::GRID } else { 0.0 });
        ui.add(egui::Button::new(label).frame(false).truncate())
    });
    let response = response.inner;
    if let Some(is_descending) = is_descending {
        let right = response.rect.right_center();
        let at = right + egui::vec2(1.25 * theme::GRID, 0.0);
        let (half, height) = (theme::GRID, if is_descending { theme::GRID } else { -theme::GRID });
        let corners =
            [egui::vec2(-half, -height / 2.0), egui::vec2(half, -height / 2.0), egui::vec2(0.0, height / 2.0)];
        let arrow = corners.map(|corner| at + corner).to_vec();
        let color = ui.visuals().hyperlink_color;
        ui.painter().add(egui::Shape::convex_polygon(arrow, color, egui::Stroke::NONE));
    }
    if response.clicked() {
        // Of numbers the largest are looked for, of words the first.
        view.order = Some((column, is_descending.map_or(column.is_number(), |is_descending| !is_descending)));
    }
}

fn selection_ui(ui: &mut egui::Ui, state: &State, row: RecordRef, actions: &mut Vec<Action>) {
    let mut is_selected = state.selected_rows.contains(&row);
    let name = state.library.record(row).map(|(_, record, _)| record.model.clone()).unwrap_or_default();
    if ui.checkbox(&mut is_selected, "").accessible_name(format!("{name} {}", row.index)).changed() {
        actions.push(Action::SelectRow { row, is_selected });
    }
}

fn cell_ui(ui: &mut egui::Ui, state: &State, row: RecordRef, column: Column) {
    let Some((source, record, _)) = state.library.record(row) else { return };
    if column.is_number() {
        let number = table::number(record, column);
        let shown = match (number, column) {
            (Some(number), Column::Minibatch) => number.to_string(),
            (Some(number), _) => three_digits(number),
            (None, _) => "–".to_owned(),
        };
        ui.with_layout(numbers(), |ui| {
            ui.add_space(2.0 * theme::GRID);
            let response = ui.add(egui::Label::new(shown).selectable(false));
            if let Some(number) = number {
                response.on_hover_text(crate::chart::number::full(number));
            }
        });
        return;
    }
    let word = match column {
        Column::Pass => text::pass(record.pass),
        Column::Engine => text::engine(&record.engine),
        Column::Outcome => text::status(record.status),
        _ => table::word(&source, record, column),
    };
    let label = ui.add(egui::Label::new(word).selectable(false).truncate());
    if let Some(reason) = record.reason.as_ref().filter(|_| column == Column::Outcome) {
        label.on_hover_text(reason);
    }
}

fn title(column: Column) -> &'static str {
    match column {
        Column::Source => text::column_source(),
        Column::Device => text::column_device(),
        Column::Engine => text::column_engine(),
        Column::Model => text::column_model(),
        Column::Pass => text::column_pass(),
        Column::Precision => text::column_precision(),
        Column::Minibatch => text::column_minibatch(),
        Column::Outcome => text::column_outcome(),
        Column::Throughput => text::column_throughput(),
        Column::Median => text::column_median(),
        Column::Deviation => text::column_deviation(),
        Column::Flops => text::column_flops(),
        Column::Planned => text::column_planned(),
        Column::Peak => text::column_peak(),
        Column::Started => text::column_started(),
    }
}
