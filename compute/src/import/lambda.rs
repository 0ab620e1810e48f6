//! Results of Lambda's deep-learning benchmark: one row a machine, one column a task, samples, tokens or items a second
//! of the whole machine. The first version names GPU, count, price and power; the second has all of it in the row's name.

use serde_json::{Map, Value};

use super::Fault;
use super::draft::Draft;
use super::entry::{Entry, Fact, Measured, Phase};
use super::number::{Decimals, count};
use super::row::Row;
use super::{networks, precision};
use crate::shape::Precision;

/// A column: its name, the model, the unit, whether that is samples, and the size of a sample.
struct Task {
    column: &'static str,
    model: &'static str,
    metric: &'static str,
    counts_samples: bool,
    sides: Option<(usize, usize)>,
}

const fn task(column: &'static str, model: &'static str, metric: &'static str, counts_samples: bool) -> Task {
    Task { column, model, metric, counts_samples, sides: None }
}

const TASKS: [Task; 10] = [
    Task { sides: Some((300, 300)), ..task("ssd", "SSD300", "images_per_s", true) },
    task("bert_base_squad", "BERT-base SQuAD", "sequences_per_s", true),
    task("bert_large_squad", "BERT-large SQuAD", "sequences_per_s", true),
    task("gnmt", "GNMT", "tokens_per_s", false),
    task("ncf", "NCF", "samples_per_s", true),
    Task { sides: Some((224, 224)), ..task("resnet50", "ResNet-50", "images_per_s", true) },
    task("tacotron2", "Tacotron2", "items_per_s", false),
    task("transformerxlbase", "Transformer-XL base", "items_per_s", false),
    task("transformerxllarge", "Transformer-XL large", "items_per_s", false),
    task("waveglow", "WaveGlow", "items_per_s", false),
];

/// Whether columns are those of either version.
pub(super) fn are_columns(names: &[String]) -> bool {
    let n_tasks = names.iter().filter(|name| TASKS.iter().any(|task| task.column == name.as_str())).count();
    let has_gpu = names.iter().any(|name| name == "name_gpu");
    (has_gpu && n_tasks > 0) || (names.first().is_some_and(String::is_empty) && n_tasks > 1)
}

/// Reads the rows, one result a task.
pub(super) fn read(
    rows: impl Iterator<Item = Result<Row, Fault>>,
    delimiter: u8,
    draft: &mut Draft<'_>,
) -> Result<(), Fault> {
    let title = draft.title.to_ascii_lowercase();
    if title.contains("-bs-") || title.contains("_bs_") {
        return Err(Fault::new(
            "it holds minibatches and no result (\"bs\" in its name); import the file of throughputs beside it",
        ));
    }
    if !title.contains("throughput") {
        draft.notes.push("taken to be throughputs: neither the file nor its name says what the numbers are".to_owned());
    }
    let mut decimals = Decimals::of(delimiter);
    let mut n_never_run = 0;
    let mut n_names_cut = 0;
    for row in rows {
        let row = row?;
        let machine = match row.text("name_gpu") {
            Some(name) => Machine::named(name, &row, &mut decimals)?,
            None => {
                n_names_cut += 1;
                Machine::of_index(row.text("").unwrap_or_default())
            }
        };
        for task in &TASKS {
            let Some(value) = row.number(task.column, &mut decimals)? else { continue };
            if value < 0.0 {
                n_never_run += 1;
            } else {
                draft.add(result(task, value, &machine, &title));
            }
        }
    }
    if n_never_run > 0 {
        draft.notes.push(format!("{n_never_run} tasks were never run (-1) and are left out"));
    }
    if n_names_cut > 0 {
        draft.notes.push("site and host in the names of the rows are not kept".to_owned());
    }
    Ok(())
}

fn result(task: &Task, value: f64, machine: &Machine, title: &str) -> Entry {
    let measured = if value == 0.0 {
        Measured::Failed("the task failed: its file gives 0 for it".to_owned())
    } else if task.counts_samples {
        Measured::PerSec(value)
    } else {
        Measured::Other
    };
    let mut entry = Entry::new(task.model, Phase::TrainStep, task.metric, value, measured);
    if task.column == "resnet50" {
        entry.network = networks::timm("resnet50", task.sides);
    }
    entry.input = task.sides.map(|(height, width)| format!("{height}x{width}"));
    (entry.precision, entry.precision_word) = if title.contains("fp16") {
        (
            Fact::Guessed(Precision::F16, "the precision is taken from the file's name: automatic mixed precision"),
            "fp16".to_owned(),
        )
    } else if title.contains("fp32") {
        (Fact::Guessed(Precision::F32, precision::TF32_POSSIBLE), "fp32".to_owned())
    } else {
        (Fact::Unknown, String::new())
    };
    entry.device = machine.gpu.clone().map_or(Fact::Unknown, Fact::Stated);
    entry.n_devices = machine.n_devices;
    entry.engine = "PyTorch".to_owned();
    if machine.n_devices.is_some_and(|n| n > 1) {
        entry.notes.push("the figure of all devices together".to_owned());
    }
    entry.extra = machine.extra.clone();
    entry
}

/// What a row says of the machine.
struct Machine {
    gpu: Option<String>,
    n_devices: Option<usize>,
    extra: Map<String, Value>,
}

impl Machine {
    fn named(name: &str, row: &Row, decimals: &mut Decimals) -> Result<Self, Fault> {
        let n_devices = row.number("num_gpu", decimals)?.and_then(count);
        let mut extra = Map::new();
        for (column, key) in [("watt", "tdp_watt"), ("price", "price_usd")] {
            let value = row.number(column, decimals)?.filter(|value| *value > 0.0);
            extra.extend(value.map(|value| (key.to_owned(), Value::from(value))));
        }
        let known = |column: &str| {
            ["name_gpu", "num_gpu", "watt", "price"].contains(&column) || TASKS.iter().any(|task| task.column == column)
        };
        extra.extend(row.rest(&known));
        Ok(Self { gpu: Some(name.to_owned()), n_devices, extra })
    }

    /// From `<site>_<n>x<gpu>_<host>_v2`. Where it has another shape, what could be a host is not told from a GPU, and
    /// nothing of it is kept.
    fn of_index(index: &str) -> Self {
        let parts: Vec<&str> = index.split('_').collect();
        let found = match parts[..] {
            [_, devices, _, version] if version.starts_with('v') => devices.split_once('x'),
            _ => None,
        };
        let found = found.and_then(|(n, gpu)| Some((n.parse::<usize>().ok()?, gpu)));
        let found = found.filter(|(_, gpu)| gpu.starts_with(|c: char| c.is_ascii_alphabetic()));
        let gpu = found.map(|(_, gpu)| gpu.to_owned());
        Self { gpu, n_devices: found.map(|(n, _)| n), extra: Map::new() }
    }
}

#[cfg(test)]
mod tests;
