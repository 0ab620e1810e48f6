//! `batchmark compare`: result files side by side.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use compute::bench::compare::{Comparison, compare};
use compute::bench::export::Format;

use super::files::Files;
use super::output::print;
use super::{Outcome, WrongArguments};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Result files; a single one compares its devices and engines
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Number of the column that ratios refer to
    #[arg(long, value_name = "K", default_value_t = 1)]
    baseline: usize,
    /// How to write the table: text, md, csv or json; the differences are part of text and md alone
    #[arg(long, default_value = "text")]
    format: Format,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let files = Files::load(&arguments.files);
    let sources = files.sources();
    if sources.is_empty() {
        return Ok(files.outcome);
    }
    let comparison = compare(&sources, arguments.baseline).map_err(|error| WrongArguments(error.to_string()))?;
    let table = comparison.table().render(arguments.format);
    let text = match arguments.format {
        Format::Csv | Format::Json => table,
        Format::Text | Format::Markdown => format!("{}\n{table}{}", legend(&comparison), remarks(&comparison)),
    };
    print(&text)?;
    Ok(files.outcome)
}

fn legend(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (place, column) in comparison.columns.iter().enumerate() {
        let baseline = if place == comparison.baseline { " (baseline)" } else { "" };
        let _ = writeln!(text, "[{}] {column}{baseline}", place + 1);
    }
    text
}

fn remarks(comparison: &Comparison) -> String {
    let mut text = String::new();
    if !comparison.warnings.is_empty() {
        text.push_str("\nWarnings:\n");
    }
    for warning in &comparison.warnings {
        let _ = writeln!(text, "- {warning}");
    }
    if !comparison.differences.is_empty() {
        text.push_str("\nDifferences of the environment:\n");
    }
    for difference in &comparison.differences {
        let values = difference.values.iter().enumerate();
        let values: Vec<String> = values
            .map(|(place, value)| format!("[{}] {}", place + 1, value.as_deref().unwrap_or("not known")))
            .collect();
        let _ = writeln!(text, "- {}: {}", difference.property, values.join(", "));
    }
    text
}
