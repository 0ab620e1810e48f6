//! Finds what is wrong with a record, by field, so that its note can name it.

use serde_json::{Map, Value, json};

use super::read;
use crate::bench::record::{Record, Status};

/// The record, if every field is of its type and every number possible; else what is wrong with which field.
pub(super) fn record(value: &Value, n_devices: usize) -> Result<Record, String> {
    let Value::Object(fields) = value else {
        return Err(format!("it is {}, expected an object", kind(value)));
    };
    let record = read::record(value).map_err(|error| blame(fields).unwrap_or_else(|| message(&error)))?;
    check(&record, n_devices)?;
    Ok(record)
}

/// What kind of JSON value it is, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The beginning of a value, for messages of one line.
pub(super) fn excerpt(value: &Value) -> String {
    const LENGTH: usize = 40;
    shorten(&value.to_string(), LENGTH)
}

/// A message of Serde, which may quote a text of any length.
pub(super) fn message(error: &serde_json::Error) -> String {
    shorten(&error.to_string(), 160)
}

fn shorten(text: &str, length: usize) -> String {
    if text.chars().count() <= length { text.to_owned() } else { text.chars().take(length).chain(['…']).collect() }
}

/// The first field that a well-formed record does not accept, with the reason. Serde does not name it: a flattened
/// type is read through a buffer. Fields are put into a sound record one by one until it breaks.
fn blame(fields: &Map<String, Value>) -> Option<String> {
    let sound = sound();
    for (key, value) in fields {
        let mut probe = sound.clone();
        probe[key] = value.clone();
        let Err(error) = read::record(&probe) else { continue };
        if let (Some(Value::Object(parts)), Some(Value::Object(_))) = (fields.get(key), sound.get(key)) {
            for (part, value) in parts {
                let mut probe = sound.clone();
                probe[key][part] = value.clone();
                if let Err(error) = read::record(&probe) {
                    return Some(format!("{key}.{part} is {} ({})", excerpt(value), message(&error)));
                }
            }
            return Some(format!("{key}: {}", message(&error)));
        }
        return Some(format!("{key} is {} ({})", excerpt(value), message(&error)));
    }
    None
}

fn sound() -> Value {
    json!({
        "model": "", "definition": "", "pass": "forward", "precision": "f32", "minibatch": 1, "engine": "cpu",
        "started": "", "status": "ok",
        "timing": {
            "clock": "host", "iterations": 1, "median_ms": 1.0, "mean_ms": 1.0, "stddev_ms": 0.0, "p5_ms": 1.0,
            "p95_ms": 1.0, "ci95_ms": [1.0, 1.0], "samples_ms": [1.0],
        },
        "memory": {},
        "verification": { "tolerance": 1.0, "passed": true },
        "telemetry": {},
    })
}

/// Numbers that can't be: JSON knows no NaN and no infinity, but negative times and rates, a zero that would become an
/// infinite rate, and a device that is not listed.
pub(crate) fn check(record: &Record, n_devices: usize) -> Result<(), String> {
    if record.minibatch == 0 && record.origin.is_none() {
        return Err("minibatch is 0, expected at least 1".to_owned());
    }
    if let Some(index) = record.device.filter(|&index| index >= n_devices) {
        return Err(format!("device is {index}, the file lists {n_devices}"));
    }
    if record.status == Status::Ok && record.throughput_per_sec.is_none() && record.origin.is_none() {
        return Err("status is \"ok\" without a throughput_per_sec".to_owned());
    }
    let timing = record.timing.iter();
    let positive = timing.clone().flat_map(|t| [("timing.median_ms", t.median_ms), ("timing.mean_ms", t.mean_ms)]);
    let rates = [
        ("throughput_per_sec", record.throughput_per_sec),
        ("achieved_flop_per_sec", record.achieved_flop_per_sec),
        ("timing.host_median_ms", record.timing.as_ref().and_then(|t| t.host_median_ms)),
    ];
    let figure = record.origin.as_ref().map(|origin| origin.figure.value);
    if let Some(value) = figure.filter(|value| !value.is_finite()) {
        return Err(format!("origin.figure.value is {value}, expected a finite number"));
    }
    for (name, value) in positive.chain(rates.iter().filter_map(|&(name, value)| Some((name, value?)))) {
        if !(value > 0.0 && value.is_finite()) {
            return Err(format!("{name} is {value}, expected a number above 0"));
        }
    }
    let spread = timing.flat_map(|t| {
        let bounds = [("timing.stddev_ms", t.stddev_ms), ("timing.p5_ms", t.p5_ms), ("timing.p95_ms", t.p95_ms)];
        let interval = t.ci95_ms.map(|bound| ("timing.ci95_ms", bound));
        let samples = t.samples_ms.iter().map(|&sample| ("timing.samples_ms", sample));
        bounds.into_iter().chain(interval).chain(samples)
    });
    let telemetry = record.telemetry.iter().flat_map(|t| {
        [("clock_mhz", t.clock_mhz), ("utilization", t.utilization), ("power_watt", t.power_watt)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .chain(t.throttled.values().map(|&share| ("throttled", share)))
    });
    let verification = record.verification.iter().flat_map(|v| {
        [("verification.error", v.error), ("verification.tolerance", Some(v.tolerance))]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
    });
    let tuning = record.tuning_ms.iter().map(|&value| ("tuning_ms", value));
    for (name, value) in spread.chain(telemetry).chain(verification).chain(tuning) {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(format!("{name} is {value}, expected a number of at least 0"));
        }
    }
    Ok(())
}
