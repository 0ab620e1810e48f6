//! Logs of `nvidia-smi --query-gpu=… --format=csv`: what GPUs reported of themselves beside a benchmark. They hold no
//! result, but readings and a summary of them.

mod column;
mod summary;

use std::collections::BTreeMap;

use csv::StringRecord;

use super::Fault;
use super::delimited::Header;
use super::draft::Draft;
use super::number::is_missing;
use super::text::shorten;

use column::{Column, Role};

/// Readings beyond which a log is not read on.
const MOST_READINGS: usize = 1_000_000;

/// What a GPU reported of itself at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Seconds since the first reading of the log; 0 where it has no times.
    pub at_secs: f64,
    /// The time as printed, local and without a zone; empty where the log has none.
    pub at: String,
    /// The GPU: its index, else its UUID, else its bus address, else its name.
    pub gpu: String,
    /// Values by name, which ends in the unit, such as `power_watt`, `memory_used_bytes` or `utilization_percent`. What
    /// was not reported is absent.
    pub quantities: BTreeMap<String, f64>,
    /// Reasons that held the clock down, such as `sw_power_cap`.
    pub throttled: Vec<String>,
}

/// Whether the names of columns are those of a query.
pub(super) fn are_columns(names: &[String]) -> bool {
    let known = |name: &&String| !matches!(Column::of(name).role, Role::Text);
    let is_dotted = |name: &&String| name.contains('.') || name.contains(" [");
    names.iter().filter(known).count() >= 1 && names.iter().filter(known).filter(is_dotted).count() >= 1
}

/// Whether a text is output of nvidia-smi in another form: with columns but without their names, or of its monitors.
pub(super) fn is_other_log(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return false };
    let first_cell = first.split(',').next().unwrap_or_default();
    let is_nameless = first.contains(", ") && seconds(first_cell).is_some();
    is_nameless || (first.starts_with("# gpu") || first.starts_with("#Date") || first.starts_with("# Idx"))
}

/// Why such a text is refused.
pub(super) fn other_log() -> Fault {
    Fault::new(
        "its columns have no names (noheader) or it is of dmon or pmon; log again with \
         --query-gpu=timestamp,index,… --format=csv",
    )
}

/// Reads every reading and sums them up in notes.
pub(super) fn read(header: &Header<'_>, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let mut log = Log::new(&header.names);
    for record in header.records() {
        let (line, record) = record?;
        // Logs that were put together have the header again, maybe of another query.
        if !record.iter().any(has_value) && are_columns(&record.iter().map(str::to_owned).collect::<Vec<_>>()) {
            log.columns = record.iter().map(Column::of).collect();
            continue;
        }
        if record.iter().all(str::is_empty) {
            continue;
        }
        if log.readings.len() >= MOST_READINGS {
            draft.notes.push(format!("readings beyond the first {MOST_READINGS} are left out"));
            break;
        }
        log.add(line, &record)?;
    }
    for name in std::mem::take(&mut log.names) {
        draft.device(&name);
    }
    draft.notes.extend(log.remarks());
    draft.notes.extend(summary::notes(&log.readings));
    draft.telemetry = log.readings;
    Ok(())
}

/// Whether a cell is a value and not a column's name.
fn has_value(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit()) || is_missing(cell)
}

struct Log {
    columns: Vec<Column>,
    readings: Vec<Reading>,
    first_secs: Option<f64>,
    latest_secs: f64,
    n_backwards: usize,
    n_short: usize,
    /// Values that were not reported, by the word in their place.
    missing: BTreeMap<String, usize>,
    /// Names of the GPUs.
    names: Vec<String>,
}

impl Log {
    fn new(names: &[String]) -> Self {
        Self {
            columns: names.iter().map(|name| Column::of(name)).collect(),
            readings: Vec::new(),
            first_secs: None,
            latest_secs: f64::NEG_INFINITY,
            n_backwards: 0,
            n_short: 0,
            missing: BTreeMap::new(),
            names: Vec::new(),
        }
    }

    fn add(&mut self, line: u64, record: &StringRecord) -> Result<(), Fault> {
        if record.len() > self.columns.len() {
            let (n_cells, n_names) = (record.len(), self.columns.len());
            return Err(Fault::at(line, format!("it has {n_cells} cells where the header has {n_names}")));
        }
        // The last line of a log that was still being written.
        self.n_short += usize::from(record.len() < self.columns.len());
        let mut reading = Reading {
            at_secs: 0.0,
            at: String::new(),
            gpu: String::new(),
            quantities: BTreeMap::new(),
            throttled: Vec::new(),
        };
        let mut identity = 0;
        for (column, cell) in self.columns.iter().zip(record) {
            if is_missing(cell) {
                if !cell.is_empty() && self.missing.len() < 20 {
                    *self.missing.entry(shorten(cell, 40)).or_default() += 1;
                }
                continue;
            }
            match &column.role {
                Role::Timestamp => cell.clone_into(&mut reading.at),
                Role::Identity(rank) => {
                    if *rank > identity {
                        identity = *rank;
                        reading.gpu = shorten(cell, 80);
                    }
                    if *rank == column::NAME && self.names.len() < 64 && !self.names.iter().any(|name| name == cell) {
                        self.names.push(cell.to_owned());
                    }
                }
                Role::Reason(reason) => {
                    if cell.eq_ignore_ascii_case("active") {
                        reading.throttled.push(reason.clone());
                    }
                }
                Role::Reasons => reading.throttled.extend(column::reasons(cell)),
                Role::Quantity { .. } => {
                    let (name, value) = column.quantity(cell).map_err(|what| Fault::at(line, what))?;
                    reading.quantities.insert(name, value);
                }
                Role::Text => {}
            }
        }
        reading.throttled.sort();
        reading.throttled.dedup();
        if let Some(secs) = seconds(&reading.at) {
            let first = *self.first_secs.get_or_insert(secs);
            self.n_backwards += usize::from(secs < self.latest_secs);
            self.latest_secs = secs;
            // Microseconds, since a time of day has no more digits.
            reading.at_secs = ((secs - first) * 1e6).round() / 1e6;
        }
        self.readings.push(reading);
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for (word, n) in &self.missing {
            remarks.push(format!("{n} values are {word:?} and missing"));
        }
        if self.n_backwards > 0 {
            remarks.push(format!(
                "the time goes back {} times: logs put together, or a clock that was set",
                self.n_backwards
            ));
        }
        if self.n_short > 0 {
            remarks.push(format!("{} lines are cut short", self.n_short));
        }
        if self.first_secs.is_none() && !self.readings.is_empty() {
            remarks.push("the log has no times (timestamp)".to_owned());
        }
        if self.readings.iter().any(|reading| reading.gpu.is_empty()) {
            remarks.push("the log does not say which GPU (index or uuid); several could not be told apart".to_owned());
        } else if !self.readings.is_empty() {
            remarks.push("times are local and without a zone".to_owned());
        }
        remarks
    }
}

/// Seconds of a time such as `2017/03/19 17:32:29.613` since 1970, in its own zone.
fn seconds(text: &str) -> Option<f64> {
    let (date, time) = text.trim().split_once(' ')?;
    let mut parts = date.splitn(3, '/').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?);
    let second: f64 = parts.next()?.parse().ok()?;
    let is_date = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !(is_date && hour < 24 && minute < 60 && (0.0..=61.0).contains(&second)) {
        return None;
    }
    // Formula: H. Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`.
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted_year / 400, shifted_year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    Some(days as f64 * 86_400.0 + f64::from(hour * 3600 + minute * 60) + second)
}

#[cfg(test)]
mod tests;
