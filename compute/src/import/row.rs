//! Rows of a table and objects of JSON, alike: named values.

use serde_json::{Map, Value};

use super::Fault;
use super::number::{Cell, Decimals};
use super::text::{quoted, shorten};

/// Named values of one result.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Line of the file; absent in JSON.
    pub(super) line: Option<u64>,
    /// The values, text where the file is a table.
    pub(super) fields: Map<String, Value>,
}

impl Row {
    /// The text under a key; absent where it is empty or no text.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    /// The number under a key; absent where the key is, or where a word stands for a missing value.
    pub(super) fn number(&self, key: &str, decimals: &mut Decimals) -> Result<Option<f64>, Fault> {
        Ok(self.cell(key, decimals)?.and_then(|cell| cell.value()))
    }

    /// What stands under a key that should hold a number.
    pub(super) fn cell(&self, key: &str, decimals: &mut Decimals) -> Result<Option<Cell>, Fault> {
        let Some(value) = self.fields.get(key) else { return Ok(None) };
        let cell = match value {
            Value::Null => Cell::Missing(String::new()),
            Value::Number(number) => number.as_f64().map_or(Cell::Missing(number.to_string()), Cell::Number),
            Value::Bool(value) => Cell::Number(f64::from(u8::from(*value))),
            Value::String(text) => {
                decimals.read(text).map_err(|what| Fault::at(self.line, format!("{}: {what}", quoted(key))))?
            }
            other => {
                let found = shorten(&other.to_string(), 40);
                return Err(Fault::at(self.line, format!("{} is {found}, expected a number", quoted(key))));
            }
        };
        Ok(Some(cell))
    }

    /// The values that `known` does not name, where they are few and small: what a file says beyond what is understood.
    pub(super) fn rest(&self, known: &dyn Fn(&str) -> bool) -> Map<String, Value> {
        const MOST: usize = 64;
        const LONGEST: usize = 200;
        /// Names of values that tell of a person or a machine in a network.
        const PRIVATE: [&str; 7] = ["host", "hostname", "host_name", "ip", "user", "username", "email"];
        let is_private = |key: &str| PRIVATE.iter().any(|name| key.eq_ignore_ascii_case(name));
        let is_small = |value: &Value| match value {
            Value::String(text) => !text.is_empty() && text.len() <= LONGEST,
            Value::Number(_) | Value::Bool(_) => true,
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        };
        let fields = self
            .fields
            .iter()
            .filter(|(key, value)| !known(key) && !is_private(key) && key.len() <= LONGEST && is_small(value));
        fields.take(MOST).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
