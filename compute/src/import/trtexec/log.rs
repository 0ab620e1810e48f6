//! The log of trtexec: options of a run, then its performance summary. One file may hold several runs.

use serde_json::json;

use super::super::draft::Draft;
use super::super::entry::{Entry, Fact, Measured, Phase};
use super::super::text::{number_after, shorten, stem};
use super::super::{Fault, plausible};
use crate::shape::Precision;

/// Opens the log of a run.
const RUNNING: &str = "&&&& RUNNING TensorRT.trtexec";
const TF32: &str = "f32 with TF32 allowed, which is TensorRT's own choice on GPUs from Ampere on";

/// Least, largest, mean and median of one time of a run, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    median: Option<f64>,
}

/// What a log says of one run.
#[derive(Clone, Debug, Default)]
struct Run {
    model: Option<String>,
    device: Option<String>,
    version: Option<String>,
    precision: Option<String>,
    /// Whether TF32 was allowed; absent where the log does not say.
    tf32: Option<bool>,
    /// Shape of the first input.
    shape: Vec<usize>,
    /// Minibatch of a network without one of its own, whose queries older versions counted otherwise.
    implicit: Option<usize>,
    throughput: Option<f64>,
    latency: Option<Times>,
    compute: Option<Times>,
}

/// Whether a text is such a log.
pub(in crate::import) fn is_log(text: &str) -> bool {
    let is_summary = |line: &str| line.contains("Throughput: ") && line.trim_end().ends_with("qps");
    text.contains(RUNNING) || text.lines().any(|line| is_summary(line) || line.contains("GPU Compute Time: min = "))
}

/// Reads every run.
pub(in crate::import) fn read(text: &str, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let mut run = Run::default();
    let mut n_runs = 0;
    let mut finish = |run: &mut Run, draft: &mut Draft<'_>| {
        if let Some(entry) = std::mem::take(run).entry() {
            draft.add(entry);
            n_runs += 1;
        }
    };
    for line in text.lines() {
        if line.contains(RUNNING) {
            finish(&mut run, draft);
        }
        let line = message(line);
        if line.starts_with("Throughput: ") && run.throughput.is_some() {
            finish(&mut run, draft);
        }
        run.read(line);
    }
    finish(&mut run, draft);
    if n_runs == 0 {
        return Err(Fault::new(
            "the log has no performance summary (Throughput, GPU Compute Time): the run did not end",
        ));
    }
    Ok(())
}

/// A line without its time and severity.
fn message(line: &str) -> &str {
    let mut line = line.trim();
    while let Some((_, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        line = rest.trim_start();
    }
    line
}

impl Run {
    fn read(&mut self, line: &str) {
        if let Some((version, command)) = line
            .split_once("[TensorRT v")
            .filter(|_| line.starts_with(RUNNING))
            .and_then(|(_, rest)| rest.split_once(']'))
        {
            self.version = Some(dotted(version));
            self.command(command);
            return;
        }
        let Some((key, value)) = line.split_once(':') else { return };
        let value = value.trim();
        match key.trim() {
            "Model" if !value.is_empty() => self.model = Some(stem(value).to_owned()),
            "Selected Device" => self.device = Some(value.to_owned()),
            "TensorRT version" => self.version = Some(value.to_owned()),
            "Precision" => self.precision = Some(value.to_owned()),
            "noTF32" => self.tf32 = Some(value == "Disabled"),
            "Input inference shape" if self.shape.is_empty() => self.shape = shape(value),
            "Batch" => self.implicit = value.parse().ok().filter(|&minibatch: &usize| minibatch > 0),
            "Throughput" => self.throughput = number_after(line, "Throughput:"),
            "Latency" => self.latency = times(value),
            "GPU Compute Time" | "GPU Compute" => self.compute = times(value),
            _ => {}
        }
    }

    /// What the command line says, where the options below it don't.
    fn command(&mut self, command: &str) {
        for argument in command.split_whitespace() {
            let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
            match key {
                "--onnx" | "--loadEngine" | "--deploy" | "--uff" => self.model = Some(stem(value).to_owned()),
                "--shapes" | "--optShapes" if self.shape.is_empty() => self.shape = shape(value),
                "--batch" => self.implicit = value.parse().ok().filter(|&minibatch: &usize| minibatch > 0),
                "--fp16" | "--bf16" | "--int8" | "--fp8" => {
                    let precision = self.precision.get_or_insert_with(|| "FP32".to_owned());
                    precision.push_str(&key.replace("--", "+").to_ascii_uppercase());
                }
                "--noTF32" => self.tf32 = Some(false),
                _ => {}
            }
        }
    }

    fn entry(self) -> Option<Entry> {
        if self.throughput.is_none() && self.compute.is_none() && self.latency.is_none() {
            return None;
        }
        let stated = self.shape.first().copied().filter(|&minibatch| minibatch > 0);
        let minibatch = stated.or(self.implicit);
        let times = self.compute.or(self.latency);
        let typical_ms = times.and_then(|times| times.median.or(times.mean)).filter(|ms| *ms > 0.0);
        let mut notes = Vec::new();
        let (metric, value, measured) = match (self.throughput.filter(|qps| *qps > 0.0), typical_ms) {
            // Whether older versions counted queries or samples of such a network is not known, its times are sure.
            (_, Some(ms)) if stated.is_none() && self.implicit.is_some_and(|minibatch| minibatch > 1) => {
                notes.push("computed from its time: what its queries a second count is not sure".to_owned());
                ("ms_per_query", ms, Measured::Millis(ms))
            }
            (Some(qps), _) => match minibatch {
                Some(minibatch) => ("queries_per_s", qps, Measured::PerSec(qps * minibatch as f64)),
                None => {
                    notes.push("its queries a second count minibatches, not samples".to_owned());
                    // A minibatch that is given makes a rate of it.
                    ("queries_per_s", qps, Measured::Millis(1e3 / qps))
                }
            },
            (None, Some(ms)) => {
                notes.push("computed from its time: the log shows no queries a second above 0".to_owned());
                ("ms_per_query", ms, Measured::Millis(ms))
            }
            (None, None) => {
                ("queries_per_s", 0.0, Measured::Failed("its log shows neither a rate nor a time".to_owned()))
            }
        };
        let model = self.model.clone().unwrap_or_else(|| "unknown network".to_owned());
        let mut entry = Entry::new(&model, Phase::Inference, metric, value, measured);
        entry.notes = notes;
        entry.minibatch = minibatch.map_or(Fact::Unknown, Fact::Stated);
        if let [_, _, height, width] = self.shape[..] {
            entry.input = Some(format!("{height}x{width}"));
            entry.shown = format!("{model} {height}x{width}");
        }
        entry.device = self.device.clone().map_or(Fact::Unknown, Fact::Stated);
        entry.engine = "TensorRT".to_owned();
        if let Some(version) = &self.version {
            entry.engine = format!("TensorRT {version}");
            entry.libraries.insert("TensorRT".to_owned(), version.clone());
        }
        entry.precision = self.precision();
        entry.precision_word = shorten(self.precision.as_deref().unwrap_or_default(), 40);
        for (what, times) in [("latency", self.latency), ("compute", self.compute)] {
            let Some(times) = times else { continue };
            let parts = [("min", times.min), ("max", times.max), ("mean", times.mean), ("median", times.median)];
            let parts = parts.into_iter().filter_map(|(part, ms)| Some((format!("{what}_{part}_ms"), json!(ms?))));
            entry.extra.extend(parts);
            let doubt =
                times.mean.and_then(|mean| plausible::mean_doubt(what, mean, times.median, times.min, times.max));
            entry.doubt = entry.doubt.or(doubt);
        }
        Some(entry)
    }

    fn precision(&self) -> Fact<Precision> {
        let Some(word) = &self.precision else { return Fact::Unknown };
        let has = |part: &str| word.to_ascii_uppercase().split(['+', ' ']).any(|word| word == part);
        if has("INT8") || has("FP8") || has("INT4") || has("FP4") {
            Fact::Guessed(
                Precision::F32,
                "layers may be quantized, which is none of the precisions here; f32 stands in its place",
            )
        } else if has("FP16") {
            Fact::Stated(Precision::F16)
        } else if has("BF16") {
            Fact::Stated(Precision::Bf16)
        } else if self.tf32 == Some(false) {
            Fact::Stated(Precision::F32)
        } else {
            Fact::Guessed(Precision::Tf32, TF32)
        }
    }
}

/// The first shape in `input=32x3x224x224` or `input:32x3x224x224,…`.
fn shape(text: &str) -> Vec<usize> {
    let first = text.split(',').next().unwrap_or_default();
    let dimensions = first.rsplit([':', '=']).next().unwrap_or_default();
    let dimensions: Option<Vec<usize>> = dimensions.trim().split('x').map(|dimension| dimension.parse().ok()).collect();
    dimensions.unwrap_or_default()
}

fn times(text: &str) -> Option<Times> {
    let of = |what: &str| number_after(text, &format!("{what} = "));
    let times = Times { min: of("min"), max: of("max"), mean: of("mean"), median: of("median") };
    times.mean.or(times.median).map(|_| times)
}

/// `8601` is 8.6.1 and `100200` is 10.2.0.
fn dotted(version: &str) -> String {
    match version.parse::<u32>() {
        Ok(number @ 100_000..) => format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100),
        Ok(number @ 1000..) => format!("{}.{}.{}", number / 1000, number / 100 % 10, number % 100),
        _ => version.to_owned(),
    }
}
