//! The records that charts look at: of whatever is not hidden, those of a pass and a precision.

use std::collections::{BTreeSet, HashSet};

use compute::bench::record::Record;
use compute::plan::Pass;
use compute::shape::Precision;

use super::series::{Key, RecordRef, Series, Source};
use super::settings::Settings;

/// The records that charts look at.
pub(super) struct Shown<'a> {
    sources: &'a [Source<'a>],
    /// For each source, whether its series are left out.
    is_left_out: Vec<Vec<bool>>,
    pass: Pass,
    /// Precisions that can be chosen.
    pub(super) precisions: BTreeSet<Precision>,
}

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    /// Number of its source among the sources.
    pub(super) number: usize,
    /// Its source.
    pub(super) source: &'a Source<'a>,
    /// What it is of.
    pub(super) key: Key,
    place: usize,
}

impl<'a> Shown<'a> {
    /// Those of the settings' pass and precision; a precision that no record has filters nothing.
    pub(super) fn new(sources: &'a [Source<'a>], hidden: &HashSet<Series>, settings: &Settings) -> Self {
        let is_left_out = sources.iter().map(|source| source.index.hidden(hidden)).collect();
        let mut shown = Self { sources, is_left_out, pass: settings.pass, precisions: BTreeSet::new() };
        shown.precisions = shown.records().map(|found| found.series().precision).collect();
        if let Some(asked) = settings.precision.filter(|asked| shown.precisions.contains(asked)) {
            for (source, is_left_out) in sources.iter().zip(&mut shown.is_left_out) {
                for (series, is_left_out) in source.index.series.iter().zip(is_left_out) {
                    *is_left_out |= series.precision != asked;
                }
            }
        }
        shown
    }

    /// Each record. They are looked at several times rather than copied: copying a hundred thousand takes longer.
    pub(super) fn records(&self) -> impl Iterator<Item = Found<'a>> + '_ {
        self.sources.iter().zip(&self.is_left_out).enumerate().flat_map(|(number, (source, is_left_out))| {
            let keys = source.index.keys.iter().enumerate();
            let shown = keys.filter(|(_, key)| key.is_charted && key.pass == self.pass && !is_left_out[key.series]);
            shown.map(move |(place, key)| Found { number, source, key: *key, place })
        })
    }
}

impl<'a> Found<'a> {
    pub(super) fn series(&self) -> &'a Series {
        &self.source.index.series[self.key.series]
    }

    pub(super) fn model(&self) -> &'a str {
        &self.source.index.models[self.key.model]
    }

    pub(super) fn record(&self) -> &'a Record {
        &self.source.file.records[self.place]
    }

    pub(super) fn reference(&self) -> RecordRef {
        RecordRef { source: self.source.id, index: self.place }
    }
}

/// Of two records of the same run, whether the first counts: the latest does, a sound one before any that is doubtful.
pub(super) fn counts_before(record: &Record, other: &Record) -> bool {
    let rank = |record: &'_ Record| record.doubt().is_none();
    (rank(record), &record.started) >= (rank(other), &other.started)
}
