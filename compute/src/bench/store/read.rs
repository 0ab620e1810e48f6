//! Reads a result file: whatever is well-formed in it, with notes on the rest.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::{Map, Value};

use super::{LoadError, Loaded, digest, fault};
use crate::bench::record::{Record, ResultFile, SCHEMA};
use crate::engine::{Device, DeviceKind};

/// Size from which a file is refused unread: hundreds of thousands of records are far below it.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// Records whose fault is told each; a file that is wrong throughout needs no thousand sentences.
const MAX_RECORD_NOTES: usize = 20;

/// Version of the schema that this program writes.
const VERSION: u32 = 1;

/// What brings a file from version `i + 1` of the schema to the next; older versions load for ever. A step that changes
/// devices or records checks the digest before and renews it.
const UPGRADES: [fn(&mut Map<String, Value>); VERSION as usize - 1] = [];

/// Reads a result file: whatever is well-formed in it, with notes on the rest.
///
/// # Errors
/// [`LoadError`] when nothing of it is ours.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    raw(path).map(|file| typed(&file))
}

/// Reads the text of a result file that came from `path`, which only messages use.
///
/// # Errors
/// [`LoadError::NotOurs`].
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Loaded, LoadError> {
    match object(bytes) {
        Ok(file) => Ok(typed(&file)),
        Err(reason) => Err(LoadError::NotOurs { path: path.to_owned(), reason }),
    }
}

/// A result file as it stands on disk, upgraded to this version of the schema.
pub(super) fn raw(path: &Path) -> Result<Map<String, Value>, LoadError> {
    let bytes = read_bounded(path)?;
    object(&bytes).map_err(|reason| LoadError::NotOurs { path: path.to_owned(), reason })
}

/// The bytes of a regular file of at most [`MAX_FILE_BYTES`].
pub(crate) fn read_bounded(path: &Path) -> Result<Vec<u8>, LoadError> {
    let io = |source: io::Error| LoadError::Io { path: path.to_owned(), source };
    let not_ours = |reason: String| LoadError::NotOurs { path: path.to_owned(), reason };
    let metadata = std::fs::metadata(path).map_err(io)?;
    // Opening a pipe would wait for its writer.
    if !metadata.is_file() {
        return Err(not_ours(if metadata.is_dir() { "it is a folder" } else { "it is not a regular file" }.to_owned()));
    }
    let too_large =
        |bytes: u64| not_ours(format!("it has {} MiB, expected at most {} MiB", bytes >> 20, MAX_FILE_BYTES >> 20));
    if metadata.len() > MAX_FILE_BYTES {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)).map_err(io)?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(too_large(read as u64));
    }
    Ok(bytes)
}

/// The JSON object of a file whose schema is ours, or what was expected instead.
fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let expected = format!("expected a JSON object with \"schema\": {SCHEMA:?}");
    if bytes.is_empty() {
        return Err(format!("it is empty, {expected}"));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("it is UTF-16 text, expected UTF-8".to_owned());
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value: Value = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        Category::Eof => format!("it is cut off at line {} column {}", error.line(), error.column()),
        _ if error.to_string().starts_with("recursion limit") => {
            format!("it is nested too deeply at line {} column {}", error.line(), error.column())
        }
        _ if is_non_finite(bytes, &error) => {
            format!("it has a NaN or an infinity at line {}, which JSON does not know", error.line())
        }
        _ => format!("it is not JSON ({error}), {expected}"),
    })?;
    let Value::Object(mut file) = value else {
        return Err(format!("it is {}, {expected}", fault::kind(&value)));
    };
    let schema = file.get("schema").ok_or_else(|| format!("it has no \"schema\", {expected}"))?;
    let version = schema.as_str().and_then(version_of);
    let version =
        version.ok_or_else(|| format!("its \"schema\" is {}, expected {SCHEMA:?}", fault::excerpt(schema)))?;
    for upgrade in UPGRADES.iter().skip(version as usize - 1) {
        upgrade(&mut file);
    }
    for key in ["devices", "records"] {
        match file.get(key) {
            None | Some(Value::Array(_)) => {}
            Some(other) => return Err(format!("{key:?} is {}, expected a list", fault::kind(other))),
        }
    }
    Ok(file)
}

/// Whether the parser stopped at `NaN`, `Infinity` or `-Infinity`, which some programs write.
fn is_non_finite(bytes: &[u8], error: &serde_json::Error) -> bool {
    let line = bytes.split(|&byte| byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let rest = line.get(error.column().saturating_sub(1)..).unwrap_or_default();
    ["NaN", "Infinity", "nan", "inf"].iter().any(|literal| rest.starts_with(literal.as_bytes()))
}

/// Version of the schema that a file names; the first is 1.
fn version_of(schema: &str) -> Option<u32> {
    let digits = schema.strip_prefix("batchmark/")?;
    digits.parse().ok().filter(|version: &u32| *version > 0 && version.to_string() == digits)
}

/// Whatever of an object fits this version's types; its devices and records are lists, as [`raw`] sees to.
pub(super) fn typed(raw: &Map<String, Value>) -> Loaded {
    let mut notes = Vec::new();
    let mut n_left_out = 0;
    let schema = raw.get("schema").and_then(Value::as_str).unwrap_or(SCHEMA).to_owned();
    if version_of(&schema).is_some_and(|version| version > VERSION) {
        notes.push(format!(
            "written by a newer version of the program (schema {schema:?}, this one knows {SCHEMA:?}); \
             what it added is kept but not shown"
        ));
    }
    let mut edited = raw.get("edited").and_then(Value::as_bool).unwrap_or(false);
    if edited {
        notes.push("records of this file were edited after they were measured, or had no digest to tell".to_owned());
    }
    match raw.get("digest").and_then(Value::as_str) {
        Some(written) if written != digest::digest(raw) => {
            edited = true;
            notes.push("edited since it was measured: its devices or records do not agree with its digest".to_owned());
        }
        Some(_) => {}
        // Nothing in it says that this program measured it, which is what a digest speaks for.
        None if holds_only_others_figures(raw) => {}
        None => {
            // Saved again, these records must not get a digest that says nobody touched them.
            edited |= !list(raw, "records").is_empty();
            notes.push("it has no digest, so an edit can't be seen".to_owned());
        }
    }
    let devices: Vec<Device> = list(raw, "devices")
        .iter()
        .enumerate()
        .map(|(index, value)| {
            serde_json::from_value(value.clone()).unwrap_or_else(|error| {
                notes.push(format!("device {index} can't be read in full: {}", fault::message(&error)));
                stand_in(value)
            })
        })
        .collect();
    let mut records = Vec::new();
    for (index, value) in list(raw, "records").iter().enumerate() {
        match fault::record(value, devices.len()) {
            Ok(record) => records.push(record),
            Err(fault) => {
                n_left_out += 1;
                if n_left_out <= MAX_RECORD_NOTES {
                    notes.push(format!("record {index} left out: {fault}"));
                }
            }
        }
    }
    if n_left_out > MAX_RECORD_NOTES {
        notes.push(format!("{} more records left out", n_left_out - MAX_RECORD_NOTES));
    }
    let mut file = ResultFile {
        schema,
        created: field(raw, "created", &mut notes),
        program: field(raw, "program", &mut notes),
        host: field(raw, "host", &mut notes),
        devices,
        records,
        digest: field(raw, "digest", &mut notes),
        edited,
        extra: raw.clone(),
    };
    for known in ["schema", "created", "program", "host", "devices", "records", "digest", "edited"] {
        file.extra.shift_remove(known);
    }
    Loaded { file, notes, n_left_out }
}

/// Whether there are records and all of them name a publication or another program as their source.
fn holds_only_others_figures(raw: &Map<String, Value>) -> bool {
    let records = list(raw, "records");
    !records.is_empty() && records.iter().all(|record| record.get("origin").is_some_and(Value::is_object))
}

fn list<'a>(raw: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    raw.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn field<T: DeserializeOwned + Default>(raw: &Map<String, Value>, key: &str, notes: &mut Vec<String>) -> T {
    let Some(value) = raw.get(key) else { return T::default() };
    serde_json::from_value(value.clone()).unwrap_or_else(|error| {
        notes.push(format!("{key:?} left out: {}", fault::message(&error)));
        T::default()
    })
}

/// A device in the place of one that can't be read, so that records find the others by their index.
fn stand_in(value: &Value) -> Device {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("unknown").to_owned();
    Device { id: text("id"), name: text("name"), kind: DeviceKind::Other, ..Device::default() }
}

/// Reads a record, which is what [`fault::record`] tries first.
pub(super) fn record(value: &Value) -> Result<Record, serde_json::Error> {
    serde_json::from_value(value.clone())
}
