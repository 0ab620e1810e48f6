//! Results side by side: which rows are comparable, how they stand to a baseline, and what differed around them.
//!
//! A row is one model, pass, precision and minibatch, so that a smaller minibatch never passes for a slower device. What
//! is not the same network is not put into proportion.

mod environment;

use std::collections::{BTreeMap, BTreeSet};

use super::export::{Cell, Column as TableColumn, Source, Table, throughput};
use super::record::{Record, Status};
use crate::models::Model;
use crate::plan::Pass;
use crate::shape::Precision;

pub use environment::Difference;

/// Factor between the achieved FLOP/s of two models, all else equal, from which one of them is doubtful: a missing
/// synchronization shows like this.
pub(crate) const IMPLAUSIBLE_FACTOR: f64 = 20.0;

/// Results side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What is compared.
    pub columns: Vec<Column>,
    /// The column that ratios refer to.
    pub baseline: usize,
    /// What was measured, in the order of the suite.
    pub rows: Vec<Row>,
    /// What keeps numbers from being compared, one sentence each.
    pub warnings: Vec<String>,
    /// What differs between the environments of the columns.
    pub differences: Vec<Difference>,
}

/// One engine on one device, from one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the file.
    pub file: String,
    /// Name of the device; with its identifier where the file has several of that name.
    pub device: String,
    /// Name of the engine.
    pub engine: String,
}

/// One thing measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is.
    pub key: Key,
    /// What each column has on it, if anything.
    pub outcomes: Vec<Option<Outcome>>,
}

/// What makes two records comparable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Place of the model in the suite; others follow.
    place: usize,
    /// Name of the model.
    pub model: String,
    /// The pass.
    pub pass: Pass,
    /// The precision.
    pub precision: Precision,
    /// Samples in one iteration.
    pub minibatch: usize,
}

/// A record in its row.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The record.
    pub record: Record,
    /// Throughput over the baseline's; absent where one of them is missing or the networks differ.
    pub ratio: Option<f64>,
}

/// A baseline that is not among the columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no column {given} to be the baseline, expected one of: {valid}")]
pub struct UnknownBaseline {
    given: usize,
    valid: String,
}

impl Key {
    fn of(record: &Record) -> Self {
        let place = Model::ALL.iter().position(|model| model.name() == record.model).unwrap_or(Model::ALL.len());
        Self {
            place,
            model: record.model.clone(),
            pass: record.pass,
            precision: record.precision,
            minibatch: record.minibatch,
        }
    }
}

/// Puts files side by side. Ratios refer to the column numbered `baseline`, from 1.
///
/// # Errors
/// [`UnknownBaseline`] when there is no such column.
pub fn compare(sources: &[Source<'_>], baseline: usize) -> Result<Comparison, UnknownBaseline> {
    let members = members(sources);
    let columns: Vec<Column> = members.iter().map(|member| member.column(sources)).collect();
    let reference = baseline.checked_sub(1).filter(|&column| column < columns.len().max(1));
    let reference = reference.ok_or_else(|| UnknownBaseline {
        given: baseline,
        valid: columns
            .iter()
            .enumerate()
            .map(|(n, column)| format!("{} ({column})", n + 1))
            .collect::<Vec<_>>()
            .join(", "),
    })?;
    let latest: Vec<BTreeMap<Key, &Record>> = members.iter().map(Member::latest).collect();
    let keys: BTreeSet<Key> = latest.iter().flat_map(|latest| latest.keys().cloned()).collect();
    let mut warnings = Vec::new();
    let rows = keys.into_iter().map(|key| row(key, &latest, reference, &columns, &mut warnings)).collect();
    for (member, column) in members.iter().zip(&columns) {
        warnings.extend(implausible(&member.records).into_iter().map(|what| format!("{column}: {what}")));
    }
    dedup(&mut warnings);
    let differences = environment::differences(sources, &members);
    Ok(Comparison { columns, baseline: reference, rows, warnings, differences })
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}, {}", self.file, self.device, self.engine)
    }
}

/// The records of one column.
struct Member<'a> {
    source: usize,
    device: Option<usize>,
    engine: &'a str,
    records: Vec<&'a Record>,
}

impl Member<'_> {
    fn column(&self, sources: &[Source<'_>]) -> Column {
        let Source { name, file } = sources[self.source];
        let device = self.device.and_then(|index| file.devices.get(index)).map(|device| {
            let namesakes = file.devices.iter().filter(|other| other.name == device.name).count();
            if namesakes > 1 { format!("{} ({})", device.name, device.id) } else { device.name.clone() }
        });
        let device = device.unwrap_or_else(|| "no device".to_owned());
        Column { file: name.to_owned(), device, engine: self.engine.to_owned() }
    }

    /// The latest record of each key, since it was measured with the latest driver; a cancelled one stands back behind
    /// every other.
    fn latest(&self) -> BTreeMap<Key, &Record> {
        let rank = |record: &Record| (record.status != Status::Cancelled, record.started.clone());
        let mut latest: BTreeMap<Key, &Record> = BTreeMap::new();
        for record in &self.records {
            let known = latest.entry(Key::of(record)).or_insert(record);
            if rank(record) >= rank(known) {
                *known = record;
            }
        }
        latest
    }
}

fn members<'a>(sources: &[Source<'a>]) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'a>> = Vec::new();
    for (source, Source { file, .. }) in sources.iter().enumerate() {
        for record in &file.records {
            let (device, engine) = (record.device, record.engine.as_str());
            let same =
                |member: &&mut Member<'_>| (member.source, member.device, member.engine) == (source, device, engine);
            match members.iter_mut().find(same) {
                Some(member) => member.records.push(record),
                None => members.push(Member { source, device, engine, records: vec![record] }),
            }
        }
    }
    members
}

fn row(
    key: Key,
    latest: &[BTreeMap<Key, &Record>],
    baseline: usize,
    columns: &[Column],
    warnings: &mut Vec<String>,
) -> Row {
    let latest: Vec<Option<&Record>> = latest.iter().map(|latest| latest.get(&key).copied()).collect();
    let base = latest.get(baseline).copied().flatten();
    let other_network = |record: &Record| base.is_some_and(|base| base.definition != record.definition);
    let outcomes = latest.iter().zip(columns).map(|(record, column)| {
        let record = (*record)?;
        if other_network(record) {
            warnings.push(format!(
                "{} is not the same network in [{}] and in {column}: definition {:?} against {:?}",
                key.model,
                baseline + 1,
                base.map_or("", |base| &base.definition),
                record.definition,
            ));
        }
        let ratio = match (base.and_then(|base| base.throughput_per_sec), record.throughput_per_sec) {
            (Some(base), Some(own)) if !other_network(record) => Some(own / base),
            _ => None,
        };
        Some(Outcome { record: record.clone(), ratio })
    });
    let outcomes = outcomes.collect();
    Row { key, outcomes }
}

/// What two models have in common where their achieved FLOP/s can be put into proportion.
type Configuration = (Pass, Precision, usize);

/// Models of one pass, precision and minibatch whose achieved FLOP/s can't all be right.
fn implausible(records: &[&Record]) -> Vec<String> {
    let mut alike: BTreeMap<Configuration, Vec<(f64, &Record)>> = BTreeMap::new();
    for record in records {
        if let Some(rate) = record.achieved_flop_per_sec {
            alike.entry((record.pass, record.precision, record.minibatch)).or_default().push((rate, record));
        }
    }
    let mut found = Vec::new();
    for ((pass, precision, minibatch), group) in alike {
        let by_rate = |a: &&(f64, &Record), b: &&(f64, &Record)| a.0.total_cmp(&b.0);
        let (low, high) = (group.iter().min_by(by_rate), group.iter().max_by(by_rate));
        if let (Some((low_rate, low)), Some((high_rate, high))) = (low, high)
            && *high_rate > IMPLAUSIBLE_FACTOR * low_rate
        {
            found.push(format!(
                "{} achieves {:.0} times the FLOP/s of {} ({pass}, {precision}, minibatch {minibatch}), \
                 which is implausible",
                high.model,
                high_rate / low_rate,
                low.model
            ));
        }
    }
    found
}

fn dedup(sentences: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    sentences.retain(|sentence| seen.insert(sentence.clone()));
}

impl Comparison {
    /// The rows as a table: people find the columns by number, programs by name.
    pub fn table(&self) -> Table {
        let mut columns = vec![
            TableColumn::new("model", "model"),
            TableColumn::new("pass", "pass"),
            TableColumn::new("precision", "precision"),
            TableColumn::new("minibatch", "minibatch"),
        ];
        for (place, column) in self.columns.iter().enumerate() {
            let number = place + 1;
            columns.push(TableColumn::new(
                &format!("[{number}] {column}: throughput_per_sec"),
                &format!("[{number}] samples/s"),
            ));
            if place != self.baseline {
                let base = self.baseline + 1;
                columns.push(TableColumn::new(&format!("[{number}]/[{base}]"), &format!("[{number}]/[{base}]")));
            }
        }
        let rows = self.rows.iter().map(|row| {
            let Key { model, pass, precision, minibatch, .. } = &row.key;
            let mut cells = vec![
                Cell::Text(model.clone()),
                Cell::Text(pass.name().to_owned()),
                Cell::Text(precision.name().to_owned()),
                Cell::Count(*minibatch as u64),
            ];
            for (place, outcome) in row.outcomes.iter().enumerate() {
                cells.push(outcome.as_ref().map_or(Cell::Word("-"), |outcome| throughput(&outcome.record)));
                if place != self.baseline {
                    cells.push(outcome.as_ref().and_then(|outcome| outcome.ratio).into());
                }
            }
            cells
        });
        Table { columns, rows: rows.collect() }
    }
}

#[cfg(test)]
mod tests;
