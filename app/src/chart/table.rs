//! The table of all records: which rows, in which order.

use std::cmp::Ordering;
use std::collections::HashSet;

use compute::bench::record::Record;
use compute::plan::Pass;
use serde::{Deserialize, Serialize};

use super::series::{RecordRef, Series, Source};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is a field of the record")]
pub enum Column {
    Source,
    Device,
    Engine,
    Model,
    Pass,
    Precision,
    Minibatch,
    Throughput,
    Median,
    Outcome,
    Deviation,
    Flops,
    Planned,
    Peak,
    Started,
}

impl Column {
    /// Every column, in the order they are shown.
    pub const ALL: [Self; 15] = [
        Self::Source,
        Self::Device,
        Self::Engine,
        Self::Model,
        Self::Pass,
        Self::Precision,
        Self::Minibatch,
        Self::Throughput,
        Self::Median,
        Self::Outcome,
        Self::Deviation,
        Self::Flops,
        Self::Planned,
        Self::Peak,
        Self::Started,
    ];

    /// Whether it holds numbers.
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Minibatch
                | Self::Throughput
                | Self::Median
                | Self::Deviation
                | Self::Flops
                | Self::Planned
                | Self::Peak
        )
    }
}

/// Which rows are shown, and in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The column to sort by, and whether the largest comes first; absent for the order of the files.
    pub order: Option<(Column, bool)>,
    /// Words that all have to occur in a row.
    pub search: String,
    /// Columns that are not shown.
    pub hidden_columns: Vec<Column>,
}

impl Default for View {
    fn default() -> Self {
        let hidden_columns =
            vec![Column::Source, Column::Deviation, Column::Flops, Column::Planned, Column::Peak, Column::Started];
        Self { order: None, search: String::new(), hidden_columns }
    }
}

/// The number in a column, in its unit.
pub fn number(record: &Record, column: Column) -> Option<f64> {
    const GIB: f64 = (1u64 << 30) as f64;
    let gib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / GIB);
    match column {
        // Zero is not stated.
        Column::Minibatch => Some(record.minibatch as f64).filter(|minibatch| *minibatch > 0.0),
        Column::Throughput => record.throughput_per_sec,
        Column::Median => record.timing.as_ref().map(|timing| timing.median_ms),
        Column::Deviation => record.timing.as_ref().map(|timing| timing.stddev_ms),
        Column::Flops => record.achieved_flop_per_sec.map(|per_sec| per_sec / 1e12),
        Column::Planned => gib(record.memory.planned_bytes),
        Column::Peak => gib(record.memory.peak_bytes),
        _ => None,
    }
}

/// The word in a column as files have it; empty for numbers.
pub fn word<'a>(source: &Source<'a>, record: &'a Record, column: Column) -> &'a str {
    match column {
        Column::Source => source.name,
        Column::Device => source.device_of(record).map_or("", |device| &device.name),
        Column::Engine => &record.engine,
        Column::Model => &record.model,
        Column::Pass => record.pass.name(),
        Column::Precision => record.precision.name(),
        Column::Outcome => record.status.label(),
        Column::Started => &record.started,
        _ => "",
    }
}

/// The rows of whatever is not hidden.
pub fn rows(sources: &[Source<'_>], hidden: &HashSet<Series>, view: &View) -> Vec<RecordRef> {
    let words: Vec<String> = view.search.split_whitespace().map(str::to_lowercase).collect();
    let mut found: Vec<(RecordRef, &Source<'_>, &Record)> = Vec::new();
    for source in sources {
        let is_hidden = source.index.hidden(hidden);
        for (place, (record, key)) in source.file.records.iter().zip(&source.index.keys).enumerate() {
            if !is_hidden[key.series] && words.iter().all(|word| holds(source, record, word)) {
                found.push((RecordRef { source: source.id, index: place }, source, record));
            }
        }
    }
    if let Some((column, is_descending)) = view.order {
        found.sort_by(|a, b| {
            if column.is_number() {
                by_number(number(a.2, column), number(b.2, column), is_descending)
            } else {
                let order = word(a.1, a.2, column).cmp(word(b.1, b.2, column));
                if is_descending { order.reverse() } else { order }
            }
        });
    }
    found.into_iter().map(|(reference, _, _)| reference).collect()
}

/// Rows without a number come last either way.
fn by_number(a: Option<f64>, b: Option<f64>, is_descending: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if is_descending => b.total_cmp(&a),
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// Whether a word, in lower case, occurs in a row: in one of its words, or as its minibatch.
fn holds(source: &Source<'_>, record: &Record, sought: &str) -> bool {
    // As the window calls it.
    let also = if record.pass == Pass::ForwardBackward { ["training", "训练"] } else { ["inference", "推理"] };
    let searched = Column::ALL.into_iter().filter(|column| *column != Column::Started);
    let words = searched.map(|column| word(source, record, column)).chain(also);
    words.filter(|word| !word.is_empty()).any(|word| contains(word, sought)) || record.minibatch.to_string() == sought
}

/// Whether `sought`, which is in lower case, occurs in a text, whatever its case.
fn contains(text: &str, sought: &str) -> bool {
    if !(text.is_ascii() && sought.is_ascii()) {
        return text.to_lowercase().contains(sought);
    }
    text.as_bytes().windows(sought.len()).any(|part| part.eq_ignore_ascii_case(sought.as_bytes()))
}

#[cfg(test)]
mod tests {
    use compute::bench::record::Status;

    use super::*;
    use crate::chart::series::{Index, SourceId};
    use crate::chart::throughput::tests::{bad, file, ok};

    fn order(view: &View) -> Vec<usize> {
        let records = vec![ok("vgg16", 16, 90.0), bad("alexnet", 64, Status::OutOfMemory), ok("resnet50", 64, 20.0)];
        let file = file(records);
        let index = &Index::new(SourceId(0), &file);
        let source = Source { id: SourceId(0), name: "here", file: &file, index };
        rows(&[source], &HashSet::new(), view).into_iter().map(|row| row.index).collect()
    }

    #[test]
    fn rows_are_sorted_by_words_and_numbers_and_what_has_none_comes_last() {
        let by = |column, is_descending| order(&View { order: Some((column, is_descending)), ..View::default() });
        assert_eq!(order(&View::default()), [0, 1, 2]);
        assert_eq!(by(Column::Model, false), [1, 2, 0]);
        assert_eq!(by(Column::Model, true), [0, 2, 1]);
        assert_eq!(by(Column::Throughput, true), [2, 0, 1]);
        assert_eq!(by(Column::Throughput, false), [0, 2, 1]);
    }

    #[test]
    fn every_word_of_a_search_has_to_occur() {
        let by = |search: &str| order(&View { search: search.into(), ..View::default() });
        assert_eq!(by("VGG"), [0]);
        assert_eq!(by("64 h200"), [1, 2]);
        assert_eq!(by("out of memory"), [1]);
        assert_eq!(by("resnet50 inference f32"), [2]);
        assert_eq!(by("6"), [0], "of a name a part is enough, a minibatch is meant as a whole");
        assert_eq!(by("  "), [0, 1, 2]);
    }

    #[test]
    fn a_minibatch_that_is_not_stated_is_no_number() {
        assert_eq!(number(&ok("alexnet", 16, 10.0), Column::Minibatch), Some(16.0));
        assert_eq!(number(&ok("alexnet", 0, 10.0), Column::Minibatch), None);
    }
}
