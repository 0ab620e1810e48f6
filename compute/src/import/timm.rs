//! Results of the benchmark script of timm (PyTorch image models): CSV of many models, JSON of one or many.
//!
//! Columns are prefixed by phase, `infer_` or `train_`; rates in samples/s, times in ms a batch. GPU, precision, layout
//! and versions stand in the file's name alone.

mod file_name;

use serde_json::json;

use super::Fault;
use super::draft::Draft;
use super::entry::{Entry, Fact, Measured, Phase};
use super::networks;
use super::number::{Cell, Decimals, count};
use super::precision;
use super::row::Row;
use super::text::shorten;
use crate::shape::Precision;

use file_name::FileName;

const RATE: &str = "samples_per_sec";

/// Part of the rate by which the rate over the whole loop and that of the summed steps may differ.
const TOLERANCE: f64 = 0.01;

/// Whether columns or keys are those of this script.
pub(super) fn are_columns<'a>(mut names: impl Iterator<Item = &'a str> + Clone) -> bool {
    names.clone().any(|name| name == "model") && names.any(|name| name == RATE || name.ends_with("_samples_per_sec"))
}

/// Reads the rows, two results each where a row has both phases.
pub(super) fn read(
    rows: impl Iterator<Item = Result<Row, Fault>>,
    delimiter: u8,
    draft: &mut Draft<'_>,
) -> Result<(), Fault> {
    let name = FileName::parse(&draft.title);
    let mut decimals = Decimals::of(delimiter);
    for row in rows {
        let row = row?;
        let Some(model) = row.text("model") else {
            draft.notes.push(match row.line {
                Some(line) => format!("line {line} names no model and is left out"),
                None => "an object names no model and is left out".to_owned(),
            });
            continue;
        };
        let phases = [("infer_", Phase::Inference), ("train_", Phase::TrainStep)];
        let mut of_row: Vec<(&str, Phase)> =
            phases.into_iter().filter(|(prefix, _)| row.fields.contains_key(&format!("{prefix}{RATE}"))).collect();
        if of_row.is_empty() {
            of_row.push(("", name.phase.unwrap_or(Phase::Inference)));
        }
        for (prefix, phase) in of_row {
            let mut entry = result(&row, model, prefix, phase, &name, &mut decimals)?;
            if prefix.is_empty() && name.phase.is_none() {
                entry.notes.push("taken to be inference, its file does not say which pass".to_owned());
            }
            draft.add(entry);
        }
    }
    Ok(())
}

fn result(
    row: &Row,
    model: &str,
    prefix: &str,
    phase: Phase,
    name: &FileName,
    decimals: &mut Decimals,
) -> Result<Entry, Fault> {
    let key = |column: &str| format!("{prefix}{column}");
    let error = row.text("error").map(|error| shorten(error, 200));
    let rate = row.cell(&key(RATE), decimals)?;
    let (value, measured) = match (error, rate) {
        (Some(error), _) => (0.0, Measured::Failed(error)),
        (None, Some(Cell::Number(rate))) => (rate, Measured::PerSec(rate)),
        (None, Some(Cell::Missing(word))) if !word.is_empty() => {
            (0.0, Measured::Failed(format!("its file gives no figure but {word:?}")))
        }
        (None, _) => (0.0, Measured::Failed("its file gives no figure for it: the model did not run".to_owned())),
    };
    let mut entry = Entry::new(model, phase, "images_per_s", value, measured);
    let side = row.number(&key("img_size"), decimals)?.and_then(count);
    let sides = side.map(|side| (side, side));
    entry.network = networks::timm(model, sides);
    if let Some(side) = side {
        entry.input = Some(format!("{side}x{side}"));
        entry.shown = format!("{model} {side}x{side}");
    }
    if let Some(minibatch) = row.number(&key("batch_size"), decimals)?.and_then(count) {
        entry.minibatch = Fact::Stated(minibatch);
    }
    let step_ms = row.number(&key("step_time"), decimals)?;
    if let (Fact::Stated(minibatch), Some(step_ms), true) = (&entry.minibatch, step_ms, value > 0.0)
        && (*minibatch as f64 * 1e3 / step_ms / value - 1.0).abs() > TOLERANCE
    {
        entry.notes.push(format!("its step time of {step_ms} ms does not agree with its samples a second"));
    }
    let known = ["model", "error", &key(RATE), &key("img_size"), &key("batch_size")].map(str::to_owned);
    let is_other_phase = |column: &str| {
        let others = ["infer_", "train_"].into_iter().filter(|other| *other != prefix);
        others.into_iter().any(|other| column.starts_with(other))
    };
    entry.extra = row.rest(&|column| known.iter().any(|name| name == column) || is_other_phase(column));
    describe(&mut entry, name);
    Ok(entry)
}

/// What only the file's name says.
fn describe(entry: &mut Entry, name: &FileName) {
    entry.engine = match &name.pytorch {
        Some(version) => format!("PyTorch {version}"),
        None => "PyTorch".to_owned(),
    };
    if name.is_compiled {
        entry.engine.push_str(" (dynamo)");
    }
    let versions = [("PyTorch", &name.pytorch), ("CUDA", &name.cuda)];
    let versions = versions.into_iter().filter_map(|(library, version)| Some((library.to_owned(), version.clone()?)));
    entry.libraries = versions.collect();
    if let Some(layout) = name.layout {
        entry.extra.insert("layout".to_owned(), json!(layout));
        if layout == "NHWC" {
            entry.notes.push("channels last (NHWC)".to_owned());
        }
    }
    if let Some(gpu) = &name.gpu {
        entry.device = Fact::Guessed(gpu.clone(), "the device is taken from the file's name");
    }
    if let Some(word) = &name.precision {
        entry.precision_word.clone_from(word);
        match precision::meaning(word) {
            Some((Precision::F32, _)) => entry.precision = Fact::Guessed(Precision::Tf32, precision::TF32_ALLOWED),
            Some((precision, note)) => {
                entry.precision = Fact::Guessed(precision, "the precision is taken from the file's name");
                entry.notes.extend(note.map(str::to_owned));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
