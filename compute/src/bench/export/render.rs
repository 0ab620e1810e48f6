//! Writes a table in each format.

use serde_json::{Map, Value};

use super::{Cell, Column, Table};

/// Digits that people get to see.
const DIGITS: usize = 3;

/// A number with three significant digits, such as `14200`, `4.51` or `3.2e-7`.
pub fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let scientific = format!("{value:.*e}", DIGITS - 1);
    let magnitude = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(i32::MAX);
    if !(-4..15).contains(&magnitude) {
        return scientific;
    }
    let rounded: f64 = scientific.parse().unwrap_or(value);
    let decimals = (DIGITS as i32 - 1 - magnitude).max(0) as usize;
    format!("{rounded:.decimals$}")
}

/// Columns aligned by spaces: numbers to the right, text to the left.
pub(super) fn text(table: &Table) -> String {
    let shown = shown(table);
    let mut lines = vec![shown.iter().map(|&(_, title)| title.to_owned()).collect::<Vec<_>>()];
    lines.extend(
        table
            .rows
            .iter()
            .map(|row| shown.iter().map(|&(place, _)| printable(&for_people(table, row, place))).collect()),
    );
    let is_number: Vec<bool> = shown.iter().map(|&(place, _)| is_number(table, place)).collect();
    let widths: Vec<usize> = (0..shown.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for line in lines {
        let cells =
            line.iter().zip(&widths).zip(&is_number).map(|((cell, &width), &right)| {
                if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

pub(super) fn markdown(table: &Table) -> String {
    let shown = shown(table);
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let escape = |text: &str| printable(text).replace('|', "\\|").replace('<', "&lt;");
    let mut out = line(shown.iter().map(|&(_, title)| escape(title)).collect());
    let rule = |right: bool| if right { "---:" } else { "---" }.to_owned();
    out.push_str(&line(shown.iter().map(|&(place, _)| rule(is_number(table, place))).collect()));
    for row in &table.rows {
        out.push_str(&line(shown.iter().map(|&(place, _)| escape(&for_people(table, row, place))).collect()));
    }
    out
}

pub(super) fn csv(table: &Table) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let kept = kept(table);
    let header: Vec<&str> = kept.iter().map(|&place| table.columns[place].key.as_str()).collect();
    let rows = table.rows.iter().map(|row| kept.iter().map(|&place| for_programs(&row[place])).collect::<Vec<_>>());
    let written =
        writer.write_record(header).and_then(|()| rows.into_iter().try_for_each(|row| writer.write_record(row)));
    written.expect("rows have one cell a column, and memory takes every write");
    let bytes = writer.into_inner().expect("memory takes every write");
    String::from_utf8(bytes).expect("cells are UTF-8")
}

pub(super) fn json(table: &Table) -> String {
    let kept = kept(table);
    let rows = table.rows.iter().map(|row| {
        let fields = kept.iter().map(|&place| {
            let value = match &row[place] {
                Cell::Text(text) => Value::from(text.as_str()),
                Cell::Count(count) => Value::from(*count),
                Cell::Number(number) => Value::from(*number),
                Cell::Word(_) | Cell::Empty => Value::Null,
            };
            (table.columns[place].key.clone(), value)
        });
        Value::Object(fields.collect::<Map<_, _>>())
    });
    format!("{:#}\n", Value::Array(rows.collect()))
}

/// Places of the columns that people get, with their headings.
fn shown(table: &Table) -> Vec<(usize, &str)> {
    let columns = table.columns.iter().enumerate();
    columns.filter_map(|(place, column)| Some((place, column.title.as_deref()?))).collect()
}

/// Places of the columns that programs get: those with a key.
fn kept(table: &Table) -> Vec<usize> {
    (0..table.columns.len()).filter(|&place| !table.columns[place].key.is_empty()).collect()
}

fn is_number(table: &Table, place: usize) -> bool {
    table.rows.iter().any(|row| matches!(row[place], Cell::Number(_) | Cell::Count(_)))
}

fn for_people(table: &Table, row: &[Cell], place: usize) -> String {
    let Column { unit, .. } = table.columns[place];
    match &row[place] {
        Cell::Text(text) => text.clone(),
        Cell::Count(count) if unit == 1.0 => count.to_string(),
        Cell::Count(count) => significant(*count as f64 / unit),
        Cell::Number(number) => significant(number / unit),
        Cell::Word(word) => (*word).to_owned(),
        Cell::Empty => String::new(),
    }
}

fn for_programs(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Count(count) => count.to_string(),
        Cell::Number(number) => number.to_string(),
        Cell::Word(_) | Cell::Empty => String::new(),
    }
}

/// Text on one line: what a foreign file holds must not steer the terminal or break the table.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
