//! Results of cnn-benchmarks: one JSON object a network with the seconds of every pass, written by Torch7.

use serde_json::Value;

use super::Fault;
use super::draft::Draft;
use super::entry::{Entry, Fact, Measured, Phase};
use super::networks;
use super::number::{Decimals, count};
use super::row::Row;
use super::text::stem;
use crate::bench::record::Clock;
use crate::shape::Precision;

/// Lists of seconds with the pass that they time.
const LISTS: [(&str, Phase); 3] =
    [("forward_times", Phase::Forward), ("backward_times", Phase::Backward), ("total_times", Phase::ForwardBackward)];

/// Reads the objects, up to three results each.
pub(super) fn read(rows: Vec<Row>, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let mut decimals = Decimals::default();
    for row in rows {
        let opt =
            Row { line: None, fields: row.fields.get("opt").and_then(Value::as_object).cloned().unwrap_or_default() };
        let model = opt.text("model_t7").map(stem).map(str::to_owned);
        if model.is_none() {
            draft.notes.push("the file does not name its network (opt.model_t7)".to_owned());
        }
        let model = model.unwrap_or_else(|| "unknown network".to_owned());
        let height = opt.number("image_height", &mut decimals)?.and_then(count);
        let width = opt.number("image_width", &mut decimals)?.and_then(count);
        let sides = height.zip(width);
        let minibatch = opt.number("batch_size", &mut decimals)?.and_then(count);
        let cudnn = cudnn(&row, &opt);
        for (key, phase) in LISTS {
            let Some(times) = row.fields.get(key) else { continue };
            let samples_ms = milliseconds(key, times)?;
            let n = samples_ms.len().max(1) as f64;
            let mean_secs = samples_ms.iter().filter(|ms| ms.is_finite()).sum::<f64>() / n / 1e3;
            let mut entry =
                Entry::new(&model, phase, "s_per_batch", mean_secs, Measured::Samples(samples_ms, Clock::Host));
            entry.network = networks::cnn_benchmarks(&model, sides);
            entry.shown = shown(&model);
            entry.input = sides.map(|(height, width)| format!("{height}x{width}"));
            entry.minibatch = minibatch.map_or(Fact::Unknown, Fact::Stated);
            entry.device = row.text("gpu_name").map_or(Fact::Unknown, |name| Fact::Stated(name.to_owned()));
            // Torch7 computes in f32, whatever the GPU.
            entry.precision = Fact::Stated(Precision::F32);
            entry.engine = "Torch7".to_owned();
            if let Some((short, version)) = &cudnn {
                entry.engine = format!("Torch7 cuDNN {short}");
                entry.libraries.insert("cuDNN".to_owned(), version.clone());
            }
            let known = ["model_t7", "image_height", "image_width", "batch_size", "output_json"];
            entry.extra = opt.rest(&|key| known.contains(&key));
            entry.extra.extend(row.rest(&|key| ["gpu_name", "cudnn_version"].contains(&key)));
            draft.add(entry);
        }
    }
    Ok(())
}

/// The samples of one list in milliseconds; what is no number is a NaN and left out later.
fn milliseconds(key: &str, times: &Value) -> Result<Vec<f64>, Fault> {
    match times {
        Value::Array(times) => Ok(times.iter().map(|time| time.as_f64().unwrap_or(f64::NAN) * 1e3).collect()),
        // Lua writes an empty list as an object.
        Value::Object(times) if times.is_empty() => Ok(Vec::new()),
        Value::Null => Ok(Vec::new()),
        _ => Err(Fault::new(format!("{key:?} is no list of seconds"))),
    }
}

/// Version of cuDNN, short and whole, from an integer such as 5105; none where it was not used.
fn cudnn(row: &Row, opt: &Row) -> Option<(String, String)> {
    let is_used = opt.fields.get("use_cudnn").and_then(Value::as_f64) != Some(0.0);
    let version = row.fields.get("cudnn_version").filter(|_| is_used)?;
    let number = version.as_f64().or_else(|| version.as_str()?.parse().ok()).and_then(count)?;
    let (major, minor, patch) = (number / 1000, number / 100 % 10, number % 100);
    Some((format!("{major}.{minor}"), format!("{major}.{minor}.{patch}")))
}

/// Names of networks that have the name of another of ours.
fn shown(model: &str) -> String {
    match model {
        "alexnet" => "AlexNet (BVLC)",
        "googlenet" | "inception-v1" => "GoogLeNet-v1 (Inception-V1)",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests;
