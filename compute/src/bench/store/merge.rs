//! Brings together the records of two programs, or of two files.
//!
//! The file on disk is kept as raw JSON, so that what this version can't read (a record of a later version, a field of
//! a foreign program) is still there after the merge.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::read;
use crate::bench::record::{Host, Record, ResultFile};
use crate::engine::Device;

/// Key under which a device's `extra` holds its machine, where that is not the file's: several machines may write into
/// one file.
const HOST: &str = "host";

/// The machine that a record was measured on, or the file's where the record names none.
pub fn host_of(file: &ResultFile, record: &Record) -> Host {
    let device = record.device.and_then(|index| file.devices.get(index));
    let own = device.and_then(|device| device.extra.get(HOST));
    own.and_then(|host| Host::deserialize(host).ok()).unwrap_or_else(|| file.host.clone())
}

/// Names the machine of a device where it is not the file's and the device does not name one yet.
pub(super) fn set_host(device: &mut Device, host: &Host, file_host: &Host) {
    if host != file_host
        && let Ok(host) = serde_json::to_value(host)
    {
        device.extra.entry(HOST).or_insert(host);
    }
}

/// Index of a device in a list, where it is put if it is not there yet.
pub(super) fn index_of(device: &Device, devices: &mut Vec<Device>) -> usize {
    devices.iter().position(|known| known == device).unwrap_or_else(|| {
        devices.push(device.clone());
        devices.len() - 1
    })
}

/// Adds to a file on disk the records of `ours` that it does not hold yet. Two records are one when every field agrees,
/// the device included; as many equal ones are kept as the side with more of them has.
pub(super) fn merge(disk: &mut Map<String, Value>, ours: &ResultFile) -> Result<(), serde_json::Error> {
    let theirs = read::typed(disk).file;
    let mut devices = theirs.devices.clone();
    let mut unmatched: Vec<&Record> = theirs.records.iter().collect();
    let mut added = Vec::new();
    for record in &ours.records {
        let device = record.device.and_then(|index| ours.devices.get(index)).map(|device| {
            let mut device = device.clone();
            set_host(&mut device, &ours.host, &theirs.host);
            index_of(&device, &mut devices)
        });
        let record = Record { device, ..record.clone() };
        match unmatched.iter().position(|known| **known == record) {
            Some(place) => {
                unmatched.swap_remove(place);
            }
            None => added.push(serde_json::to_value(&record)?),
        }
    }
    let new_devices = devices[theirs.devices.len()..].iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    append(disk, "devices", new_devices);
    append(disk, "records", added);
    for (key, value) in &ours.extra {
        disk.entry(key.as_str()).or_insert_with(|| value.clone());
    }
    if ours.edited {
        disk.insert("edited".to_owned(), Value::Bool(true));
    }
    Ok(())
}

fn append(file: &mut Map<String, Value>, key: &str, values: Vec<Value>) {
    let list = file.entry(key).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.extend(values);
    }
}
