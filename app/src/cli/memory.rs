//! `batchmark memory`: the device memory that runs need, from their plans alone.

use anyhow::Context as _;
use clap::Args;
use compute::bench::export::{Cell, Column, Format, Table};
use compute::models::Model;
use compute::plan::{Pass, Plan};
use compute::shape::Precision;

use super::Outcome;
use super::output::print;
use super::run::parse_minibatch;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Networks; every one if none is named
    #[arg(long, value_delimiter = ',', value_name = "MODEL")]
    model: Vec<Model>,
    /// Passes: forward, forward_backward
    #[arg(long, value_delimiter = ',', value_name = "PASS")]
    pass: Vec<Pass>,
    /// Precisions: f32, tf32, f16, bf16
    #[arg(long, value_delimiter = ',', value_name = "PRECISION", default_value = "f32")]
    precision: Vec<Precision>,
    /// Minibatches
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "64", value_parser = parse_minibatch)]
    minibatch: Vec<usize>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let models = if arguments.model.is_empty() { &Model::ALL[..] } else { &arguments.model };
    let passes = if arguments.pass.is_empty() { &Pass::ALL[..] } else { &arguments.pass };
    let mut rows = Vec::new();
    for &model in models {
        let graph = model.graph();
        for &pass in passes {
            for &precision in &arguments.precision {
                for &minibatch in &arguments.minibatch {
                    let plan = Plan::new(&graph, pass, precision, minibatch);
                    let plan = plan.with_context(|| format!("{model} can't be planned"))?;
                    rows.push(vec![
                        Cell::Text(model.name().to_owned()),
                        Cell::Text(pass.name().to_owned()),
                        Cell::Text(precision.name().to_owned()),
                        Cell::Count(minibatch as u64),
                        Cell::Count(plan.bytes()),
                        Cell::Number(plan.bytes() as f64 / (1u64 << 30) as f64),
                    ]);
                }
            }
        }
    }
    let mut columns = vec![
        Column::new("model", "model"),
        Column::new("pass", "pass"),
        Column::new("precision", "precision"),
        Column::new("minibatch", "minibatch"),
        Column::new("planned_bytes", "planned (bytes)"),
        Column::new("planned_gib", "planned (GiB)"),
    ];
    if arguments.json {
        // Programs divide for themselves.
        columns.pop();
        rows.iter_mut().for_each(|row| row.truncate(columns.len()));
    }
    let format = if arguments.json { Format::Json } else { Format::Text };
    print(&Table { columns, rows }.render(format))?;
    Ok(Outcome::Done)
}
