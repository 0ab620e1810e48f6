//! The stored result: schema `batchmark/1`, documented here field by field and published as
//! `datasets/result.schema.json`.
//!
//! Every number is finite or absent. Fields that this version does not know are kept in `extra` and written back.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::origin::Origin;
use super::profile::Profile;
use super::statistics::Summary;
use crate::engine::Device;
use crate::plan::Pass;
use crate::shape::Precision;

/// Name and version of the schema.
pub const SCHEMA: &str = "batchmark/1";

/// One result file: records with the environment they came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultFile {
    /// Name and version of the schema, `"batchmark/1"`.
    pub schema: String,
    /// When the file was begun, RFC 3339 in UTC.
    pub created: String,
    /// Version of the program that wrote it.
    pub program: String,
    /// The machine.
    #[serde(default)]
    pub host: Host,
    /// The devices that records refer to by index.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// The outcomes, in the order they came about.
    #[serde(default)]
    pub records: Vec<Record>,
    /// SHA-256 of devices and records as written, hexadecimal; absent in files not written by this program. It shows an
    /// edit made by accident or without care, it does not prevent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether records of the file were once found to differ from their digest, or to have none; absent when they were
    /// not. It stays when records are added and a new digest is made, which covers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The machine, without a user's or host's name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Operating system and version.
    #[serde(default)]
    pub os: String,
    /// Processor.
    #[serde(default)]
    pub cpu: String,
    /// Logical processor cores; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<usize>,
    /// Main memory in bytes; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Graphics driver; absent when not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What the user calls this machine; absent unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Outcome of a run. A bad outcome is a result: it is stored, shown and exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Measured and verified.
    Ok,
    /// Device memory did not suffice.
    OutOfMemory,
    /// The device can't hold or bind something of this size, whatever its memory.
    ExceedsDeviceLimit,
    /// The engine or the device does not offer this; known before timing.
    NotSupported,
    /// The driver or a compiler reported an error.
    Failed,
    /// The worker process ended unexpectedly.
    Crashed,
    /// The worker was silent for too long and was ended.
    TimedOut,
    /// The user cancelled it.
    Cancelled,
    /// Outputs did not agree with the reference; there is no throughput.
    Incorrect,
}

impl Status {
    /// What is shown in place of a bar.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OutOfMemory => "out of memory",
            Self::ExceedsDeviceLimit => "exceeds device limit",
            Self::NotSupported => "not supported",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::Incorrect => "incorrect",
        }
    }

    /// Whether a larger minibatch of the same series can't succeed either.
    pub const fn is_memory_edge(self) -> bool {
        matches!(self, Self::OutOfMemory | Self::ExceedsDeviceLimit)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

/// One stored result, self-contained in everything that distinguishes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Name of the model, such as `"resnet50"`.
    pub model: String,
    /// Name, version and hash of the model's definition, such as `"resnet50/1 0123456789abcdef"`; empty where `origin` is
    /// given and the network is not known to be one of these.
    pub definition: String,
    /// The pass.
    pub pass: Pass,
    /// The precision.
    pub precision: Precision,
    /// Samples in one iteration; 0 only where `origin` is given and does not state it.
    pub minibatch: usize,
    /// Name of what computed it: one of the program's engines, such as `"wgsl"`, or of another program that framework,
    /// such as `"PyTorch 2.11"`, whose version is among the libraries.
    pub engine: String,
    /// Index into the file's devices; absent when the device could not be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<usize>,
    /// When the run began, RFC 3339 in UTC; empty where `origin` is given and does not state it.
    pub started: String,
    /// The outcome.
    pub status: Status,
    /// Why the outcome is not `ok`, in one sentence; absent when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Times of an iteration; only for outcome `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// Samples a second, minibatch / median time; only for outcome `ok`. Absent where `origin` is given and its figure is
    /// of another kind, such as tokens a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_per_sec: Option<f64>,
    /// The model's floating-point operations / median time; only for outcome `ok`. With Winograd more than the device
    /// executes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_flop_per_sec: Option<f64>,
    /// Device memory.
    #[serde(default)]
    pub memory: Memory,
    /// Comparison with the reference; absent when it was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// What the device reported of itself while measuring; absent when it reports nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// Milliseconds of loading, compiling and tuning, never part of the timing; absent when it was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning_ms: Option<f64>,
    /// Times of the steps of an iteration beside the device's ceilings; absent unless it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Kernels and library routines that computed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
    /// Versions of the libraries that computed it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub libraries: BTreeMap<String, String>,
    /// Remarks a reader should know, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where the figure comes from that this program did not measure; absent for one that it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<Origin>>,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Record {
    /// A record with an outcome and nothing else.
    pub fn blank(pass: Pass, precision: Precision, status: Status) -> Self {
        Self {
            model: String::new(),
            definition: String::new(),
            pass,
            precision,
            minibatch: 0,
            engine: String::new(),
            device: None,
            started: String::new(),
            status,
            reason: None,
            timing: None,
            throughput_per_sec: None,
            achieved_flop_per_sec: None,
            memory: Memory::default(),
            verification: None,
            telemetry: None,
            tuning_ms: None,
            profile: None,
            kernels: Vec::new(),
            libraries: BTreeMap::new(),
            notes: Vec::new(),
            origin: None,
            extra: Map::new(),
        }
    }

    /// Why its figure can't be true; absent when nothing speaks against it.
    pub fn doubt(&self) -> Option<&str> {
        self.origin.as_ref().and_then(|origin| origin.doubt.as_deref())
    }
}

/// Clock that the quoted times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The device's own timestamps.
    Device,
    /// The host's monotonic clock, the wait for the device included.
    Host,
}

/// Times of one iteration, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// Clock that the times come from.
    pub clock: Clock,
    /// Measured iterations.
    pub iterations: usize,
    /// Median.
    pub median_ms: f64,
    /// Arithmetic mean.
    pub mean_ms: f64,
    /// Sample standard deviation.
    pub stddev_ms: f64,
    /// 5th percentile.
    pub p5_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 95% confidence interval of the median, lower and upper bound.
    pub ci95_ms: [f64; 2],
    /// Every sample in order, rounded to a microsecond.
    pub samples_ms: Vec<f64>,
    /// Median on the host's clock; absent when that is the quoted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_median_ms: Option<f64>,
    /// Median of the last fifth of the samples over that of the first fifth, minus one; absent for few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
    /// Iterations of warm-up before the measurement.
    #[serde(default)]
    pub warm_up_iterations: usize,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Timing {
    /// Samples in milliseconds, in order, with their summary; what only a run of our own knows is absent.
    pub fn of(clock: Clock, samples_ms: &[f64], summary: &Summary) -> Self {
        Self {
            clock,
            iterations: samples_ms.len(),
            median_ms: summary.median,
            mean_ms: summary.mean,
            stddev_ms: summary.stddev,
            p5_ms: summary.p5,
            p95_ms: summary.p95,
            ci95_ms: summary.ci95,
            samples_ms: samples_ms.iter().map(|ms| (ms * 1e3).round() / 1e3).collect(),
            host_median_ms: None,
            drift: summary.drift,
            warm_up_iterations: 0,
            extra: Map::new(),
        }
    }
}

/// Device memory in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// What the plan needs, known before anything is allocated; absent when planning failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_bytes: Option<u64>,
    /// What was allocated, padding and workspace included; absent when it was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// What of it is workspace, not the plan's buffers; absent when it was not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_bytes: Option<u64>,
    /// Free device memory before the run; absent when the device does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_before_bytes: Option<u64>,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Comparison with the f64-accumulating reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Largest normalized error ‖a − b‖ / ‖b‖ of logits, loss and gradient norms; absent when it is not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Largest error that passes for this precision.
    pub tolerance: f64,
    /// Whether it passed.
    pub passed: bool,
    /// The quantity with the largest error, such as `"logits"` or `"conv1.weight"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<String>,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What the device reported of itself while measuring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Telemetry {
    /// Times the device was asked.
    #[serde(default)]
    pub readings: usize,
    /// Mean core clock in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<f64>,
    /// Mean utilization, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Mean power in W.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_watt: Option<f64>,
    /// Highest temperature in °C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<f64>,
    /// Share of the readings in which a reason held the clock down, by reason, such as `"power"` or `"thermal"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub throttled: BTreeMap<String, f64>,
    /// Fields written by a later version, kept as they are.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The published JSON Schema of a result file, the text of `datasets/result.schema.json`.
pub fn json_schema() -> String {
    format!("{:#}\n", schemars::schema_for!(ResultFile).to_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_the_one_of_the_types() {
        let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets/result.schema.json");
        let published = std::fs::read_to_string(published).unwrap();
        assert!(published == json_schema(), "regenerate it: batchmark schema > datasets/result.schema.json");
    }
}
