//! Tables of results as text, CSV, Markdown or JSON.
//!
//! People get three significant digits with the unit in the header, and the outcome in words where there is no number.
//! Programs get full precision, always with a decimal point, in the unit that the key names, and nothing where there is
//! no number.

mod records;
mod render;

use std::str::FromStr;

use super::record::ResultFile;
use crate::shape::{UnknownName, parse_name};

pub use records::records;
pub(in crate::bench) use records::{clock, throughput};
pub use render::significant;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for a terminal.
    Text,
    /// Comma-separated values with a header, as RFC 4180 has them.
    Csv,
    /// A Markdown table.
    Markdown,
    /// A JSON list of objects.
    Json,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Text, Self::Csv, Self::Markdown, Self::Json];

    /// The name used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Csv => "csv",
            Self::Markdown => "md",
            Self::Json => "json",
        }
    }
}

impl FromStr for Format {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        parse_name("format", text, &Self::ALL, Self::name)
    }
}

/// A result file under the name that tables give it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, such as the path it was read from.
    pub name: &'a str,
    /// The file.
    pub file: &'a ResultFile,
}

/// Rows of cells, independent of how they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// One cell a column.
    pub rows: Vec<Vec<Cell>>,
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name for programs, with the unit, such as `"peak_bytes"`; empty where only people get the column.
    pub key: String,
    /// Heading for people, with the unit, such as `"memory (GiB)"`; absent where only programs get the column.
    pub title: Option<String>,
    /// What a number is divided by for people, to be in the heading's unit.
    pub unit: f64,
}

impl Column {
    /// A column for people and programs, whose unit is the same for both.
    pub fn new(key: &str, title: &str) -> Self {
        Self { key: key.to_owned(), title: Some(title.to_owned()), unit: 1.0 }
    }

    /// The same column with another unit for people.
    #[must_use]
    pub fn in_units_of(self, unit: f64) -> Self {
        Self { unit, ..self }
    }
}

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A count, always written in full.
    Count(u64),
    /// A measured number.
    Number(f64),
    /// No number, for a reason that people get to read.
    Word(&'static str),
    /// Nothing.
    Empty,
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Empty, Self::Number)
    }
}

impl Table {
    /// The table in a format, ending in a line break.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Text => render::text(self),
            Format::Csv => render::csv(self),
            Format::Markdown => render::markdown(self),
            Format::Json => render::json(self),
        }
    }
}

#[cfg(test)]
mod tests;
