//! `batchmark models`: the networks of the suite.

use clap::Args;
use compute::bench::export::{Cell, Column, Format, Table};
use compute::models::Model;
use serde_json::json;

use super::Outcome;
use super::output::print;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let graphs = Model::ALL.map(|model| (model, model.graph()));
    if arguments.json {
        let models = graphs.iter().map(|(model, graph)| {
            let input = graph.node(graph.input()).shape;
            json!({
                "name": model.name(),
                "definition": graph.definition(),
                "hash": graph.definition_hash(),
                "input": [input.c, input.h, input.w],
                "classes": graph.classes(),
                "parameters": graph.parameters(),
                "macs": graph.macs(),
            })
        });
        print(&format!("{:#}\n", serde_json::Value::from_iter(models)))?;
        return Ok(Outcome::Done);
    }
    let columns = [
        ("name", "model"),
        ("input", "input"),
        ("classes", "classes"),
        ("parameters", "parameters"),
        ("macs", "MACs a sample, forward"),
        ("definition", "definition"),
        ("hash", "hash"),
    ];
    let columns = columns.map(|(key, title)| Column::new(key, title)).to_vec();
    let rows = graphs.iter().map(|(model, graph)| {
        let input = graph.node(graph.input()).shape;
        vec![
            Cell::Text(model.name().to_owned()),
            Cell::Text(format!("{}x{}x{}", input.c, input.h, input.w)),
            Cell::Count(graph.classes() as u64),
            Cell::Count(graph.parameters()),
            Cell::Count(graph.macs()),
            Cell::Text(graph.definition()),
            Cell::Text(graph.definition_hash()),
        ]
    });
    print(&Table { columns, rows: rows.collect() }.render(Format::Text))?;
    Ok(Outcome::Done)
}
