//! The formats and how a file's content tells which one it is.

use std::fmt;

use super::delimited::{self, Header};
use super::draft::Draft;
use super::json::{self, Objects};
use super::row::Row;
use super::{Fault, ai_benchmark, cnn_benchmarks, convnet_benchmarks, lambda, llama_bench, nvidia_smi, timm, trtexec};

/// Format of an imported file, named after the program that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// This program's own result file.
    Batchmark,
    /// CSV or JSON of the benchmark script of timm.
    Timm,
    /// JSON of cnn-benchmarks.
    CnnBenchmarks,
    /// Logs of convnet-benchmarks: Torch7, TensorFlow, Caffe, neon.
    ConvnetBenchmarks,
    /// CSV or JSON of Lambda's deep-learning benchmark.
    Lambda,
    /// CSV log of nvidia-smi.
    NvidiaSmi,
    /// JSON, CSV, SQL or Markdown of llama-bench.
    LlamaBench,
    /// Times or log of TensorRT's trtexec.
    Trtexec,
    /// Console output of ai-benchmark.
    AiBenchmark,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 9] = [
        Self::Batchmark,
        Self::Timm,
        Self::CnnBenchmarks,
        Self::ConvnetBenchmarks,
        Self::Lambda,
        Self::NvidiaSmi,
        Self::LlamaBench,
        Self::Trtexec,
        Self::AiBenchmark,
    ];

    /// The name of the program that writes it, which is the source of its records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Batchmark => "Batchmark",
            Self::Timm => "timm",
            Self::CnnBenchmarks => "cnn-benchmarks",
            Self::ConvnetBenchmarks => "convnet-benchmarks",
            Self::Lambda => "lambda deeplearning-benchmark",
            Self::NvidiaSmi => "nvidia-smi",
            Self::LlamaBench => "llama-bench",
            Self::Trtexec => "trtexec",
            Self::AiBenchmark => "ai-benchmark",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was expected of a file that is none of the formats.
pub(super) fn expected() -> String {
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    format!("expected a result file of one of: {}", names.join(", "))
}

/// A file's content as far as it had to be read to recognize it.
pub(super) enum Content<'a> {
    /// Objects of JSON.
    Objects(Objects),
    /// A table of separated values.
    Table(Header<'a>),
    /// Lines of a log.
    Log(&'a str),
}

/// The format of a text; none when no importer knows it.
pub(super) fn recognize(text: &str) -> Option<(Format, Content<'_>)> {
    if let Some(objects) = json::objects(text) {
        // The first objects decide: a list may begin with one that only counts the others.
        let of_row = |row: &Row| format_of_object(row);
        if let Some(format) = objects.rows.iter().take(3).find_map(of_row) {
            return Some((format, Content::Objects(objects)));
        }
    }
    if let Some((format, header)) = delimited::header(text, &format_of_header) {
        return Some((format, Content::Table(header)));
    }
    format_of_log(text).map(|format| (format, Content::Log(text)))
}

fn format_of_object(row: &Row) -> Option<Format> {
    let has = |key: &str| row.fields.contains_key(key);
    let names = || row.fields.keys().map(String::as_str);
    if has("build_commit") && has("avg_ts") {
        Some(Format::LlamaBench)
    } else if ["forward_times", "backward_times", "total_times"].into_iter().any(has) {
        Some(Format::CnnBenchmarks)
    } else if has("name_gpu") {
        Some(Format::Lambda)
    } else if timm::are_columns(names()) || (has("model") && has("error")) {
        Some(Format::Timm)
    } else if trtexec::is_times(row) || trtexec::is_profile(row) {
        Some(Format::Trtexec)
    } else {
        None
    }
}

fn format_of_header(names: &[String]) -> Option<Format> {
    let columns = || names.iter().map(String::as_str);
    let has = |name: &str| columns().any(|column| column == name);
    if has("build_commit") && has("avg_ts") {
        Some(Format::LlamaBench)
    } else if lambda::are_columns(names) {
        Some(Format::Lambda)
    } else if timm::are_columns(columns()) {
        Some(Format::Timm)
    } else if nvidia_smi::are_columns(names) {
        Some(Format::NvidiaSmi)
    } else {
        None
    }
}

fn format_of_log(text: &str) -> Option<Format> {
    if nvidia_smi::is_other_log(text) {
        Some(Format::NvidiaSmi)
    } else if llama_bench::is_log(text) {
        Some(Format::LlamaBench)
    } else if trtexec::is_log(text) {
        Some(Format::Trtexec)
    } else if ai_benchmark::is_log(text) {
        Some(Format::AiBenchmark)
    } else if convnet_benchmarks::is_log(text) {
        Some(Format::ConvnetBenchmarks)
    } else {
        None
    }
}

impl Content<'_> {
    /// Gives the content to the format's importer.
    pub(super) fn read(self, format: Format, draft: &mut Draft<'_>) -> Result<(), Fault> {
        match self {
            Self::Objects(objects) => {
                draft.notes.extend(objects.notes);
                objects_of(format, objects.rows, draft)
            }
            Self::Table(header) => {
                if header.n_skipped > 0 {
                    draft.notes.push(format!("{} lines above the table are left out", header.n_skipped));
                }
                table_of(format, &header, draft)
            }
            Self::Log(text) => match format {
                Format::NvidiaSmi => Err(nvidia_smi::other_log()),
                Format::LlamaBench => llama_bench::read_log(text, draft),
                Format::Trtexec => trtexec::read_log(text, draft),
                Format::AiBenchmark => ai_benchmark::read(text, draft),
                _ => convnet_benchmarks::read(text, draft),
            },
        }
    }
}

fn objects_of(format: Format, rows: Vec<Row>, draft: &mut Draft<'_>) -> Result<(), Fault> {
    match format {
        Format::LlamaBench => llama_bench::read(rows.into_iter().map(Ok), b',', draft),
        Format::Lambda => lambda::read(rows.into_iter().map(Ok), b',', draft),
        Format::Timm => timm::read(rows.into_iter().map(Ok), b',', draft),
        Format::CnnBenchmarks => cnn_benchmarks::read(rows, draft),
        _ => trtexec::read_objects(rows, draft),
    }
}

fn table_of(format: Format, header: &Header<'_>, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let mut notes = Vec::new();
    let rows = header.rows(&mut notes);
    match format {
        Format::LlamaBench => llama_bench::read(rows, header.delimiter, draft),
        Format::Lambda => lambda::read(rows, header.delimiter, draft),
        Format::NvidiaSmi => {
            drop(rows);
            nvidia_smi::read(header, draft)
        }
        _ => timm::read(rows, header.delimiter, draft),
    }?;
    draft.notes.extend(notes);
    Ok(())
}
