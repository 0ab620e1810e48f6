//! Tables of separated values: which delimiter, where the header is, and rows by name.

use csv::{ReaderBuilder, StringRecord, Trim};
use serde_json::{Map, Value};

use super::Fault;
use super::row::Row;

/// Lines among which the header is looked for: programs write remarks of their drivers above it.
const HEADER_WITHIN: usize = 60;

/// Bytes beyond which a line is no header.
const LONGEST_HEADER: usize = 64 << 10;

/// A line that may be a table's header.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header<'a> {
    /// Names of the columns.
    pub(super) names: Vec<String>,
    /// What separates them.
    pub(super) delimiter: u8,
    /// Number of the line, from 1.
    line: u64,
    /// The text from this line on.
    text: &'a str,
    /// Lines with something in them above it.
    pub(super) n_skipped: usize,
}

/// The first line near the top of a text that `is_known` takes for a header.
pub(super) fn header<'a, T>(text: &'a str, is_known: &dyn Fn(&[String]) -> Option<T>) -> Option<(T, Header<'a>)> {
    let mut n_skipped = 0;
    let mut rest = text;
    for line in 1.. {
        let (first, following) = rest.split_once('\n').unwrap_or((rest, ""));
        if first.len() > LONGEST_HEADER {
            return None;
        }
        if !first.trim().is_empty() {
            let delimiter = sniff(first);
            let names = reader(delimiter, first).records().next().and_then(Result::ok).unwrap_or_default();
            let names: Vec<String> = names.iter().map(str::to_owned).collect();
            if let Some(known) = (names.len() > 1).then(|| is_known(&names)).flatten() {
                return Some((known, Header { names, delimiter, line, text: rest, n_skipped }));
            }
            // A first line by which a spreadsheet is told the delimiter.
            n_skipped += usize::from(!first.trim_start().starts_with("sep="));
        }
        if following.is_empty() || n_skipped >= HEADER_WITHIN {
            return None;
        }
        rest = following;
    }
    None
}

/// The delimiter that a header has most of.
fn sniff(line: &str) -> u8 {
    let mut counts = [(b',', 0usize), (b';', 0), (b'\t', 0)];
    let mut quoted = false;
    for byte in line.bytes() {
        quoted ^= byte == b'"';
        for (delimiter, count) in &mut counts {
            *count += usize::from(!quoted && *delimiter == byte);
        }
    }
    // The first of equals, so that a line without any is one of commas.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |&(delimiter, _)| delimiter)
}

fn reader(delimiter: u8, text: &str) -> csv::Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).flexible(true).trim(Trim::All).from_reader(text.as_bytes())
}

impl Header<'_> {
    /// The records below the header with the numbers of their lines.
    pub(super) fn records(&self) -> impl Iterator<Item = Result<(u64, StringRecord), Fault>> + '_ {
        reader(self.delimiter, self.text).into_records().skip(1).map(|record| {
            let record = record.map_err(|error| Fault::new(error.to_string()))?;
            let (line, byte) = record.position().map_or((1, 0), |place| (place.line(), place.byte()));
            // The reader's place is that before empty lines.
            let rest = self.text.as_bytes().get(byte as usize..).unwrap_or_default();
            let n_empty = rest.iter().take_while(|&&byte| byte == b'\n').count() as u64;
            Ok((self.line + line + n_empty - 1, record))
        })
    }

    /// The rows below the header. A last row that is cut short is left out with a note.
    pub(super) fn rows<'a>(&'a self, notes: &'a mut Vec<String>) -> impl Iterator<Item = Result<Row, Fault>> + 'a {
        let mut records = self.records().peekable();
        std::iter::from_fn(move || {
            loop {
                let (line, record) = match records.next()? {
                    Ok(record) => record,
                    Err(fault) => return Some(Err(fault)),
                };
                if record.iter().all(str::is_empty) {
                    continue;
                }
                if record.len() < self.names.len() && records.peek().is_none() {
                    notes.push(format!("line {line} is cut short and left out"));
                    return None;
                }
                return Some(self.row(line, &record));
            }
        })
    }

    fn row(&self, line: u64, record: &StringRecord) -> Result<Row, Fault> {
        let (n_cells, n_names) = (record.len(), self.names.len());
        if n_cells < n_names || record.iter().skip(n_names).any(|cell| !cell.is_empty()) {
            let reason = format!(
                "it has {n_cells} cells where the header has {n_names}; a decimal comma is read only where cells are \
                 separated by ';' or a tab"
            );
            return Err(Fault::at(line, reason));
        }
        let mut fields = Map::new();
        for (name, cell) in self.names.iter().zip(record) {
            fields.entry(name.clone()).or_insert_with(|| Value::String(cell.to_owned()));
        }
        Ok(Row { line: Some(line), fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<String>, String> {
        let is_known = |names: &[String]| names.contains(&"model".to_owned()).then_some(());
        let (_, header) = header(text, &is_known).ok_or("no header")?;
        let mut notes = Vec::new();
        let rows: Result<Vec<Row>, Fault> = header.rows(&mut notes).collect();
        let rows = rows.map_err(Fault::message)?;
        let line = |row: &Row| format!("{}:{}", row.line.unwrap(), row.text("model").unwrap());
        Ok(rows.iter().map(line).chain(notes).collect())
    }

    #[test]
    fn delimiters_quotes_and_lines_above_the_header() {
        let cases = ["model,x\na,1\n", "model;x\na;1,5\n", "x\tmodel\n1\ta\n", "\"model\",\"x\"\n\"a\",\"1\"\n"];
        for text in cases {
            assert_eq!(rows(text).unwrap(), ["2:a"], "{text:?}");
        }
        assert_eq!(rows("sep=;\nmodel;x\na;1\n\nb;2").unwrap(), ["3:a", "5:b"]);
        assert_eq!(rows("driver: found 1 device\nmodel, x\n\"a, b\", 1\n").unwrap(), ["3:a, b"]);
    }

    #[test]
    fn a_row_that_does_not_fit_is_named() {
        assert!(rows("model,x\na,9,99\n").unwrap_err().starts_with("line 2: it has 3 cells where the header has 2"));
        assert!(rows("model,x\na\nb,1\n").unwrap_err().starts_with("line 2: it has 1 cells"));
        assert_eq!(rows("model,x\na,1\nb").unwrap(), ["2:a", "line 3 is cut short and left out"]);
        assert_eq!(rows("a,b\n1,2\n"), Err("no header".to_owned()));
    }
}
