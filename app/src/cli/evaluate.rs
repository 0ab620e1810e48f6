//! `batchmark evaluate`: how well estimates meet known figures, each GPU held out in turn.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use compute::bench::export::Format;
use compute::estimate::{Evidence, evaluate};
use compute::published;

use super::Outcome;
use super::files::Files;
use super::output::print;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Result files whose figures count beside published ones
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How to write the table: text, md, csv or json
    #[arg(long, default_value = "text")]
    format: Format,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let files = Files::load(&arguments.files);
    let sets = published::sets().context("the published results can't be read")?;
    let sources = files.sources();
    let all = sets.iter().map(|set| &set.file).chain(sources.iter().map(|source| source.file));
    let evidence: Vec<Evidence> = all.flat_map(Evidence::of).collect();
    let evaluation = evaluate(&evidence);
    let table = evaluation.table().render(arguments.format);
    let text = match arguments.format {
        Format::Csv | Format::Json => table,
        Format::Text | Format::Markdown => {
            let n_figures = evaluation.held_out.len();
            format!(
                "Each GPU's figures estimated from those of the others: {n_figures} figures; {} refused for want of \
                 evidence\n\n{table}",
                evaluation.n_refused
            )
        }
    };
    print(&text)?;
    Ok(files.outcome)
}
