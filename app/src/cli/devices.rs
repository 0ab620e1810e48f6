//! `batchmark devices`: every device of every engine.

use std::time::Duration;

use clap::Args;
use compute::bench::export::{Cell, Column, Format, Table};
use compute::bench::supervisor::list_devices;
use compute::engine::{DeviceKind, Listing};
use compute::shape::Precision;
use serde_json::{Value, json};

use super::output::print;
use super::{Outcome, worker_command};

/// How long drivers may take to list their devices; a sleeping GPU wakes up in a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let listings = list()?;
    if arguments.json {
        let listings = listings.iter().map(|listing| json!(listing)).collect();
        print(&format!("{:#}\n", Value::Array(listings)))?;
    } else {
        print(&table(&listings).render(Format::Text))?;
        print(&remarks(&listings))?;
    }
    Ok(Outcome::Done)
}

/// Every device of every engine, asked for in a worker.
pub(super) fn list() -> anyhow::Result<Vec<Listing>> {
    Ok(list_devices(&worker_command()?, PATIENCE, None)?)
}

fn table(listings: &[Listing]) -> Table {
    let gibi = (1u64 << 30) as f64;
    let columns = vec![
        Column::new("id", "device"),
        Column::new("engine", "engine"),
        Column::new("name", "name"),
        Column::new("kind", "kind"),
        Column::new("memory_bytes", "memory (GiB)").in_units_of(gibi),
        Column::new("driver", "driver"),
        Column::new("precisions", "precisions"),
        Column::new("unavailable", "state"),
    ];
    let optional = |text: &Option<String>| text.as_ref().map_or(Cell::Empty, |text| Cell::Text(text.clone()));
    let rows = listings.iter().map(|Listing { engine, device, precisions, unavailable, .. }| {
        let precisions: Vec<&str> = precisions.iter().copied().map(Precision::name).collect();
        let state = if unavailable.is_some() { "unavailable" } else { "available" };
        vec![
            Cell::Text(device.id.clone()),
            Cell::Text(engine.name().to_owned()),
            Cell::Text(device.name.clone()),
            Cell::Text(kind(device.kind).to_owned()),
            device.memory_bytes.map_or(Cell::Empty, Cell::Count),
            optional(&device.driver),
            Cell::Text(precisions.join(",")),
            Cell::Text(state.to_owned()),
        ]
    });
    Table { columns, rows: rows.collect() }
}

/// What is to be said of the devices below their table, one line each, the same thing once: why one can't be used, how
/// an engine works on it.
fn remarks(listings: &[Listing]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for Listing { engine, device, remarks, unavailable, .. } in listings {
        let why = unavailable.iter().map(|why| format!("{engine}, {}: unavailable: {why}", device.name));
        let how = remarks.iter().map(|remark| format!("{engine}, {}: {remark}", device.name));
        for line in why.chain(how) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines.iter().map(|line| format!("\n{line}\n")).collect()
}

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Discrete => "discrete GPU",
        DeviceKind::Integrated => "integrated GPU",
        DeviceKind::Virtual => "virtual GPU",
        DeviceKind::Software => "software adapter",
        DeviceKind::Cpu => "processor",
        DeviceKind::Other => "other",
    }
}
