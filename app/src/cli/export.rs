//! `batchmark export`: the records of result files, written for other programs.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use compute::bench::export::{Format, records};

use super::files::Files;
use super::output::say;
use super::{Outcome, WrongArguments};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Result files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What to write: csv, md, json or text
    #[arg(long)]
    format: Format,
    /// Where to write it; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let Arguments { files, format, out } = arguments;
    let same =
        |file: &PathBuf| fs::canonicalize(file).ok().is_some_and(|path| fs::canonicalize(out).ok() == Some(path));
    if files.iter().any(same) {
        return Err(WrongArguments(format!("{out:?} is one of the files to be exported, name another --out")).into());
    }
    let files = Files::load(files);
    let sources = files.sources();
    if sources.is_empty() {
        return Ok(files.outcome);
    }
    let table = records(&sources);
    fs::write(out, table.render(*format)).with_context(|| format!("{out:?} can't be written"))?;
    say(&format!("{} records written to {}", table.rows.len(), out.display()));
    Ok(files.outcome)
}
