//! `batchmark kernels`: the CUDA kernels compiled ahead of time, made anew.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use compute::engine::compile_ahead_of_time;

use super::Outcome;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Archive to write
    #[arg(long, value_name = "FILE", default_value = "shaders/ahead_of_time.json.gz")]
    out: PathBuf,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let archive = compile_ahead_of_time()?;
    std::fs::write(&arguments.out, archive).with_context(|| format!("writing {}", arguments.out.display()))?;
    Ok(Outcome::Done)
}
