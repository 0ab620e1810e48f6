//! `batchmark import`: files of other programs as a result file.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use compute::bench::record::Host;
use compute::bench::store;
use compute::import::{self, Given, Unknown};
use compute::shape::Precision;

use super::Outcome;
use super::output::say;
use super::run::parse_minibatch;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Files of other programs; what they are is seen by their content
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Result file to write; records are added to one that is there
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// GPU, where a file does not name it
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Precision, where a file does not state it
    #[arg(long, value_name = "PRECISION")]
    precision: Option<Precision>,
    /// Minibatch, where a file does not state it
    #[arg(long, value_name = "N", value_parser = parse_minibatch)]
    minibatch: Option<usize>,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let Arguments { device, precision, minibatch, .. } = arguments;
    let given = Given { device: device.clone(), precision: *precision, minibatch: *minibatch };
    let mut outcome = Outcome::Done;
    let mut all = store::begin(Host::default());
    for path in &arguments.files {
        let imported = match import::load(path, &given) {
            Ok(imported) => imported,
            Err(error) => {
                say(&format!("error: {error}"));
                outcome = Outcome::Partial;
                continue;
            }
        };
        let count = imported.file.records.len();
        say(&format!("{}: {count} records of {}", path.display(), imported.format));
        for note in &imported.notes {
            say(&format!("{}: {note}", path.display()));
        }
        for unknown in &imported.unknown {
            say(&format!("{}: {}", path.display(), in_words(*unknown)));
        }
        let (devices, host) = (imported.file.devices, imported.file.host);
        for mut record in imported.file.records {
            let device = record.device.and_then(|index| devices.get(index));
            record.device = device.map(|device| store::index_in(&mut all, device, &host));
            all.records.push(record);
        }
    }
    if all.records.is_empty() {
        return Ok(Outcome::Partial);
    }
    store::save(&arguments.out, &all).context("nothing was written")?;
    Ok(outcome)
}

/// What the user can tell.
const fn in_words(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::Device => "it does not name the GPU; --device NAME does",
        Unknown::Precision => "it does not state the precision; --precision PRECISION does",
        Unknown::Minibatch => "it does not state the minibatch; --minibatch N does",
    }
}
