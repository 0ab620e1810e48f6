//! What an importer fills: entries in the file's own terms become records of ours, each guess with its note.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::entry::{Entry, Fact, Measured, Phase};
use super::text::shorten;
use super::{Fault, Format, Given, Imported, Reading, Unknown, networks, outcome};
use crate::bench::origin::{Figure, Origin, OriginKind};
use crate::bench::record::{Host, Record, ResultFile};
use crate::bench::store;
use crate::engine::{Device, DeviceKind};
use crate::models::Model;
use crate::shape::Precision;

/// Records beyond which a file is not imported on.
const MOST_RECORDS: usize = 100_000;
/// Characters kept of a name.
const LONGEST_NAME: usize = 120;
/// Name of a device that is not known.
const UNKNOWN_DEVICE: &str = "unknown device";

/// The file that an importer makes.
pub(super) struct Draft<'a> {
    format: Format,
    /// Name of the file.
    pub(super) title: String,
    sha256: String,
    given: &'a Given,
    /// The machine, where the file tells of it.
    pub(super) host: Host,
    devices: Vec<Device>,
    /// Places of devices by name.
    device_indices: BTreeMap<String, usize>,
    records: Vec<Record>,
    n_left_out: usize,
    /// Remarks on the whole.
    pub(super) notes: Vec<String>,
    unknown: Vec<Unknown>,
    /// Readings of the device's state.
    pub(super) telemetry: Vec<Reading>,
    /// Whether it is right that there is no record.
    pub(super) holds_no_result: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(format: Format, name: &str, sha256: String, given: &'a Given, notes: Vec<String>) -> Self {
        Self {
            format,
            title: shorten(name, LONGEST_NAME),
            sha256,
            given,
            host: Host::default(),
            devices: Vec::new(),
            device_indices: BTreeMap::new(),
            records: Vec::new(),
            n_left_out: 0,
            notes,
            unknown: Vec::new(),
            telemetry: Vec::new(),
            holds_no_result: false,
        }
    }

    /// Index of a device, which the file gets if it is new.
    pub(super) fn device(&mut self, name: &str) -> usize {
        let name = shorten(name, LONGEST_NAME);
        if let Some(&index) = self.device_indices.get(&name) {
            return index;
        }
        let kind = if name.eq_ignore_ascii_case("cpu") { DeviceKind::Cpu } else { DeviceKind::Other };
        self.device_indices.insert(name.clone(), self.devices.len());
        self.devices.push(Device { id: name.clone(), name, kind, ..Device::default() });
        self.devices.len() - 1
    }

    /// Adds one figure.
    pub(super) fn add(&mut self, entry: Entry) {
        if self.records.len() >= MOST_RECORDS {
            self.n_left_out += 1;
            return;
        }
        let mut notes = entry.notes;
        let device = self.settle_device(entry.device, &mut notes);
        let precision = self.settle_precision(entry.precision, &mut notes);
        let is_failed = matches!(entry.measured, Measured::Failed(_));
        let counts_samples = !matches!(entry.minibatch, Fact::Inapplicable);
        let minibatch = self.settle_minibatch(entry.minibatch, is_failed, &mut notes);
        // Where one device computed one of our networks, its operations are known.
        let network = entry.network.filter(|_| entry.n_devices.unwrap_or(1) == 1);
        let figure = Figure {
            model: shorten(&entry.model, LONGEST_NAME),
            phase: entry.phase_words.unwrap_or_else(|| entry.phase.word().to_owned()),
            precision: shorten(&entry.precision_word, LONGEST_NAME),
            metric: entry.metric.to_owned(),
            value: if entry.value.is_finite() { entry.value } else { 0.0 },
            input: entry.input.map(|input| shorten(&input, LONGEST_NAME)),
            n_devices: entry.n_devices.filter(|&n| n > 1),
        };
        let mut extra = Map::new();
        if !entry.extra.is_empty() {
            // In an object of their own: no name of a foreign file may meet a field of the record.
            extra.insert("fields".to_owned(), Value::Object(entry.extra));
        }
        let origin = Origin {
            kind: OriginKind::Imported,
            source: self.format.name().to_owned(),
            title: Some(self.title.clone()),
            authors: None,
            date: entry.date.map(|date| shorten(&date, LONGEST_NAME)),
            url: None,
            licence: None,
            obtained: None,
            sha256: Some(self.sha256.clone()),
            figure,
            doubt: entry.doubt,
            extra,
        };
        let mut record = origin.record(entry.phase.pass(), precision);
        record.device = Some(device);
        record.minibatch = minibatch;
        record.engine = shorten(&entry.engine, LONGEST_NAME);
        let versions = entry.libraries.into_iter();
        record.libraries = versions.map(|(name, version)| (name, shorten(&version, LONGEST_NAME))).collect();
        record.started =
            record.origin.iter().filter_map(|origin| origin.date.clone()).find(|date| is_utc(date)).unwrap_or_default();
        match entry.network {
            Some(model) => {
                record.model = model.name().to_owned();
                record.definition.clone_from(&networks::facts(model).definition);
                notes
                    .push(format!("taken to be the network of this name, {:?} in its file", shorten(&entry.model, 40)));
            }
            None => record.model = self.foreign_name(&entry.model, &entry.shown),
        }
        if entry.phase == Phase::TrainStep {
            notes.push("the time includes the update of the parameters".to_owned());
        }
        record.notes = notes;
        outcome::conclude(&mut record, entry.measured, entry.phase, counts_samples, network);
        if let Err(fault) = store::check_record(&record, self.devices.len()) {
            outcome::fail(&mut record, format!("the file gives no valid result: {fault}"));
        }
        self.records.push(record);
    }

    /// The imported file.
    ///
    /// # Errors
    /// [`Fault`] when nothing was found.
    pub(super) fn finish(mut self) -> Result<Imported, Fault> {
        if self.records.is_empty() && self.telemetry.is_empty() && !self.holds_no_result {
            let why = if self.notes.is_empty() { String::new() } else { format!(" ({})", self.notes.join("; ")) };
            return Err(Fault::new(format!("it holds no result{}", shorten(&why, 300))));
        }
        if self.n_left_out > 0 {
            let n = self.n_left_out;
            self.notes.push(format!("{n} results beyond the first {MOST_RECORDS} are left out"));
        }
        let file = ResultFile { devices: self.devices, records: self.records, ..store::begin(self.host) };
        let Self { format, notes, unknown, telemetry, .. } = self;
        Ok(Imported { format, file, notes, unknown, n_left_out: 0, telemetry })
    }

    /// A foreign model's name, which must not be that of one of our networks.
    fn foreign_name(&self, model: &str, shown: &str) -> String {
        let name = shorten(if shown.is_empty() { model } else { shown }, LONGEST_NAME);
        match name.parse::<Model>() {
            Ok(_) => format!("{name} ({})", self.format),
            Err(_) => name,
        }
    }

    fn ask(&mut self, unknown: Unknown) {
        if !self.unknown.contains(&unknown) {
            self.unknown.push(unknown);
        }
    }

    fn settle_device(&mut self, fact: Fact<String>, notes: &mut Vec<String>) -> usize {
        let name = match (fact, self.given.device.clone().filter(|given| !given.trim().is_empty())) {
            (Fact::Stated(stated), Some(given)) => {
                if stated != given {
                    notes.push(format!("the device was given as {given:?}, its file has {:?}", shorten(&stated, 60)));
                }
                given
            }
            (Fact::Stated(stated), None) => stated,
            (_, Some(given)) => given,
            (Fact::Guessed(guess, why), None) => {
                notes.push(why.to_owned());
                self.ask(Unknown::Device);
                guess
            }
            (Fact::Unknown | Fact::Inapplicable, None) => {
                self.ask(Unknown::Device);
                UNKNOWN_DEVICE.to_owned()
            }
        };
        self.device(&name)
    }

    fn settle_precision(&mut self, fact: Fact<Precision>, notes: &mut Vec<String>) -> Precision {
        match (fact, self.given.precision) {
            (Fact::Stated(stated), Some(given)) => {
                if stated != given {
                    notes.push(format!("the precision was given as {given}, its file has {stated}"));
                }
                given
            }
            (Fact::Stated(stated), None) => stated,
            (_, Some(given)) => given,
            (Fact::Guessed(guess, why), None) => {
                notes.push(why.to_owned());
                self.ask(Unknown::Precision);
                guess
            }
            (Fact::Unknown, None) => {
                notes.push("the precision is not known, f32 is assumed".to_owned());
                self.ask(Unknown::Precision);
                Precision::F32
            }
            (Fact::Inapplicable, None) => Precision::F32,
        }
    }

    /// Of a failed run it is not asked for: nothing would be computed from it.
    fn settle_minibatch(&mut self, fact: Fact<usize>, is_failed: bool, notes: &mut Vec<String>) -> usize {
        match (fact, self.given.minibatch.filter(|&given| given > 0)) {
            (Fact::Stated(stated), given) => {
                if let Some(given) = given.filter(|&given| given != stated) {
                    notes.push(format!("its file says minibatch {stated}, which stays although {given} was given"));
                }
                stated
            }
            (Fact::Guessed(..) | Fact::Unknown, Some(given)) => given,
            (Fact::Guessed(guess, why), None) => {
                notes.push(why.to_owned());
                self.ask(Unknown::Minibatch);
                guess
            }
            (Fact::Unknown, None) => {
                if !is_failed {
                    self.ask(Unknown::Minibatch);
                }
                0
            }
            (Fact::Inapplicable, _) => 0,
        }
    }
}

/// Whether a time is one such as `2024-07-25T12:00:00Z`.
fn is_utc(date: &str) -> bool {
    let shape: String = date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00Z"
}
