//! `batchmark show`: the records of result files as a table.

use std::path::PathBuf;

use clap::Args;
use compute::bench::export::{Format, records};

use super::Outcome;
use super::files::Files;
use super::output::print;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Result files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How to write the table: text, md, csv or json
    #[arg(long, default_value = "text")]
    format: Format,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let files = Files::load(&arguments.files);
    let sources = files.sources();
    if !sources.is_empty() {
        print(&records(&sources).render(arguments.format))?;
    }
    Ok(files.outcome)
}
