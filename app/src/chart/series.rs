//! What one bar of every group belongs to: a device, an engine and a precision within one source of records.

use std::collections::{BTreeSet, HashMap, HashSet};

use compute::bench::record::{Record, ResultFile, Status};
use compute::engine::Device;
use compute::plan::Pass;
use compute::shape::Precision;

/// Number of a source of records, stable for as long as it is in the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub usize);

/// Records and what they are called.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Which source it is.
    pub id: SourceId,
    /// What it is called, such as a file's name.
    pub name: &'a str,
    /// Its records.
    pub file: &'a ResultFile,
    /// What is known of them without looking at them.
    pub index: &'a Index,
}

/// One series.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Series {
    /// Where the records come from.
    pub source: SourceId,
    /// Name of the device; absent when it could not be opened.
    pub device: Option<String>,
    /// Identifier of the device where its name alone does not tell it from another of the same source.
    pub device_id: Option<String>,
    /// Name of the engine.
    pub engine: String,
    /// The precision.
    pub precision: Precision,
}

/// One record of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordRef {
    /// The source.
    pub source: SourceId,
    /// Index of the record in it.
    pub index: usize,
}

impl Series {
    /// The series that a record of `source` belongs to.
    pub fn of(source: SourceId, file: &ResultFile, record: &Record) -> Self {
        let device = record.device.and_then(|index| file.devices.get(index));
        let is_ambiguous = device
            .is_some_and(|device| file.devices.iter().any(|other| other.name == device.name && !other.is_same(device)));
        Self {
            source,
            device: device.map(|device| device.name.clone()),
            device_id: device.filter(|_| is_ambiguous).map(|device| device.id.clone()),
            engine: record.engine.clone(),
            precision: record.precision,
        }
    }
}

/// What charts choose records by, found once: looking at a hundred thousand records takes longer than a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// The series, as they first appear.
    pub series: Vec<Series>,
    /// Names of the models, as they first appear.
    pub models: Vec<String>,
    /// One key a record.
    pub keys: Vec<Key>,
}

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Number of its series in the index.
    pub series: usize,
    /// Number of its model in the index.
    pub model: usize,
    /// Its pass.
    pub pass: Pass,
    /// Its minibatch.
    pub minibatch: usize,
    /// Whether charts have a place for it: figures in units of their own, or of an unknown minibatch, are in the table
    /// alone.
    pub is_charted: bool,
}

impl Index {
    /// The index of a source's records.
    pub fn new(source: SourceId, file: &ResultFile) -> Self {
        let mut known: HashMap<(Option<usize>, &str, Precision), usize> = HashMap::new();
        let mut index = Self::default();
        for record in &file.records {
            let series = *known.entry((record.device, &record.engine, record.precision)).or_insert_with(|| {
                // Two entries of the list of devices may be one device.
                place(
                    &mut index.series,
                    |other| *other == Series::of(source, file, record),
                    || Series::of(source, file, record),
                )
            });
            let model = place(&mut index.models, |other| *other == record.model, || record.model.clone());
            index.keys.push(Key {
                series,
                model,
                pass: record.pass,
                minibatch: record.minibatch,
                is_charted: is_charted(record),
            });
        }
        index
    }

    /// For each series, whether it is among those that are hidden.
    pub fn hidden(&self, hidden: &HashSet<Series>) -> Vec<bool> {
        self.series.iter().map(|series| hidden.contains(series)).collect()
    }

    /// Every series, sorted.
    pub fn sorted_series(&self) -> Vec<Series> {
        self.series.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn is_charted(record: &Record) -> bool {
    let has_place = record.status != Status::Ok || record.throughput_per_sec.is_some();
    record.origin.is_none() || (record.minibatch > 0 && has_place)
}

/// Place of a member in a list, which gets it if it is new.
fn place<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> usize {
    list.iter().position(is_it).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    })
}

impl<'a> Source<'a> {
    /// The device that a record ran on, as far as the file knows it.
    pub fn device_of(&self, record: &Record) -> Option<&'a Device> {
        record.device.and_then(|index| self.file.devices.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::throughput::tests::{device, file, ok};

    #[test]
    fn equal_cards_are_told_apart_by_their_identifier() {
        let mut twins = file(vec![ok("alexnet", 16, 10.0), ok("alexnet", 16, 12.0)]);
        twins.devices = vec![device("0000:01:00.0", "H200"), device("0000:02:00.0", "H200")];
        twins.records[1].device = Some(1);
        let all = Index::new(SourceId(0), &twins).sorted_series();
        let ids: Vec<_> = all.iter().filter_map(|series| series.device_id.as_deref()).collect();
        assert_eq!(ids, ["0000:01:00.0", "0000:02:00.0"]);

        // One card that two engines call by different names.
        for (device, id) in twins.devices.iter_mut().zip(["GPU-a", "0000:01:00.0"]) {
            device.id = id.into();
            device.pci_address = Some("0000:01:00.0".into());
        }
        let all = Index::new(SourceId(0), &twins).sorted_series();
        assert!(all.iter().all(|series| series.device_id.is_none()));

        twins.devices = vec![device("0000:01:00.0", "H200"), device("0000:02:00.0", "L40S")];
        let all = Index::new(SourceId(0), &twins).sorted_series();
        assert!(all.len() == 2 && all.iter().all(|series| series.device_id.is_none()));
    }

    #[test]
    fn a_record_without_device_still_has_a_series() {
        let mut lost = file(vec![ok("alexnet", 16, 10.0)]);
        for index in [None, Some(7)] {
            lost.records[0].device = index;
            assert_eq!(Series::of(SourceId(0), &lost, &lost.records[0]).device, None);
        }
    }
}
