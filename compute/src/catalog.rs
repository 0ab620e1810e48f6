//! The catalog of GPUs: facts from public material on 210 of them, and how a driver's name finds one.
//!
//! The table is `datasets/gpus.csv`, embedded as text; `datasets/README.md` says where each column comes from. Nothing
//! here opens a device or knows what was measured on one.

mod names;

use std::sync::OnceLock;

use serde::Deserialize;

use crate::shape::Precision;

pub use names::{find, find_with_memory};

/// The table, as it is in the tree.
const TABLE: &str = include_str!("../../datasets/gpus.csv");

/// One GPU of the catalog. A figure that the sources don't state is absent.
///
/// Of boards with several GPUs, figures are those of one GPU, and the power is the board's; `note` says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// Name as in the published results, such as `"GeForce RTX 4090"` or `"A100 SXM4 80 GB"`.
    pub name: String,
    /// Vendor, such as `"NVIDIA"`.
    pub vendor: String,
    /// Name of the architecture, such as `"Ada Lovelace"`.
    pub architecture: String,
    /// Month of the launch, `YYYY-MM`; sometimes that of the announcement.
    pub launch: Option<String>,
    /// CUDA compute capability, major and minor; absent for other vendors' GPUs.
    pub compute_capability: Option<(u32, u32)>,
    /// Shader cores: CUDA cores, stream processors, ALUs.
    pub shader_cores: Option<u32>,
    /// Matrix units: tensor cores, matrix cores, XMX engines.
    pub matrix_cores: Option<u32>,
    /// Base clock in MHz.
    pub base_clock_mhz: Option<f64>,
    /// Boost clock in MHz.
    pub boost_clock_mhz: Option<f64>,
    /// Memory in bytes; the table's gigabytes are GiB. Absent where it is shared with the processor.
    pub memory_bytes: Option<u64>,
    /// Type of memory, such as `"GDDR6X"`.
    pub memory_type: Option<String>,
    /// Bandwidth of the memory in bytes a second.
    pub bandwidth_bytes_per_sec: Option<f64>,
    /// Peak in f32 in FLOP/s, without matrix units, at the boost clock.
    pub peak_f32: Option<f64>,
    /// Peak in f16 in FLOP/s, without matrix units.
    pub peak_f16: Option<f64>,
    /// Peak of the matrix units in FLOP/s: f16, accumulated in f32, without sparsity.
    pub peak_f16_matrix: Option<f64>,
    /// Peak of the matrix units in FLOP/s in tf32, without sparsity.
    pub peak_tf32: Option<f64>,
    /// Rated power in watts.
    pub tdp_watt: Option<f64>,
    /// Price at launch in US dollars.
    pub launch_price_usd: Option<f64>,
    /// Where the figures come from.
    pub source: String,
    /// How sure each of them is, in the table's words; [`Gpu::confidence_of`] reads it.
    pub confidence: String,
    /// What a reader should know of this row; empty when there is nothing.
    pub note: String,
}

/// How a figure came into the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Confidence {
    /// Taken from the source that the row names.
    Fetched,
    /// Computed from other figures of the row.
    Computed,
    /// Written down from general knowledge, not from a source at hand.
    Recalled,
}

/// Figures of a row whose confidence can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// [`Gpu::launch`].
    Launch,
    /// [`Gpu::compute_capability`].
    ComputeCapability,
    /// [`Gpu::shader_cores`].
    ShaderCores,
    /// [`Gpu::matrix_cores`].
    MatrixCores,
    /// [`Gpu::base_clock_mhz`].
    BaseClock,
    /// [`Gpu::boost_clock_mhz`].
    BoostClock,
    /// [`Gpu::memory_bytes`].
    Memory,
    /// [`Gpu::memory_type`].
    MemoryType,
    /// [`Gpu::bandwidth_bytes_per_sec`].
    Bandwidth,
    /// [`Gpu::peak_f32`].
    PeakF32,
    /// [`Gpu::peak_f16`].
    PeakF16,
    /// [`Gpu::peak_f16_matrix`] and [`Gpu::peak_tf32`].
    PeakMatrix,
    /// [`Gpu::tdp_watt`].
    Tdp,
    /// [`Gpu::launch_price_usd`].
    LaunchPrice,
}

impl Field {
    /// Every field, in the order of the table.
    pub const ALL: [Self; 14] = [
        Self::Launch,
        Self::ComputeCapability,
        Self::ShaderCores,
        Self::MatrixCores,
        Self::BaseClock,
        Self::BoostClock,
        Self::Memory,
        Self::MemoryType,
        Self::Bandwidth,
        Self::PeakF32,
        Self::PeakF16,
        Self::PeakMatrix,
        Self::Tdp,
        Self::LaunchPrice,
    ];

    /// The column of the table, which its corrections name.
    const fn column(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::ComputeCapability => "cuda_compute_capability",
            Self::ShaderCores => "shader_cores",
            Self::MatrixCores => "matrix_cores",
            Self::BaseClock => "base_clock_mhz",
            Self::BoostClock => "boost_clock_mhz",
            Self::Memory => "memory_gb",
            Self::MemoryType => "memory_type",
            Self::Bandwidth => "memory_bandwidth_gb_s",
            Self::PeakF32 => "fp32_tflops",
            Self::PeakF16 => "fp16_tflops",
            Self::PeakMatrix => "tensor_fp16_dense_fp32acc_tflops",
            Self::Tdp => "tdp_w",
            Self::LaunchPrice => "msrp_usd",
        }
    }

    /// The group that the table's column of confidence puts it into.
    const fn group(self) -> &'static str {
        match self {
            Self::PeakMatrix => "tensor",
            Self::LaunchPrice => "msrp",
            _ => "specs",
        }
    }
}

/// Why the table can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CatalogError {
    /// A row has other columns than expected, or text where a number belongs.
    #[error("a row can't be read: {0}")]
    Row(#[from] csv::Error),
    /// A value can't be true or understood.
    #[error("{gpu:?}: {column} is {value:?}")]
    Value {
        /// Name of the row.
        gpu: String,
        /// Name of the column.
        column: &'static str,
        /// What is there.
        value: String,
    },
}

impl Gpu {
    /// Whether power and price are those of a board with several of this GPU.
    pub fn shares_its_board(&self) -> bool {
        self.note.contains("TDP is the board")
    }

    /// How a figure of this row came into the catalog.
    pub fn confidence_of(&self, field: Field) -> Confidence {
        confidence(&self.confidence, field).unwrap_or(Confidence::Recalled)
    }

    /// FLOP/s of the fastest unit that computes in a precision: matrix units where there are such for it, else the
    /// shader cores. Values of 16 bits can be computed on as f32, so that is the least for them.
    ///
    /// For bf16 the matrix units count from compute capability 8.0 on; those of CDNA 1.0 have half the rate of f16.
    pub fn peak(&self, precision: Precision) -> Option<f64> {
        let larger = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        match precision {
            Precision::F32 => self.peak_f32,
            Precision::Tf32 => larger(self.peak_tf32, self.peak_f32),
            Precision::F16 => larger(self.peak_f16_matrix, larger(self.peak_f16, self.peak_f32)),
            Precision::Bf16 => {
                let has_bf16 = self.compute_capability.is_none_or(|version| version >= (8, 0));
                let rate = if self.architecture == "CDNA 1.0" { 0.5 } else { 1.0 };
                let matrix = self.peak_f16_matrix.filter(|_| has_bf16).map(|peak| peak * rate);
                larger(matrix, self.peak_f32)
            }
        }
    }
}

/// Every GPU of the catalog, in the order of their launch.
pub fn all() -> &'static [Gpu] {
    static GPUS: OnceLock<Vec<Gpu>> = OnceLock::new();
    GPUS.get_or_init(|| parse(TABLE).unwrap_or_else(|error| panic!("datasets/gpus.csv: {error}")))
}

/// A row as it stands in the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    vendor: String,
    architecture: String,
    launch: Option<String>,
    cuda_compute_capability: Option<String>,
    shader_cores: Option<u32>,
    matrix_cores: Option<u32>,
    base_clock_mhz: Option<f64>,
    boost_clock_mhz: Option<f64>,
    memory_gb: Option<u64>,
    memory_type: Option<String>,
    memory_bandwidth_gb_s: Option<f64>,
    fp32_tflops: Option<f64>,
    fp16_tflops: Option<f64>,
    tensor_fp16_dense_fp32acc_tflops: Option<f64>,
    tf32_dense_tflops: Option<f64>,
    tdp_w: Option<f64>,
    msrp_usd: Option<f64>,
    source: String,
    confidence: String,
    note: String,
}

fn parse(table: &str) -> Result<Vec<Gpu>, CatalogError> {
    let rows = csv::Reader::from_reader(table.as_bytes()).into_deserialize();
    let mut gpus = rows.map(|row| gpu(row?)).collect::<Result<Vec<Gpu>, CatalogError>>()?;
    gpus.sort_by(|a, b| (a.launch.is_none(), &a.launch).cmp(&(b.launch.is_none(), &b.launch)));
    Ok(gpus)
}

fn gpu(row: Row) -> Result<Gpu, CatalogError> {
    let wrong = |column: &'static str, value: String| CatalogError::Value { gpu: row.name.clone(), column, value };
    let rates = [
        ("base_clock_mhz", row.base_clock_mhz),
        ("boost_clock_mhz", row.boost_clock_mhz),
        ("memory_bandwidth_gb_s", row.memory_bandwidth_gb_s),
        ("fp32_tflops", row.fp32_tflops),
        ("fp16_tflops", row.fp16_tflops),
        ("tensor_fp16_dense_fp32acc_tflops", row.tensor_fp16_dense_fp32acc_tflops),
        ("tf32_dense_tflops", row.tf32_dense_tflops),
        ("tdp_w", row.tdp_w),
        ("msrp_usd", row.msrp_usd),
    ];
    for (column, value) in rates.into_iter().filter_map(|(column, value)| Some((column, value?))) {
        if !(value > 0.0 && value.is_finite()) {
            return Err(wrong(column, value.to_string()));
        }
    }
    if let Some(launch) = row.launch.as_ref().filter(|launch| !is_month(launch)) {
        return Err(wrong("launch", launch.clone()));
    }
    let version = |text: &String| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let compute_capability = match &row.cuda_compute_capability {
        Some(text) => Some(version(text).ok_or_else(|| wrong("cuda_compute_capability", text.clone()))?),
        None => None,
    };
    if Field::ALL.iter().any(|&field| confidence(&row.confidence, field).is_none()) {
        return Err(wrong("confidence", row.confidence.clone()));
    }
    let tera = |value: Option<f64>| value.map(|value| value * 1e12);
    Ok(Gpu {
        name: row.name,
        vendor: row.vendor,
        architecture: row.architecture,
        launch: row.launch,
        compute_capability,
        shader_cores: row.shader_cores,
        matrix_cores: row.matrix_cores,
        base_clock_mhz: row.base_clock_mhz,
        boost_clock_mhz: row.boost_clock_mhz,
        memory_bytes: row.memory_gb.map(|gib| gib << 30),
        memory_type: row.memory_type,
        bandwidth_bytes_per_sec: row.memory_bandwidth_gb_s.map(|value| value * 1e9),
        peak_f32: tera(row.fp32_tflops),
        peak_f16: tera(row.fp16_tflops),
        peak_f16_matrix: tera(row.tensor_fp16_dense_fp32acc_tflops),
        peak_tf32: tera(row.tf32_dense_tflops),
        tdp_watt: row.tdp_w,
        launch_price_usd: row.msrp_usd,
        source: row.source,
        confidence: row.confidence,
        note: row.note,
    })
}

/// Whether a text is a month, `YYYY-MM`.
fn is_month(text: &str) -> bool {
    let Some((year, month)) = text.split_once('-') else { return false };
    let number = |text: &str, length: usize| text.parse::<u32>().ok().filter(|_| text.len() == length);
    number(year, 4).is_some() && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
}

/// What a text such as `"specs: fetched; corrected from general knowledge: tdp_w; msrp: general knowledge"` says of a
/// field: the words that name its column, else its group, else all. Absent when it can't be understood.
fn confidence(text: &str, field: Field) -> Option<Confidence> {
    let mut found = (0, Confidence::Recalled);
    for clause in text.split(';') {
        let (subject, words) = clause.trim().split_once(": ")?;
        if subject == "corrected from general knowledge" {
            if words.split(' ').any(|column| column == field.column()) {
                found = (3, Confidence::Recalled);
            }
            continue;
        }
        let stated = match words.split(" (").next()? {
            "fetched" => Confidence::Fetched,
            "computed" => Confidence::Computed,
            "general knowledge" => Confidence::Recalled,
            _ => return None,
        };
        let is_named = subject.split(" and ").any(|name| match name {
            "FP32" => field == Field::PeakF32,
            name => name == field.group(),
        });
        let weight = match subject {
            _ if is_named => 2,
            "all" | "rest" => 1,
            "specs" | "tensor" | "msrp" | "tensor and FP32" => 0,
            _ => return None,
        };
        if weight > found.0 {
            found = (weight, stated);
        }
    }
    Some(found.1)
}

#[cfg(test)]
mod tests;
