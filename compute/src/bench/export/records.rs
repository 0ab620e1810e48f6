//! The table of records, one row each.

use super::{Cell, Column, Source, Table};
use crate::bench::origin::Origin;
use crate::bench::record::{Clock, Record, Status, Telemetry, Timing};
use crate::engine::Device;

/// A record with what it refers to.
struct Entry<'a> {
    source: &'a str,
    device: Option<&'a Device>,
    record: &'a Record,
}

/// A column of the table: key, heading and its unit where people get it, value.
type Field = (&'static str, Option<(&'static str, f64)>, fn(&Entry<'_>) -> Cell);

const GIBI: f64 = (1u64 << 30) as f64;

/// Every column, in order.
const FIELDS: [Field; 40] = [
    ("file", Some(("file", 1.0)), |e| text(e.source)),
    ("device", Some(("device", 1.0)), |e| e.device.map_or(Cell::Empty, |device| text(&device.name))),
    ("device_id", None, |e| e.device.map_or(Cell::Empty, |device| text(&device.id))),
    ("driver", None, |e| e.device.and_then(|device| device.driver.as_deref()).map_or(Cell::Empty, text)),
    ("engine", Some(("engine", 1.0)), |e| text(&e.record.engine)),
    ("model", Some(("model", 1.0)), |e| text(&e.record.model)),
    ("definition", None, |e| text(&e.record.definition)),
    ("pass", Some(("pass", 1.0)), |e| text(e.record.pass.name())),
    ("precision", Some(("precision", 1.0)), |e| text(e.record.precision.name())),
    ("minibatch", Some(("minibatch", 1.0)), |e| match e.record.minibatch {
        0 => Cell::Empty,
        minibatch => Cell::Count(minibatch as u64),
    }),
    ("status", None, |e| text(&status(e.record.status))),
    ("throughput_per_sec", Some(("samples/s", 1.0)), |e| throughput(e.record)),
    ("median_ms", Some(("median (ms)", 1.0)), |e| timing(e, |t| Some(t.median_ms))),
    ("mean_ms", None, |e| timing(e, |t| Some(t.mean_ms))),
    ("stddev_ms", Some(("deviation (ms)", 1.0)), |e| timing(e, |t| Some(t.stddev_ms))),
    ("p5_ms", None, |e| timing(e, |t| Some(t.p5_ms))),
    ("p95_ms", None, |e| timing(e, |t| Some(t.p95_ms))),
    ("ci95_low_ms", None, |e| timing(e, |t| Some(t.ci95_ms[0]))),
    ("ci95_high_ms", None, |e| timing(e, |t| Some(t.ci95_ms[1]))),
    ("host_median_ms", None, |e| timing(e, |t| t.host_median_ms)),
    ("clock", None, |e| e.record.timing.as_ref().map_or(Cell::Empty, |t| text(clock(t.clock)))),
    ("iterations", None, |e| e.record.timing.as_ref().map_or(Cell::Empty, |t| Cell::Count(t.iterations as u64))),
    ("achieved_flop_per_sec", Some(("TFLOP/s", 1e12)), |e| e.record.achieved_flop_per_sec.into()),
    ("planned_bytes", Some(("planned (GiB)", GIBI)), |e| {
        e.record.memory.planned_bytes.map_or(Cell::Empty, Cell::Count)
    }),
    ("peak_bytes", Some(("peak (GiB)", GIBI)), |e| e.record.memory.peak_bytes.map_or(Cell::Empty, Cell::Count)),
    ("verification_error", Some(("verification error", 1.0)), |e| {
        e.record.verification.as_ref().and_then(|v| v.error).into()
    }),
    ("verification_tolerance", None, |e| e.record.verification.as_ref().map(|v| v.tolerance).into()),
    ("clock_mhz", None, |e| telemetry(e, |t| t.clock_mhz)),
    ("utilization", None, |e| telemetry(e, |t| t.utilization)),
    ("power_watt", None, |e| telemetry(e, |t| t.power_watt)),
    ("temperature_celsius", None, |e| telemetry(e, |t| t.temperature_celsius)),
    ("tuning_ms", None, |e| e.record.tuning_ms.into()),
    ("started", None, |e| text(&e.record.started)),
    ("reason", None, |e| e.record.reason.as_deref().map_or(Cell::Empty, text)),
    ("notes", None, |e| sentences(e.record.notes.iter())),
    ("source", None, |e| origin(e, |origin| text(&origin.source))),
    ("source_value", None, |e| origin(e, |origin| Cell::Number(origin.figure.value))),
    ("source_unit", None, |e| origin(e, |origin| text(&origin.figure.metric))),
    ("doubt", None, |e| origin(e, |origin| origin.doubt.as_deref().map_or(Cell::Empty, text))),
    // For people reason and notes are one column, the last, since it may be long.
    ("", Some(("remarks", 1.0)), |e| remarks(e.record)),
];

/// One row a record, in the order of the files. People see which file it is from where there are several.
pub fn records(sources: &[Source<'_>]) -> Table {
    let entries = sources.iter().flat_map(|source| {
        source.file.records.iter().map(|record| Entry {
            source: source.name,
            device: record.device.and_then(|index| source.file.devices.get(index)),
            record,
        })
    });
    let columns = FIELDS.iter().map(|&(key, heading, _)| Column {
        key: key.to_owned(),
        title: heading.filter(|_| key != "file" || sources.len() > 1).map(|(title, _)| title.to_owned()),
        unit: heading.map_or(1.0, |(_, unit)| unit),
    });
    let rows = entries.map(|entry| FIELDS.iter().map(|(_, _, value)| value(&entry)).collect()).collect();
    Table { columns: columns.collect(), rows }
}

/// The outcome as a cell: a throughput, or in words why there is none.
pub(in crate::bench) fn throughput(record: &Record) -> Cell {
    match record.throughput_per_sec {
        Some(value) if record.status == Status::Ok => Cell::Number(value),
        _ => Cell::Word(record.status.label()),
    }
}

/// The name of a clock in files.
pub(in crate::bench) fn clock(clock: Clock) -> &'static str {
    match clock {
        Clock::Device => "device",
        Clock::Host => "host",
    }
}

/// The status as result files write it.
fn status(status: Status) -> String {
    status.label().replace(' ', "_")
}

fn text(value: &str) -> Cell {
    Cell::Text(value.to_owned())
}

fn sentences<'a>(sentences: impl Iterator<Item = &'a String>) -> Cell {
    let sentences: Vec<&str> = sentences.map(String::as_str).collect();
    if sentences.is_empty() { Cell::Empty } else { Cell::Text(sentences.join("; ")) }
}

/// What a reader should know of a record: why it has no number or not a sound one, its figure where it is no rate of
/// samples, and its notes.
fn remarks(record: &Record) -> Cell {
    let doubt = record.doubt().map(|doubt| format!("doubtful: {doubt}"));
    let figure = record.origin.as_ref().filter(|_| record.throughput_per_sec.is_none() && record.status == Status::Ok);
    let figure = figure.map(|origin| format!("{} {}", origin.figure.value, origin.figure.metric));
    let all: Vec<String> = figure.into_iter().chain(record.reason.clone()).chain(doubt).collect();
    sentences(all.iter().chain(&record.notes))
}

fn origin(entry: &Entry<'_>, value: fn(&Origin) -> Cell) -> Cell {
    entry.record.origin.as_deref().map_or(Cell::Empty, value)
}

fn timing(entry: &Entry<'_>, value: fn(&Timing) -> Option<f64>) -> Cell {
    entry.record.timing.as_ref().and_then(value).into()
}

fn telemetry(entry: &Entry<'_>, value: fn(&Telemetry) -> Option<f64>) -> Cell {
    entry.record.telemetry.as_ref().and_then(value).into()
}
