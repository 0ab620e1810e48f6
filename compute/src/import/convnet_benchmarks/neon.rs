//! neon: one framed table a network, without its name, in the order of the script.

use serde_json::json;

use super::{Draft, Fact, Phase, entry};
use crate::import::{networks, plausible};
use crate::models::Model;

/// The script's networks in their order with the sides of their inputs and their minibatches.
const ORDER: [(&str, Model, usize); 4] = [
    ("AlexNet", Model::Alexnet, 128),
    ("OverFeat", Model::Overfeat, 128),
    ("VGG-A", Model::VggA, 64),
    ("GoogLeNet", Model::Googlenet, 128),
];

/// Whether a line is the head of a table.
pub(super) fn is_header(line: &str) -> bool {
    let cells = cells(line);
    cells.first() == Some(&"Func") && cells.contains(&"Mean") && cells.contains(&"Units")
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    let inside = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inside.map(|inside| inside.split('|').map(str::trim).collect()).unwrap_or_default()
}

/// Reads every table.
pub(super) fn read(text: &str, draft: &mut Draft<'_>) {
    let n_tables = text.lines().filter(|line| is_header(line)).count();
    if n_tables == 0 {
        return;
    }
    let is_whole = n_tables == ORDER.len();
    if !is_whole {
        draft
            .notes
            .push(format!("the tables name no network and are {n_tables}, not {}, so none is known", ORDER.len()));
    }
    let mut columns: Vec<&str> = Vec::new();
    let mut table = 0;
    for line in text.lines() {
        if is_header(line) {
            columns = cells(line);
            table += 1;
            continue;
        }
        let cells = cells(line);
        let cell = |name: &str| cells.get(columns.iter().position(|column| *column == name)?).copied();
        let number = |name: &str| cell(name)?.parse().ok().filter(|value: &f64| value.is_finite());
        let phase = match cells.first().copied() {
            Some("fprop") => Phase::Forward,
            Some("bprop") => Phase::Backward,
            Some("iteration") => Phase::ForwardBackward,
            _ => continue,
        };
        let Some(mean) = number("Mean").filter(|_| cell("Units").is_some_and(|unit| unit.starts_with("msec"))) else {
            continue;
        };
        let known = ORDER.get(table - 1).filter(|_| is_whole);
        let own = format!("network {table}");
        let mut entry = entry(known.map_or(own.as_str(), |(name, ..)| name), phase, mean, draft);
        if let Some((name, model, minibatch)) = known {
            let side = model.input_size();
            entry.network = networks::convnet_benchmarks(name, Some((side, side)));
            entry.input = Some(format!("{side}x{side}"));
            entry.notes.push("the network is known by the place of its table alone".to_owned());
            entry.minibatch = Fact::Guessed(*minibatch, "the minibatch is not in the log, it is the script's own");
        }
        entry.engine = "neon".to_owned();
        entry.doubt = plausible::mean_doubt("time", mean, number("Median"), number("Min"), number("Max"));
        for (key, column) in [("median_ms", "Median"), ("min_ms", "Min"), ("max_ms", "Max")] {
            entry.extra.extend(number(column).map(|value| (key.to_owned(), json!(value))));
        }
        draft.add(entry);
    }
}
