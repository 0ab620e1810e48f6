//! `batchmark reference`: the stored answers that runs are verified against, computed anew.

use std::path::PathBuf;

use clap::Args;
use compute::bench::verify::write_references;

use super::Outcome;
use super::output::say;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folder to write to, one file a model
    #[arg(long, value_name = "DIR", default_value = "datasets/reference")]
    out: PathBuf,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    write_references(&arguments.out, &mut |model| say(&format!("computing {model}")))?;
    Ok(Outcome::Done)
}
