//! Results of llama-bench of llama.cpp: tokens a second of a language model, as JSON, JSON lines, CSV, SQL or Markdown.
//!
//! They are no samples a second, and `n_batch` is no minibatch, so records have neither.

mod markdown;
mod sql;

use serde_json::Value;

use super::Fault;
use super::draft::Draft;
use super::entry::{Entry, Fact, Measured, Phase};
use super::number::{Decimals, count};
use super::row::Row;
use super::text::{base_name, shorten};
use crate::bench::record::Clock;
use crate::shape::Precision;

const METRIC: &str = "tokens_per_s";
const QUANTIZED: &str = "the weights are quantized, which is none of the precisions here; f32 stands in its place";

/// Whether a text is SQL or Markdown of this program.
pub(super) fn is_log(text: &str) -> bool {
    sql::is_one(text) || text.lines().any(markdown::is_header)
}

/// Reads such a text.
pub(super) fn read_log(text: &str, draft: &mut Draft<'_>) -> Result<(), Fault> {
    if sql::is_one(text) {
        return read(sql::rows(text)?.into_iter().map(Ok), b',', draft);
    }
    markdown::read(text, draft)
}

/// Reads rows, one result each.
pub(super) fn read(
    rows: impl Iterator<Item = Result<Row, Fault>>,
    delimiter: u8,
    draft: &mut Draft<'_>,
) -> Result<(), Fault> {
    let mut decimals = Decimals::of(delimiter);
    for row in rows {
        let mut row = row?;
        repair(&mut row);
        let entry = result(&row, &mut decimals)?;
        if let Some(cpu) = row.text("cpu_info") {
            draft.host.cpu = shorten(cpu, 100);
        }
        draft.add(entry);
    }
    Ok(())
}

/// The writer turns a byte from 0x80 on into U+FFFF and an `f`; what it was is lost.
fn repair(row: &mut Row) {
    for value in row.fields.values_mut() {
        if let Value::String(text) = value
            && text.contains('\u{ffff}')
        {
            let mut repaired = text.replace("\u{ffff}f", "\u{ffff}");
            while repaired.contains("\u{ffff}\u{ffff}") {
                repaired = repaired.replace("\u{ffff}\u{ffff}", "\u{ffff}");
            }
            *text = repaired.replace('\u{ffff}', "?");
        }
    }
}

/// What was tested: tokens of the prompt, tokens generated, tokens there before.
struct Test {
    n_prompt: usize,
    n_gen: usize,
    n_depth: usize,
}

impl Test {
    /// As the Markdown writes it: `pp512`, `tg128`, `pp512+tg128`, with ` @ d4096`.
    fn short(&self) -> String {
        let kind = match (self.n_prompt, self.n_gen) {
            (prompt, 0) => format!("pp{prompt}"),
            (0, generated) => format!("tg{generated}"),
            (prompt, generated) => format!("pp{prompt}+tg{generated}"),
        };
        if self.n_depth > 0 { format!("{kind} @ d{}", self.n_depth) } else { kind }
    }

    fn words(&self) -> &'static str {
        match (self.n_prompt, self.n_gen) {
            (_, 0) => "prompt",
            (0, _) => "generation",
            _ => "prompt and generation",
        }
    }
}

fn result(row: &Row, decimals: &mut Decimals) -> Result<Entry, Fault> {
    let mut n = |key: &str| Ok(row.number(key, decimals)?.and_then(count).unwrap_or(0));
    let test = Test { n_prompt: n("n_prompt")?, n_gen: n("n_gen")?, n_depth: n("n_depth")? };
    let build = n("build_number")?;
    let main_gpu = n("main_gpu")?;
    let is_on_cpu = row.number("n_gpu_layers", decimals)? == Some(0.0);
    let printed = row.number("avg_ts", decimals)?;
    let samples_ns = row.fields.get("samples_ns").and_then(Value::as_array);
    let samples_ms: Vec<f64> = samples_ns.into_iter().flatten().filter_map(Value::as_f64).map(|ns| ns / 1e6).collect();
    let tokens = (test.n_prompt + test.n_gen) as f64;
    let rates: Vec<f64> = samples_ms.iter().filter(|ms| **ms > 0.0).map(|ms| tokens * 1e3 / ms).collect();
    let recomputed = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
    let model = row.text("model_type").or_else(|| row.text("model_filename").map(base_name)).unwrap_or("unknown model");
    let (value, measured) = match recomputed.or(printed) {
        Some(value) if value > 0.0 && recomputed.is_some() => (value, Measured::Samples(samples_ms, Clock::Host)),
        Some(value) if value > 0.0 => (value, Measured::Other),
        _ => (0.0, Measured::Failed("its file gives no tokens a second above 0 for it".to_owned())),
    };
    let mut entry = entry(model, &test, value, measured);
    if let (Some(printed), Some(value)) = (printed, recomputed)
        && (printed / value - 1.0).abs() > 0.01
    {
        entry.notes.push(format!("its mean of {printed} does not agree with its samples, which count"));
    }
    entry.device = device(row, is_on_cpu, main_gpu);
    entry.engine = if build > 0 { format!("llama.cpp b{build}") } else { "llama.cpp".to_owned() };
    let commit = row.text("build_commit").unwrap_or_default();
    entry.libraries.insert("llama.cpp".to_owned(), format!("b{build} {commit}").trim().to_owned());
    entry.date = row.text("test_time").map(str::to_owned);
    let known = |key: &str| {
        ["model_type", "model_filename", "gpu_info", "cpu_info", "avg_ts", "avg_ns", "test_time"].contains(&key)
            || ["n_prompt", "n_gen", "n_depth", "build_number", "build_commit"].contains(&key)
    };
    entry.extra = row.rest(&known);
    if let Some(file) = row.text("model_filename") {
        let file = base_name(file);
        entry.extra.insert("model_file".to_owned(), Value::from(shorten(file, 100)));
        if file.contains('?') {
            entry.notes.push("characters of the model's file name are lost, '?' stands for them".to_owned());
        }
    }
    Ok(entry)
}

/// The parts of an entry that all forms of the file have.
fn entry(model: &str, test: &Test, value: f64, measured: Measured) -> Entry {
    let mut entry = Entry::new(model, Phase::Inference, METRIC, value, measured);
    entry.shown = format!("{model} {}", test.short());
    entry.phase_words = Some(test.words().to_owned());
    entry.input = Some(test.short());
    entry.minibatch = Fact::Inapplicable;
    let word = weights(model);
    word.clone_into(&mut entry.precision_word);
    entry.precision = match word {
        "all F32" => Fact::Stated(Precision::F32),
        "F16" | "mostly F16" => Fact::Stated(Precision::F16),
        "BF16" | "mostly BF16" => Fact::Stated(Precision::Bf16),
        "" => Fact::Unknown,
        _ => Fact::Guessed(Precision::F32, QUANTIZED),
    };
    entry
}

/// The type of the weights in a model's type such as `qwen2 7B Q4_K - Medium`: what follows the size.
fn weights(model: &str) -> &str {
    let is_size =
        |word: &str| word.starts_with(|c: char| c.is_ascii_digit() || c == '?') && word.contains(['B', 'M', 'K', 'T']);
    let size = model.split(' ').find(|word| is_size(word));
    size.and_then(|size| model.split_once(size)).map_or("", |(_, rest)| rest.trim())
}

/// The device that was used. `gpu_info` lists all that there are.
fn device(row: &Row, is_on_cpu: bool, main_gpu: usize) -> Fact<String> {
    let named = |key: &str| row.text(key).map(str::to_owned);
    let is_cpu_only = matches!(row.text("backends"), Some("CPU" | "BLAS"));
    if is_cpu_only {
        return named("cpu_info").map_or(Fact::Unknown, Fact::Stated);
    }
    if is_on_cpu {
        let why = "no layer is on a GPU, so the processor is taken to have computed it";
        return named("cpu_info").map_or(Fact::Unknown, |cpu| Fact::Guessed(cpu, why));
    }
    let Some(gpus) = named("gpu_info") else { return Fact::Unknown };
    let gpus: Vec<&str> = gpus.split(',').map(str::trim).filter(|gpu| !gpu.is_empty()).collect();
    match gpus[..] {
        [] => Fact::Unknown,
        [gpu] => Fact::Stated(gpu.to_owned()),
        _ => {
            // Such as "CUDA1" of a run that was restricted to one device.
            let chosen = row.text("devices").and_then(|name| name.trim_start_matches(char::is_alphabetic).parse().ok());
            let gpu = gpus.get(chosen.unwrap_or(main_gpu)).or(gpus.first()).copied().unwrap_or_default();
            Fact::Guessed(gpu.to_owned(), "its file lists every GPU of the machine, not the ones that were used")
        }
    }
}

#[cfg(test)]
mod tests;
