//! The SQL that llama-bench writes: one INSERT a result, values in quotation marks that are not escaped.

use serde_json::{Map, Value};

use crate::import::Fault;
use crate::import::row::Row;

/// Beginnings of a result; older builds call the table a test.
const INSERTS: [&str; 2] = ["INSERT INTO llama_bench", "INSERT INTO test (build_commit"];

/// Whether a text is such SQL.
pub(super) fn is_one(text: &str) -> bool {
    text.contains("CREATE TABLE IF NOT EXISTS llama_bench") || text.lines().any(is_insert)
}

/// The rows of every INSERT.
pub(super) fn rows(text: &str) -> Result<Vec<Row>, Fault> {
    let lines = text.lines().zip(1u64..).filter(|(line, _)| is_insert(line));
    lines.map(|(line, number)| row(line, number)).collect()
}

fn is_insert(line: &str) -> bool {
    INSERTS.iter().any(|start| line.trim_start().starts_with(start))
}

fn row(line: &str, number: u64) -> Result<Row, Fault> {
    let fault =
        |what: &str| Fault::at(number, format!("{what}, expected INSERT INTO llama_bench (…) VALUES ('…', …);"));
    let (names, values) = line.split_once(" VALUES ").ok_or_else(|| fault("there are no VALUES"))?;
    let names = names.split_once('(').map_or("", |(_, names)| names).trim_end_matches([')', ' ']);
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let inside =
        values.trim().strip_prefix('(').and_then(|rest| rest.trim_end_matches(';').trim_end().strip_suffix(')'));
    let inside = inside.ok_or_else(|| fault("the values are not closed"))?.trim();
    let inside = inside.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let inside = inside.ok_or_else(|| fault("the values are not quoted"))?;
    // A quotation mark in a value is not escaped: only one with a comma behind it ends the value.
    let values: Vec<&str> = inside.split("', '").collect();
    if values.len() != names.len() {
        return Err(fault(&format!("{} values for {} columns", values.len(), names.len())));
    }
    let mut fields = Map::new();
    for (name, value) in names.into_iter().zip(values) {
        fields.insert(name.to_owned(), Value::from(value));
    }
    Ok(Row { line: Some(number), fields })
}
